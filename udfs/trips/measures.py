"""What synthetic trips are like, and what they give away: planners of ``sdc_trips_quality``, ``_leakage``."""

from __future__ import annotations

from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.udfs.arguments import choice, whole
from sdcduck.udfs.trips.columns import Cells

_LONGEST_PIECE = 50


def plan_trips_quality(
    session: Session, text: str | None, distance: str | None, trip: str | None, seq: str | None, cell: str | None,
    x: str | None, y: str | None,
) -> str:  # fmt: skip
    """``sdc_trips_quality``: lengths, steps and visits."""
    known = Cells.read(session, text, trip, seq, cell)
    how = choice(distance, "distance", ("km", "plane"))
    at = tuple(f"{known.relation.number(name, argument)}::DOUBLE" for name, argument in ((x, "x"), (y, "y")))
    between = "_sdc_km_between" if how == "km" else "_sdc_plane_distance"
    return f"""
        WITH _sdc_steps AS (
            SELECT trip, cell, CASE WHEN isfinite(x0 + y0 + x + y) THEN {between}(x0, y0, x, y) END AS d
            FROM (
                SELECT {known.trip} AS trip, {known.cell} AS cell, {at[0]} AS x, {at[1]} AS y,
                    lag({at[0]}) OVER _sdc_order AS x0, lag({at[1]}) OVER _sdc_order AS y0
                FROM {known.rows} WINDOW _sdc_order AS (PARTITION BY {known.trip} ORDER BY {known.by_place})
            )
        ), _sdc_trips AS (
            SELECT coalesce(sum(d), 0) AS length, coalesce(max(d), 0) AS longest, count(DISTINCT cell) AS locs,
                sum(d) AS steps, count(d) AS step_count, count(*) AS visits
            FROM _sdc_steps GROUP BY trip
        )
        SELECT count(*) AS trips, coalesce(sum(visits), 0)::BIGINT AS visits, avg(length) AS d_sl,
            sum(steps) / nullif(sum(step_count), 0) AS delta_r, avg(longest) AS d_max, avg(locs) AS n_locs,
            sum(visits)::DOUBLE / nullif((SELECT count(DISTINCT cell) FROM _sdc_steps), 0) AS visits_per_loc
        FROM _sdc_trips"""


def plan_trips_leakage(
    session: Session, synthetic: str | None, original: str | None, w: int | None, trip: str | None, seq: str | None,
    cell: str | None,
) -> str:  # fmt: skip
    """``sdc_trips_leakage``: trips, and pieces of them, that somebody really made."""
    made = Cells.read(session, synthetic, trip, seq, cell, "synthetic")
    real = Cells.read(session, original, trip, seq, cell, "original")
    size = whole(w, "w", least=1, most=_LONGEST_PIECE, why="cells of a piece")
    names = ", ".join(f"c{place}" for place in range(size))

    def pieces(known: Cells) -> str:
        """The cells of each piece, the last one first."""
        shown = ", ".join(f"lag({known.cell}::BIGINT, {place}) OVER _sdc_order AS c{place}" for place in range(size))
        return (
            f"(SELECT * FROM (SELECT {shown} FROM {known.rows} WINDOW _sdc_order AS (PARTITION BY {known.trip} "
            f"ORDER BY {known.by_place})) WHERE c{size - 1} IS NOT NULL)"
        )

    def whole_trips(known: Cells) -> str:
        listed = f"list({known.cell}::BIGINT ORDER BY {known.by_place})"
        return f"(SELECT {listed} AS cells FROM {known.rows} GROUP BY {known.trip})"

    return f"""
        SELECT trips, exact_copies, exact_copies / nullif(trips, 0) AS exact_copy_rate, pieces, copied_pieces,
            copied_pieces / nullif(pieces, 0) AS piece_copy_rate
        FROM (
            SELECT count(*) AS trips, count(real.cells) AS exact_copies
            FROM {whole_trips(made)} LEFT JOIN (SELECT DISTINCT cells FROM {whole_trips(real)}) real USING (cells)
        ), (
            SELECT count(*) AS pieces, count(_sdc_there) AS copied_pieces
            FROM {pieces(made)} LEFT JOIN (SELECT DISTINCT {names}, true AS _sdc_there FROM {pieces(real)})
            USING ({names})
        )"""


PLANNERS = (*planners(plan_trips_quality, plan_trips_leakage),)
