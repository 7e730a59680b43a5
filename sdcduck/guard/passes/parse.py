"""From a text to a tree: as DuckDB's parser has it, and as sqlglot does."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from sdcduck.guard.passes.chained import settle_chained_calls
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.normalize import settle_readings, with_bracketed_keys
from sdcduck.guard.passes.reading import read
from sdcduck.guard.passes.same_reading import refuse_two_readings
from sdcduck.guard.passes.selected_values import with_selected_values
from sdcduck.guard.passes.subscripts import refuse_other_readings, settle_subscripts
from sdcduck.guard.passes.words import with_blanks, words_of
from sdcduck.guard.refusals import Refused

_LONGEST = 100_000  # characters
_DEEPEST = 200
_MOST_TOKENS = 10_000
_MOST_NODES = 5_000
_BRACKETS = re.compile(r"[()\[\]{}]")

_DUCKDB = Dialect.get_or_raise("duckdb")


def read_text(draft: Draft) -> None:
    """Have DuckDB's parser read a text that is not too long for sqlglot's.

    >>> after(read_text, "SELECT region, count(*) FROM people GRUOP BY region")
    refused: SDC001: not valid SQL. Correct the statement.
    """
    _check_text(draft.query)
    draft.reading = read(draft.con, draft.query)


def number_parameters(draft: Draft) -> None:
    """Write $1 for ?, as parts of a query may be copied or change places, and blanks where sqlglot needs them.

    >>> after(number_parameters, "SELECT count(*) FROM people WHERE age = ? AND region <> '?'")
    SELECT count(*) FROM people WHERE age = $1 AND region <> '?'
    """
    numbered = with_numbers(draft.query)
    apart = with_blanks(numbered)
    if apart == draft.query:
        return
    reading = read(draft.con, apart)
    if reading.parameters() != draft.reading.parameters():
        raise Refused("SDC006", "?: write $1, $2, ..")
    if apart != numbered:  # where a text begins and ends is told by DuckDB
        refuse_two_readings(draft.con, draft.reading, apart)
    draft.query, draft.reading = apart, reading


def parse(draft: Draft) -> None:
    """Have sqlglot read the text, too.

    >>> after(parse, "SELECT count(*) FROM people; SELECT 1")
    refused: SDC003: not exactly one statement. Send one SELECT at a time.
    """
    draft.tree = parsed(draft.query, is_query=not draft.reading.problem)


def _check_text(query: str) -> None:
    """Refuse texts that could keep a parser busy: sqlglot's takes the square of the time for many brackets."""
    if len(query) > _LONGEST or query.count("[") > _DEEPEST:
        raise Refused("SDC002")
    depth = 0
    for bracket in _BRACKETS.findall(query):
        depth += 1 if bracket in "([{" else -1
        if depth > _DEEPEST:
            raise Refused("SDC002")


def parsed(query: str, *, is_query: bool = False) -> exp.Expr:
    """The tree of a text; it says so where DuckDB read a query that sqlglot does not."""
    try:
        tokens = words_of(query)
        if len(tokens) > _MOST_TOKENS:
            raise Refused("SDC002")
        trees = [tree for tree in _DUCKDB.parser().parse(with_bracketed_keys(tokens), query) if tree is not None]
    except SqlglotError:
        raise (Refused("SDC005", "a text that only DuckDB reads") if is_query else Refused("SDC001")) from None
    if len(trees) != 1:
        raise Refused("SDC003")
    tree = with_selected_values(trees[0])
    check_size(tree)
    settle_chained_calls(tree)
    refuse_other_readings(tree, tokens)
    settle_readings(tree, tokens)
    settle_subscripts(tree)
    if not isinstance(tree, (exp.Query, exp.Pivot)):
        raise Refused("SDC004")
    return tree


def check_size(tree: exp.Expr) -> None:
    if sum(1 for _ in tree.walk()) > _MOST_NODES:
        raise Refused("SDC002")


def with_numbers(query: str) -> str:
    """A text with $1 in place of the first ?, and so on: what stands in several places of a query is copied.

    >>> with_numbers("SELECT age + ? FROM people WHERE region = '?' AND age > ?::INTEGER")
    "SELECT age + $1 FROM people WHERE region = '?' AND age > $2::INTEGER"
    """
    if "?" not in query:
        return query
    try:
        marks = [word.start for word in words_of(query) if query[word.start : word.start + 1] == "?"]
    except SqlglotError:
        return query
    if any(query[start + 1 : start + 2].isalnum() for start in marks):
        return query  # ?1 has its number
    parts, end = [], 0
    for number, start in enumerate(marks, 1):
        parts += [query[end:start], f"${number}"]
        end = start + 1
    return "".join([*parts, query[end:]])
