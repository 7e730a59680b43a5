"""Intervals around the numbers of an answer under ``method := 'dp'``.

    FROM sdc_confidence('SELECT region, count(*) AS n FROM people GROUP BY region', 0.95)

    SELECT *, "n" - 98.0 AS "n_lower", "n" + 98.0 AS "n_upper" FROM (SELECT region, count(*) AS n ..)

How wide they are follows from the question and from the policy: the law of the noise is known before it is drawn. So
the text is one more question over released numbers, and is judged and charged as such. It must be a question of the
same totals: with others beside them there would be more noise than the intervals say, and it is refused.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from sdcduck.guard.costs import cost_of, policy_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Origin, Release, Rewritten
from sdcduck.guard.worth import Statistic
from sdcduck.methods.dp.spread import spread
from sdcduck.quoting import folded, identifier

FUNCTION = "sdc_confidence"
LEVEL = 0.95
_LEVELS = (0.5, 0.999999)
_WHOLE = frozenset([
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
])  # fmt: skip
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")
_MOST_FACTOR = 1e100
_EXACT = 2.0**53

_Noise = tuple[float, float, float]
"""The scale of a total in steps, the step, and by how much it is rounded afterwards at most."""


def level_of(written: str | None) -> float:
    """The probability with which an interval has what it is about.

    Raises:
        Refused: it is none that intervals are for.
    """
    level = LEVEL if written is None else float(written)
    if not _LEVELS[0] <= level <= _LEVELS[1]:
        raise Refused("SDC005", f"a level of {FUNCTION} is from {_LEVELS[0]} to {_LEVELS[1]}, as 0.95")
    return level


def with_intervals(query: str, rewritten: Rewritten, kinds: Sequence[tuple[str, str]], level: float) -> str:
    """A question with two columns more for each protected number: NULL where its law is not known.

    Args:
        query: the question.
        rewritten: what it becomes.
        kinds: names and types of the columns of its answer.
        level: of each interval by itself.

    Raises:
        Refused: no noise is drawn for it, or its columns have such names already.
    """
    if not rewritten.releases:
        raise Refused("SDC081", f"{FUNCTION} is of questions that noise is drawn for")
    if any(release.adds_up for release in rewritten.releases):
        raise Refused("SDC081", f"{FUNCTION} of subtotals, each of which has the noise of its own number of groups")
    names = {folded(name) for name, _ in kinds}
    shown = ["*"]
    for origin, (name, kind) in zip(rewritten.columns, kinds, strict=True):
        if not origin.protected:
            continue
        half = _half_width(origin, kind, rewritten, level)
        for end, sign in (("lower", "-"), ("upper", "+")):
            called = f"{name}_{end}"
            if folded(called) in names:
                raise Refused("SDC005", f"a column that is called {called}")
            width = half if isinstance(half, int) else f"CAST({half!r} AS DOUBLE)"
            value = "CAST(NULL AS DOUBLE)" if half is None else f"{identifier(name)} {sign} {width}"
            shown.append(f"{value} AS {identifier(called)}")
    return f"SELECT {', '.join(shown)} FROM ({query}\n)"


def check_same_totals(asked: Rewritten, within: Rewritten) -> None:
    """Refuse intervals beside other totals than those that they were made for.

    Raises:
        Refused: there are more of them, or fewer.
    """
    if within.releases and _totals(asked) != _totals(within):
        raise Refused("SDC005", f"{FUNCTION} beside other numbers, or with a part of its own: ask for it alone")


def _totals(rewritten: Rewritten) -> Counter[tuple[object, ...]]:
    return Counter((one.policy, one.cells, one.totals, one.columns) for one in _asked(rewritten))


def _asked(rewritten: Rewritten) -> list[Release]:
    return [release for release in rewritten.releases if release.stands_for in rewritten.sql]


def _half_width(origin: Origin, kind: str, rewritten: Rewritten, level: float) -> int | float | None:
    """Half the width of the interval of a column, a whole number of whole numbers; None: its law is not known.

    Of a sum of several numbers each has its part of what is left beyond the level: that holds however they hang
    together.
    """
    casted = _rounded_to(kind)
    if not origin.linear or not origin.terms or casted is None:
        return None
    each, half = 1 - (1 - level) / len(origin.terms), 0.0
    gaussian = cost_of(_asked(rewritten), policy_of(rewritten).privacy).gaussian
    for factor, statistic in origin.terms:
        noises = _noises_of(statistic, rewritten)
        if not noises or not abs(factor) <= _MOST_FACTOR:
            return None
        half += abs(factor) * max(
            step * spread(scale, each, gaussian=gaussian) + rounded for scale, step, rounded in noises
        )
    whole = all(statistic.kind in ("count", "units") and factor == round(factor) for factor, statistic in origin.terms)
    if whole and kind in _WHOLE:
        return round(half) if half < _EXACT else None
    return math.nextafter(half * (1 + 1e-12) + casted, math.inf)


def _noises_of(statistic: Statistic, rewritten: Rewritten) -> list[_Noise]:
    """The noise of the totals that a number may be: the widest is taken."""
    wanted = "count" if statistic.kind in ("count", "units") else statistic.kind
    if wanted not in ("count", "sum") or statistic.most:
        return []
    asked = _asked(rewritten)
    cost = cost_of(asked, policy_of(rewritten).privacy)
    return [
        (scale, noised.step, 0.0 if wanted == "count" else 0.5 * 10.0 ** (math.floor(math.log10(deviation)) - 2))
        for release, scales, deviations in zip(asked, cost.scales, cost.deviations, strict=True)
        for (_, noised), scale, deviation in zip(release.columns, scales, deviations, strict=True)
        if deviation is not None and noised.statistic == wanted and noised.of in ("", statistic.of)
    ]


def _rounded_to(kind: str) -> float | None:
    """By how much a cast to a type moves a number at most; None: it may be anything.

    >>> _rounded_to("BIGINT"), _rounded_to("DECIMAL(9,2)"), _rounded_to("DOUBLE"), _rounded_to("BOOLEAN")
    (0.5, 0.005, 0.0, None)
    """
    if kind == "DOUBLE":
        return 0.0
    if kind in _WHOLE:
        return 0.5
    found = _DECIMAL.fullmatch(kind)
    return None if found is None else 0.5 * 10.0 ** -int(found[1])
