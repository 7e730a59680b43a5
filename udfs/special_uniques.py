"""Special uniques among records: planners behind ``sql/special_uniques_tables.sql``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from sdcduck.udfs.risk import Classes

from sdcduck.catalog import identifier, literal
from sdcduck.errors import SDCError
from sdcduck.methods.risk.suda import MOST_KEYS, SpecialUniques, dis, dis_scores, special_uniques
from sdcduck.registry import Family, Planner, Rows, Session
from sdcduck.running import shown_checkpoint

_MOST_SETS = 2_000_000
_NULLS = ("category", "ignore")
_ADDED = ("uniques", "smallest", "suda", "dis_suda", "contributions")


@dataclass(frozen=True)
class _Call:
    """A checked call.

    Attributes:
        classes: the records and their keys.
        unknown: SQL condition on each key: its value is not known.
        largest: keys that a unique may have.
        fraction: of the population that is in the sample.
    """

    classes: Classes
    unknown: tuple[str, ...]
    largest: int
    fraction: float

    def numbered(self) -> str:
        """A query for the classes of one record, by number: keys and ``_place``, from 0 on."""
        order = ", ".join(f"{identifier(name)} ASC NULLS FIRST" for name in self.classes.keys)
        keys = self.classes.columns
        return (
            f"SELECT {keys}, row_number() OVER (ORDER BY {order}) - 1 AS _place "
            f"FROM (SELECT {keys} FROM {self.classes.relation.sql} GROUP BY ALL HAVING count(*) = 1)"
        )


def _read_call(
    session: Session, text: str | None, keys: list[str] | None, max_size: int | None, fraction: float | None,
    missing: str | None, nulls: str | None,
) -> _Call:  # fmt: skip
    if nulls not in _NULLS:
        raise SDCError("argument 'nulls' must be 'category' or 'ignore'")
    classes = Classes.read(session.cursor(), text, keys, "category", taken=_ADDED)
    if len(classes.keys) > MOST_KEYS:
        raise SDCError(f"argument 'keys' may name at most {MOST_KEYS} columns")
    if max_size is not None and max_size < 1:
        raise SDCError("argument 'max_size' must be a whole number of at least 1")
    if fraction is None or not 0 < fraction <= 1:
        raise SDCError("argument 'dis' must be the share of the population in the sample: above 0, at most 1")
    largest = min(len(classes.keys), max_size or len(classes.keys))
    if sum(math.comb(len(classes.keys), size) for size in range(1, largest + 1)) > _MOST_SETS:
        raise SDCError(f"more than {_MOST_SETS:,} combinations of keys: give max_size, such as max_size := 3")
    unknown = []
    for name in classes.keys:
        column, parts = identifier(name), []
        if nulls == "ignore":
            parts.append(f"{column} IS NULL")
        if missing is not None:
            parts.append(f"{column}::VARCHAR IS NOT DISTINCT FROM {literal(missing)}")
        unknown.append(f"({' OR '.join(parts)})" if parts else "false")
    return _Call(classes, tuple(unknown), largest, float(fraction))


def _search(session: Session, call: _Call) -> tuple[SpecialUniques, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The uniques of the classes of one record, in the order of their numbers, and their DIS scores."""
    keys = call.classes.keys
    with session.cursor() as cursor:
        _read_classes(cursor, call)
        columns = cursor.execute(
            f"SELECT {', '.join(f'_c{place}' for place in range(len(keys)))}, _single FROM _coded "
            "ORDER BY _single DESC, _place"
        ).fetchnumpy()
        row = cursor.execute("SELECT count(*) FROM _classes WHERE _records = 2").fetchone()
    pairs = 2 * row[0] if row else 0
    single = np.asarray(columns["_single"], dtype=bool)
    codes = np.array([columns[f"_c{place}"] for place in range(len(keys))], dtype=np.int32).reshape(len(keys), -1)
    found = special_uniques(codes, single, call.largest, shown_checkpoint())
    alone = int(single.sum())
    # Whose only difference to others is a value that is not known is no unique.
    known = (codes >= 0).all(axis=0)
    uniques = int((single & (known | (found.count > 0))).sum())
    chances = dis_scores(found.score, dis(uniques, pairs, call.fraction))
    kept = SpecialUniques(found.count[:alone], found.smallest[:alone], found.score[:alone], found.share[:alone])
    return kept, chances[:alone]


def _read_classes(cursor: duckdb.DuckDBPyConnection, call: _Call) -> None:
    """Temporary tables of the cursor: ``_classes`` with their records, ``_coded`` with a number for each value."""
    keys = call.classes.columns
    cursor.execute(
        f"CREATE TEMP TABLE _classes AS SELECT {keys}, count(*) AS _records "
        f"FROM {call.classes.relation.sql} GROUP BY ALL"
    )
    joins, codes = [], []
    for place, name in enumerate(call.classes.keys):
        column = identifier(name)
        joins.append(
            f"JOIN (SELECT {column} AS _v, (row_number() OVER () - 1)::INTEGER AS _n FROM _classes GROUP BY {column}) "
            f"_k{place} ON c.{column} IS NOT DISTINCT FROM _k{place}._v"
        )
        codes.append(f"CASE WHEN c._unknown{place} THEN -1 ELSE _k{place}._n END AS _c{place}")
    unknown = ", ".join(f"{condition} AS _unknown{place}" for place, condition in enumerate(call.unknown))
    alike = " AND ".join(f"c.{identifier(name)} IS NOT DISTINCT FROM s.{identifier(name)}" for name in call.classes.keys)
    cursor.execute(
        f"CREATE TEMP TABLE _coded AS SELECT {', '.join(codes)}, c._records = 1 AS _single, s._place "
        f"FROM (SELECT *, {unknown} FROM _classes) c {' '.join(joins)} LEFT JOIN ({call.numbered()}) s ON {alike}"
    )


_COLUMNS: Mapping[str, str] = {
    "place": "BIGINT", "uniques": "BIGINT", "smallest": "BIGINT", "suda": "DOUBLE", "dis_suda": "DOUBLE",
    "shares": "DOUBLE[]",
}  # fmt: skip


def plan_suda(
    session: Session, text: str | None, keys: list[str] | None, max_size: int | None, dis: float | None,
    missing: str | None, nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_suda``: the records of the source with their scores."""
    call = _read_call(session, text, keys, max_size, dis, missing, nulls)
    relation = call.classes.relation
    for column in relation.columns:
        if column.lower() in _ADDED:
            raise SDCError(f"a column called '{column}' is also one of the result; give it another name in a query")

    def make() -> pa.Table:
        found, chances = _search(session, call)
        some = np.flatnonzero(found.count)
        shares = pa.ListArray.from_arrays(
            np.arange(0, len(some) * len(call.classes.keys) + 1, len(call.classes.keys), dtype=np.int32),
            pa.array(100 * found.share[some].ravel()),
        )
        return pa.table(
            {
                "place": some, "uniques": found.count[some], "smallest": found.smallest[some],
                "suda": found.score[some], "dis_suda": chances[some], "shares": shares,
            }
        )  # fmt: skip

    names = ", ".join(literal(name) for name in call.classes.keys)
    shown = ", ".join(f"r.{identifier(name)}" for name in relation.columns)
    return Rows(
        make,
        f"""
        WITH _found AS MATERIALIZED (FROM {{rows}}),
        _scored AS (SELECT n.* EXCLUDE (_place), f.* FROM ({call.numbered()}) n JOIN _found f ON n._place = f.place)
        SELECT {shown}, coalesce(uniques, 0) AS uniques, smallest, coalesce(suda, 0) AS suda,
            coalesce(dis_suda, 0) AS dis_suda,
            CASE WHEN suda IS NOT NULL THEN map([{names}], shares) END AS contributions
        FROM {relation.sql} r LEFT JOIN _scored s ON {call.classes.alike("r", "s")}""",
    )


def plan_suda_contributions(
    session: Session, text: str | None, keys: list[str] | None, max_size: int | None, missing: str | None,
    nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_suda_contributions``: by key, what it has to do with all the scores."""
    call = _read_call(session, text, keys, max_size, 1.0, missing, nulls)

    def make() -> pa.Table:
        found, _ = _search(session, call)
        total = float(found.score.sum())
        parts = (found.share * found.score[:, None]).sum(axis=0)
        return pa.table(
            {
                "variable": list(call.classes.keys),
                "records": (found.share > 0).sum(axis=0),
                "contribution": pa.array(100 * parts / total if total > 0 else [None] * len(parts), pa.float64()),
            }
        )

    return Rows(make, "SELECT * FROM {rows} ORDER BY contribution DESC, variable")


FAMILY = Family(
    name="special_uniques",
    temporary=("special_uniques_tables.sql",),
    planners=(
        Planner(
            "sdc_suda", ("VARCHAR", "VARCHAR[]", "BIGINT", "DOUBLE", "VARCHAR", "VARCHAR"), plan_suda, _COLUMNS
        ),
        Planner(
            "sdc_suda_contributions", ("VARCHAR", "VARCHAR[]", "BIGINT", "VARCHAR", "VARCHAR"),
            plan_suda_contributions, {"variable": "VARCHAR", "records": "BIGINT", "contribution": "DOUBLE"},
        ),
    ),
)  # fmt: skip
