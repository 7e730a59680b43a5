"""Whether two texts are the same, word by word, so that nobody needs to ask DuckDB whether it reads them alike."""

from __future__ import annotations

import re

_WORD = re.compile(
    r"""
      [ \t\r\n]+
    | (?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" ) (?! ['"] )
    | (?P<word> (?> [A-Za-z_][A-Za-z0-9_.]* | [0-9]+ (?: \.[0-9]+ )? | \$[0-9]+ ) (?! [A-Za-z0-9_.$'"] )
        | [-+*/%<>=~!^|]+ | [][(),;] )
    """,
    re.VERBOSE,
)
"""Blanks, or a word of a text. Two words that stand side by side are never one to DuckDB.

There is no place for what is read in more ways than one, or in another where a blank is missing: a letter before a
quote (E'..', U&"..") or after a number (1e-5), a text after another one, comments, other quotes, ``?``, ``:`` and
``#``, letters that are no ASCII.
"""


def same_words(one: str, other: str) -> bool:
    """Whether two texts have the same words, whatever stands between them, and whether or not names have capitals.

    >>> same_words("select a, count( * ) from t where b='B';", "SELECT a, COUNT(*) FROM t WHERE b = 'B'")
    True
    >>> texts = ("SELECT e'a'", "SELECT 'A'", "SELECT 1 -- a", "SELECT 'a' 'b'", "SELECT 1 < -2", "SELECT 1e -5")
    >>> others = ("SELECT e 'a'", "SELECT 'a'", "SELECT 1 -- a", "SELECT 'a' 'b'", "SELECT 1 <-2", "SELECT 1e-5")
    >>> list(map(same_words, texts, others))
    [False, False, False, False, False, False]
    """
    words = _words(one)
    return words is not None and words == _words(other)


def _words(text: str) -> list[str] | None:
    """The words, those that are not quoted in small letters; None where a text has anything else."""
    found: list[str] = []
    end, after_text = 0, False
    for match in _WORD.finditer(text):
        if match.start() != end:
            return None
        end = match.end()
        quoted, word = match["quoted"], match["word"]
        if word is not None:
            if "--" in word or "/*" in word:
                return None
            found.append(word.lower())
            after_text = False
        elif quoted is not None:
            if after_text:  # on two lines they are one
                return None
            found.append(quoted)
            after_text = quoted.startswith("'")
    while found and found[-1] == ";":
        found.pop()
    return found if end == len(text) else None
