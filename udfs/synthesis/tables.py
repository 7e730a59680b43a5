"""Synthesis of tables: planners and functions behind ``sql/synthesis_tables.sql``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Family, Rows, Scalar, Session
from sdcduck.methods.synthesis.draws import LARGEST_MEAN, draw_counts, random_bits
from sdcduck.methods.synthesis.laws import MODELS, Law, student_quantiles
from sdcduck.methods.synthesis.tau import (
    Histogram,
    Synthesis,
    Target,
    expected_size,
    expected_squared_distance,
    expected_tau,
    tune,
)
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import among, choice, needed, struct, whole, wrong
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.conditions import check_reads_columns_only
from sdcduck.udfs.engine_counts import source_of_counts
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.seeds import need_seed_or_secret, stream_of
from sdcduck.udfs.source import Source, source

MOST_RECORDS = 10**18
"""Of one cell: what fits into whole numbers of 64 bits."""
MOST_CELLS = 10**8
"""Cells that a table with pseudo-counts may have, empty ones counted: they are all made."""
_LARGEST_TAU_GRID = 100_000
_LARGEST_WHOLE = 2**53
_BLOCKS = 4096  # DuckDB takes a join by places of what it believes to be few records for a loop over all pairs
_WEIGHT_UNITS = 10**6  # a multinomial draws from whole numbers: a mean of 1 is so many of them


# --- random streams --------------------------------------------------------------------------------------------------


def _seeds(session: Session, seeds: pa.ChunkedArray, under_secret: pa.ChunkedArray) -> NDArray[np.int64]:
    """What the streams start from: the seed under the secret of the connection, or the seed alone if there is none.

    ``under_secret`` is false where the planner has found that there is no secret: looking for it takes longer than the
    draws of a chunk.
    """
    secret = session.secret() if under_secret[0].as_py() else None

    distinct = {seed: stream_of(secret, "synthesis", seed) for seed in seeds.unique().to_pylist()}
    if len(distinct) == 1:
        return np.full(len(seeds), next(iter(distinct.values())), dtype=np.int64)
    return np.array([distinct[seed] for seed in seeds.to_pylist()], dtype=np.int64)


def drawn_counts(
    session: Session, model: pa.ChunkedArray, mean: pa.ChunkedArray, sigma: pa.ChunkedArray, nu: pa.ChunkedArray,
    key: pa.ChunkedArray, replicate: pa.ChunkedArray, seed: pa.ChunkedArray, under_secret: pa.ChunkedArray,
) -> pa.Array:  # fmt: skip
    """Counts with the given means; the macros have checked all values. nu is 0 where a model has none."""
    values = draw_counts(
        model.to_numpy().astype(np.int8), mean.to_numpy(), sigma.to_numpy(), nu.to_numpy(),
        key.to_numpy(), replicate.to_numpy(), _seeds(session, seed, under_secret),
    )  # fmt: skip
    return pa.array(values, pa.int64())


def drawn_bits(
    session: Session, key: pa.ChunkedArray, number: pa.ChunkedArray, replicate: pa.ChunkedArray,
    seed: pa.ChunkedArray, under_secret: pa.ChunkedArray,
) -> pa.Array:  # fmt: skip
    """64 random bits for each number."""
    bits = random_bits(key.to_numpy(), number.to_numpy(), replicate.to_numpy(), _seeds(session, seed, under_secret))
    return pa.array(bits, pa.uint64())


def t_quantiles(session: Session, probability: pa.ChunkedArray, degrees: pa.ChunkedArray) -> pa.Array:
    """Quantiles of Student's t; infinite degrees of freedom are the normal law, NULL where there are none."""
    values = student_quantiles(*(column.to_numpy().astype(np.float64) for column in (probability, degrees)))
    return pa.array(values, pa.float64(), mask=~np.isfinite(values))


# --- cells -----------------------------------------------------------------------------------------------------------


def _numbers(text: str | None, argument: str) -> list[float]:
    """One number or a list of them, from its SQL text."""
    try:
        given = json.loads(text or "null")
        values = given if isinstance(given, list) else [given]
        assert values
        assert all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    except (AssertionError, ValueError):
        raise wrong(argument, "be a number or a list of numbers") from None
    return [float(value) for value in values]


def _whole(value: float, argument: str) -> int:
    if not value.is_integer() or abs(value) > _LARGEST_WHOLE:
        raise wrong(argument, "be a whole number")
    return int(value)


def _domains(text: str | None, by: list[str]) -> dict[str, list[str | None]]:
    """Lists of categories by column, from the JSON text of a struct."""
    example = "{'sex': ['f', 'm'], ..}"
    given = struct(text, "domains", example)
    if not all(isinstance(values, list) and values for values in given.values()):
        raise wrong("domains", "hold lists of categories", example)
    found: dict[str, list[str | None]] = {}
    for place, (column, values) in zip(among(given, "domains", by, "'dimensions'"), given.items(), strict=True):
        texts = [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]
        if len(set(texts)) < len(texts):
            raise SDCError(f"argument 'domains' names a category of '{column}' twice")
        found[by[place]] = texts
    return found


@dataclass(frozen=True)
class Cells:
    """The cells of a table to be synthesised, as SQL.

    Attributes:
        relation: where they come from.
        by: the columns, as they are called there.
        count: the column of the counts; None: rows are counted.
        domains: the categories of columns, where they are not those of the data.
        structural: a condition on the columns under which a cell cannot exist, or None.
    """

    relation: Source
    by: tuple[str, ...]
    count: str | None
    domains: dict[str, list[str | None]]
    structural: str | None

    @classmethod
    def read(
        cls, session: Session, text: str | None, by: list[str] | None, count: str | None, domains: str | None,
        structural: str | None, *, elsewhere: bool = True,
    ) -> Cells:  # fmt: skip
        """The cells that the arguments describe.

        Args:
            elsewhere: whether the records may be on another engine.

        Raises:
            SDCError: an unknown column, one named twice, or a condition that does not bind.
        """
        cursor = session.cursor()
        if elsewhere:
            relation = source_of_counts(session, text, "source", {"dimensions": by, "freq": [count]})
        else:
            relation = source(cursor, text, "source")
        needed(by, "dimensions", "name the columns whose combinations are the cells")
        names = relation.named(by, "dimensions", ("replicate", "count"))
        relation.check_names(names)
        if count is not None:
            if relation.column(count, "freq") in map(identifier, names):
                raise SDCError("argument 'freq' names a column of 'dimensions'")
            relation.number(count, "freq")
        if structural is not None:
            what = "argument 'structural_zeros' must be a condition on the columns of 'dimensions'"
            relation.check_condition(cursor, structural, names, what)
            check_reads_columns_only(cursor, structural, names, "structural_zeros")
        cells = cls(relation, names, count, _domains(domains, list(names)), structural)
        for name in cells.domains:
            try:
                cursor.execute(cells._domain(name)).fetchall()
            except duckdb.Error:
                raise SDCError(f"argument 'domains': a category of '{name}' is not of its type") from None
        return cells

    @property
    def columns(self) -> str:
        """The columns of the cells, quoted."""
        return ", ".join(identifier(name) for name in self.by)

    def counted(self) -> str:
        """A query for the cells with records: columns and ``_sdc_n``."""
        if self.count is None:
            n = self.relation.counted
        else:
            column = self.relation.number(self.count, "freq")
            n = f"sum({_whole_number(column)} * {self.relation.records})"
        # Two readings of a sum: DuckDB looks at HAVING and at the result.
        return (
            f"SELECT * REPLACE (CASE WHEN _sdc_n > {MOST_RECORDS} "
            f"THEN error('a cell has more than {MOST_RECORDS} records') ELSE _sdc_n END::BIGINT AS _sdc_n) "
            f"FROM (SELECT {self.columns}, {n} AS _sdc_n FROM {self.relation.sql} GROUP BY ALL) WHERE _sdc_n > 0"
        )

    def _domain(self, name: str) -> str:
        column = identifier(name)
        if name not in self.domains:
            return f"SELECT DISTINCT {column} FROM {self.relation.sql}"
        texts = ", ".join("NULL" if text is None else literal(text) for text in self.domains[name])
        return f"SELECT unnest([{texts}]::VARCHAR[])::{self.relation.type_of(name)} AS {column}"

    def _is_structural(self) -> str:
        return f"coalesce(({self.structural})::BOOLEAN, false)" if self.structural is not None else "false"

    def checked(self, rows: str) -> str:
        """The cells of ``rows`` (columns and ``_sdc_n``) that can exist; an error where one that cannot has records."""
        if self.structural is None:
            return f"SELECT {self.columns}, _sdc_n FROM ({rows})"
        return (
            f"SELECT {self.columns}, CASE WHEN _sdc_structural AND _sdc_n > 0 "
            "THEN error('a structural zero has records: see structural_zeros') ELSE _sdc_n END AS _sdc_n "
            f"FROM (SELECT *, {self._is_structural()} AS _sdc_structural FROM ({rows})) "
            "WHERE NOT _sdc_structural OR _sdc_n > 0"
        )

    def product(self) -> str:
        """A query for all combinations of categories: columns and ``_sdc_n``, 0 for empty cells."""
        with_domains = ", ".join(
            f"_d{place} AS MATERIALIZED ({self._domain(name)})" for place, name in enumerate(self.by)
        )
        size = " * ".join(f"(SELECT count(*) FROM _d{place})::DOUBLE" for place in range(len(self.by)))
        alike = " AND ".join(
            f"_all.{identifier(name)} IS NOT DISTINCT FROM _some.{identifier(name)}" for name in self.by
        )
        outside = " OR ".join(
            f"NOT EXISTS (FROM _d{self.by.index(name)} d WHERE d.{column} IS NOT DISTINCT FROM c.{column})"
            for name, column in ((name, identifier(name)) for name in self.domains)
        )
        inside = f"(SELECT count(*) FROM _counted c WHERE {outside}) > 0" if outside else "false"
        shown = ", ".join(f"_all.{identifier(name)}" for name in self.by)
        domains = ", ".join(f"_d{place}" for place in range(len(self.by)))
        advice = "take fewer columns, or alpha := 0"
        return f"""
            WITH _counted AS MATERIALIZED ({self.counted()}), {with_domains},
            _fits AS MATERIALIZED (SELECT CASE
                WHEN {size} > {MOST_CELLS}
                    THEN error('there are more than {MOST_CELLS} combinations of categories; {advice}')
                WHEN {inside} THEN error('a record has a category that is not in argument ''domains''')
                ELSE 1 END AS _sdc_one)
            SELECT {shown}, coalesce(_sdc_n, 0) AS _sdc_n
            FROM (SELECT {self.columns} FROM _fits, {domains} WHERE _sdc_one = 1) _all
            LEFT JOIN _counted _some ON {alike}"""

    def rows(self, *, empty: bool) -> str:
        """The cells that can exist: columns and ``_sdc_n``; the empty ones too if asked."""
        return self.checked(self.product() if empty else self.counted())

    def key(self) -> str:
        """SQL for what identifies a cell wherever it stands: a hash of its categories, columns by name."""
        texts = [f"{identifier(name)}::VARCHAR" for name in sorted(self.by, key=folded)]
        parts = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
        return f"md5_number_lower({parts})"

    def total(self, cursor: duckdb.DuckDBPyConnection) -> int:
        """K: the number of combinations that can exist."""
        if self.structural is None:
            sizes = [
                cursor.execute(f"SELECT count(*) FROM ({self._domain(name)})").fetchall()[0][0] for name in self.by
            ]
            return math.prod(sizes)
        return int(cursor.execute(f"SELECT count(*) FROM ({self.rows(empty=True)})").fetchall()[0][0])


# --- synthesis -------------------------------------------------------------------------------------------------------


def _law(model: str | None, sigma: float | None, nu: float | None) -> Law:
    """The law of the arguments; sigma has to be given where a model has one."""
    law = choice(model, "model", MODELS)
    if law == "poisson":
        if sigma not in (None, 0):
            raise SDCError("model := 'poisson' has no sigma")
        return Law("poisson")
    if sigma is None:
        raise SDCError(f"model := '{law}' needs sigma, e.g. sigma := 0.5 (see sdc_tau and sdc_tune)")
    return Law(law, sigma, nu)


def _synthesis(law: Law, alpha: float | None, m: int, size: float | None) -> Synthesis:
    """The parameters of a synthesis, which checks them itself; NULL is none that it takes."""
    return Synthesis(law, math.nan if alpha is None else alpha, m, math.nan if size is None else size)


def plan_synth_table(
    session: Session, text: str | None, by: list[str] | None, count: str | None, model: str | None,
    sigma: float | None, alpha: float | None, nu: float | None, m: int | None, size: float | None,
    domains: str | None, structural: str | None, seed: int | None, zeros: bool | None, records: bool | None,
) -> str:  # fmt: skip
    """``sdc_synth_table``: SQL that draws while it runs, chunk by chunk."""
    multinomial = model == "multinomial"
    if multinomial and (sigma not in (None, 0) or nu is not None):
        raise SDCError("model := 'multinomial' has neither sigma nor nu")
    choice(model, "model", (*MODELS, "multinomial"))
    law = Law("poisson") if multinomial else _law(model, sigma, nu)
    wanted = _synthesis(law, alpha, whole(m, "m", least=1), size)
    need_seed_or_secret(session, seed, "a synthesis can be undone")
    under_secret = session.secret() is not None
    cells = Cells.read(session, text, by, count, domains, structural)
    stream = f"{'NULL' if seed is None else seed}::BIGINT, {str(under_secret).lower()}"
    mean = f"CASE WHEN _sdc_n > 0 THEN {wanted.size!r}::DOUBLE * _sdc_n ELSE {wanted.alpha!r}::DOUBLE END"
    means = f"""
        SELECT {cells.columns}, {cells.key()} AS _sdc_key,
            CASE
                WHEN _sdc_mean > {LARGEST_MEAN!r} THEN error('a count is too large to be synthesised') ELSE _sdc_mean
            END AS _sdc_mean
        FROM (SELECT {cells.columns}, {mean} AS _sdc_mean FROM ({cells.rows(empty=wanted.alpha > 0)}))"""
    drawn = (_multinomial if multinomial else _independent)(cells, wanted, means, stream)
    if records:
        return f"""
            SELECT {cells.columns}, replicate
            FROM (SELECT {cells.columns}, replicate, _sdc_key, unnest(range("count")) AS _sdc_record FROM ({drawn}))
            ORDER BY replicate, _sdc_random_bits(_sdc_key, _sdc_record + 1, replicate, {stream}), _sdc_key,
                _sdc_record"""
    shown = "" if zeros else 'WHERE "count" > 0'
    return f'SELECT {cells.columns}, replicate, "count" FROM ({drawn}) {shown}'


def _independent(cells: Cells, wanted: Synthesis, means: str, stream: str) -> str:
    """Each cell from its own law."""
    law = wanted.law
    return f"""
        SELECT {cells.columns}, _sdc_key, replicate,
            _sdc_draw_counts({MODELS.index(law.model)}::TINYINT, _sdc_mean, {law.sigma!r}::DOUBLE,
                {law.nu or 0.0!r}::DOUBLE, _sdc_key, replicate, {stream}) AS "count"
        FROM ({means}), range(1, {wanted.m + 1}) replicates(replicate)"""


def _multinomial(cells: Cells, wanted: Synthesis, means: str, stream: str) -> str:
    """A fixed number of records, each put into a cell with probability in proportion to its mean.

    Cells are laid end to end in the order of their keys, each as long as its mean in millionths; a record falls where
    its random number says.
    """
    order = f"ORDER BY _sdc_key, {cells.columns} ROWS UNBOUNDED PRECEDING"
    return f"""
        WITH _laid AS MATERIALIZED (
            SELECT *, sum(_sdc_units) OVER ({order})::UHUGEINT AS _sdc_end
            FROM (SELECT *, round(_sdc_mean * {_WEIGHT_UNITS})::HUGEINT AS _sdc_units FROM ({means}))
        ), _total AS MATERIALIZED (
            SELECT coalesce(max(_sdc_end), 0) AS _sdc_all,
                coalesce(round(sum(_sdc_mean)), 0)::BIGINT AS _sdc_records
            FROM _laid
        ), _thrown AS (
            SELECT replicate,
                (_sdc_random_bits(0::UBIGINT, _sdc_record, replicate, {stream})::UHUGEINT * _sdc_all) >> 64 AS _sdc_at
            FROM _total, range(1, {wanted.m + 1}) replicates(replicate), range({_BLOCKS}) blocks(_sdc_block),
                range(_sdc_block + 1, _sdc_records + 1, {_BLOCKS}) numbers(_sdc_record)
        ), _hits AS (
            SELECT replicate, _sdc_end, count(*) AS _sdc_hits
            FROM _thrown ASOF JOIN (FROM _laid WHERE _sdc_units > 0) places ON _thrown._sdc_at < places._sdc_end
            GROUP BY ALL
        )
        SELECT {cells.columns}, _sdc_key, replicates.replicate, coalesce(_sdc_hits, 0) AS "count"
        FROM _laid CROSS JOIN range(1, {wanted.m + 1}) replicates(replicate)
        LEFT JOIN _hits
            ON _hits._sdc_end = _laid._sdc_end AND _hits.replicate = replicates.replicate AND _sdc_units > 0"""


# --- measures --------------------------------------------------------------------------------------------------------


def _histogram(
    session: Session, text: str | None, by: list[str] | None, count: str | None, cells: str | None,
    cells_total: int | None, domains: str | None, structural: str | None,
) -> Callable[[], Histogram]:  # fmt: skip
    """What reads the histogram of the original counts, when the statement runs."""
    if cells is not None:
        if by or domains or structural:
            raise SDCError("argument 'cells' is for a histogram: a column of counts, and how many cells have each")
        relation = source(session.cursor(), text, "source")
        n, numbers = relation.number(count, "freq"), relation.number(cells, "cells")
        query = f"SELECT {_whole_number(n)}, {_whole_number(numbers)} FROM {relation.sql}"
        return lambda: _read_histogram(session, query, cells_total)
    table = Cells.read(session, text, by, count, domains, structural)
    query = f"SELECT _sdc_n, count(*) FROM ({table.rows(empty=False)}) GROUP BY _sdc_n"
    if cells_total is not None:
        return lambda: _read_histogram(session, query, cells_total)
    return lambda: _read_histogram(session, query, table.total(session.cursor()))


def _whole_number(column: str) -> str:
    return (
        f"CASE WHEN {column} IS NULL OR {column} < 0 OR try_cast({column} AS BIGINT) IS DISTINCT FROM {column} "
        f"THEN error('a count is NULL, negative or no whole number') ELSE {column} END::BIGINT"
    )


def _read_histogram(session: Session, query: str, total: int | None) -> Histogram:
    rows = reads(session.cursor()).execute(query).fetchall()
    return Histogram.of([row[0] for row in rows], [row[1] for row in rows], total)


def plan_tau(
    session: Session, text: str | None, by: list[str] | None, count: str | None, cells: str | None,
    cells_total: int | None, domains: str | None, structural: str | None, model: str | None, sigma: str | None,
    nu: float | None, alpha: float | None, m: str | None, size: float | None, k: str | None, d: str | None,
    method: str | None,
) -> Rows:  # fmt: skip
    """``sdc_tau``: every combination of sigma, m, k and d."""
    sigmas: list[float | None] = [None] if sigma is None else list(_numbers(sigma, "sigma"))
    releases = [_whole(value, "m") for value in _numbers(m, "m")]
    ks = [_whole(value, "k") for value in _numbers(k, "k")]
    ds = _numbers(d, "d")
    if len(sigmas) * len(releases) * len(ks) * len(ds) > _LARGEST_TAU_GRID:
        raise SDCError(f"more than {_LARGEST_TAU_GRID} combinations of sigma, m, k and d")
    grid = [
        _synthesis(_law(model, dispersion, nu), alpha, copies, size) for dispersion, copies in product(sigmas, releases)
    ]
    read = _histogram(session, text, by, count, cells, cells_total, domains, structural)
    how = choice(method, "method", ("exact", "clt"))

    def make() -> pa.Table:
        histogram = read()
        rows = []
        for synthesis in grid:
            records, sd = expected_size(histogram, synthesis)
            distance = expected_squared_distance(histogram, synthesis)
            for at, width in product(ks, ds):
                tau = expected_tau(histogram, synthesis, at, width, how)
                rows.append(
                    {
                        "model": synthesis.law.model, "sigma": synthesis.law.sigma, "nu": synthesis.law.nu,
                        "alpha": synthesis.alpha, "m": synthesis.m, "k": at, "d": width, "tau1": tau.tau1,
                        "tau2": tau.tau2, "tau3": tau.tau3, "tau4": tau.tau4, "expected_records": records,
                        "sd_records": sd, "squared_distance": distance,
                    }
                )  # fmt: skip
        return table_of(rows, _TAU_COLUMNS)

    return Rows(make)


def plan_tune(
    session: Session, target: str | None, text: str | None, by: list[str] | None, count: str | None,
    cells: str | None, cells_total: int | None, domains: str | None, structural: str | None, parameter: str | None,
    model: str | None, sigma: float | None, nu: float | None, alpha: float | None, m: int | None,
    size: float | None, method: str | None,
) -> Rows:  # fmt: skip
    """``sdc_tune``: the mildest value of one parameter that fulfils the target."""
    wanted = Target.parse(target or "")
    chosen = choice(parameter, "parameter", ("sigma", "alpha", "m"))
    if parameter == "sigma" and sigma is None and model in MODELS and model != "poisson":
        sigma = 0.0
    if parameter == "sigma" and model == "poisson":
        raise SDCError("model := 'poisson' has no sigma")
    start = _synthesis(_law(model, sigma, nu), alpha, whole(m, "m", least=1), size)
    read = _histogram(session, text, by, count, cells, cells_total, domains, structural)

    def make() -> pa.Table:
        histogram = read()
        found = tune(histogram, start, wanted, chosen, method or "")
        value = {"sigma": found.law.sigma, "alpha": found.alpha, "m": float(found.m)}[chosen]
        row = {
            "parameter": chosen, "value": value, "target": target,
            "attained": wanted.attained(histogram, found, method or ""), "model": found.law.model,
            "sigma": found.law.sigma, "alpha": found.alpha, "m": found.m,
        }  # fmt: skip
        return table_of([row], _TUNE_COLUMNS)

    return Rows(make)


def plan_tau_observed(
    session: Session, original: str | None, synthetic: str | None, by: list[str] | None, count: str | None,
    synthetic_freq: str | None, m: int | None, cells_total: int | None, k: str | None, d: str | None,
) -> str:  # fmt: skip
    """``sdc_tau_observed``: the measures of a synthesis that has been drawn, in SQL."""
    cursor = session.cursor()
    cells = Cells.read(session, original, by, count, None, None)
    drawn = source(cursor, synthetic, "synthetic")
    n_hat = drawn.number(synthetic_freq, "synthetic_freq")
    check_kinds({"original": cells.relation, "synthetic": drawn}, cells.by, "dimensions")
    columns = ", ".join(drawn.column(name, "dimensions") for name in cells.by)
    alike = " AND ".join(
        f"o.{identifier(name)} IS NOT DISTINCT FROM s.{drawn.column(name, 'dimensions')}" for name in cells.by
    )
    if m is None:
        replicate = next((name for name in drawn.columns if folded(name) == "replicate"), None)
        largest = f"max({drawn.number(replicate, 'replicate')})" if replicate else "1"
        releases = f"(SELECT greatest(1, {largest}) FROM {drawn.sql})" if replicate else "1"
    else:
        releases = str(whole(m, "m", least=1))
    questions = [(_whole(at, "k"), width) for at, width in product(_numbers(k, "k"), _numbers(d, "d"))]
    if any(at < 0 or not 0 <= width < math.inf for at, width in questions):
        raise SDCError("k and d must be numbers that are not negative")
    asked = ", ".join(f"({at}::BIGINT, {width!r}::DOUBLE)" for at, width in questions)
    known = " * ".join(
        f"(SELECT count(*) FROM (SELECT DISTINCT {identifier(name)} FROM {cells.relation.sql}))" for name in cells.by
    )
    return f"""
        WITH _releases AS MATERIALIZED (SELECT {releases} AS m),
        _synthetic AS (
            SELECT {columns}, sum({_whole_number(n_hat)})::DOUBLE AS _sdc_sum FROM {drawn.sql} GROUP BY ALL
        ), _paired AS MATERIALIZED (
            SELECT coalesce(_sdc_n, 0) AS f, coalesce(_sdc_sum, 0) / (SELECT m FROM _releases) AS f_hat
            FROM ({cells.counted()}) o FULL JOIN _synthetic s ON {alike}
        ), _known AS MATERIALIZED (
            SELECT CASE WHEN total < (SELECT count(*) FROM _paired)
                THEN error('there are more cells than cells_total: give the number of all cells, empty ones included')
                ELSE total END AS total
            FROM (SELECT {known if cells_total is None else cells_total} AS total)
        ), _asked(k, d) AS (VALUES {asked}),
        _figures AS (
            -- Cells of neither table are zeros in both.
            SELECT k, d, any_value(total) AS cells, any_value(total) - count(*) AS zeros,
                count(*) FILTER (abs(f_hat - k) <= d + 1e-9) + CASE WHEN k <= d THEN zeros ELSE 0 END AS inside,
                count(*) FILTER (f = k) + CASE WHEN k = 0 THEN zeros ELSE 0 END AS originals,
                count(*) FILTER (f = k AND abs(f_hat - k) <= d + 1e-9)
                    + CASE WHEN k = 0 THEN zeros ELSE 0 END AS matches
            FROM _asked, _paired, _known GROUP BY k, d
        )
        SELECT k, d, cells::BIGINT AS cells, inside / cells AS tau1, originals / cells AS tau2,
            matches / nullif(originals, 0) AS tau3, matches / nullif(inside, 0) AS tau4
        FROM _figures ORDER BY k, d"""


_TAU_COLUMNS = {
    "model": "VARCHAR", "sigma": "DOUBLE", "nu": "DOUBLE", "alpha": "DOUBLE", "m": "BIGINT", "k": "BIGINT",
    "d": "DOUBLE", "tau1": "DOUBLE", "tau2": "DOUBLE", "tau3": "DOUBLE", "tau4": "DOUBLE",
    "expected_records": "DOUBLE", "sd_records": "DOUBLE", "squared_distance": "DOUBLE",
}  # fmt: skip
_TUNE_COLUMNS = {
    "parameter": "VARCHAR", "value": "DOUBLE", "target": "VARCHAR", "attained": "DOUBLE", "model": "VARCHAR",
    "sigma": "DOUBLE", "alpha": "DOUBLE", "m": "BIGINT",
}  # fmt: skip

FAMILY = Family(
    name="synthesis",
    temporary=("synthesis_tables.sql",),
    planners=(*planners(plan_synth_table, plan_tau, plan_tune, plan_tau_observed),),
    scalars=(
        Scalar(
            "_sdc_draw_counts",
            ("TINYINT", "DOUBLE", "DOUBLE", "DOUBLE", "UBIGINT", "BIGINT", "BIGINT", "BOOLEAN"),
            "BIGINT",
            drawn_counts,
            volatile=True,
        ),
        Scalar(
            "_sdc_random_bits",
            ("UBIGINT", "BIGINT", "BIGINT", "BIGINT", "BOOLEAN"),
            "UBIGINT",
            drawn_bits,
            volatile=True,
        ),
        Scalar("_sdc_t_quantile", ("DOUBLE", "DOUBLE"), "DOUBLE", t_quantiles),
    ),
)
