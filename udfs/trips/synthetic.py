"""Synthetic trips: planner of ``sdc_trips_synthesize``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.trips import network, ngrams
from sdcduck.udfs.arguments import choice, whole
from sdcduck.udfs.seeds import stream_of
from sdcduck.udfs.trips.columns import Cells

_MOST = 200_000_000
"""Cells of all trips that are drawn, of some 40 bytes each while they are."""
_MOST_LEARNED = 500_000_000
"""Cells of all beginnings of trips that a network learns from, of some ten bytes each."""
_LONGEST_CONTEXT = 6
_MOST_NEXT = 100


def plan_trips_synthesize(
    session: Session, text: str | None, n: int | None, k: int | None, context: int | None, start: str | None,
    trip: str | None, seq: str | None, cell: str | None, x: str | None, y: str | None, seed: int | None,
    engine: str | None, epochs: int | None, units: int | None,
) -> Rows:  # fmt: skip
    """``sdc_trips_synthesize``: trips that are drawn from what came after what."""
    known = Cells.read(session, text, trip, seq, cell)
    count = None if n is None else whole(n, "n", least=0, most=10**8)
    best = whole(k, "k", least=1, most=_MOST_NEXT, why="one of so many cells comes next")
    order = whole(context, "context", least=1, most=_LONGEST_CONTEXT)
    begin = choice(start, "start", ("uniform", "empirical"))
    chance = whole(seed, "seed", least=-(2**63), most=2**63 - 1)
    how = choice(engine, "engine", ("ngram", "bilstm"))
    rounds = whole(epochs, "epochs", least=1, most=10_000)
    width = whole(units, "units", least=2, most=4096)
    if how == "bilstm" and not network.is_there():
        raise SDCError("engine := 'bilstm' needs Keras: pip install 'sdcduck[trips]'")
    center = [f"min({known.relation.number(name, argument)}::DOUBLE)" if name is not None else "NULL::DOUBLE"
              for name, argument in ((x, "x"), (y, "y"))]  # fmt: skip

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            told = cursor.sql(
                f"SELECT {known.cell}::BIGINT AS cell, row_number() OVER (PARTITION BY {known.trip} "
                f"ORDER BY {known.by_place}) = 1 AS first FROM {known.rows} ORDER BY {known.trip}, {known.by_place}"
            ).to_arrow_table()
            centers = cursor.sql(
                f"SELECT {known.cell}::BIGINT AS cell, {center[0]} AS lon, {center[1]} AS lat FROM {known.rows} "
                "GROUP BY 1 ORDER BY 1"
            ).to_arrow_table()
        cells = centers["cell"].to_numpy()
        begins = np.flatnonzero(told["first"].to_numpy(zero_copy_only=False))
        if not len(begins):
            return pa.table({name: [] for name in ("trip", "seq", "cell", "lon", "lat", "truncated")})
        trips = np.searchsorted(cells, told["cell"].to_numpy())
        sizes = np.diff(np.append(begins, len(trips)))
        wanted = len(sizes) if count is None else count
        if wanted * int(sizes.max()) > _MOST and wanted * float(sizes.mean()) > _MOST / 2:
            raise SDCError(f"that would be some {wanted * float(sizes.mean()):.0f} cells: make 'n' smaller")
        stream, check = stream_of(session.secret(), "trips", chance), shown_checkpoint()
        model: ngrams.Predictor
        if how == "ngram":
            model = ngrams.fit(trips, sizes, cells=len(cells), order=order, k=best)
        else:
            if int((sizes - 1).sum()) * int(sizes.max()) > _MOST_LEARNED:
                raise SDCError(
                    "a network would learn from too many beginnings of trips: let sdc_trips_grid leave out long ones "
                    "(max_length), or give it a sample"
                )
            if sizes.max() < 2:
                raise SDCError("no trip has two cells: a network has nothing to learn")
            model = network.fit(
                trips, sizes, cells=len(cells), k=best, units=width, epochs=rounds, seed=stream % 2**63, check=check
            )
        # Whatever is drawn does not depend on how trips are called.
        starts = np.arange(len(cells)) if begin == "uniform" else np.sort(trips[begins])
        made = ngrams.draw(model, starts, np.sort(sizes), wanted, stream, check)
        ends = np.cumsum(made.sizes)
        place = np.arange(len(made.cells)) - np.repeat(ends - made.sizes, made.sizes)
        centre = centers.take(pa.array(made.cells))
        return pa.table(
            {
                "trip": np.repeat(np.arange(1, wanted + 1), made.sizes), "seq": place + 1, "cell": centre["cell"],
                "lon": centre["lon"], "lat": centre["lat"], "truncated": np.repeat(made.truncated, made.sizes),
            }
        )  # fmt: skip

    return Rows(make)


PLANNERS = (*planners(plan_trips_synthesize),)
