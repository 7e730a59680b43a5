"""PIVOT as DuckDB lets people write it: without the list of values, and with ORDER BY and LIMIT behind it.

The values of a column are asked for as the analyst could ask for them, so that what the columns of an answer are called
is protected like any answer, and written down like any question. The text that comes out is judged from the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sdcduck.guard.passes.words import words_of
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, literal

MOST_COLUMNS = 200
"""That PIVOT makes."""
_MOST_LISTS = 10
_MOST_PIVOTS = 50
_LONGEST = 100_000  # characters
_PIVOT = re.compile(r"\bPIVOT(_WIDER)?\b", re.IGNORECASE)
_CLAUSES = frozenset([TokenType.ON, TokenType.USING, TokenType.GROUP_BY])
_BEHIND = frozenset([TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH])
_OTHERS = frozenset([TokenType.JOIN, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.COMMA])
_GIVEN = frozenset([TokenType.PARAMETER, TokenType.PLACEHOLDER])
_DEEPER = frozenset([TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE])
_HIGHER = frozenset([TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE])

Ask = Callable[[str], Sequence[str | None]]
"""Asks a question with one column of texts."""


def written_out(query: str, ask: Ask) -> str:
    """A text in which each PIVOT has its list of values, and nothing behind it; any other text as it is.

    >>> print(written_out("WITH q AS (FROM t) PIVOT q ON sex ORDER BY 1", lambda question: ["m", "f", None]))
    WITH q AS (FROM t) SELECT * FROM (PIVOT q ON sex IN ('f', 'm') ) ORDER BY 1
    >>> written_out("PIVOT t ON year(day)", lambda question: print(question) or ["2024"])
    SELECT CAST(v AS VARCHAR) AS v FROM (SELECT DISTINCT year(day) AS v FROM  t
    ) LIMIT 201
    "PIVOT t ON (year(day)) IN ('2024')"

    Args:
        ask: it is asked for the values that there are.

    Raises:
        Refused: there is no value, or they are not told.
    """
    for _ in range(_MOST_LISTS):
        changed = _one_less(query, ask) if "pivot" in folded(query) and _PIVOT.search(query) else query
        if changed == query:
            break
        query = changed
    return query


def _one_less(query: str, ask: Ask) -> str:
    """The text with one form less that is not for the guard.

    Those that end first come first: the inner ones, and those in a WITH that others may stand upon. What is asked for
    then has no such form in it, and asks for nothing itself: of n of them the last one would ask 2^n questions.
    """
    try:
        tokens = words_of(query)
    except SqlglotError:
        return query
    places = [place for place, token in enumerate(tokens) if token.token_type == TokenType.PIVOT]
    if len(places) > _MOST_PIVOTS:  # each is looked for to the end of the text
        return query
    found = [(place, parts) for place in reversed(places) if (parts := _parts(tokens, place)) is not None]
    for place, (source, items, end) in sorted(found, key=lambda one: one[1][2]):
        if end < len(tokens) and tokens[end].token_type in _BEHIND:
            start, behind = tokens[place].start, tokens[end].start
            return f"{query[:start]}SELECT * FROM ({query[start:behind]}) {query[behind:]}"
        for item in items:
            if TokenType.IN in _at_top(item) or not item:
                continue
            on = query[item[0].start : item[-1].end + 1]
            if _GIVEN & {token.token_type for token in (*tokens[:place], *source, *item)}:
                raise Refused("SDC011", f"PIVOT beside parameters: write the values that there are, {on} IN ('a', 'b')")
            if _has_inner_with(tokens[:place]):
                raise Refused("SDC011", f"PIVOT behind a WITH in brackets: write the values, {on} IN ('a', 'b')")
            relation = query[tokens[place].end + 1 : source[-1].end + 1]
            values = ask(
                f"{_before(query, tokens, place)}SELECT CAST(v AS VARCHAR) AS v FROM "
                f"(SELECT DISTINCT {on} AS v FROM {relation}\n) LIMIT {MOST_COLUMNS + 1}"
            )
            # DuckDB compares texts, and has the columns in their order.
            listed = sorted({value for value in values if value is not None})
            if not listed:
                raise Refused("SDC011", "PIVOT by what has no value here: there are no columns to make")
            if len(listed) > MOST_COLUMNS or len(query) + sum(map(len, listed)) > _LONGEST:
                raise Refused("SDC002", "a PIVOT into many columns")
            chosen = on if len(item) == 1 else f"({on})"
            rest = query[item[-1].end + 1 :]
            return f"{query[: item[0].start]}{chosen} IN ({', '.join(map(literal, listed))}){rest}"
    return query


def _parts(tokens: list[Token], place: int) -> tuple[list[Token], list[list[Token]], int] | None:
    """Of PIVOT relation ON a, b ..: the relation, what stands behind ON, and the place where it is over.

    None: it is another PIVOT, or an unusual one.
    """
    source: list[Token] = []
    items: list[list[Token]] = []
    clause: TokenType | None = None
    for at, token, depth in _levels(tokens, place + 1):
        if depth < 0 or token.token_type == TokenType.SEMICOLON or (depth == 0 and token.token_type in _BEHIND):
            return (source, items, at) if source and items else None
        if depth == 0 and token.token_type in _CLAUSES and (clause is not None or token.token_type == TokenType.ON):
            clause = token.token_type
            if clause == TokenType.ON and items:
                return None
            items = items or [[]]
        elif (
            depth == 0
            and token.token_type in _OTHERS
            and not (token.token_type == TokenType.COMMA and clause is not None)
        ):
            return None
        elif clause is None:
            if depth == 1 and token.token_type == TokenType.FOR and len(source) > 1:
                return None  # FROM relation PIVOT (.. FOR .. IN ..)
            source.append(token)
        elif clause == TokenType.ON:
            if depth == 0 and token.token_type == TokenType.COMMA:
                items.append([])
            else:
                items[-1].append(token)
    return (source, items, len(tokens)) if source and items else None


def _before(query: str, tokens: list[Token], place: int) -> str:
    """The WITH at the beginning, as far as it goes before a PIVOT."""
    if not tokens or tokens[0].token_type != TokenType.WITH:
        return ""
    end = 0
    for at, token, depth in _levels(tokens, 1):
        if at >= place - 1:
            end = token.end + 1 if depth == 0 and token.token_type == TokenType.R_PAREN else end
            break
        following = tokens[at + 1].token_type
        if depth == 0 and token.token_type == TokenType.R_PAREN and following != TokenType.ALIAS:  # not q(a, b) AS
            end = token.end + 1
            if following != TokenType.COMMA:
                break
    return f"{query[:end]} " if end else ""


def _has_inner_with(tokens: list[Token]) -> bool:
    """Whether something around what follows has a WITH of its own: its relations hide others of the same names."""
    around = [False]
    for token in tokens[1:]:
        if token.token_type in _DEEPER:
            around.append(False)
        elif token.token_type in _HIGHER and len(around) > 1:
            around.pop()
        elif token.token_type == TokenType.WITH:
            around[-1] = True
    return any(around)


def _at_top(tokens: list[Token]) -> set[TokenType]:
    return {token.token_type for _, token, depth in _levels(tokens, 0) if depth == 0}


def _levels(tokens: list[Token], start: int) -> Iterator[tuple[int, Token, int]]:
    """Tokens with their places, and how many brackets are around them; a bracket belongs to what is around it."""
    depth = 0
    for at in range(start, len(tokens)):
        kind = tokens[at].token_type
        if kind in _HIGHER:
            depth -= 1
        yield at, tokens[at], depth
        if kind in _DEEPER:
            depth += 1
