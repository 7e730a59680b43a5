"""Questions that differ in constants: what one is rewritten to, with the places where the constants of another one go.

A filter of a dashboard asks ``.. WHERE region = 'north'`` and next ``.. WHERE region = 'south'``. What is protected and
how depends on neither value. Only values that columns are compared with in WHERE are taken for such constants. A value
elsewhere may say what is to be done, as a limit, a place in GROUP BY or a factor does, or be part of an expression that
is the same as another one, as a group key is that stands in SELECT, too.

Nothing is trusted to look right: the question is rewritten once more with values that stand nowhere else, and all of
these must come out as literals of their own; with the constants in these places it must be what the question was
rewritten to, in all its parts.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Release, Rewritten

_VALUES = {
    "date": r"'[0-9]{4}-[0-9]{2}-[0-9]{2}'",
    "time": r"'[0-9]{4}-[0-9]{2}-[0-9]{2}\x20[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?'",
    "text": r"'(?:[\w\x20.,:;@%&+/()<>!?*-]|=(?!=)){0,24}'",  # a text with == somewhere is read once more
    "number": r"(?:[1-9][0-9]{1,8}|[0-9])",
    "decimal": r"(?:[1-9][0-9]{1,8}|[0-9])\.[0-9]{1,4}",
}
"""The kinds of constants: of one kind DuckDB has one type for all, and none is longer than an `_unheard_of` one."""

# Each is read in one way: a date is a text, too, and a list of dates that fails in the end would be tried in all ways.
_VALUE = rf"""(?> {"|".join(reversed(_VALUES.values()))} )"""
_COMPARAND = rf"""(?: {_VALUE}
    | (?: DATE | TIMESTAMP ) \s+ {_VALUE}
    | CAST \s* \( \s* {_VALUE} \s+ AS \s+ \w+ \s* \)
    | (?: MAKE_DATE | MAKE_TIMESTAMP ) \s* \( \s* {_VALUE} (?: \s* , \s* {_VALUE} )* \s* \) )"""
_END = r"(?= \s* (?: [),;] | :: | $ | (?:AND|OR|THEN|ELSE|END|WHEN|AS|GROUP|ORDER|HAVING|LIMIT|QUALIFY|UNION)\b ))"
_CLAUSES = """
    WHERE (?!\\s*:) | SELECT | (?<!DISTINCT\\s) FROM | USING | ON | FOR | GROUP | HAVING | WINDOW | QUALIFY | ORDER
    | LIMIT | OFFSET | FETCH | UNION | INTERSECT | EXCEPT | VALUES | WITH | SAMPLE | TABLESAMPLE | PIVOT | UNPIVOT"""
_COMPARED = re.compile(
    rf"""
      (?P<odd> -- | /\* | [\\`\#] | \$(?!\d) )
    | (?: (?<!\w) (?: [^\W\d]\w* | "(?:[^"]|"")*" ) | \) ) \s* (?: <> | [<>!=]= | [<>=] ) \s* {_COMPARAND} {_END}
    | (?<!\w) IN \s* \( \s* {_COMPARAND} \s* (?: , \s* {_COMPARAND} \s* )* \)
    | (?<!\w) BETWEEN \s+ {_COMPARAND} \s+ AND \s+ {_COMPARAND} {_END}
    | (?<!\w) (?P<clause> FILTER \s* \( | (?: {_CLAUSES} ) (?!\w) )
    | (?P<bracket> [()] )
    | (?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" | (?: (?<!\w) AS \s+ | \. \s* ) WHERE (?!\w) )
    | (?P<open> ['"] )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ONE = re.compile(rf"""(?P<name> "(?:[^"]|"")*" | [^\W\d]\w* ) | (?P<value> {_VALUE} )""", re.VERBOSE)
_LITERALS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\d+(?:\.\d+)?|[^\W\d]\w*|[^'"\w]+|.""", re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """A question without its constants.

    Attributes:
        pattern: its text with a mark for each constant, which says its kind and which of them are the same.
        constants: each once, as they are written in SQL.
        kinds: of the constants.
    """

    pattern: str
    constants: tuple[str, ...]
    kinds: tuple[str, ...]

    def with_constants(self, constants: Sequence[str]) -> str:
        """The question with these constants in place of its own."""
        return _MARK.sub(lambda mark: constants[int(mark[1])], self.pattern)


_MADE_UP = re.compile(r'"_sdc_[0-9a-f]{24}"')
_MARK = re.compile(r"\x00(\d+)[a-z]+\x00")


def asked(text: str) -> Asked | None:
    """The constants that columns are compared with in WHERE, and the question without them; None where there are none.

    >>> found = asked("SELECT age > 5, count(*) FROM people WHERE region IN ('a', 'b') AND (age > 5) GROUP BY age > 5")
    >>> found.constants
    ("'a'", "'b'", '5')
    >>> found.with_constants(["'c'", "'d'", "7"])
    "SELECT age > 5, count(*) FROM people WHERE region IN ('c', 'd') AND (age > 7) GROUP BY age > 5"
    >>> asked("SELECT sum(2 * income) FILTER (WHERE age = 5), 'WHERE a = 5' FROM people WHERE 1 = 0 LIMIT 1")
    """
    places: dict[str, int] = {}
    # Whether this is WHERE, for each bracket that is open; None: nothing in it is.
    where: list[bool | None] = [False]

    def without(found: re.Match[str]) -> str:
        if found["odd"] or found["open"]:
            raise ValueError
        if found["quoted"]:  # or a name
            return found[0]
        if found["clause"]:
            if found[0].endswith("("):
                where.append(None)
            elif where[-1] is not None:
                where[-1] = found[0].upper() == "WHERE"
            return found[0]
        if found[0] == "(":
            where.append(where[-1])
        elif found[0].startswith(")"):
            where.pop()
        return _ONE.sub(mark, found[0]) if where[-1] else found[0]

    def mark(one: re.Match[str]) -> str:
        value = one["value"]
        return one[0] if value is None else f"\x00{places.setdefault(value, len(places))}{_kind(value)}\x00"

    if "\x00" in text:
        return None
    try:
        pattern = _COMPARED.sub(without, text)
    except (ValueError, IndexError):  # comments, other quotes, brackets: it could be read in another way than here
        return None
    return Asked(pattern, tuple(places), tuple(map(_kind, places))) if places else None


def _kind(value: str) -> str:
    """The kind of a constant; a day that no calendar has is a text, as more can fail with it than with others.

    >>> _kind("'2024-02-29'"), _kind("'2023-02-29'"), _kind("'2024-02-29 24:00:00'"), _kind("5"), _kind("5.0")
    ('date', 'text', 'text', 'number', 'decimal')
    """
    kind = next(kind for kind, pattern in _VALUES.items() if re.fullmatch(pattern, value))
    if kind in ("date", "time"):
        try:
            datetime.fromisoformat(value.strip("'").partition(".")[0])
        except ValueError:
            return "text"
    return kind


def _unheard_of(kind: str) -> str:
    """A constant of a kind that stands nowhere else, of the greatest length: no other is too long where this is not."""
    low = secrets.randbelow
    day = f"{1000 + low(9000)}-{1 + low(12):02}-{1 + low(28):02}"
    if kind == "text":
        return f"'{secrets.token_hex(12)}'"
    if kind in ("date", "time"):
        return f"'{day}'" if kind == "date" else f"'{day} {low(24):02}:{low(60):02}:{low(60):02}.{low(1_000_000):06}'"
    return f"{100_000_000 + low(900_000_000)}" + (f".{1000 + low(9000)}" if kind == "decimal" else "")


@dataclass(frozen=True)
class Template:
    """What questions of one pattern are rewritten to.

    Attributes:
        rewritten: what one of them is.
        parts: of each of its texts (`_texts`); a number stands for a constant.
    """

    rewritten: Rewritten
    parts: tuple[tuple[str | int, ...], ...]

    def filled(self, constants: Sequence[str]) -> Rewritten:
        """What the question with these constants is rewritten to."""
        texts = [
            "".join([part if isinstance(part, str) else constants[part] for part in parts]) for parts in self.parts
        ]
        return _with_texts(self.rewritten, texts)


def _texts(rewritten: Rewritten) -> list[str]:
    """The text of the query, and those of each of its releases."""
    return [rewritten.sql, *(text for release in rewritten.releases for text in _of_release(release))]


def _renamed(rewritten: Rewritten) -> Rewritten:
    """The same with names by their places where they were made up anew (`render`): two rewritings have two of them."""
    names: dict[str, str] = {}
    texts = [
        _MADE_UP.sub(lambda name: names.setdefault(name[0], f'"{len(names)}"'), text) for text in _texts(rewritten)
    ]
    return _with_texts(rewritten, texts)


def _with_texts(rewritten: Rewritten, texts: Sequence[str]) -> Rewritten:
    sql, *rest = texts
    waiting = iter(rest)
    releases = tuple(
        replace(release, stands_for=next(waiting), cells=next(waiting), totals=next(waiting))
        for release in rewritten.releases
    )
    return replace(rewritten, sql=sql, releases=releases)


def _of_release(release: Release) -> tuple[str, str, str]:
    return release.stands_for, release.cells, release.totals


def _together(parts: Sequence[str | int]) -> tuple[str | int, ...]:
    """The same with texts that stand beside each other as one: a question under noise has thousands of them.

    >>> _together(["SELECT ", "1", " + ", 0, 1, ";"])
    ('SELECT 1 + ', 0, 1, ';')
    """
    found: list[str | int] = []
    for is_text, run in groupby(parts, key=lambda part: isinstance(part, str)):
        beside = list(run)
        found += ["".join(map(str, beside))] if is_text else beside
    return tuple(found)


def template(question: Asked, known: Rewritten, rewrite: Callable[[str], Rewritten]) -> Template | None:
    """The template of the pattern of a question; None where more than the text depends on the constants.

    Args:
        known: what this question is rewritten to.
        rewrite: what another question is rewritten to.
    """
    strangers = [_unheard_of(kind) for kind in question.kinds]
    bare = [stranger.strip("'") for stranger in strangers]
    if len(set(bare)) < len(bare) or any(one in text for one in bare for text in (question.pattern, *_texts(known))):
        return None
    try:
        other = rewrite(question.with_constants(strangers))
    except Refused:
        return None
    places = {stranger: place for place, stranger in enumerate(strangers)}
    parts = tuple(tuple(places.get(part, part) for part in _LITERALS.findall(text)) for text in _texts(other))
    every = [part for of in parts for part in of]
    rest = "\n".join(part for part in every if isinstance(part, str))
    found = Template(other, tuple(map(_together, parts)))
    # In a name, or in a longer text, a constant is no longer one. One that does not come out decided about something.
    usable = not any(one in rest for one in bare) and set(places.values()) <= set(every)
    return found if usable and _renamed(found.filled(question.constants)) == _renamed(known) else None


class Templates:
    """The templates of the questions that were asked: each is made when a second question of its pattern comes.

    Args:
        most: patterns that are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, tuple[str, Template | None, bool]] = {}

    def find(self, question: Asked, version: str) -> Template | None:
        """The template of a question under the policies of a version, if there is one."""
        before, found, _ = self._known.get(question.pattern, ("", None, False))
        return found if before == version else None

    def learn(self, question: Asked, version: str, known: Rewritten, rewrite: Callable[[str], Rewritten]) -> None:
        """Remember a question that was rewritten; the arguments are those of `template`."""
        before, found, tried = self._known.get(question.pattern, ("", None, False))
        again = before == version
        if again and tried and found is None:
            return
        if len(self._known) >= self._most:
            self._known.clear()
        found = template(question, known, rewrite) if again else None
        self._known[question.pattern] = (version, found, again)
