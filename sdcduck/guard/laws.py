"""The laws of the noise of a policy, as `sdc_noise` has them, and the forms of SQL that ask for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sdcduck.catalog import Policy
from sdcduck.guard.costs import laws_of as laws_of_drawn
from sdcduck.guard.passes.words import words_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import PREVIEW, Origin, Rewritten
from sdcduck.guard.running import Limited
from sdcduck.guard.worth import Law, Statistic, Worth, table_of_worth, worth_of_numbers
from sdcduck.quoting import folded, identifier, literal

_COLUMNS = {
    "method": "VARCHAR", "statistic": "VARCHAR", "size_from": "BIGINT", "size_to": "BIGINT", "sd": "DOUBLE",
    "max": "DOUBLE", "mean": "DOUBLE", "per": "VARCHAR", "step_least": "DOUBLE", "step_most": "DOUBLE",
    "shown": "VARCHAR",
}  # fmt: skip
_OF_WORTH = {
    "column": "VARCHAR", "statistic": "VARCHAR", "method": "VARCHAR", "sd": "DOUBLE", "max": "DOUBLE", "per": "VARCHAR",
    "noise": "VARCHAR",
}  # fmt: skip
_FUNCTION = "sdc_noise"
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?!\(|ANALYZE\b|VERBOSE\b)(?=\S)", re.IGNORECASE)
_MOST_CALLS = 20
_OF_LAW = ("statistic", "size_from", "size_to", "sd", "max", "per", "step_least", "step_most", "shown")

Row = tuple[Any, ...]

_SAID: dict[Hashable, list[Row]] = {}
"""The rows of `sdc_noise` by what they are made of, for all guards of a process: it looks at nothing else."""
_MOST_SAID = 200


class Laws:
    """What `sdc_noise` says of policies, remembered while it is made of the same.

    Args:
        limited: asks.
        stamp: another one when the p-tables of a policy are others.
        macros: what the database has under our names, which includes `sdc_noise` and all that it calls.
    """

    def __init__(self, limited: Limited, stamp: Callable[[Policy], object], macros: Hashable) -> None:
        self._limited, self._stamp, self._macros = limited, stamp, macros
        self._known: dict[tuple[str, str], tuple[Policy, object, list[Row]]] = {}

    def rows(self, policy: Policy) -> list[Row]:
        """The rows of `sdc_noise` for a policy whose p-tables were looked at."""
        asked, stamp = (policy.name, policy.role), self._stamp(policy)
        known = self._known.get(asked)
        if known is not None and known[0] == policy and known[1] == stamp:
            return known[2]
        made_of = (self._macros, policy, stamp)
        found = _SAID.get(made_of)
        if found is None:
            found = self._asked(policy)
            if len(_SAID) >= _MOST_SAID:
                _SAID.clear()
            if found:  # what failed once may not fail again
                _SAID[made_of] = found
        self._known[asked] = (policy, stamp, found)
        return found

    def _asked(self, policy: Policy) -> list[Row]:
        asked_for = f"{_FUNCTION}({literal(policy.name)}, role := {literal(policy.role)})"
        try:
            return self._limited.rows(f"SELECT {', '.join(_COLUMNS)} FROM {asked_for}")
        except Refused as refused:
            if refused.code != "SDC090":
                raise
            return []  # a file for reading only, with the functions of an sdcduck that had none of this name

    def of(self, policy: Policy, statistic: str) -> list[Law]:
        """The laws of a statistic, one for each class of sizes."""
        places = [list(_COLUMNS).index(name) for name in _OF_LAW]
        laws = (Law(*(row[place] for place in places)) for row in self.rows(policy))
        return [law for law in laws if law.statistic == statistic]

    def worth(self, rewritten: Rewritten) -> tuple[Worth, ...]:
        """What the columns of an answer are worth; none where it is not known of what they are made."""
        policies = {policy.name: policy for policy in rewritten.policies}
        drawn = laws_of_drawn(rewritten) if rewritten.releases else None

        def laws_of(statistic: Statistic) -> Sequence[Law]:
            policy = policies.get(statistic.table)
            if drawn is not None and (policy is None or policy.privacy.holds):  # which joined tables have of their own
                return drawn(statistic)
            return [] if policy is None else self.of(policy, statistic.kind)

        twice = any(release.twice for release in rewritten.releases)
        return tuple(_worth(origin, laws_of, apart=not twice) for origin in rewritten.columns)


def _worth(origin: Origin, laws_of: Callable[[Statistic], Sequence[Law]], *, apart: bool) -> Worth:
    """What a column is worth; ``apart``: whether the numbers of two blocks have noise of their own each."""
    if any(method == PREVIEW for _, method in origin.protected):
        return Worth(origin.name, "made up")
    if not origin.protected:
        return Worth(origin.name, "group" if origin.grouped else "public")
    of_blocks = {statistic.cell.partition(".")[0] for _, statistic in origin.terms}
    if not origin.terms or (len(of_blocks) > 1 and not apart):
        method = ", ".join(sorted({method for _, method in origin.protected}))
        return Worth(origin.name, "about the group", method)
    return worth_of_numbers(origin.name, origin.terms, laws_of, linear=origin.linear)


def explained(query: str) -> str | None:
    """The question that an EXPLAIN is about; None: it is none.

    >>> explained("explain SELECT 1"), explained("EXPLAIN ANALYZE SELECT 1"), explained("SELECT 1")
    ('SELECT 1', None, None)
    """
    found = _EXPLAIN.match(query)
    return None if found is None else query[found.end() :]


def explanation(rewritten: Rewritten, worth: Sequence[Worth]) -> Rewritten:
    """The rewriting of an EXPLAIN: a row for each column of the answer that there would be."""
    rows = list(zip(*(column.to_pylist() for column in table_of_worth(worth).columns), strict=True))
    return replace(
        rewritten, sql=rows_as_query(rows, _OF_WORTH), unique=(), notice="", columns=tuple(map(Origin, _OF_WORTH)),
        grouped=False, constant=False, rows=None, preview=None, releases=(),
    )  # fmt: skip


def with_noise(query: str, rows_of: Callable[[str], Sequence[Row]]) -> str:
    """A text with the rows of ``sdc_noise('people')`` in its place.

    >>> with_noise("SELECT sd FROM sdc_noise('t') WHERE statistic = 'sdc_noise(''t'')'", lambda table: [])[:47]
    'SELECT sd FROM (SELECT CAST(NULL AS VARCHAR) AS'

    Args:
        rows_of: those of a table, by its name.

    Raises:
        Refused: it is called with anything but a name.
    """
    return with_rows(query, _FUNCTION, "a table", lambda table, _: rows_as_query(rows_of(table), _COLUMNS))


def with_rows(
    query: str,
    function: str,
    given: str,
    rows_for: Callable[[str, str | None], str],
    *,
    numbered: bool = False,
) -> str:
    """A text with rows in the place of the calls of a function that only the guard has.

    >>> with_rows("FROM f('a') JOIN f($$b$$)", "f", "a letter", lambda letter, _: f"SELECT '{letter}'")
    "FROM (SELECT 'a') JOIN (SELECT 'b')"

    Args:
        given: what it is called with, for people: one text.
        rows_for: the query of the rows for this text, and the number behind it.
        numbered: there may be one.

    Raises:
        Refused: it is called with anything else.
    """
    if function not in folded(query):
        return query
    try:
        words = words_of(query)
    except SqlglotError:
        return query
    places = [place for place, word in enumerate(words) if _is_call(words, place, function)]
    if len(places) > _MOST_CALLS:
        raise Refused("SDC002", f"many of {function}")
    parts, end = [], 0
    for place in places:
        behind, number = words[place + 2 : place + 6], None
        kinds = [word.token_type for word in behind]
        if numbered and kinds[1:3] == [TokenType.COMMA, TokenType.NUMBER]:
            number = behind[2].text
            behind, kinds = behind[:1] + behind[3:], kinds[:1] + kinds[3:]
        if kinds[:1] not in ([TokenType.STRING], [TokenType.HEREDOC_STRING]) or kinds[1:2] != [TokenType.R_PAREN]:
            raise Refused("SDC021", f"write {function}('{given}'{', 0.95' if numbered else ''})")
        parts += [query[end : words[place].start], f"({rows_for(behind[0].text, number)})"]
        end = behind[1].end + 1
    return "".join([*parts, query[end:]])


def _is_call(words: Sequence[Token], place: int, function: str) -> bool:
    behind = words[place + 1] if place + 1 < len(words) else None
    is_name = words[place].token_type == TokenType.VAR and folded(words[place].text) == function
    return is_name and behind is not None and behind.token_type == TokenType.L_PAREN


def rows_as_query(rows: Sequence[Row], columns: dict[str, str]) -> str:
    """A SELECT of rows of constants; without one it has the same columns."""
    selects = [
        "SELECT "
        + ", ".join(
            f"CAST({_constant(value)} AS {kind}) AS {identifier(name)}"
            for value, (name, kind) in zip(row, columns.items(), strict=True)
        )
        for row in (rows or [(None,) * len(columns)])
    ]
    return " UNION ALL ".join(selects) + ("" if rows else " WHERE false")


def _constant(value: object) -> str:
    return "NULL" if value is None else literal(value) if isinstance(value, str) else repr(value)
