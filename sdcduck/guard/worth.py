"""What a number is worth: which statistic a column is, under which method, and how large its noise is.

It is made of the question and of the policy. `Statistic` is known when a question is rewritten; the noise comes from
`sdc_noise`, which looks at no record. So nothing is said here that the custodian could not print in a handbook.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sdcduck.guard.methods.dp_pairs import ALL as PAIRS

STATISTIC, SD, MOST, PER, WORDS = (
    f"sdcduck.{key}" for key in ("statistic", "noise_sd", "noise_max", "noise_per", "noise")
)
"""Keys of the metadata of an Arrow field."""

NUMBER = "1"
"""What the noise is a multiple of where it is known as a number."""

_WORKED_OUT = "worked out of published numbers"
_NOT_KNOWN = "its noise is not known here"

_NAMES = {
    "count": "count of {table}", "units": "count of units of {table}", "sum": "sum of {of}", "mean": "mean of {of}",
    "variance": "variance of {of}", "deviation": "standard deviation of {of}", "quantile": "{share:g} quantile of {of}",
    "worked out": "{of} over published numbers of {table}", **{name: f"{name} of {{of}}" for name in PAIRS},
}  # fmt: skip


@dataclass(frozen=True)
class Statistic:
    """One protected number.

    Attributes:
        kind: as `sdc_noise` calls it; ``deviation`` is the root of a variance, ``worked out`` is made of others.
        table: whose policy protects it.
        method: of that policy.
        of: the measure, as the custodian calls it, or the aggregate.
        share: of a quantile.
        most: what the noise is in proportion to, where the custodian declared it; 0: the largest contribution.
        within: how large values are at most that keep to bounds that the custodian declared; 0: there are none.
        cell: in which block it is, and in which column.
    """

    kind: str
    table: str
    method: str
    of: str = ""
    share: float = 0
    most: float = 0
    within: float = 0
    cell: str = ""

    @property
    def name(self) -> str:
        """For people."""
        return _NAMES[self.kind].format(table=self.table, of=self.of, share=self.share)


Terms = tuple[tuple[float, Statistic], ...]
"""Protected numbers, each with the factor that it has in a sum of them."""


@dataclass(frozen=True)
class Law:
    """A row of `sdc_noise`."""

    statistic: str
    size_from: int | None
    size_to: int | None
    sd: float | None
    most: float | None
    per: str
    step_least: float | None
    step_most: float | None
    shown: str


@dataclass(frozen=True)
class Worth:
    """What the numbers of a column are worth.

    Attributes:
        column: its name.
        statistic: what it is, or what it was worked out from.
        method: of the tables behind it; empty: nothing is protected.
        sd: standard deviation of the noise; None: it cannot be said.
        most: the largest that it can be; None: it cannot be said.
        per: what these are multiples of; `NUMBER`: they are numbers.
        words: all of it, for people.
    """

    column: str
    statistic: str
    method: str = ""
    sd: float | None = None
    most: float | None = None
    per: str = ""
    words: str = ""

    @property
    def line(self) -> str:
        """In one line."""
        return f"{self.column}: {self.statistic}{f'; {self.words}' if self.words else ''}"

    @property
    def short(self) -> str:
        """In a few words; empty where there is no noise that can be said."""
        if not self.sd:
            return ""
        of = "" if self.per == NUMBER else f" times the {self.per}"
        most = "" if self.most is None else f", at most {_number(self.most)}"
        return f"{self.column} sd {_number(self.sd)}{most}{of}"

    def document(self) -> dict[str, object]:
        """For programs, as JSON has it."""
        return {
            "statistic": self.statistic, "method": self.method, "noise_sd": self.sd, "noise_max": self.most,
            "noise_per": self.per, "noise": self.words,
        }  # fmt: skip

    def metadata(self) -> dict[str, str]:
        """For an Arrow field."""
        told = {STATISTIC: self.statistic}
        if self.sd is not None:
            told[SD] = f"{self.sd:.6g}"
        if self.most is not None:
            told[MOST] = f"{self.most:.6g}"
        if self.per:
            told[PER] = self.per
        return {**told, WORDS: self.words} if self.words else told


_LEAST, _MOST = 1e-100, 1e100
"""Factors beyond that, or that are not known, make noise of which nothing is said: it might be no number."""

LawsOf = Callable[[Statistic], Sequence[Law]]
"""The laws of a statistic under the policy of its table; none: it has none of its own."""


def worth_of_numbers(column: str, terms: Terms, laws_of: LawsOf, *, linear: bool) -> Worth:
    """What a column of protected numbers is worth.

    Args:
        terms: the numbers in it.
        linear: whether it is their sum, each times its factor, and nothing else.
    """
    linear = linear and all(factor == 0 or _LEAST <= abs(factor) <= _MOST for factor, _ in terms)
    statistics = [statistic for _, statistic in terms]
    method = ", ".join(sorted({statistic.method for statistic in statistics}))
    from_ = "from " + ", ".join(dict.fromkeys(statistic.name for statistic in statistics))
    made = from_ if len(terms) > 1 or not linear or statistics[0].kind == "worked out" else _scaled(*terms[0])
    laws = [_worst(statistic, laws_of) for statistic in statistics]
    if all(law.sd == 0 and law.most == 0 for law in laws):
        shown = ", ".join(dict.fromkeys(law.shown for law in laws))
        return Worth(column, made, method, 0, 0, NUMBER, shown)
    if len(terms) == 1 and linear:
        (factor, statistic), law = terms[0], laws[0]
        if statistic.kind == "quantile":
            return Worth(column, made, method, words=_of_quantile(statistic, law))
        if law.sd is None:
            return Worth(column, made, method, words=law.shown)
        size = abs(factor) * (statistic.most or 1)
        per = NUMBER if statistic.most else law.per
        words = _of_one(law, laws_of(statistic), size, per)
        if statistic.within and per != NUMBER:
            largest = _number(size * statistic.within * law.sd)
            words += f"; standard deviation {largest} at most where values keep to their declared bounds"
        return Worth(column, made, method, size * law.sd, None if law.most is None else size * law.most, per, words)
    if linear and all(law.per == NUMBER or statistic.most for law, statistic in zip(laws, statistics, strict=True)):
        return _of_sum(column, terms, laws, made, method)
    parts = {
        statistic.name: _of_one(law, laws_of(statistic), statistic.most or 1, NUMBER if statistic.most else law.per)
        for statistic, law in zip(statistics, laws, strict=True)
        if law.sd is not None
    }
    words = "; ".join(f"{name}: {noise}" for name, noise in parts.items())
    return Worth(column, made, method, words=words)


def _worst(statistic: Statistic, laws_of: LawsOf) -> Law:
    """One law that bounds those of all sizes."""
    laws = laws_of(statistic)
    if not laws:
        behind = laws_of(replace(statistic, kind="variance" if statistic.kind == "deviation" else "count"))
        if behind and all(law.sd == 0 and law.most == 0 for law in behind):
            return behind[0]
        shown = _WORKED_OUT if statistic.kind == "worked out" else _NOT_KNOWN
        if statistic.kind == "deviation" and behind:
            shown = f"the root of a variance; {behind[0].shown}"
        return Law(statistic.kind, None, None, None, None, "", None, None, shown)
    if any(law.sd is None for law in laws):
        return laws[0]
    most = None if any(law.most is None for law in laws) else max(law.most or 0 for law in laws)
    return replace(laws[0], sd=max(law.sd or 0 for law in laws), most=most)


def _of_one(worst: Law, laws: Sequence[Law], size: float, per: str) -> str:
    """The noise of one number, times ``size``."""
    if worst.sd is None:
        return worst.shown
    of = "" if per == NUMBER else f" times the {per}" if per.startswith("rows") else f" of the {per}"
    others = [
        f"{_number(size * law.sd)} where it is {_sizes(law)}"
        for law in laws
        if law.sd is not None and round(law.sd, 4) != round(worst.sd, 4)
    ]
    small = f" ({', '.join(others)})" if others else ""
    most = "" if worst.most is None else f", at most {_number(size * worst.most)}"
    steps = ""
    if worst.step_least is not None and worst.step_most is not None and worst.step_most != 1:
        least, coarsest = _number(size * worst.step_least), _number(size * worst.step_most)
        steps = f", in steps of {least}" if least == coarsest else f", in steps of {least} to {coarsest}"
    return f"standard deviation {_number(size * worst.sd)}{small}{most}{steps}{of}; {worst.shown}"


def _of_quantile(statistic: Statistic, law: Law) -> str:
    """The place of a quantile in the order of the values."""
    if law.sd == 0 or law.most is None:
        return law.shown
    places = _number(law.most / 2 * (1 + statistic.share))
    return f"{law.shown}; at most {places} places off in the order of the values"


def _of_sum(column: str, terms: Terms, laws: Sequence[Law], made: str, method: str) -> Worth:
    """Variances add up where the noise of the parts is of different records; where it is one, the deviations do."""
    parts = [(abs(factor) * (statistic.most or 1), law) for (factor, statistic), law in zip(terms, laws, strict=True)]
    sd = math.sqrt(sum((size * (law.sd or 0)) ** 2 for size, law in parts))
    together = sum(size * (law.sd or 0) for size, law in parts)
    known = [size * law.most for size, law in parts if law.most is not None]
    most = sum(known) if len(known) == len(parts) else None
    least = "" if most is None else f", at most {_number(most)}"
    same = f" if these are of different records, up to {_number(together)} if they are of the same"
    return Worth(column, made, method, sd, most, NUMBER, f"standard deviation {_number(sd)}{same}{least}")


def _scaled(factor: float, statistic: Statistic) -> str:
    return statistic.name if factor == 1 else f"{_number(factor)} times the {statistic.name}"


def _sizes(law: Law) -> str:
    if law.size_to is None:
        return f"{law.size_from} or more"
    return str(law.size_from) if law.size_from == law.size_to else f"{law.size_from} to {law.size_to}"


def _number(value: float) -> str:
    """With three significant digits, or as the whole number that it is.

    >>> [_number(value) for value in (1.4142, 5.0, 0.02, 12500.0, 1234567.8)]
    ['1.41', '5', '0.02', '12500', '1230000']
    """
    if value == 0 or value == round(value):
        return f"{value:.0f}"
    places = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return f"{rounded:.{places}f}".rstrip("0").rstrip(".") if places > 0 else f"{rounded:.0f}"


def worth_of_document(column: Mapping[str, Any]) -> Worth:
    """What `Worth.document` wrote; of a gateway that does not say it, nothing."""
    return Worth(
        column["name"], column.get("statistic", ""), column.get("method", ""), column.get("noise_sd"),
        column.get("noise_max"), column.get("noise_per", ""), column.get("noise", ""),
    )  # fmt: skip


def with_worth(schema: pa.Schema, worth: Sequence[Worth]) -> pa.Schema:
    """A schema whose fields say what they are worth; as it is where that is not known of each."""
    if len(worth) != len(schema):
        return schema
    fields = [field.with_metadata(one.metadata()) for field, one in zip(schema, worth, strict=True)]
    return pa.schema(fields, schema.metadata)


def table_of_worth(worth: Sequence[Worth]) -> pa.Table:
    """A row for each column of an answer."""
    return pa.table(
        {
            "column": pa.array([one.column for one in worth], pa.string()),
            "statistic": pa.array([one.statistic for one in worth], pa.string()),
            "method": pa.array([one.method or None for one in worth], pa.string()),
            "sd": pa.array([one.sd for one in worth], pa.float64()),
            "max": pa.array([one.most for one in worth], pa.float64()),
            "per": pa.array([one.per or None for one in worth], pa.string()),
            "noise": pa.array([one.words or None for one in worth], pa.string()),
        }
    )
