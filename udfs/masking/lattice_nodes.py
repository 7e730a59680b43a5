"""The nodes of a lattice as tables: each is one GROUP BY over combinations of keys, never over records.

Values of a key are numbered in their order, and a label by the first of its values. So a node is a table of numbers,
and a coarser one is made of it as it is made of the finest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.methods.masking.generalisation_costs import Key, Prices, counted_spans, prices
from sdcduck.methods.masking.lattice import Found, Lattice, fitting
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.masking.generalisations import ALL, Hierarchy, key_value
from sdcduck.udfs.masking.records import records
from sdcduck.udfs.risk.classes import alike
from sdcduck.udfs.risk.diversity import closeness, diversity
from sdcduck.udfs.source import Source

MOST_NODES = 20_000
_MOST_KEPT = 4  # times the rows of the finest node, in the tables of other nodes
_ROUNDING = 1e-9  # exp(ln 5) is less than 5

Levels = tuple[int, ...]


@dataclass(frozen=True)
class Demands:
    """What a class has to be like.

    Attributes:
        k: records that it has at least.
        diversity: l; None: it may be anything.
        method: of l-diversity.
        times: the c of recursive diversity.
        closeness: t; None: it may be as far as it likes.
        ordered: whether the order of the sensitive values counts.
    """

    k: int
    diversity: float | None
    method: str
    times: float
    closeness: float | None
    ordered: bool

    @property
    def different(self) -> int:
        """Without so many different sensitive values no class passes."""
        return 1 if self.diversity is None else math.ceil(self.diversity * (1 - _ROUNDING))

    def classes(self, keys: Sequence[str], values: str) -> str:
        """A query for classes: keys, ``n``, ``certain`` (fails in every finer node, too) and ``fails``.

        Args:
            values: a query for how often each class has each sensitive value: keys, ``_value``, ``_n``.
        """
        by = ", ".join(keys)
        counted = f"SELECT {by}, sum(_n)::BIGINT AS records, count(*) AS distinct_l FROM ({values}) GROUP BY {by}"
        fails = ["certain"]
        if self.diversity is not None and self.method != "distinct":
            counted = diversity(keys, values, self.times)
            fails.append(
                f"entropy_l < {self.diversity * (1 - _ROUNDING)!r}::DOUBLE"
                if self.method == "entropy"
                else f"recursive_l < {self.different}"
            )
        shown = ", ".join(f"d.{key}" for key in keys)
        certain = f"d.records < {self.k} OR d.distinct_l < {self.different}"
        farther = ""
        if self.closeness is not None:
            farther = f"JOIN ({closeness(keys, values, ordered=self.ordered)}) t ON {alike(keys, 'd', 't')}"
            fails.append(f"t.distance > {self.closeness + _ROUNDING!r}::DOUBLE")
        return (
            f"SELECT {shown}, d.records AS n, {certain} AS certain, {' OR '.join(fails)} AS fails "
            f"FROM ({counted}) d {farther}"
        )


class Nodes:
    """The tables of a lattice on a cursor, which are gone with it.

    Args:
        cursor: of the database.
        relation: the records.
        keys: their columns that are generalised, each with its hierarchy.
        sensitive: the column that nobody should learn, or None.
        demands: on classes.
        share: of the records that may be suppressed.
        cost: one of `COSTS`.

    Attributes:
        count: of records; without any there is nothing else.
        most: of them that may be suppressed.
        lattice: of levels.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, relation: Source, keys: Sequence[tuple[str, Hierarchy]],
        sensitive: str | None, demands: Demands, share: float, cost: str,
    ) -> None:  # fmt: skip
        self._cursor, self._relation, self._demands = cursor, relation, demands
        self._names = [name for name, _ in keys]
        self._columns = [f"c{place}" for place in range(len(keys))]
        self._sensitive = sensitive
        values = ", ".join(f"{key_value(relation, name)} AS v{place}" for place, name in enumerate(self._names))
        with_sensitive = f", {identifier(sensitive)} AS w" if sensitive else ""
        cursor.execute(
            f"CREATE TEMP TABLE _sdc_combinations AS SELECT {values}{with_sensitive}, count(*)::BIGINT AS n "
            f"FROM {relation.sql} GROUP BY ALL"
        )
        self.count = int(self._number("SELECT coalesce(sum(n), 0) FROM _sdc_combinations"))
        self.most = math.floor(share * self.count + _ROUNDING)
        if not self.count:
            return
        if demands.closeness is not None and demands.ordered:
            self._refuse_gaps()
        self._keys = [self._key(place, name, hierarchy) for place, (name, hierarchy) in enumerate(keys)]
        self._tops = [len(key.labels) - 1 for key in self._keys]
        self._check_size()
        self._prices: Prices | None = None
        if cost != "discernibility":
            self._prices = prices(cost, self._keys)
        self.lattice = Lattice(self._tops, self._prices.kept if self._prices else None)
        for place, key in enumerate(self._keys):
            self._write_map(place, key)
        self._write_finest()
        self._tables: dict[Levels, tuple[str, int]] = {
            (0,) * len(keys): ("_sdc_finest", int(self._number("SELECT count(*) FROM _sdc_finest")))
        }
        self._made = 0

    def _number(self, query: str) -> int:
        return self._cursor.execute(query).fetchall()[0][0]  # type: ignore[no-any-return]

    # --- what does not depend on a node ---

    def _refuse_gaps(self) -> None:
        gaps = self._number("SELECT coalesce(sum(n) FILTER (w IS NULL), 0) FROM _sdc_combinations")
        if gaps:
            raise SDCError(
                f"the sensitive value is NULL in {records(gaps)}, and has no place in an order: take ordered := false"
            )

    def _key(self, place: int, name: str, hierarchy: Hierarchy) -> Key:
        """The values of a key with their labels, which are written beside the numbers of the values."""
        table = f"_sdc_values{place}"
        self._cursor.execute(
            f"CREATE TEMP TABLE {table} AS SELECT v{place} AS v, sum(n)::BIGINT AS n, "
            f"row_number() OVER (ORDER BY v{place} ASC NULLS LAST) - 1 AS id FROM _sdc_combinations GROUP BY v{place}"
        )
        query, count = hierarchy.labelled(self._cursor, table)
        self._cursor.execute(f"CREATE TEMP TABLE _sdc_labels{place} AS {query}")
        of_all = " OR ".join(f"label{level} = {literal(ALL)}" for level in range(count))
        taken = self._number(
            f"SELECT coalesce(sum(n), 0) FROM _sdc_labels{place} JOIN {table} USING (id) WHERE {of_all}"
        )
        if taken:
            raise SDCError(
                f"'{ALL}' is a label of '{name}' in {records(taken)} below the last level, whose label it is: "
                "replace it in a query in parentheses"
            )
        known = {row[0] for row in self._cursor.execute(f"DESCRIBE _sdc_labels{place}").fetchall()}
        firsts = [f"min(id) OVER (PARTITION BY label{level}) AS f{level}" for level in range(1, count)]
        spans = [f"span{level}" for level in range(count) if f"span{level}" in known]
        found = self._cursor.sql(
            f"SELECT {', '.join(['n', *firsts, *spans])} FROM _sdc_labels{place} JOIN {table} USING (id) ORDER BY id"
        ).to_arrow_table()
        arrays = [column.to_numpy() for column in found.columns]
        size = len(found)
        labels = np.vstack([np.arange(size), *arrays[1:count], np.zeros(size, np.int64)]).astype(np.int64)
        if not spans:
            return Key(arrays[0].astype(np.int64), labels, counted_spans(labels))
        last = np.full(size, float(size > 1))
        return Key(arrays[0].astype(np.int64), labels, np.vstack([*arrays[count:], last]).astype(np.float64))

    def _check_size(self) -> None:
        levels = [top + 1 for top in self._tops]
        size = math.prod(levels)
        if size <= MOST_NODES:
            return
        kept = fitting(levels, MOST_NODES)
        fewer = [
            f"{now} of the {before} levels of '{name}'"
            for name, before, now in zip(self._names, levels, kept, strict=True)
            if now < before
        ]
        if math.prod(kept) > MOST_NODES:
            advice = "leave out keys"
        else:
            advice = f"leave out levels, so that there are at most {' and '.join(fewer)}, say, or keys"
        raise SDCError(
            f"the lattice has {size:,} nodes, and at most {MOST_NODES:,} are searched: {advice} (the value itself and "
            "the last level, which is all, count)"
        )

    def _write_map(self, place: int, key: Key) -> None:
        """A table from each value of a key to its labels, and to what these cost."""
        columns: dict[str, NDArray[np.int64]] = {"id": np.arange(len(key.counts))}
        columns |= {f"l{level}": one for level, one in enumerate(key.labels)}
        if self._prices:
            columns |= {f"p{level}": one for level, one in enumerate(self._prices.labels[place])}
        self._cursor.register("_sdc_registered", pa.table(columns))
        shown = ", ".join(f"{name}::INTEGER AS {name}" if name[0] in "il" else name for name in columns)
        self._cursor.execute(f"CREATE TEMP TABLE _sdc_map{place} AS SELECT {shown} FROM _sdc_registered")
        self._cursor.unregister("_sdc_registered")

    def _write_finest(self) -> None:
        numbers = ", ".join(f"k{place}.id::INTEGER AS c{place}" for place in range(len(self._keys)))
        joins = " ".join(
            f"JOIN _sdc_values{place} k{place} ON c.v{place} IS NOT DISTINCT FROM k{place}.v"
            for place in range(len(self._keys))
        )
        if self._sensitive:
            self._cursor.execute(
                "CREATE TEMP TABLE _sdc_sensitive AS SELECT w, row_number() OVER (ORDER BY w ASC NULLS LAST) AS id "
                "FROM (SELECT DISTINCT w FROM _sdc_combinations)"
            )
            numbers += ", s.id::INTEGER AS s"
            joins += " JOIN _sdc_sensitive s ON c.w IS NOT DISTINCT FROM s.w"
        self._cursor.execute(f"CREATE TEMP TABLE _sdc_finest AS SELECT {numbers}, c.n FROM _sdc_combinations c {joins}")

    # --- one node ---

    def _write_node(self, levels: Levels) -> str:
        """The table of a node: the numbers of its labels, those of sensitive values if there are any, and records.

        It is made of the smallest table of a finer node, and kept if it is much smaller than that.
        """
        if levels in self._tables:
            return self._tables[levels][0]
        finer = [known for known in self._tables if all(one <= own for one, own in zip(known, levels, strict=True))]
        nearest = min(finer, key=lambda known: (self._tables[known][1], known))
        table = self._tables[nearest][0]
        shown, by, joins = [], ["s"] if self._sensitive else [], []
        for place, (level, before) in enumerate(zip(levels, nearest, strict=True)):
            if level == self._tops[place]:
                shown.append(f"0::INTEGER AS c{place}")
                continue
            by.append(f"c{place}")
            if level == before:
                shown.append(f"t.c{place}")
            else:
                joins.append(f"JOIN _sdc_map{place} m{place} ON t.c{place} = m{place}.id")
                shown.append(f"m{place}.l{level} AS c{place}")
        numbers = ", ".join([*shown, *(["t.s"] if self._sensitive else []), "t.n"])
        kept = [column if column in by else f"0::INTEGER AS {column}" for column in self._columns]
        kept += ["s"] if self._sensitive else []
        grouped = f"GROUP BY {', '.join(by)}" if by else ""
        self._made += 1
        name = f"_sdc_node{self._made}"
        self._cursor.execute(
            f"CREATE TEMP TABLE {name} AS SELECT {', '.join(kept)}, sum(n)::BIGINT AS n "
            f"FROM (SELECT {numbers} FROM {table} t {' '.join(joins)}) {grouped}"
        )
        count = int(self._number(f"SELECT count(*) FROM {name}"))
        self._tables[levels] = (name, count)
        return name

    def _forget(self, levels: Levels) -> None:
        """Drop the table of a node that is not worth its memory: others may be made of a finer one as well."""
        finest = self._tables[(0,) * len(levels)][1]
        name, size = self._tables[levels]
        finer = [
            rows
            for known, (_, rows) in self._tables.items()
            if known != levels and all(one <= own for one, own in zip(known, levels, strict=True))
        ]
        kept = sum(rows for _, rows in self._tables.values()) - finest
        if finer and (2 * size > min(finer) or kept > _MOST_KEPT * finest):
            self._cursor.execute(f"DROP TABLE {name}")
            del self._tables[levels]

    def _write_classes(self, node: str) -> str:
        """SQL after FROM of the classes of a node, as `Demands.classes` has them."""
        if not self._sensitive:
            small = f"n < {self._demands.k}"
            return f"(SELECT *, {small} AS certain, {small} AS fails FROM {node})"
        values = f"SELECT {', '.join(self._columns)}, s AS _value, n AS _n FROM {node}"
        self._cursor.execute(
            f"CREATE OR REPLACE TEMP TABLE _sdc_classes AS {self._demands.classes(self._columns, values)}"
        )
        return "_sdc_classes"

    def look(self, levels: Levels) -> Found:
        """What there is at a node."""
        node = self._write_node(levels)
        classes = self._write_classes(node)
        count, smallest, suppressed, certain, squares = self._cursor.execute(
            "SELECT count(*), min(n), coalesce(sum(n) FILTER (fails), 0)::BIGINT, "
            f"coalesce(sum(n) FILTER (certain), 0)::BIGINT, sum(n::HUGEINT * n) FROM {classes}"
        ).fetchall()[0]
        kept = int(squares)
        if self._prices:
            kept = sum(int(costs[level]) for costs, level in zip(self._prices.kept, levels, strict=True))
        of_suppressed = of_certain = 0
        if suppressed and certain <= self.most:
            of_suppressed, of_certain = self._suppression_costs(classes, levels)
        allowed = suppressed <= self.most
        passes = allowed and (not suppressed or self._is_class(node, classes, suppressed))
        self._forget(levels)
        return Found(
            int(count), int(smallest), int(suppressed), int(certain), passes, kept, of_certain,
            kept + of_suppressed if allowed else None,
        )  # fmt: skip

    def _suppression_costs(self, classes: str, levels: Levels) -> tuple[int, int]:
        """How much more it costs to suppress what fails, and what certainly fails, than to keep it."""
        if self._prices:
            price = " - ".join([str(self._prices.suppressed), *(f"m{p}.p{level}" for p, level in enumerate(levels))])
            joins = " ".join(f"JOIN _sdc_map{place} m{place} ON c{place} = m{place}.id" for place in range(len(levels)))
        else:
            price, joins = f"{self.count} - n", ""
        row = self._cursor.execute(
            f"SELECT sum(n::HUGEINT * ({price})), coalesce(sum(n::HUGEINT * ({price})) FILTER (certain), 0) "
            f"FROM (FROM {classes} WHERE fails) {joins}"
        ).fetchall()[0]
        return int(row[0]), int(row[1])

    def _is_class(self, node: str, classes: str, suppressed: int) -> bool:
        """Whether suppressed records may stay in the file: without their keys they are a class, too."""
        if not self._sensitive:
            return suppressed >= self._demands.k
        values = (
            f"SELECT c.fails AS g, t.s AS _value, sum(t.n)::BIGINT AS _n FROM {node} t JOIN {classes} c "
            f"ON {alike(self._columns, 't', 'c')} GROUP BY ALL"
        )
        return not self._number(f"SELECT fails FROM ({self._demands.classes(['g'], values)}) WHERE g")

    # --- the answer ---

    def shown_cost(self, cost: int) -> float:
        """A cost in the unit of its measure."""
        return self._prices.shown(cost) if self._prices else float(cost)

    def generalised(self, levels: Levels) -> pa.Table:
        """Each combination of values, in their order, with what it becomes at a node."""
        classes = self._write_classes(self._write_node(levels))
        by = ", ".join(self._columns)
        joins, labels, texts, same = [], [], [], []
        for place, level in enumerate(levels):
            joins.append(f"JOIN _sdc_labels{place} a{place} ON b.c{place} = a{place}.id")
            joins.append(f"JOIN _sdc_map{place} m{place} ON b.c{place} = m{place}.id")
            last = level == self._tops[place]
            label = literal(ALL) if last else f"a{place}.label{level}"
            labels.append(f"CASE WHEN k.fails THEN {literal(ALL)} ELSE {label} END")
            texts.append(f"a{place}.label0")
            same.append(f"k.c{place} = m{place}.l{level}")
        return self._cursor.sql(
            f"SELECT row_number() OVER (ORDER BY {', '.join(f'b.{column}' for column in self._columns)}) - 1 AS place, "
            f"[{', '.join(labels)}]::VARCHAR[] AS labels, [{', '.join(texts)}]::VARCHAR[] AS texts, "
            "b.n AS records, count(*) OVER () AS combinations, CASE WHEN k.fails THEN "
            f"(SELECT sum(n)::BIGINT FROM {classes} WHERE fails) ELSE k.n END AS class_size, k.fails AS suppressed "
            f"FROM (SELECT {by}, sum(n)::BIGINT AS n FROM _sdc_finest GROUP BY {by}) b {' '.join(joins)} "
            f"JOIN {classes} k ON {' AND '.join(same)}"
        ).to_arrow_table()
