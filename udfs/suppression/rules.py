"""Primary rules: which cells of a publication may not be published, as SQL over its records.

Definitions as in Langsrud and Bøvelstad (2022) and the R package GaussSuppression; a contributor's records in a cell
are added up first, then taken without their sign.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import duckdb

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.methods.suppression.patterns import FREQUENCY_PROTECTION
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import number, whole, wrong
from sdcduck.udfs.conditions import check_reads_columns_only
from sdcduck.udfs.publication import Measure, Publication, unweighted

RULES = (
    "max_count", "protect_zeros", "min_contributors", "dominance", "p_percent", "pq", "primary_if", "value", "freq",
    "contributor", "not_counted", "weight",
)  # fmt: skip
"""Names of the arguments that are `Rules`, in order."""


_PAIR = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Rules:
    """The primary rules of a suppression; None means that a rule is not used.

    Attributes:
        max_count: cells of at most so many records are primary.
        protect_zeros: so are cells of none.
        min_contributors: cells with fewer contributors (of a value that is not 0) are.
        dominance: pairs (n, k): cells whose n largest contributors have k per cent or more of the total are.
        p_percent: cells are whose second contributor can tell the first one's value to within p per cent.
        pq: pair (p, q): the same for somebody who knows the others to within q per cent beforehand.
        primary_if: any condition on the columns of a cell; a cell where it is NULL is never primary.
        value: the measure that the rules on contributors look at.
        freq: the measure that `max_count` looks at.
        contributor: SQL over the source that tells whose a record is; None: every record is somebody else's.
        not_counted: contributors that do not count for `min_contributors`.
        weight: SQL over the source, the sampling weight: largest contributions unweighted against the weighted total.
    """

    max_count: float | None = None
    protect_zeros: bool = False
    min_contributors: int | None = None
    dominance: tuple[tuple[int, float], ...] = ()
    p_percent: float | None = None
    pq: tuple[float, float] | None = None
    primary_if: str | None = None
    value: str | None = None
    freq: str | None = None
    contributor: str | None = None
    not_counted: tuple[str, ...] = field(default=())
    weight: str | None = None

    @property
    def on_contributors(self) -> bool:
        """Whether a rule looks at contributors."""
        return bool(self.min_contributors) or self.on_intervals

    @property
    def on_intervals(self) -> bool:
        """Whether a rule is about how closely a contribution can be told, and so about the interval of a cell."""
        return bool(self.dominance or self.p_percent is not None or self.pq)

    @property
    def any(self) -> bool:
        """Whether there is a rule."""
        return self.max_count is not None or self.on_contributors or self.primary_if is not None

    @property
    def depth(self) -> int:
        """How many of the largest contributions the rules look at."""
        return max([2, *(n for n, _ in self.dominance)])


def read_rules(
    max_count: float | None, protect_zeros: bool | None, min_contributors: int | None, dominance: str | None,
    p_percent: float | None, pq: str | None, primary_if: str | None, value: str | None, freq: str | None,
    contributor: str | None, not_counted: Sequence[str] | None, weight: str | None,
) -> Rules:  # fmt: skip
    """The rules from the arguments of a SQL function.

    Raises:
        SDCError: an argument out of its range, or one that only makes sense beside another.
    """
    if max_count is not None:
        number(max_count, "max_count", least=0)
    if min_contributors is not None:
        whole(min_contributors, "min_contributors", least=2, why="one contributor alone is the least to protect")
    if p_percent is not None:
        number(p_percent, "p_percent", least=1, why="it is in per cent, and p_percent := 10 is a tenth")
    pairs = _pairs(dominance, "dominance", "[(1, 80), (2, 95)]")
    for n, k in pairs:
        if n != int(n) or not 1 <= n <= 20 or not 1 < k <= 100:
            raise SDCError("argument 'dominance' takes pairs (n, k): 1 to 20 contributors, more than 1 to 100 per cent")
    both = _pairs(pq, "pq", "(10, 50)")
    if len(both) > 1 or any(not 0 < p < q or q <= 1 for p, q in both):
        raise SDCError("argument 'pq' takes one pair (p, q) of per cent with 0 < p < q, e.g. pq := (10, 50)")
    if None in (not_counted or ()):
        raise SDCError("argument 'not_counted' holds a NULL")
    rules = Rules(
        max_count, bool(protect_zeros), min_contributors, tuple((int(n), k) for n, k in pairs), p_percent,
        both[0] if both else None, primary_if, value, freq, contributor, tuple(not_counted or ()), weight,
    )  # fmt: skip
    if not rules.on_contributors:
        for argument, given in (("value", value), ("weight", weight)):
            if given is not None:
                raise SDCError(
                    f"argument '{argument}' goes with a rule on contributors: "
                    "min_contributors, dominance, p_percent or pq"
                )
    if rules.not_counted and (contributor is None or min_contributors is None):
        raise SDCError("argument 'not_counted' goes with 'contributor' and 'min_contributors'")
    if rules.protect_zeros and max_count is None:
        raise SDCError("argument 'protect_zeros' goes with 'max_count'")
    return rules


def _pairs(text: str | None, argument: str, example: str) -> list[tuple[float, float]]:
    """Pairs of numbers from the text of a SQL value: (1, 80) or [(1, 80), (2, 95)], as rows, lists or structs."""
    if text is None:
        return []
    pairs = []
    for group in _PAIR.findall(text) or [text]:
        numbers = _NUMBER.findall(re.sub(r"'[^']*':|\w+\s*:", "", group))
        if len(numbers) % 2 or not numbers:
            raise SDCError(f"argument '{argument}' takes pairs of numbers, e.g. {argument} := {example}")
        pairs += [(float(a), float(b)) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
    return pairs


def marked_cells(
    publication: Publication,
    rules: Rules,
    *,
    extend: Sequence[Sequence[int]] = (),
    conditions: Mapping[str, str | None] = MappingProxyType({}),
    members: bool = True,
) -> str:
    """SQL of the cells with the rules applied.

    Columns: those of `Publication.cells` (with its members, if they are wanted), then ``level`` (VARCHAR),
    ``_sdc_primary`` (BOOLEAN), ``_sdc_why`` (VARCHAR), ``_sdc_protection`` (DOUBLE, by how much an interval must reach
    beyond the value, NULL where no rule says), ``_sdc_contributors``, ``_sdc_total``, ``_sdc_largest`` (the last three
    NULL without a rule on contributors), and a BOOLEAN for each of the `conditions`.
    """
    cells = publication.cells(extend=extend, members=members)
    freq = identifier(publication.measure(rules.freq, "freq", "count").name)
    levels = ", ".join(literal(publication.level_of(columns)) for columns in publication.sets)
    flags: list[tuple[str, str, str]] = []
    if rules.max_count is not None:
        zero = "" if rules.protect_zeros else f" AND {freq} > 0"
        # Beside a rule on contributors intervals are those of the value, in its unit.
        of_count, of_value = (f"{FREQUENCY_PROTECTION} * {number}" for number in (freq, "_sdc_total"))
        width = of_value if rules.on_contributors else f"ceil({of_count})"
        flags.append(("max_count", f"{freq} <= {rules.max_count:g}{zero}", width))
    flags += _contributor_flags(rules)
    if rules.primary_if is not None:
        flags.append(("primary_if", f"({rules.primary_if})", "NULL"))
    why = ", ".join(f"CASE WHEN {condition} THEN {literal(name)} END" for name, condition, _ in flags) or "NULL"
    widths = ", ".join(f"CASE WHEN {condition} THEN {width} END" for _, condition, width in flags) or "NULL::DOUBLE"
    veto = f"({rules.primary_if}) IS NULL" if rules.primary_if is not None else "false"
    names = publication.quoted_dimensions
    if rules.on_contributors:
        match = " AND ".join(
            ["c._sdc_set = s._sdc_set", *(f"c.{name} IS NOT DISTINCT FROM s._sdc_d{k}" for k, name in enumerate(names))]
        )
        statistics = _statistics if publication.groups is None else statistics_on_engine
        joined = f"({cells}) c LEFT JOIN ({statistics(publication, rules)}) s ON {match}"
        shown = "c.*, s._sdc_contributors, s._sdc_total, s._sdc_largest"
    else:
        joined = f"({cells}) c"
        shown = "c.*, NULL::BIGINT AS _sdc_contributors, NULL::DOUBLE AS _sdc_total, NULL::DOUBLE[] AS _sdc_largest"
    flagged = "".join(f", ({condition or 'false'}) IS TRUE AS {name}" for name, condition in conditions.items())
    return f"""
        SELECT *, _sdc_why <> '' AS _sdc_primary
        FROM (
            SELECT *, CASE WHEN {veto} THEN '' ELSE concat_ws(', ', {why}) END AS _sdc_why,
                greatest({widths}, NULL)::DOUBLE AS _sdc_protection{flagged}
            FROM (SELECT {shown}, [{levels}][c._sdc_set + 1] AS level FROM {joined})
        )"""


def _contributor_flags(rules: Rules) -> list[tuple[str, str, str]]:
    """Name, condition and needed protection (Willenborg and de Waal 2001, chapter 5) of each rule on contributors."""

    def largest(n: int) -> str:
        return f"list_sum(_sdc_largest[:{n}])"

    x1 = "_sdc_largest[1]"
    # With weights below 1 the total can be less than what the largest one brings to it: the others hide nothing then.
    rest = f"CASE WHEN _sdc_total < {x1} THEN 0 ELSE abs(_sdc_total - {largest(2)}) END"
    flags = []
    if rules.min_contributors is not None:
        few = f"_sdc_contributors > 0 AND _sdc_contributors < {rules.min_contributors}"
        flags.append(("min_contributors", few, f"{FREQUENCY_PROTECTION} * _sdc_total"))
    for n, k in rules.dominance:
        dominated = f"{x1} > 0 AND {largest(n)} >= {k} / 100 * _sdc_total"
        flags.append((f"dominance ({n}, {k:g})", dominated, f"100 / {k} * {largest(n)} - _sdc_total"))
    if rules.p_percent is not None:
        p = f"{rules.p_percent} / 100 * {x1}"
        flags.append(("p_percent", f"{x1} > 0 AND {rest} < {p}", f"{p} - {rest}"))
    if rules.pq is not None:
        p, q = (f"{number} / 100" for number in rules.pq)
        flags.append(("pq", f"{x1} > 0 AND {q} * {rest} < {p} * {x1}", f"{p} * {x1} - {q} * {rest}"))
    return flags


def _statistics(publication: Publication, rules: Rules) -> str:
    """SQL: contributors, total and largest contributions of each cell, by grouping set and dimensions."""
    measure = publication.measure(rules.value, "value", "sum")
    y = f"_sdc_m{publication.measures.index(measure)}"
    # Sums of floating-point numbers depend on the order of the records: others are exact until the end.
    exact = measure.sql_type if rules.weight is None and measure.sql_type.startswith(("HUGEINT", "DECIMAL")) else None
    # Totals are weighted, what contributors have is not.
    weight = f"TRY_CAST(({rules.weight}) AS DOUBLE)" if rules.weight is not None else "1.0::DOUBLE"
    by_weight = f"{y}::DOUBLE * {weight}" if rules.weight is not None else f"{y}::{exact or 'DOUBLE'}"
    x, total_of = ("_sdc_x", f"{y}::DOUBLE") if publication.is_weighted else (y, by_weight)
    keys = [f"_sdc_d{place}" for place in range(len(publication.dimensions))]
    listed = "".join(f", {key}" for key in keys)
    checked = f"""
        SELECT *, {x}::{exact or "DOUBLE"} AS _sdc_y, {total_of} AS _sdc_weighted FROM ({publication.records})
        WHERE {x} IS NOT NULL AND CASE
            WHEN NOT ({weight} >= 0 AND isfinite({weight})) IS TRUE
            THEN error('a weight is negative, NaN, infinite, NULL or no number')
            WHEN NOT (isfinite({x}::DOUBLE) AND isfinite({y}::DOUBLE))
            THEN error('a value of the measure {_quoted(measure)} is NaN or infinite') ELSE true END"""
    group = publication.grouping_sets(keys)
    number = publication.set_number(keys)
    depth = rules.depth
    if rules.contributor is None:
        inner = ", ".join(keys) or "()"
        return f"""
            SELECT {number} AS _sdc_set{listed}, sum(n)::BIGINT AS _sdc_contributors, sum(total)::DOUBLE AS _sdc_total,
                list_sort(flatten(list(largest)), 'DESC')[:{depth}] AS _sdc_largest
            FROM (
                SELECT {", ".join(keys) + ", " if keys else ""}count(*) FILTER (_sdc_y <> 0) AS n,
                    sum(abs(_sdc_weighted)) AS total, max(abs(_sdc_y)::DOUBLE, {depth}) AS largest
                FROM ({checked}) GROUP BY {inner}
            ) GROUP BY {group}"""
    # Without weights one sum is enough.
    weighted, total = (", sum(_sdc_weighted) AS weighted", "weighted") if rules.weight is not None else ("", "y")
    by_contributor = f"""
        SELECT {", ".join([*keys, "_sdc_who"])}, sum(_sdc_y) AS y{weighted}
        FROM (
            SELECT *, ({rules.contributor}) AS _sdc_who FROM ({checked})
            WHERE CASE WHEN ({rules.contributor}) IS NULL THEN {_NO_CONTRIBUTOR} ELSE true END
        ) GROUP BY ALL"""
    sets = ", ".join(
        "(" + ", ".join([*(keys[place] for place in columns), "_sdc_who"]) + ")" for columns in publication.sets
    )
    # The place of a grouping set is looked up for cells, not for all that contributors have in them.
    return f"""
        SELECT {publication.number_of("_sdc_grouping")} AS _sdc_set{listed},
            count(*) FILTER (y <> 0 AND {counted(rules)}) AS _sdc_contributors,
            sum(abs({total}))::DOUBLE AS _sdc_total, max(abs(y)::DOUBLE, {depth}) AS _sdc_largest
        FROM (
            SELECT {publication.grouping(keys)} AS _sdc_grouping{listed}, _sdc_who,
                sum(y) AS y{", sum(weighted) AS weighted" if weighted else ""}
            FROM ({by_contributor}) GROUP BY GROUPING SETS ({sets})
        ) GROUP BY _sdc_grouping{listed}"""


def with_amounts(
    cursor: duckdb.DuckDBPyConnection, publication: Publication, rules: Rules, *, shown: bool
) -> Publication:
    """The publication with what contributors have in its records, where its sums are weighted.

    Args:
        shown: whether its numbers are to leave: by its weights a cell of one firm is not that firm's, and a sum without
            weights is.

    Raises:
        SDCError: a sum is not weighted, and to be shown.
    """
    if rules.weight is None or publication.groups is not None:  # for those, weights are refused elsewhere
        return publication
    measure = publication.measure(rules.value, "value", "sum")
    found = unweighted(cursor, publication, measure, rules.weight)
    sums = [measure, *(other for other in publication.measures if other.kind == "sum" and other != measure)]
    for shows in sums if shown else ():  # also others: of a cell that weights made safe, they are a firm's own
        of = found if shows is measure else unweighted(cursor, publication, shows, rules.weight)
        if not of.is_weighted:
            raise SDCError(
                f"argument 'weight': '{shows.name}' is no sum of weighted amounts, and a sum without weights shows "
                f"what contributors have: publish sum((..) * ({rules.weight})) AS {identifier(shows.name)}"
            )
    return found


def with_contributions(
    cursor: duckdb.DuckDBPyConnection, publication: Publication, rules: Rules
) -> Publication:  # fmt: skip
    """A publication with what its contributors have in it, where its records are on an engine and a rule asks for it.

    Raises:
        SDCError: the engine is not asked for that, or fails.
    """
    groups = publication.groups
    if groups is None or not (rules.on_contributors or rules.contributor is not None):
        return publication
    owner = rules.contributor.strip().strip('"') if rules.contributor is not None else None
    owner = next((name for name in groups.types if owner is not None and folded(name) == folded(owner)), None)
    if rules.weight is not None or groups.joined or (owner is None) != (rules.contributor is None):
        raise SDCError(
            "of records on another engine, rules on contributors are without 'weight' and joined tables, and "
            "'contributor' names a column (docs/engines.md)"
        )
    value = None
    if rules.on_contributors:
        value = groups.measures[publication.measures.index(publication.measure(rules.value, "value", "sum"))].of
    found, tables = groups.contributions(cursor, value, owner, rules.not_counted, rules.depth)
    records = publication.records.replace(groups.rows, found.rows)
    inner = publication.inner.replace(groups.rows, found.rows)
    counts = None if publication.counts is None else publication.counts.replace(groups.rows, found.rows)
    contributed = tuple(publication.records.replace(groups.rows, table) for table in tables)
    groups = replace(found, contributed=contributed)
    return replace(publication, records=records, inner=inner, counts=counts, groups=groups)


def statistics_on_engine(publication: Publication, rules: Rules) -> str:
    """As `_statistics`, of what the engine gave: contributors of one row added up, the others one by one."""
    assert publication.groups is not None
    sums, largest, *several = publication.groups.contributed
    measure = publication.measure(rules.value, "value", "sum")
    y = f"_sdc_m{publication.measures.index(measure)}"
    keys = [f"_sdc_d{place}" for place in range(len(publication.dimensions))]
    listed, within = "".join(f", {key}" for key in keys), "".join(f"{key}, " for key in keys)
    group, depth = publication.grouping_sets(keys), rules.depth
    parts = f"""
        SELECT {publication.grouping(keys)} AS _sdc_grouping{listed}, sum(n) AS n, sum(total) AS total,
            flatten(list(largest)) AS largest
        FROM (
            SELECT {within}_sdc_contributors AS n, {y} AS total, [] AS largest FROM ({sums}) WHERE {y} IS NOT NULL
            UNION ALL SELECT {within}0, 0, max({y}, {depth}) FROM ({largest}) WHERE {y} IS NOT NULL
            GROUP BY {", ".join(keys) or "()"}
        ) GROUP BY {group}"""
    if several:
        sets = ", ".join(
            "(" + ", ".join([*(keys[place] for place in columns), "_sdc_who"]) + ")" for columns in publication.sets
        )
        parts += f"""
            UNION ALL SELECT _sdc_grouping{listed}, count(*) FILTER (y <> 0 AND {counted(rules)}), sum(abs(y)),
                max(abs(y), {depth})
            FROM (
                SELECT {publication.grouping(keys)} AS _sdc_grouping{listed}, _sdc_who, sum({y}) AS y
                FROM ({several[0]})
                WHERE {y} IS NOT NULL AND CASE WHEN _sdc_who IS NULL THEN {_NO_CONTRIBUTOR} ELSE true END
                GROUP BY GROUPING SETS ({sets})
            ) GROUP BY _sdc_grouping{listed}"""
    return f"""
        SELECT {publication.number_of("_sdc_grouping")} AS _sdc_set{listed}, sum(n)::BIGINT AS _sdc_contributors,
            sum(total)::DOUBLE AS _sdc_total,
            list_sort(flatten(list(largest)), 'DESC')[:{depth}]::DOUBLE[] AS _sdc_largest
        FROM ({parts}) GROUP BY _sdc_grouping{listed}"""


_NO_CONTRIBUTOR = "error('a record has no contributor: it is NULL')"


def counted(rules: Rules) -> str:
    """SQL: whether the contributor `_sdc_who` counts."""
    names = ", ".join(map(literal, rules.not_counted))
    return f"_sdc_who::VARCHAR NOT IN ({names})" if names else "true"


def _quoted(measure: Measure) -> str:
    return measure.name.replace("'", "''")


def checked_condition(
    cursor: duckdb.DuckDBPyConnection, publication: Publication, condition: str | None, argument: str
) -> str | None:
    """A condition that a user gave on the columns of a cell, after binding it.

    Raises:
        SDCError: it does not bind, or is not a truth value.
    """
    columns = ", ".join(identifier(name) for name in publication.columns)
    return _bound_condition(cursor, f"SELECT {columns}, '' AS level FROM ({publication.inner})", condition, argument)


def with_structural_zeros(
    cursor: duckdb.DuckDBPyConnection, publication: Publication, condition: str | None, extend_zeros: bool
) -> Publication:
    """The publication without the inner cells that meet a condition on its dimensions: nothing can be in them.

    Raises:
        SDCError: the condition does not bind, is not a truth value, or could read more than the dimensions; no zeros
            are added that it could leave out; an inner cell that meets it is not empty.
    """
    if condition is None:
        return publication
    if not extend_zeros:
        raise SDCError(
            "argument 'structural_zeros' goes with zeros as cells: extend_zeros, or protect_zeros or k_disclosure, "
            "which bring them along"
        )
    dimensions = ", ".join(publication.quoted_dimensions) or "NULL"
    _bound_condition(cursor, f"SELECT {dimensions} FROM ({publication.inner})", condition, "structural_zeros")
    check_reads_columns_only(cursor, condition, publication.dimensions, "structural_zeros")
    filled = " OR ".join(f"{identifier(measure.name)} <> 0" for measure in publication.measures)
    row = first_row(cursor, f"SELECT count(*) FROM ({publication.inner}) WHERE ({filled}) AND ({condition}\n) IS TRUE")
    if row is not None and row[0]:
        raise SDCError(f"argument 'structural_zeros': {row[0]} inner cells that meet it are not empty")
    return replace(publication, structural_zeros=condition)


def _bound_condition(cursor: duckdb.DuckDBPyConnection, rows: str, condition: str | None, argument: str) -> str | None:
    """A condition on the columns of SQL rows, after binding it."""
    if condition is None:
        return None
    query = f"SELECT ({condition}\n) AS _sdc_condition FROM ({rows})"
    try:
        kind = cursor.execute(f"DESCRIBE {query}").fetchall()[0][1]
    except duckdb.Error as problem:
        raise SDCError(f"argument '{argument}': {str(problem).splitlines()[0]}") from None
    if kind != "BOOLEAN":
        raise wrong(argument, f"be a condition on the columns of a cell, not of type {kind}")
    return condition
