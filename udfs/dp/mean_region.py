"""The mean of several columns and the region around it: ``sdc_dp_mean_region`` and what it would have for noise."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.dp.calibration import gaussian_ratio
from sdcduck.methods.dp.mean_region import Region, Shape, compared, random_bound
from sdcduck.methods.dp.noise import KEPT, step_of, with_noise
from sdcduck.udfs.arguments import is_finite, needed, number, share, truth, whole, wrong
from sdcduck.udfs.dp.allocation import sql_number
from sdcduck.udfs.dp.arguments import Floats, Given, check_library, cost, numbers
from sdcduck.udfs.dp.ledger import Charge
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, source

_MOST_COLUMNS = 40
_FARTHEST = 1e100
"""A value counts as at most so far from the centre, so that no square overflows."""
_MOST_SPREAD = 1e60
_SAFE = 2.0**20
"""Standard deviations at which a coordinate is cut off where nothing else is, so that it is a number of steps."""


def matrix(text: str | None, count: int | None) -> Shape:
    """The covariance matrix of an argument: a list of lines.

    Raises:
        SDCError: it is none.
    """
    given = json.loads(text or "null")
    size = count or (len(given) if isinstance(given, list) else 0)
    what = f"be a list of {size or 'as many'} lists with as many numbers, such as [[1, 0.5], [0.5, 2]]"
    if not isinstance(given, list) or len(given) != size or not size:
        raise wrong("covariance", what)
    for line in given:
        if not isinstance(line, list) or len(line) != size or not all(map(is_finite, line)):
            raise wrong("covariance", what)
    found = np.array(given, dtype=np.float64)
    if not 0 < np.diag(found).min() <= np.diag(found).max() < _MOST_SPREAD:
        raise wrong("covariance", f"have variances above 0 and below {_MOST_SPREAD:g}")
    try:
        return Shape.of(found)
    except ValueError as problem:
        raise SDCError(f"argument 'covariance': {problem}") from None


@dataclass(frozen=True)
class _Call:
    """A checked call.

    Attributes:
        bound: how far from the centre records may lie, in standard deviations, or are taken to lie.
        clip: whether records beyond are drawn to it.
    """

    relation: Source
    columns: tuple[str, ...]
    shape: Shape
    center: Floats
    bound: float
    clip: bool
    epsilon: float
    delta: float
    confidence: float

    @property
    def ratio(self) -> float:
        """Sensitivity by sigma."""
        return gaussian_ratio(self.epsilon * KEPT, self.delta * KEPT)

    def sums(self, step: float) -> str:
        """SQL of the sums of the scaled coordinates, in whole steps."""
        names = [f"{self.relation.column(name, 'columns')}::DOUBLE" for name in self.columns]
        most = f"{_FARTHEST!r}::DOUBLE"
        apart = ", ".join(
            f"CASE WHEN isfinite({name}) THEN least(greatest({name} - {center!r}::DOUBLE, -{most}), {most}) "
            f"ELSE 0::DOUBLE END AS d{place}"
            for place, (name, center) in enumerate(zip(names, self.center.tolist(), strict=True))
        )
        lines = range(len(self.columns))
        scaled = ", ".join(
            " + ".join(
                f"{weight!r}::DOUBLE * d{at}" for at, weight in enumerate(self.shape.inverse_root[line].tolist())
            )
            + f" AS z{line}"
            for line in lines
        )
        length = " + ".join(f"z{line} * z{line}" for line in lines)
        bound, square = (f"{number!r}::DOUBLE" for number in (self.bound, self.bound**2))
        drawn = f"CASE WHEN {length} > {square} THEN {bound} / sqrt({length}) ELSE 1::DOUBLE END"
        values = [
            f"s * z{line}" if self.clip else f"least(greatest(z{line}, -{_SAFE!r}::DOUBLE), {_SAFE!r}::DOUBLE)"
            for line in lines
        ]
        totals = ", ".join(f"coalesce(sum(({value} / {step!r}::DOUBLE)::BIGINT), 0)::VARCHAR" for value in values)
        return (
            f"SELECT {totals} FROM (SELECT *, {drawn if self.clip else '1.0'} AS s FROM (SELECT {scaled} FROM "
            f"(SELECT {apart} FROM {self.relation.sql})))"
        )


def plan_dp_mean_region(
    session: Session, text: str | None, columns: list[str] | None, covariance: str | None, center: Given,
    radius: float | None, epsilon: float | None, delta: float | None, confidence: float | None, clip: bool | None,
    gamma: float | None,
) -> Rows:  # fmt: skip
    """``sdc_dp_mean_region``: a row a column, made when the statement runs."""
    spent = cost(epsilon, delta)
    held = share(confidence, "confidence", zero=False, one=False)
    clipping = truth(clip, "clip")
    check_library()
    with session.cursor() as cursor:
        relation = source(cursor, text, "source")
        names = relation.named(needed(columns, "columns", "name the columns of numbers"), "columns")
    for name in names:
        relation.number(name, "columns")
    if len(names) > _MOST_COLUMNS:
        raise wrong("columns", f"name at most {_MOST_COLUMNS} columns")
    shape = matrix(covariance, len(names))
    middle = numbers(needed(center, "center", "say around which public numbers records lie"), "center", len(names))
    assert middle is not None
    if clipping and gamma is not None:
        raise SDCError("argument 'gamma' is for clip := false, where records are not drawn to a radius")
    if not clipping and radius is not None:
        raise SDCError("argument 'radius' is for clip := true; without, 'gamma' says how far records may lie")
    if clipping:
        bound = number(radius, "radius", above=0, why="how far from the centre a record counts, in standard deviations")
    else:
        bound = random_bound(len(names), share(gamma, "gamma", zero=False, one=False))
    call = _Call(relation, names, shape, middle, bound, clipping, *spent, held)

    def make() -> pa.Table:
        listed = ", ".join(names)
        what = f"normal noise on the mean of {listed}" if clipping else f"no differential privacy: the mean of {listed}"
        # What is not cut off has no bound, and only an infinite epsilon is certain.
        charge = Charge(
            session, [relation], "replace", what, call.epsilon if clipping else math.inf, call.delta,
            call.ratio if clipping else None,
        )  # fmt: skip
        return _released(session, call, charge)

    return Rows(make)


def _released(session: Session, call: _Call, charge: Charge) -> pa.Table:
    """The mean with its noise: read, charged, and only then drawn."""
    size = len(call.columns)
    with reads(session.cursor()) as cursor:
        cursor.begin()  # the number of records and the sums are of one moment
        records = int(cursor.execute(f"SELECT count(*) FROM {call.relation.sql}").fetchall()[0][0])
        if not records:
            raise SDCError(f"{call.relation.described} has no records, and nothing has a mean")
        width = 2 * call.bound
        step = step_of(width, width / call.ratio, call.bound if call.clip else _SAFE)
        totals = cursor.execute(call.sums(step)).fetchall()[0]
    charge.write()
    # Rounding moves either record by half a step in each coordinate, and what is drawn to the radius by a last digit.
    sigma = (width * (1 + 1e-12) / step + math.sqrt(size)) / call.ratio
    noisy = with_noise(list(map(int, totals)), [sigma] * size)
    region = Region.around(
        call.shape, call.center, np.array([step * value / records for value in noisy]), sigma * step, records
    )
    rows = [
        {
            "column": name, "estimate": float(region.mean[place]), "noise_sd": float(region.noise[place]),
            "sd": float(region.deviations[place]), "ci_low": float(region.ends(call.confidence)[0][place]),
            "ci_high": float(region.ends(call.confidence)[1][place]),
            "ellipsoid": region.ellipsoid(call.confidence)[place].tolist(), "sigma": region.sigma,
        }
        for place, name in enumerate(call.columns)
    ]  # fmt: skip
    return table_of(rows, PLANNERS[0].columns)


def plan_dp_mean_region_noise(
    session: object, covariance: str | None, records: int | None, epsilon: float | None, delta: float | None,
    gamma: float | None, eta: Given, level: float | None,
) -> str:  # fmt: skip
    """``sdc_dp_mean_region_noise``: a row a way to release the mean; it reads no data."""
    shape = matrix(covariance, None)
    size = whole(records, "records", least=2)
    spent = cost(epsilon, delta)
    failing = share(gamma, "gamma", zero=False, one=False)
    if failing > 0.5:
        raise wrong("gamma", "be at most 0.5", "it is the chance that the promise fails")
    risk = share(level, "level", zero=False, one=False)
    against = numbers(eta, "eta", len(shape.eigenvalues))
    ways = compared(shape.covariance, size, failing, *spent)
    rows = ", ".join(
        f"({place}, '{way.name}', {sql_number(way.sensitivity)}, {sql_number(way.sigma)}, "
        f"{sql_number(ways[0].volume / way.volume)}, "
        f"{sql_number(None if against is None else way.power(against, risk))})"
        for place, way in enumerate(ways)
    )
    return (
        f"SELECT way, sensitivity, sigma, volume_ratio, power FROM (VALUES {rows}) "
        "t(place, way, sensitivity, sigma, volume_ratio, power) ORDER BY place"
    )


PLANNERS = planners(plan_dp_mean_region, plan_dp_mean_region_noise)
