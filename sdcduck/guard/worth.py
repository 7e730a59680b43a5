"""What a number is worth: which statistic a column is, under which method, and how large its noise is.

It is made of the question and of the policy. `Statistic` is known when a question is rewritten; the noise comes from
`sdc_noise`, which looks at no record. So nothing is said here that the custodian could not print in a handbook.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

STATISTIC, SD, MOST, PER, WORDS = (
    f"sdcduck.{key}" for key in ("statistic", "noise_sd", "noise_max", "noise_per", "noise")
)
"""Keys of the metadata of an Arrow field."""

NUMBER = "1"
"""What the noise is a multiple of where it is known as a number."""

_NAMES = {
    "count": "count of {table}", "units": "count of units of {table}", "sum": "sum of {of}", "mean": "mean of {of}",
    "variance": "variance of {of}", "deviation": "standard deviation of {of}", "quantile": "{share:g} quantile of {of}",
    "worked out": "{of} of published numbers of {table}",
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
        cell: in which block it is, and in which column.
    """

    kind: str
    table: str
    method: str
    of: str = ""
    share: float = 0
    most: float = 0
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

    def metadata(self) -> dict[str, str]:
        """For an Arrow field."""
        told = {STATISTIC: self.statistic}
        if self.sd is not None:
            told[SD] = _number(self.sd)
        if self.most is not None:
            told[MOST] = _number(self.most)
        if self.per:
            told[PER] = self.per
        return {**told, WORDS: self.words} if self.words else told


LawsOf = Callable[[Statistic], Sequence[Law]]
"""The laws of a statistic under the policy of its table; none: it has none of its own."""


def worth_of_numbers(column: str, terms: Terms, laws_of: LawsOf, *, linear: bool) -> Worth:
    """What a column of protected numbers is worth.

    Args:
        terms: the numbers in it.
        linear: whether it is their sum, each times its factor, and nothing else.
    """
    statistics = [statistic for _, statistic in terms]
    method = ", ".join(sorted({statistic.method for statistic in statistics}))
    from_ = "from " + ", ".join(dict.fromkeys(statistic.name for statistic in statistics))
    made = from_ if len(terms) > 1 or not linear or statistics[0].kind == "worked out" else _scaled(*terms[0])
    laws = [_worst(list(laws_of(statistic)), statistic) for statistic in statistics]
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
        return Worth(column, made, method, size * law.sd, None if law.most is None else size * law.most, per, words)
    if linear and all(law.per == NUMBER or statistic.most for law, statistic in zip(laws, statistics, strict=True)):
        return _of_sum(column, terms, laws, made, method)
    parts = [
        f"{statistic.name}: {_of_one(law, laws_of(statistic), statistic.most or 1, NUMBER if statistic.most else law.per)}"
        for statistic, law in {statistic.name: (statistic, law) for statistic, law in zip(statistics, laws, strict=True)}.values()
        if law.sd is not None
    ]  # fmt: skip
    return Worth(column, made, method, words="; ".join(parts))


def _worst(laws: list[Law], statistic: Statistic) -> Law:
    """One law that bounds those of all sizes."""
    if not laws:
        return Law(statistic.kind, None, None, None, None, "", None, None, "worked out")
    first = laws[0]
    if any(law.sd is None for law in laws):
        return first
    return replace(
        first,
        sd=max(law.sd or 0 for law in laws),
        most=None if any(law.most is None for law in laws) else max(law.most or 0 for law in laws),
    )


def _of_one(worst: Law, laws: Sequence[Law], size: float, per: str) -> str:
    """The noise of one number, times ``size``."""
    if worst.sd is None:
        return worst.shown
    of = "" if per == NUMBER else f" of {'that of ' if per.startswith('rows') else ''}the {per}".replace("that of the", "the")
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
    parts = [
        (abs(factor) * (statistic.most or 1), law) for (factor, statistic), law in zip(terms, laws, strict=True)
    ]
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
    return f"{round(value, places):.{max(places, 0)}f}".rstrip("0").rstrip(".") if places > 0 else f"{round(value, places):.0f}"


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
