"""The records of a guard that are on another engine: whether they are as they must be, and what questions get."""

from __future__ import annotations

import threading
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sdcduck import catalog
from sdcduck.catalog import Policy
from sdcduck.catalog.engine_self_test import check_alike
from sdcduck.catalog.engine_semantics import MOST_ROWS, SEMANTICS
from sdcduck.catalog.engines import duckdb_columns, engine_of, stand_ins
from sdcduck.errors import SDCError
from sdcduck.guard.engines.asking import Asking
from sdcduck.guard.engines.cut import Cut, Source, cut
from sdcduck.guard.engines.inner_cells import INTEGERS, Half
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.quoting import folded, identifier

_METHODS = ("cell_key", "threshold", "rounding")
_KEYS = 10**8
_SOME = 200_000
_MOST_CUTS = 1000


class _Seen(NamedTuple):
    """What tells the records of a table that was looked at from others.

    Attributes:
        rows: how many there are.
        keys: the sum of their keys; None: they have none.
        different: how many keys there are.
    """

    rows: int
    keys: int | None = None
    different: int | None = None


class Records:
    """Looks at each table once, and again when the number of its records changed.

    Args:
        con: the guard's own connection.
        alone: held while it is used.
        records: the engine as the custodian gave it; None: there is none.
        seconds: that it may take for each thing it is asked; None: no limit.

    Raises:
        SDCError: it is no engine that is known, or one that is set up to give other numbers than DuckDB.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        alone: threading.Lock,
        records: object | None,
        seconds: float | None = None,
    ) -> None:
        self._con, self._alone = con, alone
        engine = None if records is None else engine_of(records)
        self._engine = None if engine is None else Asking(engine, seconds)
        self._version: str | None = None
        self._marked: frozenset[str] = frozenset()
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._views: dict[str, bool] = {}
        self._cuts: dict[str, Cut] = {}
        self._sources: dict[tuple[str, str], Source] = {}
        if engine is not None:
            if not stand_ins(con):
                raise SDCError(
                    "no table of this database stands for one of the engine: sdcduck.connect(file, records=..)"
                )
            check_alike(engine)

    def close(self) -> None:
        """Ask no more."""
        if self._engine is not None:
            self._engine.close()

    def check(self, rewritten: Rewritten, version: str) -> Cut | None:
        """What becomes of a question about records of the engine; None: it is about none.

        Raises:
            Refused: it is not known that the numbers are those that DuckDB would give; or the records are not as the
                policy needs them.
        """
        if version != self._version:
            with self._alone:
                self._marked = frozenset(map(folded, stand_ins(self._con)))
            self._version, self._views, self._cuts, self._sources = version, {}, {}, {}
        if not self._marked:
            return None
        for name in rewritten.tables:
            if folded(name) not in self._marked and self._reads_marked(name):
                raise Refused("SDC061", f"{name}: a view of records on an engine")
        policies = [policy for policy in rewritten.policies if folded(policy.name) in self._marked]
        if not policies:
            return None
        for policy in policies:
            self._check_policy(policy)
        known = self._cuts.get(rewritten.sql)
        if known is None:
            assert self._engine is not None
            sources = {folded(policy.name): self._source(policy) for policy in policies}
            known = cut(rewritten.sql, sources, SEMANTICS[self._engine.name])
            if len(self._cuts) >= _MOST_CUTS:
                self._cuts.clear()
            self._cuts[rewritten.sql] = known
        for policy in policies:
            self._check_records(policy)
        return known

    def located(self, cursor: duckdb.DuckDBPyConnection, found: Cut) -> str:
        """What DuckDB is asked, with the cells that the engine gives in reach of a cursor.

        Raises:
            Refused: the engine fails; never with what it says.
        """
        assert self._engine is not None
        answers = self._engine.together([half.sql for half in found.halves])
        for half, cells in zip(found.halves, answers, strict=True):
            self._check_unchanged(half, cells)
            cursor.register(half.name, cells)
        return found.sql

    def _check_unchanged(self, half: Half, cells: pa.Table) -> None:
        """Refuse cells of other records than those that were looked at, and look at these when somebody asks again.

        Conditions are DuckDB's, so that the cells have all records of a table.

        Raises:
            Refused: they are as many, with other keys, or they are not as many.
        """

        counted = _total(cells, half.counted)
        keys = None if half.keys is None else _total(cells, half.keys)
        looked = {asked: seen for asked, seen in list(self._seen.items()) if asked[0] == half.table}
        if not any((seen.rows, None if keys is None else seen.keys) == (counted, keys) for seen in looked.values()):
            for asked in looked:
                self._seen.pop(asked, None)
            raise Refused("SDC060", f"{half.table}: its records changed while they were asked about, ask again")

    def _reads_marked(self, name: str) -> bool:
        """Whether a view reads a table that stands for one of the engine, and so would have no rows."""
        if name not in self._views:
            with self._alone:
                read = catalog.read_by(self._con, name)
            self._views[name] = any(folded(table) in self._marked for _, _, table in read.tables)
        return self._views[name]

    def _check_policy(self, policy: Policy) -> None:
        """Refuse what is not answered from inner cells of an engine.

        Raises:
            Refused: it is not.
        """
        if self._engine is None:
            raise Refused("SDC060", f"{policy.name}: its records are on another engine, open_guard(.., records=..)")
        if policy.method not in _METHODS:
            raise Refused(
                "SDC061", f"{policy.name}: answers by {policy.method}; these are known: {', '.join(_METHODS)}"
            )
        if policy.kinds or policy.sequence.holds or policy.owned or policy.privacy.holds:
            raise Refused("SDC061", f"{policy.name}: units of several kinds, limits on sequences, owned records")

    def _source(self, policy: Policy) -> Source:
        """The columns of a table, of the engine as of the one that stands for it.

        Raises:
            Refused: they are not the same any more.
        """
        asked = (policy.name, policy.role)
        if asked not in self._sources:
            assert self._engine is not None
            with self._alone:
                described = self._con.execute(f"DESCRIBE FROM main.{identifier(policy.name)}").fetchall()
            types = {str(row[0]): str(row[1]) for row in described}
            there = duckdb_columns(self._engine.schema(policy.name))
            if there != types:
                raise Refused("SDC060", f"{policy.name}: the engine has other columns by now, sdcduck.connect")
            self._sources[asked] = Source(policy, types)
        return self._sources[asked]

    def _check_records(self, policy: Policy) -> None:
        """Refuse records that `sdc_protect` would refuse here.

        Raises:
            Refused: a record without a unit or a proper key, units with several records, keys that are no random
                numbers or are made of a measure, the records of another policy, rows in the table that stands for them.
        """
        name = policy.name
        with self._alone:
            here = self._con.execute(f"SELECT count(*) FROM main.{identifier(name)}").fetchall()[0][0]
        if here:
            raise Refused("SDC060", f"{name}: there are records beside those of the engine")
        table, unit = identifier(name), identifier(str(policy.unit))
        rows = int(self._asked(f"SELECT count(*) AS n FROM {table}").column(0)[0].as_py())
        asked = (name, policy.role)
        if asked in self._seen and self._seen[asked].rows == rows:
            return
        types = self._source(policy).types
        spelled = {folded(column): kind for column, kind in types.items()}
        if spelled.get(folded(str(policy.unit))) not in (*INTEGERS, "VARCHAR"):
            raise Refused("SDC061", f"{name}: a unit that is neither a whole number nor a text")
        if rows > MOST_ROWS:
            raise Refused("SDC061", f"{name}: more records than sums are known to hold")
        counted = f"count(*) AS n, count(DISTINCT {unit}) AS units, count({unit}) AS there"
        _, units, there = self._row(f"SELECT {counted} FROM {table}")
        if there < rows:
            raise Refused("SDC060", f"{name}: records without a unit")
        if units < rows:
            raise Refused("SDC061", f"{name}: units with several records on an engine")
        self._seen[asked] = _Seen(rows) if policy.record_key is None else self._check_keys(policy, rows, types)

    def _check_keys(self, policy: Policy, rows: int, types: dict[str, str]) -> _Seen:
        """Refuse record keys that are none; what tells them from those of other records.

        Raises:
            Refused: they are.
        """
        from sdcduck.methods.perturbation.record_keys import PARTS, are_spread  # with SciPy

        name, table, key = policy.name, identifier(policy.name), identifier(str(policy.record_key))
        spelled = {folded(column): kind for column, kind in types.items()}
        if spelled.get(folded(str(policy.record_key))) not in INTEGERS:
            raise Refused("SDC060", f"{name}: its record keys are no whole numbers")
        proper = f"count(CASE WHEN {key} >= 0 AND {key} < {_KEYS} THEN 1 END)"
        found = self._row(
            f"SELECT {proper} AS n, sum(CAST({key} AS BIGINT)) AS s, count(DISTINCT {key}) AS d FROM {table}"
        )
        if found[0] < rows:
            raise Refused("SDC060", f"{name}: records without a proper key")
        part = f"CAST(floor(CAST({key} AS DOUBLE PRECISION) * {PARTS} / {_KEYS}) AS BIGINT)"
        parts = self._asked(f"SELECT {part} AS p, count(*) AS n FROM {table} GROUP BY {part}").to_pylist()
        counts = np.zeros(PARTS, dtype=np.int64)
        for row in parts:
            counts[int(row["p"])] = int(row["n"])
        if rows and not are_spread(counts, int(found[2]), _KEYS):
            raise Refused("SDC060", f"{name}: its record keys are no random numbers, sdc_add_record_key")
        self._check_not_of_measures(policy, rows)
        these = _Seen(rows, found[1], found[2])
        if any(name != other and these == seen for (other, _), seen in self._seen.items()):
            raise Refused("SDC060", f"{name}: it has the record keys of another table")
        return these

    def _check_not_of_measures(self, policy: Policy, rows: int) -> None:
        """Refuse keys that are made of a measure; of large tables some of the units say as much.

        Raises:
            Refused: they are.
        """
        key = identifier(str(policy.record_key))
        wanted = (str(policy.unit), str(policy.record_key), *policy.measures)
        listed = ", ".join({folded(name): identifier(name) for name in wanted}.values())
        some = self._asked(f"SELECT {listed} FROM {identifier(policy.name)} WHERE {key} % {rows // _SOME + 1} = 0")
        with self._alone:
            self._con.register(_SAMPLE, some)
            try:
                of = catalog.measure_of_keys(
                    self._con,
                    f"temp.main.{_SAMPLE}",
                    str(policy.unit),
                    str(policy.record_key),
                    policy.measures,
                    some.num_rows,
                )
            finally:
                self._con.unregister(_SAMPLE)
        if of is not None:
            raise Refused("SDC060", f"{policy.name}: its record keys are made of a measure, sdc_add_record_key")

    def _row(self, sql: str) -> tuple[int, ...]:
        """The one row of a query for whole numbers."""
        return tuple(int(value or 0) for value in self._asked(sql).to_pylist()[0].values())

    def _asked(self, sql: str) -> pa.Table:
        """What the engine answers, to one question at a time.

        Raises:
            Refused: it fails, or takes too long.
        """
        assert self._engine is not None
        return self._engine.rows(sql)


def _total(cells: pa.Table, name: str) -> int:
    """The sum of a column of whole numbers, which are texts where they may be of any length."""
    return int(pc.sum(cells.column(name).cast(pa.decimal128(38, 0))).as_py() or 0)


_SAMPLE = "_sdc_sample_of_keys"
