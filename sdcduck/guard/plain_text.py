"""Two questions with one plain text are the same."""

from __future__ import annotations

import re

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
