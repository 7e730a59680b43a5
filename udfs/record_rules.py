"""Rules for records that are to be released, as a rule set has them and `sdc_check_records` takes them.

The rulebook of Eustat (Miranda, Mas and Ayestaran, PSD 2022): no direct identifiers, no small places, no rare
combination of keys, and totals and distributions that survive perturbation; with the individual risk of mu-ARGUS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sdcduck.errors import SDCError
from sdcduck.udfs.arguments import number, share, whole, wrong

RECORD_RULES = (
    "k", "max_size", "max_share_unique", "max_risk", "max_mean_risk", "min_population", "identifiers", "max_share_own",
    "min_at_ends", "max_fraction", "max_total_change", "max_ks",
)  # fmt: skip
"""Names of the arguments that are `RecordRules`, in order."""


@dataclass(frozen=True)
class RecordRules:
    """The rules for a file of records; None means that a rule is not used.

    Attributes:
        k: records that each combination of the keys has at least.
        max_size: so many keys at a time are looked at for `k`; None: all of a list together.
        max_share_unique: share of records that are alone with their keys.
        max_risk: individual risk of any record.
        max_mean_risk: its mean, the re-identification ratio.
        min_population: inhabitants that each category of geography has at least.
        identifiers: names that no column has.
        max_share_own: share of the values of a column, no measure, that one record alone has.
        min_at_ends: records that have the smallest value of a measure, and the largest.
        max_fraction: records over the population.
        max_total_change: by what share the total of a measure differs from that of the originals.
        max_ks: the largest distance between the distribution functions of a measure and of the originals.
    """

    k: int | None = None
    max_size: int | None = None
    max_share_unique: float | None = None
    max_risk: float | None = None
    max_mean_risk: float | None = None
    min_population: float | None = None
    identifiers: tuple[str, ...] = ()
    max_share_own: float | None = None
    min_at_ends: int | None = None
    max_fraction: float | None = None
    max_total_change: float | None = None
    max_ks: float | None = None

    @property
    def any(self) -> bool:
        """Whether there is a rule."""
        return self != RecordRules()


def read_record_rules(
    k: int | None, max_size: int | None, max_share_unique: float | None, max_risk: float | None,
    max_mean_risk: float | None, min_population: float | None, identifiers: Sequence[str | None] | None,
    max_share_own: float | None, min_at_ends: int | None, max_fraction: float | None, max_total_change: float | None,
    max_ks: float | None,
) -> RecordRules:  # fmt: skip
    """The rules from the arguments of a SQL function.

    Raises:
        SDCError: an argument out of its range, or one that only makes sense beside another.
    """
    if max_size is not None and k is None:
        raise SDCError("argument 'max_size' goes with 'k'")
    names = tuple(name for name in identifiers or () if name and name.strip())
    if len(names) < len(identifiers or ()):
        raise wrong("identifiers", "hold names of columns")

    def at_most(value: float | None, name: str) -> float | None:
        return None if value is None else share(value, name)

    def at_least(value: int | None, name: str, least: int) -> int | None:
        return None if value is None else whole(value, name, least=least)

    return RecordRules(
        k=at_least(k, "k", 2), max_size=at_least(max_size, "max_size", 1),
        max_share_unique=at_most(max_share_unique, "max_share_unique"), max_risk=at_most(max_risk, "max_risk"),
        max_mean_risk=at_most(max_mean_risk, "max_mean_risk"),
        min_population=None if min_population is None else number(min_population, "min_population", above=0),
        identifiers=names, max_share_own=at_most(max_share_own, "max_share_own"),
        min_at_ends=at_least(min_at_ends, "min_at_ends", 2),
        max_fraction=None if max_fraction is None else share(max_fraction, "max_fraction", zero=False),
        max_total_change=at_most(max_total_change, "max_total_change"), max_ks=at_most(max_ks, "max_ks"),
    )  # fmt: skip
