"""Principal components with and without privacy: planners behind ``sql/dp_pca_tables.sql``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.dp.mean_test import MODES
from sdcduck.methods.dp.moments import GRID, Moments, mirrored, upper
from sdcduck.methods.dp.noise import Released
from sdcduck.methods.dp.pca import APPROXIMATE, MECHANISMS, Mechanism, components, components_told, utility
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import choice, number, share, whole, wrong
from sdcduck.udfs.dp.arguments import epsilon_of
from sdcduck.udfs.dp.bounded import (
    NULLS,
    Column,
    bounds_of,
    columns_of,
    costs,
    moments_of,
    pairs_of,
)
from sdcduck.udfs.dp.ledger import NEIGHBOURS, Charge
from sdcduck.udfs.dp.means import enough
from sdcduck.udfs.source import Source, source
from sdcduck.udfs.sums import total

_SCALING = "{'income': [30000, 20000], ..}"
_MOST_RECORDS = 10**12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Scaled:
    """Columns in standard units that are public.

    Attributes:
        columns: each 1 unit wide.
        widths: of the bounds, in standard units.
    """

    columns: tuple[Column, ...]
    widths: Floats

    @classmethod
    def read(cls, names: Sequence[str], bounds: str | None, scaling: str | None) -> _Scaled:
        between = bounds_of(names, bounds)
        given = pairs_of(names, scaling, "scaling", _SCALING)
        columns, widths = [], []
        for name in names:
            low, high = between[name]
            centre, sd = given.get(name, (low + (high - low) / 2, (high - low) / 2))
            if not sd > 0:
                raise wrong("scaling", f"have a standard deviation above 0 for column '{name}'", "[mean, sd]")
            if not low <= centre <= high:
                raise wrong("scaling", f"have a mean between the bounds for column '{name}'")
            columns.append(Column.one_wide(name, between[name], centre))
            widths.append((high - low) / sd)
            if not 0 < widths[-1] ** 2 < math.inf:
                raise wrong("scaling", f"have a standard deviation of the size of the bounds for column '{name}'")
        return cls(tuple(columns), np.array(widths))

    @property
    def longest(self) -> float:
        """How long a record in standard units is at most."""
        ends = np.array([max(-column.least, column.most) / GRID for column in self.columns])
        return float(np.sqrt(((ends * self.widths) ** 2).sum()))

    @property
    def scores(self) -> list[str]:
        """SQL for the numbers in standard units, between their bounds; NULL is the middle of these."""
        made = []
        for column, width in zip(self.columns, self.widths.tolist(), strict=True):
            x = f"coalesce({identifier(column.name)}::DOUBLE, {column.low + (column.high - column.low) / 2!r})"
            inside = f"least(greatest({x}, {column.low!r}), {column.high!r})"
            made.append(f"(({inside} - {column.centre!r}) / {column.unit!r} * {width!r})")
        return made

    def second(self, moments: Moments, records: int | None = None) -> Floats:
        """The mean of products, in standard units."""
        return moments.second(records) * np.outer(self.widths, self.widths)


@dataclass(frozen=True)
class _Plan:
    """A checked choice of mechanism, but for the number of records."""

    mechanism: str
    epsilon: float
    delta: float | None
    norm: float | None
    rule: str
    neighbours: str

    @classmethod
    def read(
        cls, mechanism: str | None, epsilon: float | None, delta: float | None, norm: float | None, mode: str | None,
        neighbours: str | None,
    ) -> _Plan:  # fmt: skip
        name = choice(mechanism, "mechanism", MECHANISMS)
        cost = epsilon_of(epsilon)
        if delta is not None and name not in APPROXIMATE:
            raise SDCError(f"argument 'delta' is for mechanism := {' and '.join(map(repr, APPROXIMATE))}")
        part = None if delta is None else share(delta, "delta", zero=False, one=False)
        if norm is not None and name != "analyze_gauss":
            raise SDCError("argument 'norm' is for mechanism := 'analyze_gauss'")
        length = None if norm is None else number(norm, "norm", above=0)
        classic = choice(mode, "mode", MODES) == "literal"
        if classic and name == "analyze_gauss" and cost > 1:
            raise wrong("epsilon", "be at most 1 with mode := 'literal'", "the classic rule is not proven beyond")
        rule = "classic" if classic else "analytic"
        return cls(name, cost, part, length, rule, choice(neighbours, "neighbours", NEIGHBOURS))

    def length(self, scaled: _Scaled) -> float:
        """Of a record at most: no larger than the bounds allow anyway."""
        return min(self.norm or math.inf, scaled.longest)

    def of(self, scaled: _Scaled, records: int) -> Mechanism:
        """The mechanism for so many records."""
        needs_delta = self.mechanism in APPROXIMATE
        delta = (1 / records if self.delta is None else self.delta) if needs_delta else 0.0
        return Mechanism(
            self.mechanism,
            scaled.widths,
            self.length(scaled),
            records,
            self.epsilon,
            delta,
            self.neighbours,
            self.rule,
        )


def plan_pca(
    session: Session, text: str | None, columns: list[str] | None, k: int | None, mechanism: str | None,
    epsilon: float | None, delta: float | None, bounds: str | None, scaling: str | None, norm: float | None,
    mode: str | None, neighbours: str | None, total: int | None, nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_pca``: of the records as they are, or of a noisy matrix."""
    relation = source(session.cursor(), text, "source")
    names = columns_of(relation, columns)
    shown = len(names) if k is None else whole(k, "k", least=1, most=len(names))
    gaps = choice(nulls, "nulls", NULLS)
    if mechanism == "none":
        for value, name in ((epsilon, "epsilon"), (delta, "delta"), (norm, "norm"), (total, "total")):
            if value is not None:
                raise SDCError(f"argument '{name}' is for a private mechanism, and mechanism := 'none' has no noise")
        scaled = None if bounds is None and scaling is None else _Scaled.read(names, bounds, scaling)
        return Rows(lambda: _table(names, *components(_second(session, relation, names, scaled, gaps)), shown, False))
    choice(mechanism, "mechanism", ("none", *MECHANISMS))
    plan = _Plan.read(mechanism, epsilon, delta, norm, mode, neighbours)
    scaled = _Scaled.read(names, bounds, scaling)
    size = None if total is None else whole(total, "total", least=2, most=_MOST_RECORDS)
    if size is None and plan.neighbours == "add_remove":
        raise wrong("total", "say how many records there are", "with neighbours := 'add_remove' it is not told")
    costs(plan.epsilon, plan.delta)
    return Rows(lambda: _private(session, relation, scaled, plan, size, gaps, shown))


def _private(
    session: Session, relation: Source, scaled: _Scaled, plan: _Plan, size: int | None, nulls: str, shown: int
) -> pa.Table:
    """Components of the matrix with noise."""
    names = [column.name for column in scaled.columns]
    what = f"{', '.join(names)}: covariance for components, {plan.mechanism}"
    Charge(session, [relation], plan.neighbours, what, plan.epsilon)  # what must not be released need not be read
    units = dict(zip(names, scaled.widths.tolist(), strict=True))
    shortened = (plan.length(scaled), units) if plan.norm is not None else None
    with reads(session.cursor()) as cursor:
        moments = moments_of(cursor, relation, scaled.columns, nulls, shortened=shortened).get(None)
    if plan.neighbours == "replace":
        found = enough(moments, 2)
        if size is not None and size != found.n:
            raise wrong("total", "be the number of records", "with neighbours := 'replace' it is public")
    pairs = len(upper(len(names)))
    found = moments or Moments(0, (0,) * len(names), (0,) * pairs)
    mechanism = plan.of(scaled, found.n if size is None else size)
    Charge(session, [relation], plan.neighbours, what, plan.epsilon, mechanism.delta, mechanism.ratio).write()
    noisy = mechanism.noisy(scaled.second(found, mechanism.records), Released())
    return _table(names, *components(noisy), shown, True)


def _second(session: Session, relation: Source, names: Sequence[str], scaled: _Scaled | None, nulls: str) -> Floats:
    """The matrix as it is: in public units, or in those that the data have.

    Nobody adds noise to it, so numbers are not put on the grid of the private one. Sums are the same whatever the
    number of threads: where two eigenvalues are nearly equal, the last digit decides which signs loadings have.
    """
    quoted = [identifier(name) for name in names]
    with reads(session.cursor()) as cursor:
        wild = " OR ".join(f"NOT isfinite({name}::DOUBLE)" for name in quoted)
        missing = " OR ".join(f"{name} IS NULL" for name in quoted)
        counted = f"count(*), count(*) FILTER (coalesce({wild}, false)), count(*) FILTER ({missing})"
        rows, infinite, gaps = cursor.execute(f"SELECT {counted} FROM {relation.sql}").fetchall()[0]
        if infinite or (gaps and scaled is None):
            raise SDCError("a record has NULL, NaN or an infinite number in one of the columns")
        if gaps and nulls == "refuse":
            raise SDCError(
                "a record has NULL in one of the columns: nulls := 'middle' takes it for the middle of its bounds"
            )
        if rows < 2:
            raise SDCError("there are fewer than 2 records")
        scores = _standard(cursor, relation, names, rows) if scaled is None else scaled.scores
        largest = np.ones(len(scores))
        if scaled is not None:  # sums count in steps: these are to be small beside the numbers, not the bounds
            told = cursor.execute(f"SELECT {', '.join(f'max(abs({one}))' for one in scores)} FROM {relation.sql}")
            largest = np.array(told.fetchall()[0])
            largest[largest == 0] = 1.0
            scores = [f"({one} / {size!r})" for one, size in zip(scores, largest.tolist(), strict=True)]
        products = ", ".join(total(f"{scores[i]} * {scores[j]}") for i, j in upper(len(scores)))
        second: Floats = mirrored(cursor.execute(f"SELECT {products} FROM {relation.sql}").fetchall()[0]) / int(rows)
    if scaled is None:  # 1, but for rounding
        largest = 1 / np.sqrt(np.diag(second))
    second *= np.outer(largest, largest)
    return second


def _standard(cursor: duckdb.DuckDBPyConnection, relation: Source, names: Sequence[str], rows: int) -> list[str]:
    """SQL for the numbers in the standard units of the data.

    Raises:
        SDCError: a column has none.
    """
    quoted = [f"{identifier(name)}::DOUBLE" for name in names]
    ends = cursor.execute(f"SELECT {', '.join(f'min({x}), max({x})' for x in quoted)} FROM {relation.sql}").fetchall()[
        0
    ]
    shares = []
    for name, x, low, high in zip(names, quoted, ends[::2], ends[1::2], strict=True):
        if not math.isfinite(high - low):
            raise SDCError(f"the numbers of column '{name}' lie too far apart: divide them by 1e10, say")
        if not high > low:
            raise SDCError(f"column '{name}' is the same in all records, and has no standard units: leave it out")
        shares.append(f"(({x} - {low!r}) / {high - low!r})")
    sums = cursor.execute(f"SELECT {', '.join(map(total, shares))} FROM {relation.sql}").fetchall()[0]
    around = [f"({share} - {found / rows!r})" for share, found in zip(shares, sums, strict=True)]
    squares = cursor.execute(
        f"SELECT {', '.join(total(f'{one} * {one}') for one in around)} FROM {relation.sql}"
    ).fetchall()[0]
    return [f"({one} / {math.sqrt(found / rows)!r})" for one, found in zip(around, squares, strict=True)]


def _table(names: Sequence[str], values: Floats, rows: Floats, shown: int, private: bool) -> pa.Table:
    """A row for each component and column."""
    width = len(names)
    return pa.table(
        {
            "component": np.repeat(np.arange(1, shown + 1), width), "column_name": list(names) * shown,
            "loading": rows[:shown].ravel(), "eigenvalue": np.repeat(values[:shown], width),
            "private": [private] * (shown * width),
        }
    )  # fmt: skip


def plan_pca_noise(
    session: Session, bounds: str | None, total: int | None, mechanism: str | None, epsilon: float | None,
    delta: float | None, scaling: str | None, norm: float | None, mode: str | None, neighbours: str | None,
) -> Rows:  # fmt: skip
    """``sdc_pca_noise``: of arguments alone."""
    given = json.loads(bounds or "null")
    if not isinstance(given, dict) or not given:
        raise wrong("bounds", "give two numbers for each column", "such as {'age': [0, 100]}")
    names = tuple(given)
    scaled = _Scaled.read(names, bounds, scaling)
    plan = _Plan.read(mechanism, epsilon, delta, norm, mode, neighbours)
    made = plan.of(scaled, whole(total, "total", least=2, most=_MOST_RECORDS))

    def make() -> pa.Table:
        scales = made.scales()
        pairs = upper(len(names))
        values = np.array([scales[pair] for pair in pairs])
        return pa.table(
            {
                "column_1": [names[i] for i, _ in pairs], "column_2": [names[j] for _, j in pairs],
                "noise": ["normal" if made.is_normal else "laplace"] * len(pairs), "scale": values,
                "standard_error": values * (1 if made.is_normal else math.sqrt(2)),
            }
        )  # fmt: skip

    return Rows(make)


def plan_pca_utility(
    session: Session, text: str | None, loadings: str | None, columns: list[str] | None, k: int | None,
    bounds: str | None, scaling: str | None, nulls: str | None,
) -> Rows:  # fmt: skip
    """``sdc_pca_utility``: it tells of the data."""
    relation = source(session.cursor(), text, "source")
    names = columns_of(relation, columns)
    told = source(session.cursor(), loadings, "loadings")
    for name in ("component", "column_name", "loading"):
        told.column(name, "loadings")
    scaled = None if bounds is None and scaling is None else _Scaled.read(names, bounds, scaling)
    gaps = choice(nulls, "nulls", NULLS)
    most = None if k is None else whole(k, "k", least=1, most=len(names))

    def make() -> pa.Table:
        with session.cursor() as cursor:
            rows = cursor.execute(
                f"SELECT component, column_name, loading FROM {told.sql} ORDER BY component"
            ).fetchall()
        vectors = vectors_of(rows, names)
        matrix = _second(session, relation, names, scaled, gaps)
        count = most or components_told(matrix)
        if len(vectors) < count:
            raise wrong("loadings", f"have {count} components", f"it has {len(vectors)}")
        kept = vectors[:count]
        q = utility(matrix, kept)
        best = components(matrix)[0]
        return pa.table(
            {
                "k": [count], "q": [q], "variance": [q * best[:count].sum() / best.sum()],
                "best_variance": [best[:count].sum() / best.sum()],
            }
        )  # fmt: skip

    return Rows(make)


def vectors_of(rows: Sequence[tuple[int, str, float]], names: Sequence[str]) -> Floats:
    """Loadings as unit vectors in the order of the columns."""
    place = {folded(name): number for number, name in enumerate(names)}
    found: dict[int, Mapping[int, float]] = {}
    for component, name, loading in rows:
        if folded(str(name)) not in place:
            raise unknown("column", str(name), names, where="the columns of the call (argument 'loadings')")
        found.setdefault(component, {})
        found[component] = {**found[component], place[folded(str(name))]: loading}
    made = np.array([[one.get(number, np.nan) for number in range(len(names))] for one in found.values()], dtype=float)
    if not len(made) or not np.isfinite(made).all():
        raise wrong("loadings", "have a number for each component and column")
    if not np.allclose(made @ made.T, np.eye(len(made)), atol=1e-6):
        raise wrong("loadings", "be those of sdc_pca: of length 1, and at right angles")
    return made


PLANNERS = planners(plan_pca, plan_pca_noise, plan_pca_utility)
