"""What questions were rewritten to, for when they come again."""

from __future__ import annotations

import re
import threading

from sdcduck.guard.rewriter import Rewriter
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.schema import Schema
from sdcduck.guard.templates import Templates, asked

_MOST = 1000
_LONGEST_ASKED = 100_000  # characters
_LONGEST_PLAIN = 10_000
_LONGEST_KEPT = 50_000  # of a question with its rewriting: a thousand longer ones would fill the memory
_PART = re.compile(
    r"""
    [\w,.()*=<>]+
    | '(?:[^'\\]|'')*'
    | "(?:[^"]|"")*"
    | (?P<gap>(?:[ \t\n] | \r\n | (?<![^\s\w),;'"])(?:--[^\r\n]* | /\*[^*/]*\*/))+)
    | (?P<odd>[\\`\#'"\x00-\x1f\x7f] | \$(?!\d) | /\* | --)
    """,
    re.VERBOSE,
)


class Rewritings:
    """The rewriting of each question: remembered, that of another one with other constants, or made.

    Args:
        alone: held while the guard's connection is used.
        schema: what is known of its database.
        rewriter: makes what is not remembered.
    """

    def __init__(self, alone: threading.Lock, schema: Schema, rewriter: Rewriter) -> None:
        self._alone, self._schema, self._rewriter = alone, schema, rewriter
        self._rewritten: dict[str, tuple[str, Rewritten]] = {}
        self._templates = Templates(_MOST)
        self._texts: dict[str, str] = {}

    def of(self, query: str, version: str) -> Rewritten:
        """The rewriting of a question under the policies of a version.

        Raises:
            Refused: it cannot be shown to be safe.
        """
        text = self._plain(query)
        known = self._rewritten.get(text)
        if known is None or known[0] != version or not self._schema.have(known[1].schemas):
            known = (version, self._anew(query, text, version))
            if len(text) + len(known[1].sql) <= _LONGEST_KEPT:
                if len(self._rewritten) >= _MOST:
                    self._rewritten.clear()
                self._rewritten[text] = known
        return known[1]

    def forget(self) -> None:
        """Make all anew."""
        self._rewritten.clear()
        self._templates = Templates(_MOST)

    def _anew(self, query: str, text: str, version: str) -> Rewritten:
        """What a question becomes that is not remembered; another one may be that differs only in its constants."""
        question = asked(text) if len(text) <= _LONGEST_ASKED else None
        if question is not None:
            found = self._templates.find(question, version)
            if found is not None and self._schema.have(found.rewritten.schemas):
                return found.filled(question.constants)
        with self._alone, self._schema.relations.cached():
            policies = self._schema.policies(version)
            rewritten = self._rewriter.made(query, policies)
            if question is not None and len(text) + len(rewritten.sql) <= _LONGEST_KEPT:
                self._templates.learn(question, version, rewritten, lambda other: self._rewriter.made(other, policies))
        return rewritten

    def _plain(self, query: str) -> str:
        """`plain_text`, remembered: most texts come again to the letter. Long ones would fill the memory."""
        if len(query) > _LONGEST_PLAIN:
            return query
        text = self._texts.get(query)
        if text is None:
            text = plain_text(query)
            if len(self._texts) >= _MOST:
                self._texts.clear()
            self._texts[query] = text
        return text


def plain_text(query: str) -> str:
    """A text with one space where there were several, or comments: two questions with one text are the same.

    Programs put the name of their user or the number of a chart into a comment. Where comments or strings could be read
    in another way than here, the text stays as it is.

    >>> plain_text("/* chart 7 */ SELECT  1 -- one\\n , 'a  -- b' "), plain_text("SELECT $$ /* $$")
    ("SELECT 1 , 'a  -- b'", 'SELECT $$ /* $$')
    """
    if not query.isascii():
        return query
    parts, end = [], 0
    for found in _PART.finditer(query):
        if found["odd"]:
            return query
        if found["gap"]:
            before, end = query[end : found.start()], found.end()
            if before.endswith("'") and query.startswith("'", end):  # with a line between them they may be one string
                return query
            parts += [before, " "]
    return "".join([*parts, query[end:]]).strip(" ")
