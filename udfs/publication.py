"""A publication: one SELECT with GROUPING SETS, read as inner cells, cells and the sparse matrix between them.

The statement is read with DuckDB's own parser, as JSON. Cells, inner cells and unit records are that same statement
with other groupings, so that expressions, joins and filters mean what they mean to DuckDB.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import duckdb

from sdcduck.catalog import first_row
from sdcduck.catalog.engines import Engine
from sdcduck.errors import SDCError, unknown
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.engine_cells import Groups, check_reads_rows, groups_of, reading_rows

_MOST_DIMENSIONS = 62  # GROUPING_ID has as many bits
_Node = dict[str, Any]


@dataclass(frozen=True)
class Measure:
    """A published number: ``count(..)`` or ``sum(..)``, by the name of its column and its SQL type."""

    name: str
    kind: str
    sql_type: str


@dataclass(frozen=True)
class Publication:
    """A SELECT with grouping sets, taken apart.

    Attributes:
        query: as the user wrote it.
        dimensions: names of the grouping columns in the result.
        measures: the published numbers, in the order of the result.
        columns: dimensions and measures in the order of the result.
        sets: the distinct grouping sets, as places in `dimensions`: those of fewer columns first, then as written.
        inner: SQL, one row an inner cell: the dimensions and the measures.
        records: SQL, one row a record: ``_sdc_d0 ..`` the dimensions, ``_sdc_m0 ..`` what each measure sums or counts
            (NULL where its filter leaves the record out), and all columns of the source.
        structural_zeros: SQL condition on the dimensions, which combinations nothing can have: they are no inner cells.
        numbered: the table that holds the inner cells with their numbers, where they have been put into one.
        counts: SQL of the inner cells where one of the sums is a count, see `counted`.
        is_weighted: whether the sum that rules look at adds up ``_sdc_x`` of the records times their weight.
        groups: what `records` has in their place where they are on another engine: rows that stand for several.
    """

    query: str
    dimensions: tuple[str, ...]
    measures: tuple[Measure, ...]
    columns: tuple[str, ...]
    sets: tuple[tuple[int, ...], ...]
    inner: str
    records: str
    structural_zeros: str | None = None
    numbered: str | None = None
    counts: str | None = None
    is_weighted: bool = False
    groups: Groups | None = None

    def measure(self, name: str | None, argument: str, kind: str) -> Measure:
        """The measure of that name, or the first of its kind ('count' or 'sum')."""
        if name is None:
            found = next((measure for measure in self.measures if measure.kind == kind), None)
            if found is None and kind == "count":
                raise SDCError(
                    "a publication needs a count: where every row is a record add count(*) AS n; "
                    "where a row has a number of records, as in a table that was counted before, add sum(n) AS n and "
                    "say freq := 'n'"
                )
            if found is None:
                raise SDCError(f"argument '{argument}': the publication has no {kind}(..) column")
            return found
        for measure in self.measures:
            if folded(measure.name) == folded(name):
                return measure
        raise unknown("measure", name, [measure.name for measure in self.measures], where=f"argument '{argument}'")

    def counted(self, freq: str | None) -> Publication:
        """This publication with the measure of that name as a count: also a sum, of numbers of records.

        Raises:
            SDCError: there is no such measure, or it has no whole numbers.
        """
        if freq is None or (found := self.measure(freq, "freq", "count")).kind == "count":
            return self
        if found.sql_type not in ("HUGEINT", "BIGINT") and not found.sql_type.endswith(",0)"):
            raise SDCError(f"argument 'freq': '{found.name}' counts records with whole numbers: sum(n::BIGINT)")
        name = identifier(found.name)
        whole = f"""CASE WHEN {name} < 0 THEN error('argument ''freq'': a number of records is negative')
            ELSE coalesce({name}, 0)::BIGINT END"""
        measures = tuple(
            replace(one, kind="count", sql_type="BIGINT") if one == found else one for one in self.measures
        )
        return replace(self, measures=measures, counts=f"SELECT * REPLACE ({whole} AS {name}) FROM ({self.inner})")

    def check_has_records(self) -> None:
        """That there is a row for each record, and none that stands for several.

        Raises:
            SDCError: they are on an engine, which is not asked for them.
        """
        if self.groups is not None:
            raise SDCError(
                f"this looks at the records one by one, and those of '{self.groups.table}' are on another engine: take "
                "some of them into a table of this file (docs/engines.md)"
            )

    def level_of(self, columns: tuple[int, ...]) -> str:
        """A grouping set in words: ``county x age``, or ``total``."""
        return " x ".join(self.dimensions[place] for place in columns) or "total"

    def grouping_sets(self, prefix: Sequence[str]) -> str:
        """``GROUPING SETS (..)`` over the columns that stand for the dimensions."""
        sets = ("(" + ", ".join(prefix[place] for place in columns) + ")" for columns in self.sets)
        return f"GROUPING SETS ({', '.join(sets)})"

    def set_number(self, prefix: Sequence[str]) -> str:
        """SQL for the place of a row's grouping set in `sets`."""
        return self.number_of(self.grouping(prefix))

    def grouping(self, prefix: Sequence[str]) -> str:
        """SQL for what tells a row's grouping set: DuckDB's number of it."""
        return f"GROUPING({', '.join(prefix)})::BIGINT" if self.dimensions else "0::BIGINT"

    def number_of(self, grouping: str) -> str:
        """SQL for the place of a grouping set in `sets`, by what tells it."""
        if not self.dimensions:
            return "0"
        bits = [
            sum(
                1 << (len(self.dimensions) - 1 - place) for place in range(len(self.dimensions)) if place not in columns
            )
            for columns in self.sets
        ]
        return f"list_position({bits}, {grouping}) - 1"

    @property
    def quoted_dimensions(self) -> list[str]:
        """The dimensions as SQL identifiers."""
        return [identifier(name) for name in self.dimensions]

    def inner_cells(self, *, extend: Sequence[Sequence[int]] = ()) -> str:
        """SQL of the inner cells with their number ``_sdc_inner``, in the order of the dimensions.

        With `extend`, clusters of dimensions: also the combinations of the clusters that no record has, with zeros, but
        for the structural ones.
        """
        if self.numbered is not None:
            return f"SELECT * FROM {self.numbered}"
        order = ", ".join(f"{name} NULLS FIRST" for name in self.quoted_dimensions) or "1"
        inner = f"({self.counts or self.inner})"
        if extend:
            inner = self._extended(extend)
        return f"SELECT *, row_number() OVER (ORDER BY {order}) - 1 AS _sdc_inner FROM {inner}"

    def _extended(self, clusters: Sequence[Sequence[int]]) -> str:
        names = self.quoted_dimensions
        combinations = " CROSS JOIN ".join(
            f"(SELECT DISTINCT {', '.join(names[place] for place in cluster)} FROM ({self.inner}))"
            for cluster in clusters
        )
        measures = ", ".join(
            f"coalesce({identifier(measure.name)}, 0)::{measure.sql_type} AS {identifier(measure.name)}"
            for measure in self.measures
        )
        match = " AND ".join(f"_sdc_all.{name} IS NOT DISTINCT FROM _sdc_seen.{name}" for name in names)
        dimensions = ", ".join(f"_sdc_all.{name}" for name in names)
        extended = (
            f"SELECT {dimensions}, {measures} FROM (SELECT * FROM {combinations}) _sdc_all "
            f"LEFT JOIN ({self.counts or self.inner}) _sdc_seen ON {match}"
        )
        if self.structural_zeros is None:
            return f"({extended})"
        return f"(SELECT * FROM ({extended}) WHERE ({self.structural_zeros}\n) IS NOT TRUE)"

    def with_numbers(self, cursor: duckdb.DuckDBPyConnection, extend: Sequence[Sequence[int]] = ()) -> Publication:
        """This publication with its inner cells in a temporary table of the cursor, so that all that is asked of them
        there is asked of that table: the records are gone through once."""
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE _sdc_numbered AS {self.inner_cells(extend=extend)}")
        return replace(self, numbered="temp._sdc_numbered")

    def cells(self, *, extend: Sequence[Sequence[int]] = (), members: bool = False) -> str:
        """SQL of the cells, numbered by ``_sdc_cell``: grouping set by grouping set, in the order of the dimensions.

        Columns: the number, ``_sdc_set``, dimensions, measures and, with `members`, the inner cells as a sorted list.
        """
        names = self.quoted_dimensions
        measures = "".join(f", {_added_up(measure)} AS {identifier(measure.name)}" for measure in self.measures)
        listed = ", list(_sdc_inner ORDER BY _sdc_inner)::INTEGER[] AS _sdc_members" if members else ""
        order = ", ".join(["_sdc_set", *(f"{name} NULLS FIRST" for name in names)])
        return f"""
            SELECT row_number() OVER (ORDER BY {order}) - 1 AS _sdc_cell, * FROM (
                SELECT {self.set_number(names)} AS _sdc_set{"".join(", " + name for name in names)}{measures}{listed}
                FROM ({self.inner_cells(extend=extend)}) GROUP BY {self.grouping_sets(names)}
            )"""


def _added_up(measure: Measure) -> str:
    """A measure of a cell from those of its inner cells; a count of no rows is 0, a sum is NULL, as in SQL."""
    total = f"sum({identifier(measure.name)})"
    return f"{f'coalesce({total}, 0)' if measure.kind == 'count' else total}::{measure.sql_type}"


def read_publication(
    cursor: duckdb.DuckDBPyConnection, query: str, engine: Engine | None = None
) -> Publication:  # fmt: skip
    """Take a SELECT with grouping sets apart.

    Args:
        engine: that has the records of tables that stand for its own.

    Raises:
        SDCError: not one SELECT with GROUP BY, or something in it that cannot be added up from inner cells; records on
            an engine that is not given.
    """
    statement = _parsed(cursor, query)
    node = statement["node"]
    if node["type"] != "SELECT_NODE":
        raise SDCError("a publication is one SELECT .. GROUP BY; combine tables as GROUPING SETS, not with UNION")
    for clause, words in (("having", "HAVING"), ("qualify", "QUALIFY"), ("sample", "USING SAMPLE")):
        if node.get(clause):
            raise SDCError(f"a publication has no {words}: it would hide cells that the others depend on")
    for modifier in node["modifiers"]:
        if modifier["type"] != "ORDER_MODIFIER":
            raise SDCError(
                "a publication has no LIMIT and no DISTINCT: they would hide cells that the others depend on"
            )
    node["modifiers"] = []
    if node["aggregate_handling"] == "FORCE_AGGREGATES":
        raise SDCError("a publication names its grouping columns: write GROUP BY GROUPING SETS (..), not GROUP BY ALL")

    groups: list[_Node] = node["group_expressions"]
    if len(groups) > _MOST_DIMENSIONS:
        raise SDCError(f"a publication has at most {_MOST_DIMENSIONS} grouping columns")
    items: list[_Node] = node["select_list"]
    places = [_item_of_group(group, items) for group in groups]
    measured = [place for place in range(len(items)) if place not in places]
    dimension_places = sorted(set(places))
    for place in measured:
        _refuse_unless_additive(items[place])

    rank = {place: number for number, place in enumerate(dimension_places)}
    written = [tuple(sorted({rank[places[group]] for group in columns})) for columns in node["group_sets"] or [[]]]
    sets = tuple(sorted(dict.fromkeys(written), key=len))

    inner_node = deepcopy(node)
    inner_node["group_expressions"] = [_without_alias(items[place]) for place in dimension_places]
    inner_node["group_sets"] = [list(range(len(dimension_places)))] if dimension_places else []
    inner = _text(cursor, statement, inner_node)
    described = _described(cursor, inner)
    names = [name for name, _ in described]
    for place in dimension_places:
        if folded(names[place]) == "total" or " x " in names[place]:
            raise SDCError(
                f"a grouping column cannot be called '{names[place]}': the names of tables would be ambiguous"
            )
    if len({folded(name) for name in names}) < len(names):
        raise SDCError("two columns of the publication have the same name: give each a name with AS")
    of_measures = [items[place] for place in measured]
    asked = [(item["function_name"], next(iter(_arguments(item)), None)) for item in of_measures]
    text = partial(_text, cursor, statement)
    there = groups_of(cursor, engine, node, asked, text)
    if there is not None:
        there = there.read(cursor)
        statement = {**statement, "node": reading_rows(node, there)}
        check_reads_rows(cursor, statement["node"], text)
    publication = Publication(
        query=query,
        dimensions=tuple(names[place] for place in dimension_places),
        measures=tuple(
            Measure(names[place], "sum" if items[place]["function_name"] == "sum" else "count", described[place][1])
            for place in measured
        ),
        columns=tuple(names),
        sets=sets,
        inner=inner,
        records=_records(cursor, statement, [items[p] for p in dimension_places], of_measures),
        groups=there,
    )
    return publication if there is None else replace(publication, inner=_of_groups(publication, there))


def _of_groups(publication: Publication, groups: Groups) -> str:
    """SQL of the inner cells, of rows that stand for several records."""
    dimensions = {name: f"_sdc_d{place}" for place, name in enumerate(publication.dimensions)}
    numbers = {}
    for place, (measure, counted) in enumerate(zip(publication.measures, groups.measures, strict=True)):
        there = f"coalesce(sum({counted.by}) FILTER (_sdc_m{place} IS NOT NULL), 0)"
        total = f"sum(_sdc_m{place})" if measure.kind == "sum" else there
        numbers[measure.name] = f"{total}::{measure.sql_type}"
    shown = ", ".join(f"{(dimensions | numbers)[name]} AS {identifier(name)}" for name in publication.columns)
    keys = ", ".join(dimensions.values())
    return f"SELECT {shown} FROM ({publication.records}){f' GROUP BY {keys}' if keys else ''}"


def _parsed(cursor: duckdb.DuckDBPyConnection, query: str) -> _Node:
    row = first_row(cursor, "SELECT json_serialize_sql(?)", [query])
    assert row is not None
    tree = json.loads(row[0])
    if tree["error"]:
        raise SDCError(f"the publication is not a SELECT: {tree['error_message']}")
    if len(tree["statements"]) != 1:
        raise SDCError("a publication is one SELECT statement")
    statement: _Node = tree["statements"][0]
    return statement


def _text(cursor: duckdb.DuckDBPyConnection, statement: _Node, node: _Node) -> str:
    tree = {"error": False, "statements": [{**statement, "node": node}]}
    row = first_row(cursor, "SELECT json_deserialize_sql(?::JSON)", [json.dumps(tree)])
    assert row is not None
    return str(row[0])


def _described(cursor: duckdb.DuckDBPyConnection, query: str) -> list[tuple[str, str]]:
    try:
        return [(row[0], row[1]) for row in cursor.execute(f"DESCRIBE {query}").fetchall()]
    except duckdb.Error as problem:
        raise SDCError(f"the publication: {str(problem).splitlines()[0]}") from None


def _bare(node: Any) -> Any:
    """An expression without what does not change its meaning, for comparisons."""
    if isinstance(node, dict):
        return {
            key: _bare(value)
            for key, value in node.items()
            if key not in ("alias", "query_location", "query_location_length")
        }
    return [_bare(value) for value in node] if isinstance(node, list) else node


def _without_alias(node: _Node) -> _Node:
    return {**node, "alias": ""}


def _name_of(item: _Node) -> str:
    return folded(str(item["alias"] or (item["column_names"][-1] if item["class"] == "COLUMN_REF" else "")))


def _item_of_group(group: _Node, items: list[_Node]) -> int:
    """The place in the SELECT list of a grouping expression: by equality, by name or by number."""
    for place, item in enumerate(items):
        if _bare(item) == _bare(group):
            return place
    if group["class"] == "COLUMN_REF" and len(group["column_names"]) == 1:
        for place, item in enumerate(items):
            if _name_of(item) == folded(group["column_names"][0]):
                return place
    if group["class"] == "CONSTANT":
        value = group.get("literal", {}).get("text", group.get("value", {}).get("value"))
        if str(value).isdigit() and 1 <= int(value) <= len(items):
            return int(value) - 1
    raise SDCError("every grouping column must be in the SELECT list, so that the cells can be told apart")


def _arguments(function: _Node) -> list[_Node]:
    if "arguments" in function:
        return [argument["expression"] for argument in function["arguments"]]
    children: list[_Node] = function["children"]
    return children


def _refuse_unless_additive(item: _Node) -> None:
    if item["class"] == "STAR":
        raise SDCError("a publication names its columns: write them out instead of *")
    if item["class"] != "FUNCTION" or item["function_name"] not in ("count", "count_star", "sum"):
        raise SDCError(
            "a publication has grouping columns, count(..) and sum(..) only: numbers that add up from inner cells; "
            "every other column must be in every GROUP BY, and a mean is published as sum and count"
        )
    if item["distinct"]:
        raise SDCError("a publication has no DISTINCT in its counts and sums: they do not add up from inner cells")


def unweighted(
    cursor: duckdb.DuckDBPyConnection, publication: Publication, measure: Measure, weight: str
) -> Publication:
    """The publication with ``_sdc_x`` in its records: what a sum of weighted amounts adds up, before the weight.

    One of other sums stays as it is.

    Raises:
        SDCError: the weight is no expression.
    """
    statement = _parsed(cursor, publication.query)
    items: list[_Node] = statement["node"]["select_list"]
    by_name = dict(zip(publication.columns, items, strict=True))
    [amount] = _arguments(by_name[measure.name])
    while amount["class"] == "CAST":
        amount = amount["child"]
    one, sought = (_parsed(cursor, f"SELECT ({text}\n)")["node"]["select_list"][0] for text in ("1", weight))
    product = amount["class"] == "FUNCTION" and amount["function_name"] == "*"
    factors = _arguments(amount) if product else [amount, one]
    others = [factor for factor in factors if _meaning(_bare(factor)) != _meaning(_bare(sought))]
    if len(others) != 1:
        return publication
    dimensions = [by_name[name] for name in publication.dimensions]
    measures = [by_name[each.name] for each in publication.measures]
    x = publication.measures.index(measure), others[0]
    return replace(publication, records=_records(cursor, statement, dimensions, measures, x), is_weighted=True)


def _meaning(node: Any) -> Any:
    """A bare expression with its names in lower case; texts stay as they are."""
    if isinstance(node, dict):
        return node if node.get("class") == "CONSTANT" else {key: _meaning(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_meaning(value) for value in node]
    return folded(node) if isinstance(node, str) else node


def _records(
    cursor: duckdb.DuckDBPyConnection, statement: _Node, dimensions: list[_Node], measures: list[_Node],
    amount: tuple[int, _Node] | None = None,
) -> str:  # fmt: skip
    node = deepcopy(statement["node"])
    node.update(group_expressions=[], group_sets=[])
    shown = [{**item, "alias": f"_sdc_d{place}"} for place, item in enumerate(dimensions)]
    kept: list[str] = []
    for place, item in enumerate(measures):
        argument = _arguments(item)
        if argument:
            shown.append({**argument[0], "alias": f"_sdc_a{place}"})
        if item["filter"]:
            shown.append({**item["filter"], "alias": f"_sdc_f{place}"})
        value = f"_sdc_a{place}" if argument else "1"
        within = "CASE WHEN _sdc_f" + str(place) + " THEN {} END" if item["filter"] else "{}"
        kept.append(f"{within.format(value)} AS _sdc_m{place}")
        if amount is not None and amount[0] == place:
            shown.append({**amount[1], "alias": "_sdc_unweighted"})
            kept.append(f"{within.format('_sdc_unweighted')} AS _sdc_x")
    star = _parsed(cursor, "SELECT * FROM t")["node"]["select_list"][0]
    node["select_list"] = [*shown, star]
    return f"SELECT {', '.join(['*', *kept])} FROM ({_text(cursor, statement, node)})"


def clusters(cursor: duckdb.DuckDBPyConnection, publication: Publication) -> list[list[int]]:
    """The dimensions in clusters that vary together: columns that one of them determines (county by municipality).

    Zeros are added for all combinations of clusters, so that no municipality lands in two counties.
    """
    names = publication.quoted_dimensions
    if not names:
        return []
    pairs = [(a, b) for a in range(len(names)) for b in range(len(names)) if a != b]
    counts = ", ".join(
        [f"count(DISTINCT ({name}, 0))" for name in names]
        + [f"count(DISTINCT ({names[a]}, {names[b]}))" for a, b in pairs]
    )
    row = first_row(cursor, f"SELECT {counts} FROM ({publication.inner})")
    assert row is not None
    single, both = row[: len(names)], dict(zip(pairs, row[len(names) :], strict=True))
    cluster_of = list(range(len(names)))
    for a, b in pairs:
        if both[a, b] == single[a]:
            joined = {cluster_of[a], cluster_of[b]}
            cluster_of = [min(joined) if cluster in joined else cluster for cluster in cluster_of]
    return [[place for place in range(len(names)) if cluster_of[place] == c] for c in sorted(set(cluster_of))]


def digest_query(publication: Publication) -> str:
    """SQL of the fingerprint of a publication's data: another number once the inner cells are others.

    It is of the inner cells. Where numbers are floating-point, whose sums depend on the order in which threads add them
    up, it is of the records, of which there is a sum of integers.
    """
    rows, columns = publication.inner, [identifier(name) for name in publication.columns]
    if any(measure.sql_type in ("FLOAT", "DOUBLE") for measure in publication.measures):
        rows = publication.records
        columns = [f"_sdc_d{place}" for place in range(len(publication.dimensions))]
        columns += [f"_sdc_m{place}" for place in range(len(publication.measures))]
    return f"SELECT count(*) || ' ' || coalesce(sum(hash({', '.join(columns)})), 0) FROM ({rows})"


def complete_measures(cursor: duckdb.DuckDBPyConnection, publication: Publication) -> tuple[str, ...]:
    """Names of the measures that every record has a value of: their counts are counts of the records."""
    counts = ["count(*)", *(f"count(_sdc_m{place})" for place in range(len(publication.measures)))]
    if publication.groups is not None:
        there = enumerate(publication.groups.measures)
        counts = ["coalesce(sum(_sdc_n), 0)"]
        counts += [f"coalesce(sum({one.by}) FILTER (_sdc_m{place} IS NOT NULL), 0)" for place, one in there]
    row = first_row(cursor, f"SELECT {', '.join(counts)} FROM ({publication.records})")
    assert row is not None
    return tuple(measure.name for measure, n in zip(publication.measures, row[1:], strict=True) if n == row[0])


def count_of_records(publication: Publication, complete: Collection[str]) -> str | None:
    """The name of a measure that counts all records, given those that every record has a value of."""
    return next((one.name for one in publication.measures if one.kind == "count" and one.name in complete), None)


def digest(cursor: duckdb.DuckDBPyConnection, publication: Publication) -> str:
    """A fingerprint of the data that a publication was made from."""
    row = first_row(cursor, digest_query(publication))
    assert row is not None
    return str(row[0])
