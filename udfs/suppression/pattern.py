"""The suppression pattern of a publication: cells and inner cells as arrays, and the choice of secondary cells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck import catalog
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.jobs import checkpoint, reads, shown_checkpoint
from sdcduck.functions.registry import Session
from sdcduck.methods.suppression.improve import UnsafePatternError
from sdcduck.methods.suppression.intervals import Search
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.patterns import (
    TRIALS,
    Choice,
    Chosen,
    LinkedTables,
    Roles,
    choose_cells,
    chosen_before,
)
from sdcduck.methods.suppression.singletons import FREQUENCY_METHODS, ContributorMethod
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import needed, number, whole
from sdcduck.udfs.publication import Publication, clusters, digest, read_publication
from sdcduck.udfs.rule_sets import completed, is_given, naming
from sdcduck.udfs.suppression.earlier import Earlier, joined, with_earlier
from sdcduck.udfs.suppression.published import published_secondary
from sdcduck.udfs.suppression.rules import (
    RULES,
    Rules,
    checked_condition,
    counted,
    marked_cells,
    read_rules,
    with_amounts,
    with_contributions,
    with_structural_zeros,
)

OPTIONS = (
    "k_disclosure", "singleton", "forced_if", "hidden_if", "secondary_zeros", "extend_zeros", "structural_zeros",
    "cost", "improve", "search_seconds", "protect_intervals", "after",
)  # fmt: skip
"""Names of the arguments that are `Options`, in order; those of the rules follow."""
ARGUMENTS = (*OPTIONS, *RULES)
SEARCH_SECONDS = 5.0
_CELLS = "cells"
"""What `cost` says where each cell costs the same."""


def resolve(session: Session, text: str | None, reserved: Sequence[str] = ()) -> Publication:
    """A publication given as a SELECT, or by the name that it was stored under."""
    given = needed(text, "publication", "be a SELECT .. GROUP BY, or the name of a stored publication")
    cursor = session.cursor()
    query = given if _is_query(given) else catalog.publication(cursor, given.strip()).query
    publication = read_publication(cursor, query, session.engine)
    for name in reserved:
        if name in (folded(column) for column in publication.columns):
            raise SDCError(f"the publication has a column '{name}', as the result has: give it another name")
    return publication


def _is_query(text: str) -> bool:
    """Whether a publication was given as a statement; a name has no spaces."""
    return any(character.isspace() for character in text.strip())


@dataclass(frozen=True)
class Inner(LinkedTables):
    """The inner cells and the cells of a publication, as arrays.

    Attributes:
        cells: the table of the cells, in their order: number, fingerprint, counts, values, flags.
    """

    cells: pa.Table

    def flag(self, name: str) -> NDArray[np.bool_]:
        """A BOOLEAN column of the cells, NULL as false."""
        column: NDArray[np.bool_] = self.cells[name].combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
        return column.astype(np.bool_)


@dataclass(frozen=True)
class Options:
    """How secondary cells are chosen.

    Attributes:
        k_disclosure: number of persons whose joint knowledge k-disclosure reckons with; None: no k-disclosure.
        singleton: singleton method; None: the one that suits the rules.
        forced_if, hidden_if: conditions on the columns of a cell: always published, or neither published nor protected.
        secondary_zeros: whether cells of count 0 may be suppressed.
        extend_zeros: whether combinations without records are inner cells of count 0.
        structural_zeros: condition on the dimensions: impossible combinations, which are no inner cells all the same.
        cost: the column, or expression of columns, that says what publishing a cell is worth; None: count or value;
            `_CELLS`: one a cell.
        improve: whether to look for a cheaper pattern afterwards. Counts get it unless it is declined.
        search_seconds: how long, in seconds of a processor core; infinite: as long as it takes. None: the usual time,
            and what makes intervals cheaper has its own beside it.
        protect_intervals: whether to add cells until the intervals are as wide as the rules want. Rules on what one
            contributor can tell of another (dominance, p%, pq) mean an interval, so these get it unless it is declined.
        after: a publication published earlier, whose cells stay as they are.
        every_width: whether primary cells whose rule wants no width of the interval get that of small counts.
    """

    k_disclosure: int | None = None
    singleton: str | None = None
    forced_if: str | None = None
    hidden_if: str | None = None
    secondary_zeros: bool = False
    extend_zeros: bool = False
    structural_zeros: str | None = None
    cost: str | None = None
    improve: bool = False
    search_seconds: float | None = None
    protect_intervals: bool = False
    after: str | None = None
    every_width: bool = False


@dataclass(frozen=True)
class Call:
    """What a function on a suppressed publication was asked.

    Attributes:
        publication: with the grouping sets of the earlier ones, if there are any.
        rules, options: as given, or as stored.
        extend: clusters of dimensions whose combinations are inner cells too.
        earlier: what was published before.
        own: numbers of the grouping sets that the publication itself has.
        arguments: options and rules by name, as a function takes them, for storing.
        published: the name under which the same cells are published already, with the same rules and data; None:
            nothing is known of that.
    """

    publication: Publication
    rules: Rules
    options: Options
    extend: tuple[tuple[int, ...], ...] = ()
    earlier: tuple[Earlier, ...] = ()
    own: tuple[int, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None

    @property
    def freq(self) -> str:
        """The count(..) column that rules look at."""
        return self.publication.measure(self.rules.freq, "freq", "count").name

    @property
    def levels(self) -> str:
        """SQL list of the grouping sets in words."""
        return f"[{', '.join(literal(self.publication.level_of(columns)) for columns in self.publication.sets)}]"


@dataclass(frozen=True)
class Pattern(Chosen):
    """A publication with its suppressed cells.

    Attributes:
        inner: cells and inner cells.
        primary, forced, hidden: bool, of the cells.
    """

    inner: Inner
    primary: NDArray[np.bool_]
    forced: NDArray[np.bool_]
    hidden: NDArray[np.bool_]

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Cells whose numbers are not shown."""
        return self.primary | self.secondary

    def statuses(self) -> pa.Array:
        """'primary', 'secondary', 'forced', 'hidden' or 'open' for each cell."""
        status = np.full(len(self.primary), "open", dtype=object)
        status[self.secondary] = "secondary"
        status[self.primary] = "primary"
        status[self.forced] = "forced"
        status[self.hidden] = "hidden"
        return pa.array(status, pa.string())


def read_inner(session: Session, call: Call) -> Inner:
    """Cells, inner cells and the matrix between them, in three statements."""
    cursor = reads(session.cursor())
    publication, rules, options = call.publication.with_numbers(cursor, call.extend), call.rules, call.options
    freq = call.freq
    value = publication.measure(rules.value, "value", "sum").name if rules.on_contributors else None
    marked = marked_cells(
        publication,
        rules,
        extend=call.extend,
        conditions={"_sdc_forced": options.forced_if, "_sdc_hidden": options.hidden_if},
    )
    for earlier in call.earlier:
        marked = with_earlier(cursor, marked, earlier, freq)
    cells = arrow(
        cursor,
        f"""SELECT _sdc_cell, _sdc_members, {identifier(freq)}::DOUBLE AS freq,
            {identifier(value) if value else "NULL"}::DOUBLE AS value, _sdc_primary, _sdc_why, _sdc_protection,
            _sdc_forced, _sdc_hidden, _sdc_contributors = 0 AND _sdc_total > 0 AS _sdc_ignored,
            {_cost(options)} AS cost, {_not_finite(publication)} AS not_finite,
            {FINGERPRINT.format(freq=identifier(freq))} AS fingerprint
        FROM ({marked}) ORDER BY _sdc_cell""",
    )
    inner = arrow(cursor, _inner_query(publication, rules, call.extend, freq, value or freq))
    members = cells["_sdc_members"].combine_chunks()
    x = DummyMatrix(
        members.offsets.to_numpy().astype(np.int64), members.values.to_numpy().astype(np.int32), inner.num_rows
    )
    values = floats(cells, "value") if value else None
    for name in pc.unique(cells["not_finite"]).drop_null().to_pylist():
        raise SDCError(f"the measure '{name}' is NaN, infinite or too large in some cells")
    return Inner(
        x,
        floats(cells, "freq"),
        values,
        inner["freq"].to_numpy().astype(np.int64),
        floats(inner, "value"),
        inner["contributor"].to_numpy().astype(np.int64),
        cells,
    )


def _cost(options: Options) -> str:
    """SQL: what publishing a cell is worth; what is no number fails without telling the value."""
    if options.cost is None or options.cost == _CELLS:
        return "NULL::DOUBLE"
    cost = f"TRY_CAST(({options.cost}) AS DOUBLE)"
    return (
        f"CASE WHEN ({options.cost}) IS NOT NULL AND NOT coalesce(isfinite({cost}), false) "
        f"THEN error('argument ''cost'' is NaN, infinite or no number in some cells') ELSE {cost} END"
    )


def _not_finite(publication: Publication) -> str:
    """SQL: the name of a measure of a cell that is no number to publish, else NULL."""
    tests = [
        f"WHEN NOT isfinite({identifier(measure.name)}) THEN {literal(measure.name)}"
        for measure in publication.measures
        if measure.sql_type in ("FLOAT", "DOUBLE")
    ]
    return f"CASE {' '.join(tests)} END" if tests else "NULL::VARCHAR"


FINGERPRINT = "_sdc_cell || ' ' || {freq}"


def _inner_query(publication: Publication, rules: Rules, extend: Sequence[Sequence[int]], freq: str, value: str) -> str:
    """SQL: count, value and, where all records are one contributor's, its number, of each inner cell."""
    cells = publication.inner_cells(extend=extend)
    n, y = identifier(freq), identifier(value)
    if rules.contributor is None:
        return f"""
            SELECT {n} AS freq, {y}::DOUBLE AS value, CASE WHEN {n} = 1 THEN _sdc_inner + 1 ELSE 0 END AS contributor
            FROM ({cells}) ORDER BY _sdc_inner"""
    keys = [f"_sdc_d{place}" for place in range(len(publication.dimensions))]
    shown = "".join(f"{key}, " for key in keys)
    match = " AND ".join(
        f"i.{name} IS NOT DISTINCT FROM u.{key}" for name, key in zip(publication.quoted_dimensions, keys, strict=True)
    )
    inner = ", ".join(keys) or "()"
    alone = "min(_sdc_who) = max(_sdc_who) AND count(_sdc_who) = count(*)"
    records = f"SELECT *, ({rules.contributor}) AS _sdc_who FROM ({publication.records})"
    if publication.groups is not None:
        # The least and the greatest text of some may be others here; where they are one, they are one everywhere.
        ends = "min(_sdc_who) = max(_sdc_who) AND min(_sdc_greatest) = max(_sdc_greatest)"
        alone = f"{ends} AND min(_sdc_who) = min(_sdc_greatest) AND sum(_sdc_there) = sum(_sdc_n)"
        records = f"SELECT *, _sdc_least AS _sdc_who FROM ({publication.records})"
    return f"""
        SELECT i.{n} AS freq, i.{y}::DOUBLE AS value, coalesce(u.number, 0) AS contributor
        FROM ({cells}) i LEFT JOIN (
            SELECT *, dense_rank() OVER (ORDER BY _sdc_who) AS number FROM (
                SELECT {shown}min(_sdc_who) AS _sdc_who FROM ({records}) GROUP BY {inner} HAVING {alone}
            ) WHERE {counted(rules)}
        ) u ON {match or "true"} ORDER BY i._sdc_inner"""


def arrow(cursor: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    return cursor.sql(query).to_arrow_table()


def floats(table: pa.Table, column: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = table[column].combine_chunks().fill_null(0.0).to_numpy(zero_copy_only=False)
    return values


def choose_pattern(session: Session, call: Call) -> Pattern:
    """Apply the rules and find the secondary cells.

    Raises:
        SDCError: the pattern did not pass the last check. Arithmetic modulo a prime may have accidents, if hardly so.
    """
    inner, rules, options = read_inner(session, call), call.rules, call.options
    forced, hidden = inner.flag("_sdc_forced"), inner.flag("_sdc_hidden")
    primary = inner.flag("_sdc_primary") & ~forced & ~hidden
    # Without contributors each record is one, and the reference has a row for each; contributors are added up before.
    records = inner.inner_freq if rules.on_contributors and rules.contributor is None else None
    choice = Choice(
        by_contributors=rules.on_contributors, records=records, singleton_method=options.singleton,
        k_disclosure=options.k_disclosure, zeros_protected=rules.protect_zeros, secondary_zeros=options.secondary_zeros,
        weight=weight(inner, options), search=_search(options),
        protection=widths(inner, primary, options) if options.protect_intervals else None,
    )  # fmt: skip
    roles = Roles(primary, forced, hidden, inner.flag("_sdc_ignored"))
    before = None
    # What is published is what is audited; to choose it again takes as long as to publish it.
    if call.published is not None and not call.earlier and (options.protect_intervals or options.improve):
        cells, keys = call.publication.cells(extend=call.extend), call.publication.quoted_dimensions
        before = published_secondary(session, call.published, cells, keys, call.levels, primary, forced, hidden)
    if before is not None:
        try:
            chosen = chosen_before(inner, roles, choice, before, check=checkpoint())
            return Pattern(**vars(chosen), inner=inner, primary=primary, forced=forced, hidden=hidden)
        except UnsafePatternError:
            pass  # with forced cells a pattern may give some away: it is chosen again, which tells which
    try:
        chosen = choose_cells(inner, roles, choice, progress=shown_checkpoint(), check=checkpoint())
    except UnsafePatternError:
        raise SDCError(
            "the pattern did not pass the check that no primary cell can be computed; please report it"
        ) from None
    return Pattern(**vars(chosen), inner=inner, primary=primary, forced=forced, hidden=hidden)


def weight(inner: Inner, options: Options) -> NDArray[np.float64] | None:
    """What publishing a cell is worth beside its size, as `cost` says."""
    if options.cost == _CELLS:
        size = inner.size
        return np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
    return None if options.cost is None else floats(inner.cells, "cost")


def widths(inner: Inner, primary: NDArray[np.bool_], options: Options) -> NDArray[np.float64]:
    """By how much the interval of each primary cell must reach beyond its value on either side."""
    wanted = np.where(primary, floats(inner.cells, "_sdc_protection"), 0.0)
    return np.where(primary & (wanted == 0), inner.usual_protection(), wanted) if options.every_width else wanted


def read_call(
    session: Session, text: str | None, rule_set: str | None, arguments: Sequence[Any], reserved: Sequence[str] = (), *,
    again: bool = False, shown: bool = True,
) -> Call:  # fmt: skip
    """A publication with its options and rules: those of the call and of a rule set, or those it was published with.

    Args:
        again: whether it is to be published anew, whatever its data were before.
        shown: whether its numbers are to leave, which weights must not protect then.

    Raises:
        SDCError: anything wrong with an argument; data that changed since the publication, but for publishing `again`.
    """
    cursor = session.cursor()
    publication = resolve(session, text, reserved)
    stored = None if _is_query(str(text)) else catalog.publication(cursor, str(text).strip())
    given = any(is_given(name, argument) for name, argument in zip(ARGUMENTS, arguments, strict=True))
    published = None
    arguments, found = completed(cursor, rule_set, ARGUMENTS, arguments)
    if stored is not None and stored.arguments is not None and not given and found is None:
        if not again and digest(cursor, publication) != stored.fingerprint:
            raise SDCError(f"the data of '{stored.name}' changed since it was published; use sdc_publish again")
        published = None if again else stored.name
        before = json.loads(stored.arguments)
        # An argument that came after the publication was off when it was made.
        off = ("improve", "protect_intervals")
        arguments = [before.get(name, False if name in off else None) for name in ARGUMENTS]
    with naming(found):
        rules = read_rules(*arguments[len(OPTIONS) :])
        options = read_options(rules, *arguments[: len(OPTIONS)])
        publication = with_amounts(cursor, publication.counted(rules.freq), rules, shown=shown)
        for argument, condition in (
            ("primary_if", rules.primary_if), ("forced_if", options.forced_if), ("hidden_if", options.hidden_if),
        ):  # fmt: skip
            checked_condition(cursor, publication, condition, argument)
        publication = with_structural_zeros(cursor, publication, options.structural_zeros, options.extend_zeros)
    if options.cost is not None and folded(options.cost.strip()) == _CELLS:
        a_column = _CELLS in map(folded, publication.columns)
        options = replace(options, cost=identifier(_CELLS) if a_column else _CELLS)
    joint = publication = with_contributions(cursor, publication, rules)
    earlier: tuple[Earlier, ...] = ()
    if options.after is not None:
        joint, earlier = joined(session, publication, options.after)
    return Call(
        joint,
        rules,
        options,
        tuple(map(tuple, clusters(cursor, publication))) if options.extend_zeros else (),
        earlier,
        tuple(joint.sets.index(columns) for columns in publication.sets),
        dict(zip(ARGUMENTS, arguments, strict=True))
        | {"improve": options.improve, "protect_intervals": options.protect_intervals},
        published,
    )


def _search(options: Options) -> Search:
    """How long to look for a cheaper pattern. A time that somebody said is that of all that follows the first one."""
    trials, seconds = TRIALS if options.improve else 0, options.search_seconds
    return Search(trials, SEARCH_SECONDS) if seconds is None else Search(trials, seconds, whole=True)


def check_any_rule(call: Call) -> None:
    """That something says which cells are primary: without, every number is published as it is.

    Raises:
        SDCError: nothing does.
    """
    options = call.options
    if not call.rules.any and options.k_disclosure is None and options.hidden_if is None and options.after is None:
        raise SDCError(
            "no rule says which cells are primary, and all would be published: give max_count, min_contributors, "
            "dominance, p_percent, pq, k_disclosure or primary_if"
        )


def read_options(
    rules: Rules, k_disclosure: int | None, singleton: str | None, forced_if: str | None, hidden_if: str | None,
    secondary_zeros: bool | None, extend_zeros: bool | None, structural_zeros: str | None, cost: str | None,
    better: bool | None, search_seconds: float | None, protect_intervals: bool | None, after: str | None,
) -> Options:  # fmt: skip
    """The options from the arguments of a SQL function.

    Raises:
        SDCError: an argument out of its range, or one that does not go with the rules.
    """
    if k_disclosure is not None:
        whole(k_disclosure, "k_disclosure", least=0)
    if k_disclosure is not None and rules.on_contributors:
        raise SDCError(
            "argument 'k_disclosure' is for counts: it does not go with a rule on contributors "
            "(min_contributors, dominance, p_percent, pq)"
        )
    # What k-disclosure hides between two cells is, more often than not, empty.
    zeros = k_disclosure is not None
    if zeros and singleton is not None and singleton not in FREQUENCY_METHODS:
        # What contributors know of each other has not been thought through for differences.
        raise unknown("singleton method", singleton, FREQUENCY_METHODS)
    _check_singleton(singleton, rules.on_contributors)
    seconds = None if search_seconds is None else number(search_seconds, "search_seconds", least=0) or np.inf
    return Options(
        k_disclosure, singleton, forced_if, hidden_if, bool(secondary_zeros) or zeros,
        rules.protect_zeros or zeros if extend_zeros is None else extend_zeros, structural_zeros, cost,
        not rules.on_contributors if better is None else better, seconds,
        rules.on_intervals if protect_intervals is None else protect_intervals, after,
    )  # fmt: skip


def _check_singleton(method: str | None, numbered: bool) -> None:
    """Raises:
    SDCError: no such singleton method, or one that needs contributors where no rule is on them.
    """
    if method is None or method in FREQUENCY_METHODS:
        return
    try:
        ContributorMethod.parse(method, numbered)
    except ValueError:
        if method.startswith("num"):
            raise SDCError(
                f"argument 'singleton': '{method}' is none of the methods num, numttHTT and their like: up to five "
                "letters, F, T or t, then F, T or t (T with a rule on contributors), F, T or H, one of FTMWftmw, "
                "and F, T or t"
            ) from None
        raise unknown("singleton method", method, [*FREQUENCY_METHODS, "sub2Sum", "numttHTT"]) from None


def pattern_table(pattern: Pattern) -> pa.Table:
    """A pattern as the rows that `protected_cells` joins."""
    cells = pattern.inner.cells
    # That a rule was overruled must not go unseen, and neither must what protects less than the rules want.
    overruled = pattern.forced & ~pattern.hidden & pattern.inner.flag("_sdc_primary")
    why = pc.if_else(pa.array(pattern.primary | overruled), cells["_sdc_why"].combine_chunks(), None)
    empty = pattern.primary & pattern.inner.empty
    shortcomings = [
        (overruled, "published all the same"),
        (empty, "has no inner cells"),
        (pattern.unsafe & ~empty, "follows from forced cells"),
    ]
    if pattern.disclosing is not None:
        shortcomings.append((pattern.disclosing, "k_disclosure follows from forced cells"))
    if pattern.narrow is not None:
        shortcomings.append((pattern.narrow, "interval cannot be wide enough"))
    for marked, words in shortcomings:
        why = pc.if_else(pa.array(marked), pc.binary_join_element_wise(why, words, ", ", null_handling="skip"), why)
    return pa.table(
        {
            "cell": cells["_sdc_cell"].cast(pa.int64()),
            "fingerprint": cells["fingerprint"],
            "status": pattern.statuses(),
            "why": why,
        }
    )


def protected_cells(call: Call) -> str:
    """SQL of the published table, where ``{rows}`` is the pattern."""
    publication = call.publication
    measures = {measure.name for measure in publication.measures}
    columns = ", ".join(
        f"CASE WHEN s.status IN ('open', 'forced') THEN c.{identifier(name)} END AS {identifier(name)}"
        if name in measures
        else f"c.{identifier(name)}"
        for name in publication.columns
    )
    return f"""
        SELECT {columns}, {call.levels}[c._sdc_set + 1] AS level, s.status,
            s.status IN ('primary', 'secondary') AS suppressed, s.why
        FROM ({publication.cells(extend=call.extend)}) c FULL JOIN {{rows}} s ON c._sdc_cell = s.cell
        WHERE {unchanged(call.freq, f"s.status <> 'hidden' AND list_contains({list(call.own)}, c._sdc_set)")}
        ORDER BY c._sdc_cell"""


def unchanged(freq: str, otherwise: str = "true") -> str:
    """SQL condition that fails where the cells of a statement are not those that its rows were computed from."""
    fingerprint = FINGERPRINT.format(freq=f"c.{identifier(freq)}").replace("_sdc_cell", "c._sdc_cell")
    return (
        f"CASE WHEN s.fingerprint IS DISTINCT FROM {fingerprint} "
        "THEN error('the data changed while the cells were chosen (uncommitted changes are not seen); try again') "
        f"ELSE {otherwise} END"
    )
