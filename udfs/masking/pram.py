"""Post randomisation: planners behind ``sql/pram_tables.sql``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import checkpoint, reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.keyed import Identities, uniforms
from sdcduck.methods.masking.pram import drawn_categories, even_matrix, invariant_matrix
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import needed, share, truth, wrong
from sdcduck.udfs.masking.keyed import held, masked, shown
from sdcduck.udfs.masking.records import listed
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, source

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_MOST_CATEGORIES = 2000  # of a column: the matrix has as many rows and columns
_NEAR = 1e-6  # how far the probabilities of a row may be from 1


@dataclass(frozen=True)
class _Law:
    """How categories change.

    Attributes:
        given: the table with the probabilities; None: made of `stays`.
        stays: the probability of each category to stay, or the only one.
        alpha: share of the change that is made, by the invariant matrix; None: the matrix is taken as it is.
        by: strata, each with a matrix of its own.
    """

    given: Source | None
    stays: tuple[float, ...]
    alpha: float | None
    by: tuple[str, ...]


def _law(
    session: Session, relation: Source, columns: Sequence[str], matrix: str | None, pd: str | None,
    invariant: bool | None, alpha: float | None, by: list[str] | None,
) -> _Law:  # fmt: skip
    keeps = truth(invariant, "invariant")
    if not keeps and alpha is not None:
        raise SDCError("argument 'alpha' is for invariant := true")
    strength = (0.5 if alpha is None else share(alpha, "alpha", zero=False)) if keeps else None
    strata = relation.named(by, "by")
    for name in strata:
        if name in columns:
            raise SDCError(f"column '{name}' is one of those that are changed, and can not be in 'by'")
    if matrix is None:
        return _Law(None, _diagonal(pd, columns), strength, strata)
    if pd is not None:
        raise SDCError("give 'matrix' or 'pd', and not both")
    given = source(session.cursor(), matrix, "matrix")
    for name in ("from", "to"):
        given.column(name, "matrix")
    given.number("p", "matrix")
    if len(columns) > 1:
        given.column("column", "matrix")
    return _Law(given, (), strength, strata)


def _diagonal(text: str | None, columns: Sequence[str]) -> tuple[float, ...]:
    """The probabilities to stay: one for all, or one for each category of the only column."""
    given = json.loads(text or "0.8")
    several = isinstance(given, list)
    if several and len(columns) > 1:
        raise wrong("pd", "be one number where several columns change")
    stays = tuple(given) if several else (given,)
    if not stays or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in stays):
        raise wrong("pd", "be the probability to stay, or list those of all categories in ascending order")
    return tuple(share(one, "pd") for one in stays)


# --- reading ---------------------------------------------------------------------------------------------------------


def _categories(relation: Source, name: str) -> str:
    """SQL of the categories of a column in ascending order, and the number of each, from 1 on."""
    quoted = identifier(name)
    return (
        f"(SELECT v, row_number() OVER (ORDER BY v) AS c FROM "
        f"(SELECT DISTINCT {quoted} AS v FROM {relation.sql} WHERE {quoted} IS NOT NULL))"
    )


def _strata(relation: Source, by: Sequence[str]) -> str:
    """SQL of the strata and the number of each, from 1 on."""
    names = ", ".join(map(identifier, by))
    different = f"(SELECT DISTINCT {names} FROM {relation.sql})"
    return f"(SELECT {names}, row_number() OVER (ORDER BY {names}) AS _sdc_s FROM {different})"


def _coded(relation: Source, names: Sequence[str], by: Sequence[str]) -> tuple[str, list[str]]:
    """SQL of the records with numbers for their categories and stratum, and the names of these."""
    codes = [f"_sdc_c{place}" for place in range(len(names))]
    shown_codes = [f"t{place}.c AS {code}" for place, code in enumerate(codes)]
    joins = [
        f"LEFT JOIN {_categories(relation, name)} t{place} ON s.{identifier(name)} = t{place}.v"
        for place, name in enumerate(names)
    ]
    if by:
        same = " AND ".join(f"s.{identifier(name)} IS NOT DISTINCT FROM b.{identifier(name)}" for name in by)
        joins.append(f"JOIN {_strata(relation, by)} b ON {same}")
    stratum = "b._sdc_s" if by else "1"
    return (
        f"(SELECT s.*, {', '.join(shown_codes)}, {stratum} AS _sdc_s FROM {relation.sql} s {' '.join(joins)})",
        [*codes, "_sdc_s"],
    )


def _texts(cursor: duckdb.DuckDBPyConnection, relation: Source, name: str) -> list[str]:
    """The categories of a column as text, in ascending order."""
    found = cursor.execute(f"SELECT v::VARCHAR FROM {_categories(relation, name)} ORDER BY c").fetchall()
    if len(found) > _MOST_CATEGORIES:
        raise SDCError(f"column '{name}' has {len(found)} categories, more than {_MOST_CATEGORIES}: recode it first")
    return [text for (text,) in found]


def _read_matrix(cursor: duckdb.DuckDBPyConnection, given: Source, column: str, texts: Sequence[str]) -> Matrix:
    """The matrix of a column among the categories that there are.

    Raises:
        SDCError: rows that do not add up to 1, two of one pair, categories without a row, or others to change to.
    """
    of_column = ""
    if any(name.lower() == "column" for name in given.columns):
        of_column = f"WHERE lower({given.column('column', 'matrix')}::VARCHAR) = lower({literal(column)})"
    names = (f"{given.column('from', 'matrix')}::VARCHAR", f"{given.column('to', 'matrix')}::VARCHAR")
    rows = cursor.execute(
        f"SELECT {', '.join(names)}, {given.number('p', 'matrix')}::DOUBLE FROM {given.sql} {of_column}"
    ).fetchall()
    place = {text: number for number, text in enumerate(texts)}
    if any(None in row for row in rows):
        raise SDCError("argument 'matrix': a row has NULL in 'from', 'to' or 'p'")
    chances = np.array([row[2] for row in rows], dtype=np.float64)
    if not (np.isfinite(chances).all() and (chances >= 0).all()):
        raise SDCError("argument 'matrix': 'p' must hold numbers from 0 to 1")
    if len({row[:2] for row in rows}) < len(rows):
        raise SDCError("argument 'matrix' has two rows with the same 'from' and 'to'")
    matrix = np.zeros((len(texts), len(texts)))
    for before, after, chance in rows:
        if before in place and chance > 0:
            if after not in place:
                raise SDCError(f"argument 'matrix' changes column '{column}' to a category that no record has")
            matrix[place[before], place[after]] = chance
    sums = matrix.sum(axis=1)
    if (sums == 0).any():
        raise SDCError(
            f"argument 'matrix' has no rows for {int((sums == 0).sum())} of {len(texts)} categories of '{column}'"
        )
    if (np.abs(sums - 1) > _NEAR).any():
        raise SDCError(
            f"argument 'matrix': the probabilities of {int((np.abs(sums - 1) > _NEAR).sum())} of {len(texts)} "
            f"categories of '{column}' do not add up to 1"
        )
    found: Matrix = matrix / sums[:, None]
    return found


def _matrices(
    law: _Law, base: Matrix | None, codes: Indices, strata: Indices, records: Indices, categories: int
) -> Iterator[tuple[Indices, Indices, Matrix]]:
    """For each stratum the rows of it, the categories that they have, and the matrix of these.

    codes, strata, records: int64 (n,); the last is how many records a row stands for. base: the given matrix, over all
    categories.
    """
    order = np.argsort(strata, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
        counts = np.bincount(codes[rows], records[rows], minlength=categories).astype(np.int64)
        there = np.arange(categories) if base is not None else np.flatnonzero(counts)
        if base is not None:
            matrix = base
        elif len(law.stays) == 1:
            matrix = even_matrix(np.full(len(there), law.stays[0]))
        else:
            matrix = even_matrix(np.array(law.stays)[there])
        yield rows, there, matrix if law.alpha is None else invariant_matrix(matrix, counts[there], law.alpha)


def _base(cursor: duckdb.DuckDBPyConnection, law: _Law, relation: Source, name: str) -> tuple[list[str], Matrix | None]:
    """The categories of a column, and its matrix where one is given."""
    texts = _texts(cursor, relation, name)
    if len(law.stays) > 1 and len(law.stays) != len(texts):
        raise SDCError(f"argument 'pd' lists {len(law.stays)} probabilities, and '{name}' has {len(texts)} categories")
    return texts, None if law.given is None else _read_matrix(cursor, law.given, name, texts)


# --- the functions ---------------------------------------------------------------------------------------------------


def plan_pram(
    session: Session, text: str | None, columns: list[str] | None, matrix: str | None, pd: str | None,
    invariant: bool | None, alpha: float | None, by: list[str] | None, id: str | None, nulls: str | None,
    seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_pram``: a number of (0, 1) of each record decides what becomes of each of its categories."""
    relation = source(session.cursor(), text, "source")
    call = masked(relation, needed(columns, "columns", "name the columns of categories"), id, nulls, seed)
    law = _law(session, relation, call.names, matrix, pd, invariant, alpha, by)

    def make() -> pa.Table:
        check = checkpoint()
        rows_of, codes_of = _coded(relation, call.names, law.by)
        with reads(session.cursor()) as cursor:
            bases = [_base(cursor, law, relation, name) for name in call.names]
            found = held(cursor, call, codes_of, rows=rows_of)
        drawn = np.zeros((len(found.known), len(call.names)), np.int64)
        strata = found.values[:, -1].astype(np.int64)
        for place, (name, (texts, base)) in enumerate(zip(call.names, bases, strict=True)):
            check()
            rows = np.flatnonzero(~found.missing[:, place])
            codes = found.values[rows, place].astype(np.int64) - 1
            stream = call.stream(session, "PRAM", name)
            drawn[rows, place] = 1 + _drawn(law, base, codes, strata[rows], len(texts), found.known.some(rows), stream)
        return pa.table({"place": np.arange(len(drawn)), "codes": listed(drawn)})

    lists = ", ".join(
        f"(SELECT list(v ORDER BY c) FROM {_categories(relation, name)}) AS l{place}"
        for place, name in enumerate(call.names)
    )
    changed = {name: f"k.l{place}[m.codes[{place + 1}]]" for place, name in enumerate(call.names)}
    return Rows(make, shown(call, changed, between=f" CROSS JOIN (SELECT {lists}) k"))


def _drawn(
    law: _Law, base: Matrix | None, codes: Indices, strata: Indices, categories: int, known: Identities, stream: int
) -> Indices:
    """What each record becomes, within its stratum."""
    chance, drawn = uniforms(known, stream), np.empty_like(codes)
    if len(codes):
        for rows, there, matrix in _matrices(law, base, codes, strata, np.ones_like(codes), categories):
            within = np.searchsorted(there, codes[rows])
            drawn[rows] = there[drawn_categories(within, matrix, chance[rows])]
    return drawn


def plan_pram_matrix(
    session: Session, text: str | None, columns: list[str] | None, matrix: str | None, pd: str | None,
    invariant: bool | None, alpha: float | None, by: list[str] | None,
) -> Rows:  # fmt: skip
    """``sdc_pram_matrix``: the probabilities that ``sdc_pram`` with the same arguments changes categories with."""
    relation = source(session.cursor(), text, "source")
    call = masked(relation, needed(columns, "columns", "name the columns of categories"), None, "keep", 0)
    law = _law(session, relation, call.names, matrix, pd, invariant, alpha, by)
    for name in law.by:
        if name.lower() in ("column", "from", "to", "p"):
            raise SDCError(f"a column called '{name}' is also one of the result; give it another name in a query")

    def make() -> pa.Table:
        rows_of, codes_of = _coded(relation, call.names, law.by)
        empty = table_of([], _MATRIX_COLUMNS)
        parts = [empty]
        with reads(session.cursor()) as cursor:
            for place, name in enumerate(call.names):
                texts, base = _base(cursor, law, relation, name)
                code, stratum = codes_of[place], codes_of[-1]
                codes, strata, counts = (
                    column.astype(np.int64)
                    for column in cursor.execute(
                        f"SELECT {code} - 1 AS c, {stratum} AS s, count(*) AS n FROM {rows_of} "
                        f"WHERE {code} IS NOT NULL GROUP BY ALL"
                    ).fetchnumpy().values()
                )  # fmt: skip
                if not len(codes):
                    continue
                named = np.array(texts, dtype=np.object_)
                for rows, there, chances in _matrices(law, base, codes, strata, counts, len(texts)):
                    size = len(there)
                    columns = (
                        np.full(size**2, name, np.object_), np.full(size**2, strata[rows[0]]),
                        named[np.repeat(there, size)], named[np.tile(there, size)], chances.reshape(-1),
                    )  # fmt: skip
                    parts.append(pa.table(dict(zip(_MATRIX_COLUMNS, columns, strict=True)), empty.schema))
        return pa.concat_tables(parts)

    within = "".join(f"b.{identifier(name)}, " for name in law.by)
    joined = f"JOIN {_strata(relation, law.by)} b ON b._sdc_s = m.stratum" if law.by else ""
    return Rows(make, f'SELECT {within}m."column", m."from", m."to", m.p FROM {{rows}} m {joined}')


_MATRIX_COLUMNS = {"column": "VARCHAR", "stratum": "BIGINT", "from": "VARCHAR", "to": "VARCHAR", "p": "DOUBLE"}


def plan_pram_odds(session: Session, text: str | None, x: str | None, matrix: str | None) -> str:
    """``sdc_pram_odds``: shares of the source and probabilities of the matrix, joined."""
    relation = source(session.cursor(), text, "source")
    value = f"{relation.column(x, 'x')}::VARCHAR"
    given = source(session.cursor(), matrix, "matrix")
    before, after = (f"{given.column(name, 'matrix')}::VARCHAR" for name in ("from", "to"))
    chance = f"{given.number('p', 'matrix')}::DOUBLE"
    unlike = "sdc_pram_odds: argument 'matrix': the probabilities of a category do not add up to 1"
    return f"""
        WITH shares AS (
            SELECT value, n / sum(n) OVER () AS pi
            FROM (SELECT {value} AS value, count(*) AS n FROM {relation.sql} GROUP BY ALL)
            WHERE value IS NOT NULL
        ),
        chances AS (SELECT {before} AS f, {after} AS t, {chance} AS p FROM {given.sql}),
        sums AS (SELECT f, sum(p) AS p FROM chances GROUP BY f),
        checked AS (
            SELECT
                CASE
                    WHEN (SELECT count(*) FROM chances) > (SELECT count(*) FROM (SELECT DISTINCT f, t FROM chances))
                        THEN error('sdc_pram_odds: argument ''matrix'' has two rows with the same ''from'' and ''to''')
                    WHEN (SELECT count(*) FROM chances WHERE NOT coalesce(p >= 0 AND isfinite(p), false)) > 0
                        THEN error('sdc_pram_odds: argument ''matrix'': ''p'' must hold numbers from 0 to 1')
                    WHEN (SELECT max(coalesce(abs(p - 1), 1)) FROM shares LEFT JOIN sums ON f = value) > {_NEAR}
                        THEN error({literal(unlike)})
                    ELSE true
                END AS fine
        ),
        became AS (
            SELECT t, coalesce(sum(p * pi) FILTER (f = t), 0) AS own, coalesce(sum(p * pi) FILTER (f <> t), 0) AS others
            FROM chances JOIN shares ON f = value GROUP BY t
        )
        SELECT value, pi,
            CASE WHEN others > 0 THEN own / others WHEN own > 0 THEN 'infinity'::DOUBLE END AS posterior_odds
        FROM shares LEFT JOIN became ON t = value, checked WHERE fine ORDER BY value"""


PLANNERS = (
    planner(plan_pram, {"place": "BIGINT", "codes": "BIGINT[]"}),
    planner(plan_pram_matrix, _MATRIX_COLUMNS),
    planner(plan_pram_odds),
)
