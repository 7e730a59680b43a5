"""Suppression of linked tables: planners behind ``sql/suppression_tables.sql``."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import checkpoint, confirm, portion, reads, shown_checkpoint
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.methods.linear_programs import Unsolved
from sdcduck.methods.suppression.audit import audit, known_by_sign, singleton_hazards
from sdcduck.methods.suppression.decimals import decimals
from sdcduck.methods.suppression.determined import determined
from sdcduck.methods.suppression.optimal import optimal_suppression
from sdcduck.methods.suppression.rounding import (
    below_threshold,
    controlled_rounding,
    midpoint_rounding,
    random_rounding,
    small_count_rounding,
)
from sdcduck.methods.suppression.stencil import stencil
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import choice, needed, number, truth, whole, without_spaces, wrong
from sdcduck.udfs.publication import (
    Measure,
    clusters,
    complete_measures,
    count_of_records,
    digest,
    read_publication,
)
from sdcduck.udfs.record_rules import RECORD_RULES
from sdcduck.udfs.rule_sets import completed, naming
from sdcduck.udfs.suppression.cross_tables import plan_write_table
from sdcduck.udfs.suppression.earlier import beside
from sdcduck.udfs.suppression.exchange import plan_sdmx
from sdcduck.udfs.suppression.export import plan_export
from sdcduck.udfs.suppression.pattern import (
    ARGUMENTS,
    Call,
    Options,
    Pattern,
    arrow,
    check_any_rule,
    choose_pattern,
    floats,
    pattern_table,
    protected_cells,
    read_call,
    read_inner,
    resolve,
    unchanged,
    weight,
    widths,
)
from sdcduck.udfs.suppression.percents import plan_percent_table
from sdcduck.udfs.suppression.rule_sets import plan_drop_rules, plan_rule_sets, plan_rules
from sdcduck.udfs.suppression.rules import (
    RULES,
    Rules,
    checked_condition,
    marked_cells,
    read_rules,
    with_amounts,
    with_contributions,
    with_structural_zeros,
)
from sdcduck.udfs.suppression.tau_argus import plan_write_tau_argus

_OF_CELLS = ("extend_zeros", "structural_zeros", *RULES)


def plan_primary(session: Session, text: str | None, rule_set: str | None, *arguments: Any) -> str:
    """``sdc_primary``: the rules alone, in SQL."""
    publication = resolve(session, text, ("level", "status", "why", "contributors", "contributed", "largest"))
    cursor = session.cursor()
    (extend_zeros, structural_zeros, *given), found = completed(cursor, rule_set, _OF_CELLS, arguments)
    with naming(found):
        rules = read_rules(*given)
        publication = with_amounts(cursor, publication.counted(rules.freq), rules, shown=False)
        checked_condition(cursor, publication, rules.primary_if, "primary_if")
        wanted = rules.protect_zeros if extend_zeros is None else extend_zeros
        publication = with_structural_zeros(cursor, publication, structural_zeros, wanted)
    publication = with_contributions(cursor, publication, rules)
    marked = marked_cells(publication, rules, extend=clusters(cursor, publication) if wanted else ())
    columns = ", ".join(identifier(name) for name in publication.columns)
    return f"""
        SELECT {columns}, level, CASE WHEN _sdc_primary THEN 'primary' ELSE 'open' END AS status,
            nullif(_sdc_why, '') AS why, _sdc_contributors AS contributors, _sdc_total AS contributed,
            _sdc_largest AS largest
        FROM ({marked}) ORDER BY _sdc_cell"""


def plan_suppress(session: Session, text: str | None, rules: str | None, *arguments: Any) -> Rows:
    """``sdc_suppress``: the publication with its suppressed numbers NULL."""
    call = read_call(session, text, rules, arguments, ("level", "status", "suppressed", "why"), shown=False)
    check_any_rule(call)

    def make() -> pa.Table:
        return pattern_table(choose_pattern(session, call))

    return Rows(make, protected_cells(call))


# --- Stored publications ---------------------------------------------------------------------------------------------


def plan_publication(session: Session, name: str | None, query: str | None) -> Rows:
    """``sdc_publication``: stores a SELECT under a name."""
    called, wanted = without_spaces(name, "name"), needed(query, "query", "be a SELECT .. GROUP BY")
    publication = read_publication(session.cursor(), wanted, session.engine)

    def store() -> pa.Table:
        catalog.store_publication(session.cursor(), called, wanted)
        return pa.table(
            {
                "name": [called],
                "dimensions": [", ".join(publication.dimensions)],
                "measures": [", ".join(measure.name for measure in publication.measures)],
                "tables": [len(publication.sets)],
            }
        )

    return Rows(store)


def plan_drop_publication(session: Session, name: str | None) -> Rows:
    """``sdc_drop_publication``: fails while binding if there is none of that name."""
    catalog.publication(session.cursor(), str(name))

    def drop() -> pa.Table:
        catalog.drop_publication(session.cursor(), str(name))
        return pa.table({"name": [name]})

    return Rows(drop)


def plan_publish(session: Session, name: str | None, text: str | None, rules: str | None, *arguments: Any) -> Rows:
    """``sdc_publish``: suppresses, then stores cells and stencil in one transaction."""
    called = without_spaces(name, "name")
    call = read_call(session, text or called, rules, arguments, ("stencil", "level", "status", "why"), again=True)
    check_any_rule(call)
    publication = call.publication

    def publish() -> pa.Table:
        pattern = choose_pattern(session, call)
        told = _told(session, call, pattern)
        numbers = stencil(pattern.null_space, seed=secrets.randbits(63))[:, 0]
        cursor = session.cursor()
        cursor.register("_sdc_pattern", pattern_table(pattern))
        cursor.register(
            "_sdc_numbers", pa.table({"inner_cell": np.arange(len(numbers), dtype=np.int64), "stencil": numbers})
        )
        columns = ", ".join(f"i.{identifier(column)}" for column in publication.columns)
        cursor.begin()
        try:
            shown = protected_cells(call).replace("{rows}", "_sdc_pattern")
            cursor.execute(
                f"CREATE OR REPLACE TABLE {catalog.cells_table(called)} AS SELECT * EXCLUDE suppressed FROM ({shown})"
            )
            cursor.execute(
                f"CREATE OR REPLACE TABLE {catalog.stencil_table(called)} AS SELECT {columns}, n.stencil "
                f"FROM ({publication.inner_cells(extend=call.extend)}) i "
                "JOIN _sdc_numbers n ON i._sdc_inner = n.inner_cell ORDER BY i._sdc_inner"
            )
            catalog.store_publication(
                cursor, called, publication.query, json.dumps(call.arguments), digest(cursor, publication)
            )
            catalog.note_stencil(cursor, called, publication.columns)
            complete = complete_measures(cursor, publication)
            catalog.renew_policies(cursor, called, count_of_records(publication, complete), complete)
            confirm()  # somebody who interrupted the statement must not find it published
            cursor.commit()
        except BaseException:
            cursor.rollback()
            raise
        return _summary(called, pattern, told, beside(cursor, called, publication.query, call.earlier))

    return Rows(publish)


_MOST_AUDITED = 200
"""Of so many unknown cells the intervals take no time beside what else publishing does."""


def _told(session: Session, call: Call, pattern: Pattern) -> NDArray[np.bool_]:
    """The primary cells with a number that follows from published ones, as none within it is negative.

    Of few unknown cells it is what `sdc_audit` finds of all measures, else those of them that have one possible value.
    """
    unknown_cells = pattern.suppressed | pattern.hidden
    told = np.zeros(len(unknown_cells), dtype=np.bool_)
    check = checkpoint()
    for measure in call.publication.measures:
        z, y = _numbers(session, call, measure)
        if not np.isfinite(z).all():
            continue
        is_positive = bool((y >= 0).all())
        if unknown_cells.sum() <= _MOST_AUDITED:
            lower = 0.0 if is_positive else -np.inf
            found = audit(
                pattern.inner.x, z, unknown_cells, cells=pattern.primary, lower=lower, progress=check, until=np.inf
            )  # fmt: skip
            told[found.cells] |= found.exact
        if is_positive:
            # Where numbers may be negative, what follows at all follows for every measure: the choice of cells saw it.
            told |= known_by_sign(pattern.inner.x, z, unknown_cells) | determined(pattern.inner.x, y, unknown_cells)
        check()
    return told & pattern.primary


def _numbers(session: Session, call: Call, measure: Measure) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A measure of all cells and of the inner cells; where it is NULL there is nothing to add up: 0."""
    cursor, column = reads(session.cursor()), f"{identifier(measure.name)}::DOUBLE"
    cells_sql = call.publication.cells(extend=call.extend)
    inner_sql = call.publication.inner_cells(extend=call.extend)
    z = floats(arrow(cursor, f"SELECT {column} AS z FROM ({cells_sql}) ORDER BY _sdc_cell"), "z")
    y = floats(arrow(cursor, f"SELECT {column} AS y FROM ({inner_sql}) ORDER BY _sdc_inner"), "y")
    return z, y


def _summary(name: str, pattern: Pattern, told: NDArray[np.bool_], others: list[str]) -> pa.Table:
    inner = pattern.inner
    values = inner.size
    shown = ~pattern.suppressed & ~pattern.hidden
    total = float(values[~pattern.hidden].sum())
    nothing = None if pattern.suppressed.any() else 1.0
    share = float(values[shown].sum()) / total if total else nothing
    unsafe = pattern.unsafe | told
    if pattern.disclosing is not None:
        unsafe = unsafe | pattern.disclosing
    return pa.table(
        {
            "name": [name],
            "inner_cells": [inner.x.rows],
            "cells": [int((~pattern.hidden).sum())],
            "primary_cells": [int(pattern.primary.sum())],
            "secondary_cells": [int(pattern.secondary.sum())],
            "unsafe_cells": [int(unsafe.sum())],
            "narrow_cells": pa.array([None if pattern.narrow is None else int(pattern.narrow.sum())], pa.int64()),
            "share_shown": pa.array([share], pa.float64()),
            "saved_cells": pa.array([None if pattern.saved is None else pattern.saved[0]], pa.int64()),
            "saved_cost": pa.array([None if pattern.saved is None else pattern.saved[1]], pa.float64()),
            "search_ended": pa.array([pattern.ended], pa.bool_()),
            "beside": pa.array([", ".join(others) or None], pa.string()),
        }
    )


# --- Audit -----------------------------------------------------------------------------------------------------------


def plan_audit(
    session: Session, text: str | None, measure: str | None, insider: bool | None, time_limit: float | None,
    rule_set: str | None, *arguments: Any,
) -> Rows:  # fmt: skip
    """``sdc_audit``: the feasibility interval of every suppressed cell, for outsiders and for contributors."""
    seconds = np.inf if time_limit is None else number(time_limit, "time_limit", least=0, why="seconds")
    call = read_call(session, text, rule_set, arguments, (*_AUDIT_COLUMNS, *_INSIDER_COLUMNS), shown=False)
    publication, rules = call.publication, call.rules
    default = ("value", "sum") if rules.on_contributors else ("freq", "count")
    of_rules = rules.value if rules.on_contributors else rules.freq
    audited = publication.measure(measure or of_rules, "measure" if measure else default[0], default[1])

    def make() -> pa.Table:
        portion(0.0, 0.1)
        pattern = choose_pattern(session, call)
        inner = pattern.inner
        z, y = _numbers(session, call, audited)
        # The signs are known only where no inner cell is negative, whatever the cells are.
        lower = 0.0 if (y >= 0).all() else -np.inf
        by_rule = audited.name == publication.measure(of_rules, *default).name
        protection = floats(inner.cells, "_sdc_protection") if by_rule else np.zeros(len(z))
        protection = np.where(pattern.primary, protection, 0.0)
        unknown_cells = pattern.suppressed | pattern.hidden
        # A cell that cannot fall so far without negative inner cells need only fall to 0.
        fall = protection if np.isinf(lower) else np.minimum(protection, z)
        until = monotonic() + seconds
        portion(0.1, 0.3 if insider else 1.0)
        result = audit(
            inner.x, z, unknown_cells, cells=pattern.suppressed, upl=protection, lpl=fall, lower=lower,
            progress=shown_checkpoint(), until=until,
        )  # fmt: skip
        inside = result
        if insider:
            portion(0.3, 1.0)
            inside = singleton_hazards(
                inner.x, z, unknown_cells, y, inner.contributor, cells=pattern.suppressed, upl=protection, lpl=fall,
                lower=lower, outside=result, progress=shown_checkpoint(), until=until,
            )  # fmt: skip
        cells = inner.cells.take(pa.array(result.cells))
        return pa.table(
            {
                "cell": cells["_sdc_cell"].cast(pa.int64()),
                "fingerprint": cells["fingerprint"],
                "status": pattern.statuses().take(pa.array(result.cells)),
                "lower": pa.array(result.lo, from_pandas=True),
                "upper": pa.array(result.hi, from_pandas=True),
                "exact": pa.array(result.exact, mask=~result.bounded & ~result.exact),
                "protected": result.protected & ~result.exact,
                "insider_lower": pa.array(inside.lo, from_pandas=True),
                "insider_upper": pa.array(inside.hi, from_pandas=True),
                "insider_exact": pa.array(inside.exact, mask=~inside.bounded & ~inside.exact),
                "insider_protected": inside.protected & ~inside.exact,
            }
        )

    dimensions = "".join(f"c.{name}, " for name in publication.quoted_dimensions)
    of_insiders = "".join(f", s.{name}" for name in _INSIDER_COLUMNS) if insider else ""
    return Rows(
        make,
        f"""SELECT {dimensions}{call.levels}[c._sdc_set + 1] AS level, c.{identifier(audited.name)}::DOUBLE AS original,
            s.status, s.lower, s.upper, s.exact, s.protected{of_insiders}
        FROM ({publication.cells(extend=call.extend)}) c RIGHT JOIN {{rows}} s ON c._sdc_cell = s.cell
        WHERE {unchanged(call.freq)} ORDER BY c._sdc_cell""",
    )


_AUDIT_COLUMNS = ("level", "original", "status", "lower", "upper", "exact", "protected")
_INSIDER_COLUMNS = ("insider_lower", "insider_upper", "insider_exact", "insider_protected")

# --- The best there is ------------------------------------------------------------------------------------------------


def plan_optimum(
    session: Session, text: str | None, time_limit: float | None, rules: str | None, *arguments: Any
) -> Rows:  # fmt: skip
    """``sdc_optimum``: the least cost of any pattern that protects all intervals, beside that of `sdc_suppress`."""
    call = read_call(session, text, rules, arguments, shown=False)
    seconds = number(time_limit, "time_limit", above=0, why="seconds")
    if call.options.k_disclosure is not None:
        raise SDCError("the optimum knows nothing of k_disclosure: give sdc_optimum the rules for cells")

    def solve() -> pa.Table:
        # Without a width a primary cell would count as protected where it is given away.
        options = replace(call.options, protect_intervals=True, improve=True, every_width=True)
        call_of = replace(call, options=options, published=None)
        pattern = choose_pattern(session, call_of)
        inner = pattern.inner
        if (inner.inner_value < 0).any():
            raise SDCError("the optimum is for measures without negative inner cells")
        protection = widths(inner, pattern.primary, call_of.options)
        cost = inner.worth(weight(inner, call.options))
        given = pattern.primary | pattern.hidden
        fixed = pattern.forced | pattern.hidden | ((inner.freq == 0) & (not call.options.secondary_zeros))
        try:
            best = optimal_suppression(
                inner.x, inner.inner_value, given, protection, cost=np.where(given, 0.0, cost),
                ineligible=fixed & ~given, time_limit=seconds, start=pattern.suppressed | given, check=checkpoint(),
            )  # fmt: skip
        except Unsolved:
            raise SDCError("the numbers of the cells are too far apart for the solver: there is no optimum") from None
        return pa.table(
            {
                "primary_cells": [int(pattern.primary.sum())],
                "secondary_cells": [int(pattern.secondary.sum())],
                "secondary_cost": [float(cost[pattern.secondary].sum())],
                "optimal_cells": [int((best.suppressed & ~given).sum())],
                "optimal_cost": [best.objective],
                "bound": [best.bound],
                "status": [best.status],
            }
        )

    return Rows(solve)


# --- Decimals ---------------------------------------------------------------------------------------------------------

_MODES = ("counts", "zeros")


def plan_decimals(
    session: Session, text: str | None, mode: str | None, replicates: int | None, seed: int | None,
    rules: str | None, *arguments: Any,
) -> Rows:  # fmt: skip
    """``sdc_decimals``: synthetic decimal numbers for the inner cells."""
    of_counts = choice(mode, "mode", _MODES) == "counts"
    times = whole(replicates, "replicates", least=1, most=10)
    numbered = [f"d{place + 1}" for place in range(times)]
    reserved = ("decimals", *numbered)
    call = read_call(session, text, rules, arguments, reserved)
    publication = call.publication

    def make() -> pa.Table:
        pattern = choose_pattern(session, call)
        inner = pattern.inner
        values = decimals(
            inner.x,
            pattern.null_space,
            inner.inner_freq if of_counts else None,
            replicates=times,
            seed=secrets.randbits(63) if seed is None else seed,
            check=checkpoint(),
        )
        lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), times)
        return pa.table(
            {"inner_cell": np.arange(inner.x.rows, dtype=np.int64), "decimals": lists.cast(pa.list_(pa.float64()))}
        )

    dimensions = "".join(f"c.{name}, " for name in publication.quoted_dimensions)
    shown = ", ".join(f"s.decimals[{place}] AS {name}" for place, name in enumerate(numbered, start=1))
    return Rows(
        make,
        f"""SELECT {dimensions}{shown}
        FROM ({publication.inner_cells(extend=call.extend)}) c JOIN {{rows}} s ON c._sdc_inner = s.inner_cell
        ORDER BY c._sdc_inner""",
    )


# --- Rounding ---------------------------------------------------------------------------------------------------------

_ROUNDING_METHODS = ("small_counts", "controlled", "random", "midpoint", "threshold")


def plan_round_table(
    session: Session, text: str | None, base: int | None, method: str | None, freq: str | None,
    extend_zeros: bool | None, max_round: int | None, identify_new: bool | None, zero_candidates: bool | None,
    force_inner: bool | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_round_table``: the counts of a publication rounded to a base, or left out below it."""
    least, how = whole(base, "base", least=2), choice(method, "method", _ROUNDING_METHODS)
    small = None if max_round is None else whole(max_round, "max_round", least=least - 1, why="base - 1 or more")
    new, zeros, all_inner = (
        truth(value, name)
        for value, name in (
            (identify_new, "identify_new"), (zero_candidates, "zero_candidates"), (force_inner, "force_inner")
        )
    )  # fmt: skip
    if how != "small_counts" and (small is not None or not new or zeros or all_inner):
        raise SDCError(
            "'max_round', 'identify_new', 'zero_candidates' and 'force_inner' are for method := 'small_counts'"
        )
    publication = resolve(session, text, ("level", "original", "rounded"))
    if not any(measure.kind == "count" for measure in publication.measures):
        publication = publication.counted(freq)
    count = publication.measure(freq, "freq", "count")
    if count.kind != "count":
        raise wrong("freq", "name a count(..) column", "rounding to a base is for counts")
    extend = tuple(map(tuple, clusters(session.cursor(), publication))) if extend_zeros else ()
    call = Call(publication, Rules(freq=count.name), Options(extend_zeros=bool(extend_zeros)), extend)

    def make() -> pa.Table:
        inner = read_inner(session, call)
        z = inner.freq.astype(np.int64)
        chosen = secrets.randbits(63) if seed is None else seed
        left_out = None
        if how == "threshold":
            rounded, left_out = z, below_threshold(z, least)
        elif how == "random":
            rounded = random_rounding(z, least, seed=chosen)
        elif how == "midpoint":
            rounded = midpoint_rounding(z, least)
        elif how == "controlled":
            rounded = controlled_rounding(inner.x, inner.inner_freq, least).cells
        else:
            inner_rounded = small_count_rounding(
                inner.x, inner.inner_freq, least, max_round=small, zero_candidates=zeros, force=all_inner,
                identify_new=new, seed=chosen,
            )  # fmt: skip
            rounded = inner.x.totals(inner_rounded).astype(np.int64)
        return pa.table(
            {
                "cell": inner.cells["_sdc_cell"].cast(pa.int64()),
                "fingerprint": inner.cells["fingerprint"],
                "original": z,
                "rounded": pa.array(rounded, mask=left_out),
            }
        )

    dimensions = "".join(f"c.{name}, " for name in publication.quoted_dimensions)
    return Rows(
        make,
        f"""SELECT {dimensions}{call.levels}[c._sdc_set + 1] AS level, s.original, s.rounded
        FROM ({publication.cells(extend=extend)}) c FULL JOIN {{rows}} s ON c._sdc_cell = s.cell
        WHERE {unchanged(count.name)} ORDER BY c._sdc_cell""",
    )


_PATTERN = {"cell": "BIGINT", "fingerprint": "VARCHAR", "status": "VARCHAR", "why": "VARCHAR"}
_AUDITED = {
    "cell": "BIGINT", "fingerprint": "VARCHAR", "status": "VARCHAR", "lower": "DOUBLE", "upper": "DOUBLE",
    "exact": "BOOLEAN", "protected": "BOOLEAN", "insider_lower": "DOUBLE", "insider_upper": "DOUBLE",
    "insider_exact": "BOOLEAN", "insider_protected": "BOOLEAN",
}  # fmt: skip
_ROUNDED = {"cell": "BIGINT", "fingerprint": "VARCHAR", "original": "BIGINT", "rounded": "BIGINT"}

FAMILY = Family(
    name="suppression",
    stored=("suppression.sql",),
    temporary=("suppression_tables.sql", "suppression_exchange.sql"),
    planners=(
        *planners(
            plan_publication,
            plan_drop_publication,
            plan_rule_sets,
            plan_drop_rules,
            plan_export,
            plan_percent_table,
            plan_write_table,
            plan_write_tau_argus,
        ),
        planner(plan_rules, order=("name", *RECORD_RULES, *ARGUMENTS)),
        planner(plan_round_table, _ROUNDED),
        planner(plan_primary, order=("publication", "rules", *_OF_CELLS)),
        planner(plan_suppress, _PATTERN, ("publication", "rules", *ARGUMENTS)),
        planner(plan_sdmx, _PATTERN, ("publication", "rules", *ARGUMENTS)),
        planner(plan_publish, order=("name", "publication", "rules", *ARGUMENTS)),
        planner(plan_audit, _AUDITED, ("publication", "measure", "insider", "time_limit", "rules", *ARGUMENTS)),
        planner(plan_optimum, order=("publication", "time_limit", "rules", *ARGUMENTS)),
        planner(
            plan_decimals,
            {"inner_cell": "BIGINT", "decimals": "DOUBLE[]"},
            ("publication", "mode", "replicates", "seed", "rules", *ARGUMENTS),
        ),
    ),
)
