"""Attacks on synthetic data: planners behind ``sql/attacks_tables.sql``.

The records of each table are brought into one order first, so that chance hangs on the seed alone and not on how the
tables are stored. Attacks are drawn from them and judged by `sdcduck.methods.risk`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.methods.risk import attacks as attack
from sdcduck.methods.risk import predicates
from sdcduck.methods.risk.attacks import Rate, privacy_risk, wilson
from sdcduck.methods.risk.closest import overlaps
from sdcduck.methods.risk.column_subsets import association, share_of_originals, subsets
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import among, choice, needed, share, whole, wrong
from sdcduck.udfs.compared import COMPARED, Compared
from sdcduck.udfs.risk.closest_records import Call, Distance, Records, holdout_counts, read_records
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source

_MODES = ("univariate", "multivariate")
_MOST_NEIGHBOURS = 1000
_MOST_ATTACKS = 1_000_000
_MOST_SUBSETS = 1000
_FEW = 100

Matrix = NDArray[np.float64]

# --- what all attacks share ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The arguments that all attacks share.

    Attributes:
        call: the tables, and how their records are compared.
        attacks: how many, at most.
        seed: of what is drawn.
    """

    call: Call
    attacks: int
    confidence: float
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.call.compared.names

    @property
    def numbers(self) -> frozenset[int]:
        """Places of the columns that hold numbers."""
        return self.call.distance.numbers

    def generator(self) -> np.random.Generator:
        """A new random stream."""
        return np.random.default_rng(self.seed % 2**64)

    def read(self, cursor: duckdb.DuckDBPyConnection) -> Records:
        """The records as numbers, each table in an order of its own that its storage does not decide.

        Raises:
            SDCError: a table has no records.
        """
        compared = self.call.compared
        ordered = {argument: _ordered(table, compared.names) for argument, table in compared.tables.items()}
        records = read_records(cursor, replace(self.call, compared=Compared(ordered, compared.names)))
        for argument, table in records.tables.items():
            if not len(table):
                raise SDCError(f"argument '{argument}' has no records")
        return records


def _ordered(table: Source, names: Sequence[str]) -> Source:
    columns = ", ".join(table.column(name, "columns") for name in names)
    return replace(table, sql=f"(SELECT {columns} FROM {table.sql} ORDER BY {columns})")


def _plan(
    session: Session, tables: dict[str, str | None], columns: list[str] | None, categorical: list[str] | None,
    attacks: int | None, confidence: float | None, seed: int | None, *, argument: str = "columns",
    counted: str = "attacks",
) -> Plan:  # fmt: skip
    given = {name: text for name, text in tables.items() if text is not None or name != "holdout"}
    compared = Compared.read(session.cursor(), given, columns, argument=argument)
    codes = {compared.names[place] for place in among(categorical, "categorical", compared.names, COMPARED)}
    numbers = frozenset(
        place for place, name in enumerate(compared.names)
        if name not in codes and compared.kind(name) not in ("text", "boolean")
    )  # fmt: skip
    most = whole(attacks, counted, least=1, most=_MOST_ATTACKS)
    level = share(confidence, "confidence", zero=False, one=False)
    distance = Distance(None, np.ones(len(compared.names)), numbers, frozenset(), with_synthetic=True)
    return Plan(Call(compared, distance), most, level, seed or 0)


def _drawn(table: Matrix, attacks: int, generator: np.random.Generator) -> Matrix:
    """The people who are attacked."""
    if len(table) <= attacks:
        return table
    return table[np.sort(generator.choice(len(table), attacks, replace=False))]


RATE_COLUMNS = {
    "attacks": "BIGINT", "attack_rate": "DOUBLE", "attack_low": "DOUBLE", "attack_high": "DOUBLE",
    "control_attacks": "BIGINT", "control_rate": "DOUBLE", "control_low": "DOUBLE", "control_high": "DOUBLE",
    "baseline_rate": "DOUBLE", "modal_rate": "DOUBLE", "risk": "DOUBLE", "risk_low": "DOUBLE", "risk_high": "DOUBLE",
    "warning": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How an attack went: the figures of `RATE_COLUMNS`.

    Attributes:
        baseline, modal: success rates of guessing at random, and of always guessing the most frequent value.
    """

    attacks: int
    attack: Rate | None
    control_attacks: int | None
    control: Rate | None
    baseline: float | None
    modal: float | None

    def row(self, warnings: list[str]) -> dict[str, object]:
        """The row of the result.

        Args:
            warnings: more of what should be known.
        """
        risk = privacy_risk(self.attack, self.control) if self.attack and self.control else None
        return {
            "attacks": self.attacks, **_three("attack", self.attack, "attack_rate"),
            "control_attacks": self.control_attacks, **_three("control", self.control, "control_rate"),
            "baseline_rate": self.baseline, "modal_rate": self.modal, **_three("risk", risk, "risk"),
            "warning": "; ".join([*self._failures(), *warnings]) or None,
        }  # fmt: skip

    def _failures(self) -> list[str]:
        said = []
        if self.attack is not None:
            if self.baseline is not None and self.attack.low <= self.baseline:
                said.append("the attack does no better than guessing at random: it failed, and says little of the risk")
            elif self.modal is not None and self.attack.low <= self.modal:
                said.append("the attack does no better than always guessing the most frequent value")
            if self.attacks < _FEW:
                said.append(f"only {self.attacks} attack{'s' if self.attacks > 1 else ''}: chance decides")
        if self.control is not None and self.control.value >= 1:
            said.append("the attack always succeeds on the holdout: nothing is left to be learned")
        return said


def _three(name: str, rate: Rate | None, value: str) -> dict[str, float | None]:
    if rate is None:
        return {value: None, f"{name}_low": None, f"{name}_high": None}
    return {value: rate.value, f"{name}_low": rate.low, f"{name}_high": rate.high}


def _warnings(cursor: duckdb.DuckDBPyConnection, plan: Plan, records: Records) -> list[str]:
    """What to say of the tables."""
    said = [
        f"'{argument}' has only {len(table)} record{'s' if len(table) > 1 else ''}"
        for argument, table in records.tables.items()
        if len(table) < _FEW
    ]
    if "holdout" not in plan.call.compared.tables:
        return [*said, "no holdout: what everybody can know of the population cannot be told from a leak"]
    return said + _overlap(cursor, plan.call.compared, "holdout")


def _overlap(cursor: duckdb.DuckDBPyConnection, compared: Compared, argument: str) -> list[str]:
    matches, holdouts, doubles, originals = holdout_counts(cursor, compared)
    if not overlaps(matches, holdouts, doubles, originals):
        return []
    there, own = 100 * matches / holdouts, 100 * doubles / originals
    return [
        f"{there:.1f} % of '{argument}' equal an original record, where {own:.1f} % of the originals equal another: "
        f"'{argument}' seems to hold records that the synthetic data were made from, and the risk is larger than it "
        "looks"
    ]


# --- singling out ----------------------------------------------------------------------------------------------------

SINGLING_OUT_COLUMNS = {"mode": "VARCHAR", "terms": "BIGINT", **RATE_COLUMNS}


def plan_attack_singling_out(
    session: Session, original: str | None, synthetic: str | None, holdout: str | None, columns: list[str] | None,
    mode: str | None, terms: int | None, attacks: int | None, categorical: list[str] | None, confidence: float | None,
    seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_attack_singling_out``."""
    tables = {"original": original, "synthetic": synthetic, "holdout": holdout}
    plan = _plan(session, tables, columns, categorical, attacks, confidence, seed)
    how, most = choice(mode, "mode", _MODES), whole(terms, "terms", least=1)
    of_each = 1 if how == "univariate" else min(most, len(plan.names))

    def make() -> pa.Table:
        cursor = reads(session.cursor())
        records = plan.read(cursor)
        outcome = _singled_out(plan, records, how, of_each)
        said = _warnings(cursor, plan, records)
        if not outcome.attacks:
            said = ["no predicate that can be made of these columns singles out a synthetic record", *said]
        return table_of([{"mode": how, "terms": of_each, **outcome.row(said)}], SINGLING_OUT_COLUMNS)

    return Rows(make)


def _singled_out(plan: Plan, records: Records, mode: str, terms: int) -> Outcome:
    check, generator = shown_checkpoint(), plan.generator()
    original, synthetic = records.tables["original"], records.tables["synthetic"]
    if mode == "univariate":
        said = predicates.of_one_column(synthetic, plan.numbers, plan.attacks, generator)
    else:
        said = predicates.of_several_columns(synthetic, plan.numbers, terms, plan.attacks, generator, check)
    if not len(said):
        return Outcome(0, None, 0 if "holdout" in records.tables else None, None, None, None)
    in_original = said.matches(original, check)
    control = records.tables.get("holdout")
    in_control = None if control is None else said.matches(control, check)
    controls = 0 if control is None else len(control)
    rates = predicates.success_rates(in_original, len(original), in_control, controls, plan.confidence)
    by_chance = predicates.at_random(synthetic, plan.numbers, said, generator).matches(original, check)
    return Outcome(
        len(said), rates[0], None if control is None else len(said), rates[1], float(by_chance.alone.mean()), None
    )


# --- linkability -----------------------------------------------------------------------------------------------------

LINKABILITY_COLUMNS = {"neighbours": "BIGINT", **RATE_COLUMNS}


def plan_attack_linkability(
    session: Session, original: str | None, synthetic: str | None, holdout: str | None, keys: str | None,
    neighbours: int | None, attacks: int | None, categorical: list[str] | None, confidence: float | None,
    seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_attack_linkability``."""
    first, second = _halves(keys)
    tables = {"original": original, "synthetic": synthetic, "holdout": holdout}
    for half in (first, second):
        Compared.read(session.cursor(), {"original": original, "synthetic": synthetic}, half, argument="keys")
    if both := [name for name in second if folded(name) in {folded(known) for known in first}]:
        raise SDCError(f"argument 'keys': column '{both[0]}' is in both lists; the two halves must differ")
    plan = _plan(session, tables, first + second, categorical, attacks, confidence, seed, argument="keys")
    near = whole(neighbours, "neighbours", least=1, most=_MOST_NEIGHBOURS)
    halves = list(range(len(first))), list(range(len(first), len(plan.names)))

    def make() -> pa.Table:
        cursor = reads(session.cursor())
        records = plan.read(cursor)
        said = _warnings(cursor, plan, records)
        size = len(records.tables["synthetic"])
        if 2 * near > size:
            said.append(f"'neighbours' is more than half of the {size} synthetic records: any two sets of them meet")
        outcome = _linked(plan, records, halves, near)
        return table_of([{"neighbours": near, **outcome.row(said)}], LINKABILITY_COLUMNS)

    return Rows(make)


def _halves(keys: str | None) -> tuple[list[str], list[str]]:
    given = json.loads(keys or "null")
    right = isinstance(given, list) and len(given) == 2
    if not right or not all(isinstance(half, list) and half for half in given):
        raise wrong(
            "keys", "hold two lists of columns, those of the two halves of a record: [['age', 'sex'], ['income']]"
        )
    if not all(isinstance(name, str) for half in given for name in half):
        raise wrong("keys", "hold names of columns")
    return given[0], given[1]


def _linked(plan: Plan, records: Records, halves: tuple[list[int], list[int]], neighbours: int) -> Outcome:
    check, generator = shown_checkpoint(), plan.generator()
    synthetic, scales = records.tables["synthetic"], records.scales
    targets = {name: _drawn(records.tables[name], plan.attacks, generator) for name in _attacked(records)}
    number = len(targets["original"])
    everybody = np.concatenate(list(targets.values()))
    found = attack.linked(everybody, synthetic, scales, *halves, neighbours, generator, check)
    modal = attack.linked_to_modal(targets["original"], synthetic, scales, *halves, neighbours, generator, check)
    return Outcome(
        number,
        wilson(float(found[:number].mean()), number, plan.confidence),
        *_control(found[number:], "holdout" in targets, plan.confidence),
        attack.linked_by_chance(len(synthetic), min(neighbours, len(synthetic))),
        float(modal.mean()),
    )


def _attacked(records: Records) -> list[str]:
    return [name for name in ("original", "holdout") if name in records.tables]


def _control(found: NDArray[np.bool_], there_is_one: bool, confidence: float) -> tuple[int | None, Rate | None]:
    return (len(found), wilson(float(found.mean()), len(found), confidence)) if there_is_one else (None, None)


# --- inference -------------------------------------------------------------------------------------------------------

INFERENCE_COLUMNS = {"secret": "VARCHAR", "tolerance": "DOUBLE", **RATE_COLUMNS, "rate_not_modal": "DOUBLE"}


def plan_attack_inference(
    session: Session, original: str | None, synthetic: str | None, holdout: str | None, sensitive: str | None,
    keys: list[str] | None, tolerance: float | None, attacks: int | None, categorical: list[str] | None,
    confidence: float | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_attack_inference``."""
    tables = {"original": original, "synthetic": synthetic, "holdout": holdout}
    wanted = needed(sensitive, "sensitive", "name the column that is to be inferred")
    given = {name: text for name, text in tables.items() if text is not None or name != "holdout"}
    # Named in all tables, the secret comes last.
    (its_name,) = Compared.read(session.cursor(), given, [wanted], argument="sensitive").names
    known = Compared.read(session.cursor(), given, keys, argument="keys", leaving_out=its_name).names
    if its_name in known:
        raise SDCError(f"column '{its_name}' cannot be both sensitive and known (argument 'keys')")
    plan = _plan(session, tables, [*known, its_name], categorical, attacks, confidence, seed, argument="keys")
    near = share(tolerance, "tolerance", one=False, why="a share of the true value")
    is_number = len(known) in plan.numbers and plan.call.compared.kind(its_name) == "number"
    allowed = near if is_number else 0.0

    def make() -> pa.Table:
        cursor = reads(session.cursor())
        records = plan.read(cursor)
        said = _warnings(cursor, plan, records)
        outcome, rate_not_modal = _inferred(plan, records, allowed)
        row = {"secret": its_name, "tolerance": allowed if is_number else None, "rate_not_modal": rate_not_modal}
        return table_of([row | outcome.row(said)], INFERENCE_COLUMNS)

    return Rows(make)


def _inferred(plan: Plan, records: Records, tolerance: float) -> tuple[Outcome, float | None]:
    """How the attack went, and its success rate on those for whom the modal guess is wrong."""
    check, generator = shown_checkpoint(), plan.generator()
    synthetic, scales = records.tables["synthetic"], records.scales[:-1]
    targets = {name: _drawn(records.tables[name], plan.attacks, generator) for name in _attacked(records)}
    number = len(targets["original"])
    everybody = np.concatenate(list(targets.values()))
    secret, truth = synthetic[:, -1], everybody[:, -1]
    guess = attack.guesses(everybody[:, :-1], synthetic[:, :-1], scales, secret, generator, check)
    found = attack.right(guess, truth, tolerance)
    truth = truth[:number]
    by_mode = attack.right(np.full(number, attack.modal(secret, tolerance)), truth, tolerance)
    outcome = Outcome(
        number,
        wilson(float(found[:number].mean()), number, plan.confidence),
        *_control(found[number:], "holdout" in targets, plan.confidence),
        float(attack.right_by_chance(truth, secret, tolerance).mean()),
        float(by_mode.mean()),
    )
    return outcome, None if by_mode.all() else float(found[:number][~by_mode].mean())


# --- distances in subsets of the columns -----------------------------------------------------------------------------

SUBSET_COLUMNS = {
    "subset": "BIGINT", "kind": "VARCHAR", "columns": "VARCHAR", "records": "BIGINT", "share": "DOUBLE",
    "expected": "DOUBLE", "low": "DOUBLE", "high": "DOUBLE", "corrected_low": "DOUBLE", "corrected_high": "DOUBLE",
    "largest": "BOOLEAN", "warning": "VARCHAR",
}  # fmt: skip


def plan_dcr_subsets(
    session: Session, original: str | None, synthetic: str | None, holdout: str | None, columns: list[str] | None,
    number: int | None, size: int | None, records: int | None, categorical: list[str] | None,
    confidence: float | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_dcr_subsets``: a row for all columns, and one for each subset."""
    needed(holdout, "holdout", "name records that the synthetic ones were not made from")
    tables = {"original": original, "synthetic": synthetic, "holdout": holdout}
    plan = _plan(session, tables, columns, categorical, records, confidence, seed, counted="records")
    width = len(plan.names)
    times = whole(number, "subsets", least=1, most=_MOST_SUBSETS)
    third = min(max(2, round(width / 3)), width)
    of_each = third if size is None else whole(size, "size", least=1, most=width, why="so many of the columns")

    def make() -> pa.Table:
        cursor = reads(session.cursor())
        found = plan.read(cursor)
        rows = _shares(plan, found, of_each, times)
        said = _overlap(cursor, plan.call.compared, "holdout")
        few = min(len(table) for table in found.tables.values())
        if few < _FEW:
            said.append(f"only {few} record{'s' if few > 1 else ''} in one of the tables: chance decides")
        rows[0]["warning"] = "; ".join(said) or None
        return table_of(rows, SUBSET_COLUMNS)

    shown = ", ".join(
        """from_json("columns", '["VARCHAR"]') AS "columns" """ if name == "columns" else name
        for name in SUBSET_COLUMNS
    )
    return Rows(make, f"SELECT {shown} FROM {{rows}}")


def _shares(plan: Plan, records: Records, size: int, number: int) -> list[dict[str, Any]]:
    check, generator = shown_checkpoint(), plan.generator()
    original, holdout = records.tables["original"], records.tables["holdout"]
    synthetic = records.tables["synthetic"]
    every = tuple(range(len(plan.names)))
    looked_at = [("all", every)]
    if size < len(every):
        looked_at += subsets(association(synthetic, plan.numbers), size, number, generator)
    asked = _drawn(synthetic, plan.attacks, generator)
    corrected = 1 - (1 - plan.confidence) / len(looked_at)
    rows: list[dict[str, Any]] = []
    for place, (kind, chosen) in enumerate(looked_at):
        tables = (asked[:, chosen], original[:, chosen], holdout[:, chosen])
        share, answers = share_of_originals(*tables, records.scales[list(chosen)], generator)
        check(place + 1, len(looked_at))
        one, all_of_them = (wilson(share, answers, level) for level in (plan.confidence, corrected))
        rows.append(
            {
                "subset": place, "kind": kind, "columns": json.dumps([plan.names[column] for column in chosen]),
                "records": len(asked), "share": share, "expected": len(original) / (len(original) + len(holdout)),
                "low": one.low, "high": one.high, "corrected_low": all_of_them.low, "corrected_high": all_of_them.high,
            }
        )  # fmt: skip
    largest = max(range(len(rows)), key=lambda place: (rows[place]["share"], -place))
    for place, row in enumerate(rows):
        row["largest"] = place == largest
    return rows


FAMILY = Family(
    name="attacks",
    temporary=("attacks_tables.sql",),
    planners=(
        *planners(plan_attack_singling_out, plan_attack_linkability, plan_attack_inference),
        planner(plan_dcr_subsets, SUBSET_COLUMNS),
    ),
)
