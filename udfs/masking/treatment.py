"""The treatment of a survey file: planners of ``sdc_substitute_subsample`` and ``sdc_substitute_subsample_report``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.treatment import Records, Treated, rates_of, treat
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import is_finite, needed, whole, wrong
from sdcduck.udfs.masking.distances import as_number, is_category, scaled
from sdcduck.udfs.masking.raking import bounds_of
from sdcduck.udfs.masking.records import check_ids, key_of, order_of, records
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.seeds import stream_of
from sdcduck.udfs.source import Source, refuse_taken, source

Matrix = NDArray[np.float64]

_PSI, _PSI_LEFT, _PSI_LAST = (0.20, 0.10), 0.05, 0.02


@dataclass(frozen=True)
class _Call:
    """A checked call: columns by the names that they have in the source, without quotes."""

    relation: Source
    weight: str | None
    core: tuple[str, ...]
    extra: tuple[str, ...]
    substitute: tuple[str, ...]
    matching: tuple[str, ...]
    by: tuple[str, ...]
    domains: tuple[str, ...]
    outcomes: tuple[str, ...]
    margins: tuple[tuple[str, ...], ...]
    psi: tuple[float, ...]
    phi: float | tuple[float, ...]
    bounds: tuple[float, float]
    k: int
    id: str | None
    seed: int

    @property
    def strata(self) -> int:
        """Unique by the core, by one more column after the other, and never."""
        return len(self.extra) + 2

    @property
    def order(self) -> str:
        """By which records are known."""
        return order_of(self.relation, self.id)

    def query(self) -> str:
        """All that is read, record by record in that order."""

        def code(names: tuple[str, ...]) -> str:
            order = ", ".join(f"{identifier(name)} NULLS FIRST" for name in names)
            return f"dense_rank() OVER (ORDER BY {order}) - 1" if names else "0"

        def near(name: str) -> str:
            return code((name,)) if is_category(self.relation, name) else as_number(self.relation, name)

        keys = [self.core + self.extra[:place] for place in range(len(self.extra) + 1)]
        unique = " ".join(
            f"WHEN count(*) OVER (PARTITION BY {', '.join(map(identifier, names))}) <= {self.k} THEN {place}"
            for place, names in enumerate(keys)
        )
        among = tuple(name for name in self.substitute if name in self.core + self.extra)
        coded = dict.fromkeys((*self.domains, *(name for one in self.margins for name in one)))
        shown = [
            f"{key_of(self.relation, self.id)} AS key",
            f"CASE {unique} ELSE {self.strata - 1} END::BIGINT AS stratum",
            f"{code(self.by)} AS class",
            f"{code(self.substitute)} AS pattern",
            f"{code(among)} AS identifying",
            f"{identifier(self.weight)}::DOUBLE AS weight" if self.weight else "1::DOUBLE AS weight",
            *(f"{code((name,))} AS code{place}" for place, name in enumerate(coded)),
            *(f"{near(name)} AS near{place}" for place, name in enumerate(self.matching)),
            *(f"{identifier(name)}::DOUBLE AS outcome{place}" for place, name in enumerate(self.outcomes)),
        ]
        return (
            "SELECT *, row_number() OVER (PARTITION BY key) - 1 AS number FROM "
            f"(SELECT row_number() OVER (ORDER BY {self.order}) AS place, {', '.join(shown)} FROM {self.relation.sql}) "
            "ORDER BY place"
        )


def _rates(text: str | None, name: str, strata: int) -> tuple[float, ...] | float | None:
    """One share, or one for each stratum."""
    given = json.loads(text or "null")
    if given is None:
        return None
    several = given if isinstance(given, list) else [given]
    if not all(is_finite(one) and 0 <= one <= 1 for one in several):
        raise wrong(name, "be a share from 0 to 1, or a list of shares")
    if isinstance(given, list) and len(given) != strata:
        raise wrong(name, f"hold {strata} shares", "one for each risk stratum, the last for records never unique")
    return tuple(map(float, given)) if isinstance(given, list) else float(given)


def _read_call(
    session: Session, text: str | None, weight: str | None, core: list[str] | None, extra: list[str] | None,
    substitute: list[str] | None, matching: list[str] | None, by: list[str] | None, domains: list[str] | None,
    outcomes: list[str] | None, calibrate: str | None, psi: str | None, phi: str | None,
    bounds: list[float | None] | None, k: int | None, tries: int | None, id: str | None, seed: int | None,
) -> tuple[_Call, int]:  # fmt: skip
    relation = source(session.cursor(), text, "source")
    identifying = relation.named(needed(core, "core", "name the columns that identify a person"), "core")
    more = relation.named(extra, "extra")
    changed = relation.named(
        needed(substitute, "substitute", "name the columns that get values of donors"), "substitute"
    )
    strata = len(more) + 2
    given = _rates(psi, "psi", strata)
    if given is None:
        given = (*(*_PSI, *[_PSI_LEFT] * strata)[: strata - 1], _PSI_LAST)
    kept = _rates(phi, "phi", strata)
    if kept is None or not min(kept if isinstance(kept, tuple) else (kept,)) > 0:
        raise wrong("phi", "be above 0", "the share of the records that are kept")
    factors = bounds_of(bounds)
    if factors is None:
        raise wrong("bounds", "be two numbers, such as [0.3, 3]")
    call = _Call(
        relation, relation.named([weight], "weight")[0] if weight else None, identifying, more, changed,
        relation.named(matching, "matching"), relation.named(by, "by"), relation.named(domains, "domains"),
        relation.named(outcomes, "outcomes"), _margins(relation, calibrate),
        given if isinstance(given, tuple) else (given,) * strata, kept, factors,
        whole(k, "k", least=1, why="a class of so many counts as unique"),
        relation.named([id], "id")[0] if id else None, whole(seed, "seed", least=-(2**63), most=2**63 - 1),
    )  # fmt: skip
    for name in more:
        if name in identifying:
            raise SDCError(f"argument 'extra' names column '{name}', which is one of the core")
    if call.weight:
        relation.number(call.weight, "weight")
    else:
        refuse_taken(relation.columns, ("weight",))
    for own in (call.weight, call.id):
        if own in changed:
            raise SDCError(f"argument 'substitute' names column '{own}', which is the weight or the identifier")
    for name in call.by:
        if name in changed:
            raise SDCError(f"argument 'by' names column '{name}', which is substituted")
    for name in call.outcomes:
        if relation.type_of(name) != "BOOLEAN":
            relation.number(name, "outcomes")
    relation.check_names(tuple(relation.columns))
    return call, whole(tries, "tries", least=1, most=1000)


def _margins(relation: Source, text: str | None) -> tuple[tuple[str, ...], ...]:
    """The lists of columns whose totals are kept: one list, or several."""
    given = json.loads(text or "[]")
    given = [given] if isinstance(given, str) else given
    lists = given if given and all(isinstance(one, list) for one in given) else [[one] for one in given]
    if not all(lists) or not all(isinstance(name, str | None) for one in lists for name in one):
        raise wrong("calibrate", "name columns, such as ['region', 'sex'], or be lists of those that go together")
    return tuple(relation.named(one, "calibrate") for one in lists)


def _read(cursor: duckdb.DuckDBPyConnection, call: _Call) -> Records:
    """All records, checked."""
    found = {name: np.ma.filled(column, np.nan) if isinstance(column, np.ma.MaskedArray) else np.asarray(column)
             for name, column in cursor.execute(call.query()).fetchnumpy().items()}  # fmt: skip
    count, weights = len(found["key"]), found["weight"].astype(np.float64)
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        raise SDCError(f"{int(bad.sum())} of {records(count)} have a weight that is NULL, negative or no finite number")
    coded = list(dict.fromkeys((*call.domains, *(name for one in call.margins for name in one))))

    def codes(names: tuple[str, ...]) -> NDArray[np.int64]:
        columns = [found[f"code{coded.index(name)}"] for name in names]
        return np.column_stack(columns).astype(np.int64) if columns else np.zeros((count, 0), np.int64)

    def moved(names: tuple[str, ...]) -> NDArray[np.bool_]:
        return np.array([name in call.substitute for name in names], np.bool_)

    near = [(found[f"near{place}"], is_category(call.relation, name)) for place, name in enumerate(call.matching)]
    categories = [column for column, category in near if category]
    outcomes = [found[f"outcome{place}"].astype(np.float64) for place in range(len(call.outcomes))]
    if any(np.isinf(one).any() for one in outcomes):
        raise SDCError("argument 'outcomes': a record has an infinite number")
    return Records(
        found["key"].astype(np.uint64), found["number"].astype(np.int64), found["stratum"].astype(np.int64),
        found["class"].astype(np.int64), found["pattern"].astype(np.int64), found["identifying"].astype(np.int64),
        scaled([column.astype(np.float64) for column, category in near if not category], count, "matching"),
        np.column_stack(categories).astype(np.int64) if categories else np.zeros((count, 0), np.int64),
        weights, codes(call.domains), np.column_stack(outcomes) if outcomes else np.zeros((count, 0)),
        [codes(one) for one in call.margins], moved(call.domains), moved(call.outcomes),
        [moved(one) for one in call.margins],
    )  # fmt: skip


def _treated(session: Session, call: _Call, tries: int) -> tuple[Records, Treated, Matrix]:
    """The records, what was made of them, and the rates of the strata."""
    with reads(session.cursor()) as cursor:
        if call.id:
            check_ids(cursor, call.relation, call.id)
        read = _read(cursor, call)
    phi = np.array(call.phi) if isinstance(call.phi, tuple) else rates_of(read.strata, call.phi, call.strata)
    seed = stream_of(session.secret(), "substitution and subsampling", call.seed)
    try:
        made = treat(
            read, np.array(call.psi), phi, seed=seed, tries=tries, bounds=call.bounds, check=shown_checkpoint()
        )
    except ValueError as problem:
        raise SDCError(f"after {tries} tries {problem}") from None
    return read, made, phi


def _rows(session: Session, call: _Call, tries: int) -> pa.Table:
    """Of each record that is left whose values it has, and its weight."""
    _, made, _ = _treated(session, call, tries)
    return pa.table({"place": made.kept, "donor": made.taken[made.kept], "weight": made.weights})


def plan_substitute_subsample(session: Session, *arguments: Any) -> Rows:
    """``sdc_substitute_subsample``."""
    call, tries = _read_call(session, *arguments)
    shown = []
    for name in call.relation.columns:
        quoted = identifier(name)
        if name == call.weight:
            shown.append(f"m.weight AS {quoted}")
        else:
            shown.append(f"{'d' if name in call.substitute else 'r'}.{quoted} AS {quoted}")
    if not call.weight:
        shown.append("m.weight AS weight")
    return Rows(
        partial(_rows, session, call, tries),
        f"""WITH _sdc_numbered AS MATERIALIZED (
            SELECT *, row_number() OVER (ORDER BY {call.order}) - 1 AS _sdc_place FROM {call.relation.sql}
        )
        SELECT {", ".join(shown)}
        FROM {{rows}} m
        JOIN _sdc_numbered r ON r._sdc_place = m.place JOIN _sdc_numbered d ON d._sdc_place = m.donor""",
    )


def plan_substitute_subsample_report(session: Session, *arguments: Any) -> Rows:
    """``sdc_substitute_subsample_report``: the strata, and all of them together."""
    call, tries = _read_call(session, *arguments)

    def make() -> pa.Table:
        read, made, phi = _treated(session, call, tries)
        own = np.arange(len(read.strata))
        same = read.identifying[made.taken] == read.identifying
        kept = np.isin(own, made.kept)
        rows: list[dict[str, Any]] = []
        for stratum in range(call.strata):
            here, last = read.strata == stratum, stratum == call.strata - 1
            substituted = here & (made.taken != own)
            still = float(same[substituted].mean()) if substituted.any() else 0.0
            truthful = here.sum() * phi[stratum] * (1 - call.psi[stratum] * (1 - still)) / max(len(own), 1)
            rows.append(
                {
                    "stratum": stratum + 1,
                    "unique_by": None if last else ", ".join(call.core + call.extra[:stratum]),
                    "records": int(here.sum()), "psi": call.psi[stratum], "phi": float(phi[stratum]),
                    "substituted": int(substituted.sum()), "no_donor": int((here & made.chosen & ~substituted).sum()),
                    "kept": int((here & kept).sum()), "truthful": int((here & kept & same).sum()),
                    "risk": 0.0 if last else float(truthful),
                }
            )  # fmt: skip
        sums = {
            name: sum(row[name] for row in rows)
            for name in ("records", "substituted", "no_donor", "kept", "truthful", "risk")
        }
        compared = {"estimates": made.compared, "off": made.off, "ratio_se": made.wider} if call.outcomes else {}
        gap = {}
        if made.raked:
            factors = made.raked.factors
            gap = {
                "gap": float(made.raked.gaps.max(initial=0.0)),
                "factor_least": float(factors.min(initial=np.inf)) if len(factors) else None,
                "factor_most": float(factors.max(initial=0.0)) if len(factors) else None,
            }
        rows.append({**sums, **compared, **gap, "tries": made.attempt + 1, "met": made.met})
        return table_of(rows, _REPORT.columns)

    return Rows(make)


_REPORT = planner(plan_substitute_subsample_report)
PLANNERS = (
    planner(plan_substitute_subsample, {"place": "BIGINT", "donor": "BIGINT", "weight": "DOUBLE"}),
    _REPORT,
)
