"""Cell-key perturbation: the same records, the same noise, whatever query selects them; but not for two measures."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Self

import duckdb

from sdcduck.catalog import BUILT_IN, Policy, stored_ptable
from sdcduck.guard.calls import Steps, Total, both, chosen, zero_where_none
from sdcduck.guard.methods.carried import FIRST, SECOND, carried_along
from sdcduck.guard.methods.checks import Checks, Facts
from sdcduck.guard.ptables import FINGERPRINT, is_as_stored
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier, literal

if TYPE_CHECKING:
    from sdcduck.guard.methods import Method

_MENDED = {
    name: f"DELETE FROM sdc.ptables and sdc.ptable_intervals WHERE name = '{name}', sdcduck.uninstall and install"
    for name in BUILT_IN
}


class _PTables(Checks):
    """The p-tables of a policy are stored, as they were, and make noise."""

    def __init__(self) -> None:
        self._ptables: dict[str, int] = {}

    def each_time(self, facts: Facts, policy: Policy) -> None:
        """Refuse to answer with a p-table that is not stored any more, or not as it was: the macros have its numbers.

        All rows are looked at once, and again when the fingerprint of all p-tables is another.
        """
        every = f"{policy.name}: all p-tables were removed, sdcduck.uninstall and install, sdc_store_ptable"
        fingerprint = facts.value(FINGERPRINT, every)
        if fingerprint is None:
            raise Refused("SDC060", every)
        for name in (policy.ptable, policy.magnitude_ptable):
            if name is None or self._ptables.get(name) == fingerprint:
                continue
            try:
                with facts.alone:
                    stored = stored_ptable(facts.con, name)
                    found = is_as_stored(facts.con, stored)
            except duckdb.Error:
                other = f"{policy.name}: the functions in the file are of another version, sdcduck.connect"
                raise Refused("SDC060", other) from None
            if not found:
                what = "was removed" if found is None else "was changed in the database"
                raise Refused("SDC060", f"{policy.name}: its p-table {what}, {_MENDED.get(name, 'sdc_store_ptable')}")
            if stored is None or not stored.is_noise:
                raise Refused("SDC060", f"{policy.name}: its p-table makes no noise, sdc_store_ptable")
            self._ptables[name] = fingerprint

    def stamp(self, policy: Policy) -> object:
        """The fingerprint of all p-tables when those of the policy were looked at last."""
        return self._ptables.get(str(policy.ptable)), self._ptables.get(str(policy.magnitude_ptable))


@dataclass(frozen=True)
class CellKey:
    """Aggregates that carry the sum of the record keys (see ``sql/perturbation.sql``)."""

    name: ClassVar[str] = "cell_key"
    shows: ClassVar[str] = "perturbed"
    words: ClassVar[str] = "noise of cell keys"
    from_cells: ClassVar[bool] = False
    brings_together: ClassVar[bool] = True
    uses_ptables: ClassVar[bool] = True
    clips: ClassVar[bool] = True
    sums: ClassVar[bool] = True
    quantiles: ClassVar[bool] = True
    groups_tell: ClassVar[bool] = True
    needs_all_groups: ClassVar[bool] = False
    checks: ClassVar[type[Checks]] = _PTables

    policy: Policy
    weighted: bool = True
    steps: Steps = field(default_factory=Steps, compare=False)

    @classmethod
    def of(cls, policy: Policy, *, carried: bool, several: bool) -> CellKey:
        """For a table, or for a subquery that carries the hidden columns along."""
        return cls(carried_along(policy, record_key=FIRST, unit=SECOND) if carried else policy)

    @classmethod
    def of_units(cls, policy: Policy) -> Self:
        """For records that are units: their rows brought together, with the hidden columns carried along."""
        return cls(carried_along(policy, record_key=FIRST, unit=SECOND, one_row_per_unit=True))

    def source(self) -> str:
        """The records."""
        return identifier(self.policy.name)

    def hidden(self) -> tuple[str, ...]:
        """The record key, and the unit, of each kind."""
        if self.policy.kinds:
            return tuple(name for kind in self.policy.kinds for name in (str(kind.record_key), kind.unit))
        return (str(self.policy.record_key), str(self.policy.unit))

    def _key(self, records: str) -> str:
        return f"{records}.{identifier(str(self.policy.record_key))}"

    def _unit(self, records: str) -> str:
        return f"{records}.{identifier(str(self.policy.unit))}"

    def _own(self, quantity: str) -> int:
        return own_key(quantity, self.policy.noise_secret)

    def _counts_only(self) -> None:
        """Refuse numbers of which nobody knows what many of them tell, where the sequence of answers is limited.

        Raises:
            Refused: it is.
        """
        if self.policy.sequence.holds:
            raise Refused("SDC071", "anything but counts, sums and means")

    def _look_at(self, measure: str, condition: str) -> None:
        """Something is told of values that is no sum: where it is limited, it is counted as if it told all of them."""
        if self.policy.sequence.holds:
            self.steps.looked_at[measure, condition] = None

    def _own_of_rows(self) -> str:
        return ", ".join(str(self._own(quantity)) for quantity in ("rows", "the largest unit's rows"))

    def _own_of_grid(self, quantity: str) -> int:
        return self._own(f"grid of the {quantity}") % _PRIME

    def _enough(self, records: str, condition: str, value: str) -> str:
        """NULL where the published number of units behind a number is below `min_units`.

        By the original number it would be NULL exactly when one person is not among them.
        """
        if self.policy.min_units <= 1:
            return value
        return f"CASE WHEN {self._counted_units(records, condition)} >= {self.policy.min_units} THEN {value} END"

    def unit(self) -> str:
        """The unit."""
        return str(self.policy.unit)

    def count(self, records: str, condition: str) -> str:
        """``sdc_count``."""
        return self._enough(records, condition, self._counted(records, condition))

    def _counted(self, records: str, condition: str) -> str:
        """``sdc_count`` in the steps that DuckDB plans fastest: see ``_sdc_stepped_count``."""
        self.steps.counted[condition] = None
        call, column = self.steps.call, self.steps.column
        key, ptable = self._key(records), literal(str(self.policy.ptable))
        number, keys = call(f"count({chosen(condition, '1')})"), chosen(condition, key)
        of_keys = f"{call(f'count({keys})')}, {call(f'sum({keys})')}, typeof({call(f'max({key})')})"
        cell_key = column(1, f"_sdc_count_key({ptable}, {number}, {of_keys})")
        slot = column(1, f"_sdc_count_slot({ptable}, {number})")
        code = column(2, f"_sdc_count_code({ptable}, {slot}, {cell_key})")
        return column(3, f"_sdc_stepped_count({ptable}, {number}, {slot}, {cell_key}, {code})")

    def different(self, records: str, value: str, condition: str) -> str:
        """The number of records with a value: each is a unit."""
        return self.count(records, both(condition, f"{value} IS NOT NULL"))

    def rows(self, records: str, number: str) -> str:
        """The sum of the rows, with noise as of the number of units times the rows of that unit which has most.

        And that of a sum, where a unit has several. With one row a unit this is ``sdc_count``.
        """
        self._counts_only()
        call, key = self.steps.call, self._key(records)
        some = f"({number}) > 0"
        ones, keys = chosen(some, "1"), chosen(some, key)
        units = f"typeof({call(f'max({key})')}), {call(f'count({ones})')}, {call(f'count({keys})')}"
        rows = f"{call(f'sum({keys})')}, {call(f'sum({number})::BIGINT')}, {call(f'max({number})')}"
        tables = f"{literal(str(self.policy.ptable))}, {literal(str(self.policy.magnitude_ptable))}"
        stepped = f"_sdc_stepped_rows({units}, {rows}, {tables}, {self._own_of_rows()})"
        return self._enough(records, some, self.steps.column(1, stepped))

    def units(self, records: str, condition: str, kind: int = 0) -> str:
        """``sdc_count_units``; with one row a unit the same as the records."""
        return self._enough(records, condition, self._counted_units(records, condition))

    def _counted_units(self, records: str, condition: str) -> str:
        if self.policy.one_row_per_unit:
            return self._counted(records, condition)
        ptable, unit = literal(str(self.policy.ptable)), self._unit(records)
        return f"sdc_count_units({unit}, {self._key(records)}, ptable := {ptable}, filter := {condition})"

    def total(
        self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool, least: str = ""
    ) -> Total:
        """``sdc_sum`` with a key of its own, in the steps that DuckDB plans fastest: see ``_sdc_stepped_count``."""
        total = self.with_noise(records, measure, condition, called, repeated, exact=exact, least=least)
        return total._replace(sql=self._where_known(records, measure, condition, total.sql))

    def with_noise(
        self, records: str, measure: str, condition: str, called: str, repeated: str, *, exact: bool, least: str = ""
    ) -> Total:
        """The same, whoever has a value."""
        if self.policy.sequence.holds:
            self.steps.summed[measure, condition, f"{called}, {exact}, {least}"] = None
        call, column = self.steps.call, self.steps.column
        key, values = self._key(records), chosen(condition, measure)
        ptable = literal(str(self.policy.magnitude_ptable))
        once = self.once(records, values)
        added_up = call(f"sum({once})::DOUBLE" if exact else f"_sdc_grid_sum({once})")
        number = call(f"count({once})")
        largest = call(f"max(_sdc_contribution({measure}, {key}, {condition}))")
        if not exact:
            largest = f"_sdc_clipped({largest})"
            largest = column(1, f"greatest({largest}, {call(least)})" if least else largest)
        # Where every record has a value that is not 0, this is the sum of keys of the published count. NULL is not 0
        # either, and no record that counts.
        without = self.policy.without_zero & self.policy.without_null
        every = self._is_among(without, records, measure)
        # What comes to 0 on the grid adds nothing, whether it is one row or several.
        is_some = f"{measure} IS NOT NULL" if least else f"{measure} <> 0" if exact else f"abs({measure} * 1e4) > 0.5"
        there = both(condition, is_some)
        keys = call(f"sum({chosen(condition if every else there, key)})")
        own = self._own(f"sum of {called}")
        value = f"{added_up} / {repeated}" if repeated else added_up
        own_key = column(1, f"_sdc_sum_key({ptable}, {keys}, {value}, {own})")
        size = column(2, f"_sdc_sum_size({added_up}, {largest})")
        rung = column(3, f"_sdc_sum_rung({ptable}, {size}, {largest}, {number})")
        code = column(4, f"_sdc_sum_code({ptable}, {rung}, {own_key})")
        upper = column(4, f"_sdc_sum_upper({rung}, {size}, {largest})")
        of_cell = f"{ptable}, {size}, {largest}, {keys}"
        moved = column(5, f"_sdc_stepped_sum({of_cell}, {rung}, {upper}, {own_key}, {code})")
        added = f"_sdc_sum_moved({added_up}, {size}, {moved})"
        return Total(*self._on_grid(added, largest, repeated, called))

    def once(self, records: str, values: str) -> str:
        """What is added up: the values of all units, among which each row of the table is once."""
        return values

    def _on_grid(self, added: str, largest: str, repeated: str, called: str) -> tuple[str, str]:
        """A sum on its grid, and how far numbers on that lie apart at least: see ``_sdc_noise_spread``.

        The sums of one month of everybody and of two, where rows repeat what the unit has, are one sum and twice that
        one. Rounded on two grids they would tell more digits than either: so what is there once is rounded first.
        """
        column, ptable = self.steps.column, literal(str(self.policy.magnitude_ptable))
        one = column(2, f"{largest} / {repeated}") if repeated else largest
        own = self._own_of_grid(f"sum of {called}")
        share = f"_sdc_grid_share({column(3, f'_sdc_grid_key({one}, {own})')})"
        spread = column(4, f"_sdc_noise_spread({ptable}, {largest}, {share})")
        step = column(5, f"_sdc_grid_step({spread})")
        if repeated:
            step_of_one = column(5, f"_sdc_grid_step({column(4, f'_sdc_noise_spread({ptable}, {one}, {share})')})")
            added = f"{column(6, f'_sdc_on_grid({added} / {repeated}, {step_of_one})')} * {repeated}"
        return column(7, f"_sdc_on_grid({added}, {step})"), spread

    def _where_known(self, records: str, measure: str, condition: str, value: str) -> str:
        """A number where the published count of records with a value is not 0: NULL would tell that nobody has one."""
        known = self._has_value(records, measure, condition)
        return self._enough(records, known, f"CASE WHEN {self._counted(records, known)} > 0 THEN {value} END")

    def _has_value(self, records: str, measure: str, condition: str) -> str:
        if self._is_among(self.policy.without_null, records, measure):
            return condition
        return both(condition, f"{measure} IS NOT NULL")

    @staticmethod
    def _is_among(columns: frozenset[str], records: str, measure: str) -> bool:
        """Whether a measure is one of these columns as it is; where a join has no record, it has no key either."""
        return folded(measure) in {folded(f"{records}.{identifier(column)}") for column in columns}

    def variance(self, records: str, measure: str, condition: str, called: str) -> str:
        """``sdc_variance`` with a key of its own, where the published count makes sure that there are two values.

        NULL where there is one would tell of it.
        """
        self._look_at(measure, condition)
        ptable, counts = literal(str(self.policy.magnitude_ptable)), literal(str(self.policy.ptable))
        known = self._has_value(records, measure, condition)
        spread = (
            f"_sdc_own_variance({measure}, {self._key(records)}, {ptable}, {counts}, 0.1, {condition}, 8, 4, "
            f"{self._own(f'variance of {called}')}, {self._own_of_grid(f'variance of {called}')})"
        )
        sure = f"{self._counted(records, known)} > 1 + _sdc_ptable_most({counts})"
        return self._enough(records, known, f"CASE WHEN {sure} THEN {spread} END")

    def variance_of_units(self, records: str, rows: str, total: str, squares: str, called: str) -> str:
        """The variance among the rows of units, of which each has so many with this sum and this sum of squares."""
        self._counts_only()
        ptable, counts = literal(str(self.policy.magnitude_ptable)), literal(str(self.policy.ptable))
        own_grid = self._own_of_grid(f"variance of {called}")
        own = f"{self._own(f'variance of {called}')}, {own_grid}, {self._own_of_rows()}"
        spread = f"_sdc_variance_of_units({rows}, {total}, {squares}, {self._key(records)}, {ptable}, {counts}, {own})"
        return self._enough(records, f"{rows} > 0", spread)

    def quantile_of_units(self, records: str, bins: str, share: str) -> str:
        """The quantile of the rows of units, of which each has these values, in bins."""
        self._counts_only()
        tables = f"{literal(str(self.policy.ptable))}, {literal(str(self.policy.magnitude_ptable))}"
        found = f"_sdc_quantile_of_units({bins}, {self._key(records)}, {share}, {tables}, {self._own_of_rows()})"
        return self._enough(records, f"len({bins}) > 0", found)

    def quantile(self, records: str, measure: str, share: str, condition: str) -> str:
        """``sdc_quantile``, NULL for small groups."""
        self._look_at(measure, condition)
        ptable = literal(str(self.policy.ptable))
        found = f"sdc_quantile({measure}, {self._key(records)}, {share}, ptable := {ptable}, filter := {condition})"
        return self._enough(records, self._has_value(records, measure, condition), found)

    def known(self, records: str, measure: str, condition: str) -> str:
        """A published count: the sum over the original one would give the original count away."""
        return self.count(records, self._has_value(records, measure, condition))

    def or_zero(self, records: str, value: str, some: str, condition: str) -> str:
        """0 where nobody is published who has a value; with `min_units` that is hidden as few are."""
        return zero_where_none(value, some, self.policy.min_units)

    def kept(self, records: str) -> str:
        """Groups that are published as 0 do not appear, nor those of too few units."""
        return f"{self.units(records, 'true')} > 0"


_PRIME = 99_999_989  # see `_sdc_own_key`


@lru_cache(10_000)
def own_key(quantity: str, secret: str) -> int:
    """What spreads the cell keys for one quantity: two factors modulo a prime, made of its name and a secret.

    >>> own_key("sum of income", "a secret") != own_key("sum of turnover", "a secret")
    True
    """
    digest = hmac.digest(secret.encode(), quantity.encode(), "sha256")
    of_key, of_value = (int.from_bytes(part) for part in (digest[:8], digest[8:16]))
    return 1 + of_key % (_PRIME - 1) + _PRIME * (of_value % _PRIME)


METHOD: type[Method] = CellKey
