"""What synthetic records give away of the original ones: planners behind ``sql/synthetic_risk_tables.sql``.

Copies, replicated uniques and inferred attributes are counted in SQL; `closest_records` has the distances.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Family, Scalar, Session
from sdcduck.quoting import literal
from sdcduck.udfs.arguments import choice, needed, share, wrong
from sdcduck.udfs.compared import Compared
from sdcduck.udfs.risk import closest_records
from sdcduck.udfs.risk.closest_records import overlap_warning
from sdcduck.udfs.source import refuse_taken
from sdcduck.udfs.sums import total

_DENOMINATORS = ("original", "synthetic")
_WEIGHTINGS = ("original", "synthetic")
_ONE_WAY = (0.9, 50)
_TWO_WAY = (0.8, 5)

# --- copies ----------------------------------------------------------------------------------------------------------


def plan_identical_matches(
    session: Session, original: str | None, synthetic: str | None, holdout: str | None, columns: list[str] | None
) -> str:
    """``sdc_identical_matches``."""
    compared = Compared.read(session.cursor(), _tables(original, synthetic, holdout), columns)
    given, warning = _holdout(compared)
    return f"""
        SELECT original_records, synthetic_records, matches, matches / nullif(synthetic_records, 0) AS share,
            matches_of_uniques, originals_matched,
            originals_matched / nullif(original_records, 0) AS share_of_originals,
            holdout_records, holdout_matches, holdout_matches / nullif(holdout_records, 0) AS baseline,
            share - baseline AS lift, {warning} AS warning
        FROM (
            SELECT coalesce(sum(n0), 0)::BIGINT AS original_records, coalesce(sum(n1), 0)::BIGINT AS synthetic_records,
                coalesce(sum(n1) FILTER (n0 > 0), 0)::BIGINT AS matches,
                coalesce(sum(n1) FILTER (n0 = 1), 0)::BIGINT AS matches_of_uniques,
                coalesce(sum(n0) FILTER (n1 > 0), 0)::BIGINT AS originals_matched,
                {given} AS holdout_records,
                CASE WHEN holdout_records IS NOT NULL
                    THEN coalesce(sum(n2) FILTER (n0 > 0), 0)::BIGINT END AS holdout_matches
            FROM ({compared.counted()})
        )"""


def _tables(original: str | None, synthetic: str | None, holdout: str | None = None) -> dict[str, str | None]:
    return {"original": original, "synthetic": synthetic, "holdout": holdout}


def _holdout(compared: Compared) -> tuple[str, str]:
    """SQL for the number of its records, NULL without one, and for the warning."""
    left_out = "NULL::VARCHAR" if compared.warning is None else literal(compared.warning)
    if "holdout" not in compared.tables:
        return "NULL::BIGINT", left_out
    counts = (
        "coalesce(sum(n2) FILTER (n0 > 0), 0)::BIGINT AS _m, coalesce(sum(n2), 0)::BIGINT AS _h, "
        "coalesce(sum(n0) FILTER (n0 > 1), 0)::BIGINT AS _d, coalesce(sum(n0), 0)::BIGINT AS _n"
    )
    said = f"(SELECT _sdc_overlap(_m, _h, _d, _n) FROM (SELECT {counts} FROM ({compared.counted()})))"
    return "coalesce(sum(n2), 0)::BIGINT", f"nullif(concat_ws('; ', {left_out}, {said}), '')"


def plan_replicated_uniques(
    session: Session, original: str | None, synthetic: str | None, holdout: str | None, keys: list[str] | None,
    denominator: str | None,
) -> str:  # fmt: skip
    """``sdc_replicated_uniques``."""
    compared = Compared.read(session.cursor(), _tables(original, synthetic, holdout), keys, argument="keys")
    divided_by = choice(denominator, "denominator", _DENOMINATORS)
    given, warning = _holdout(compared)
    mine = "FILTER (n0 > 0)"
    levels = " * ".join(
        f"(count(DISTINCT c{place}) {mine} + coalesce(bool_or(c{place} IS NULL) {mine}, false)::INTEGER)::DOUBLE"
        for place in range(len(compared.names))
    )
    return f"""
        SELECT original_records, synthetic_records, uniques_original, uniques_synthetic, uniques_found, replicated,
            cells, 100 * uniques_original / nullif(original_records, 0) AS p1,
            100 * (cells - _occupied) / nullif(cells, 0) AS p0,
            100 * replicated / nullif({divided_by}_records, 0) AS ru,
            100 * replicated / nullif(uniques_original, 0) AS ru_of_p1,
            100 * synthetic_records / nullif({divided_by}_records, 0) * uniques_original / nullif(original_records, 0)
                * pow(1 - 1 / nullif(original_records, 0), greatest(synthetic_records - 1, 0)) AS ru_saturated,
            100 * _replicated_holdout
                / nullif(CASE WHEN _given THEN {"original_records" if divided_by == "original" else "_holdout"} END, 0)
                AS ru_holdout,
            ru - ru_holdout AS lift, {warning} AS warning
        FROM (
            SELECT coalesce(sum(n0), 0)::BIGINT AS original_records, coalesce(sum(n1), 0)::BIGINT AS synthetic_records,
                count(*) FILTER (n0 = 1) AS uniques_original, count(*) FILTER (n1 = 1) AS uniques_synthetic,
                count(*) FILTER (n0 > 0 AND n1 = 1) AS uniques_found,
                count(*) FILTER (n0 = 1 AND n1 = 1) AS replicated, {levels} AS cells,
                count(*) FILTER (n0 > 0) AS _occupied, {given} AS _holdout, _holdout IS NOT NULL AS _given,
                count(*) FILTER (n0 = 1 AND n2 = 1) AS _replicated_holdout
            FROM ({compared.counted()})
        )"""


# --- inferred attributes ---------------------------------------------------------------------------------------------


def _attribution(
    cursor: duckdb.DuckDBPyConnection, original: str | None, synthetic: str | None, keys: list[str] | None,
    sensitive: list[str] | None, tau: float | None,
) -> tuple[Compared, list[str], float]:  # fmt: skip
    """Check the arguments: the columns compared are the keys, then the sensitive ones."""
    given = needed(keys, "keys", "name the columns that somebody may know")
    asked = needed(sensitive, "sensitive", "name the columns to be learned")
    tables = {"original": original, "synthetic": synthetic}
    known = Compared.read(cursor, tables, given, argument="keys")
    wanted = known.named(asked, "sensitive")
    if both := [name for name in wanted if name in known.names]:
        raise SDCError(f"column '{both[0]}' cannot be both a key and sensitive")
    return Compared(known.tables, known.names + wanted), list(wanted), share(tau, "tau", zero=False)


_NO_TIES = 0.501
"""From this share on, no two values of a class can both have it, whatever rounding does."""


def _classes(compared: Compared, keys: int, target: int, tau: float) -> str:
    """Common table expressions for one target.

    ``_counted``: by keys and value ``v``, the originals ``o`` and synthetic records ``x``. ``_margins``: the same by
    value. ``_modal``: the most frequent synthetic value. ``_guessed``: by keys, the originals ``oq`` and synthetic
    records ``xq``, those of its most frequent synthetic value ``mx``, of how many values the records are (``ko``,
    ``kx``), the value that is inferred with its originals (``g.v``, ``g.o``), the originals that have the modal value
    (``om``), and whether the class is risky (``r``). Of equally frequent values the first is inferred.
    """
    by = ", ".join(f"c{place}" for place in range(keys))
    inferred = "{'v': arg_max_null(v, x), 'o': arg_max(o, x)}"
    if tau < _NO_TIES:
        inferred = "arg_min({'v': v, 'o': o}, {'x': -x, 'v': v})"
    return f"""
        _counted AS MATERIALIZED (
            SELECT {by}, c{target} AS v, count(_of0) AS o, count(_of1) AS x
            FROM ({compared.all_records()}) GROUP BY {by}, c{target}
        ), _margins AS MATERIALIZED (SELECT v, sum(o)::BIGINT AS o, sum(x)::BIGINT AS x FROM _counted GROUP BY v),
        _modal AS (SELECT v FROM _margins ORDER BY x DESC, v NULLS LAST LIMIT 1),
        _guessed AS (
            SELECT *, xq > 0 AND mx >= {tau!r}::DOUBLE * xq - 1e-9 AS r
            FROM (
                SELECT {by}, sum(o)::BIGINT AS oq, sum(x)::BIGINT AS xq, max(x) AS mx, {inferred} AS g,
                    count(*) FILTER (o > 0) AS ko, count(*) FILTER (x > 0) AS kx, sum(o) FILTER ({_IS_MODAL}) AS om
                FROM _counted GROUP BY {by}
            )
        )"""


def _cells(keys: int) -> str:
    """The common table expression ``_cells``: those counted and the figures of their class; ``t``: whether inferred."""
    alike = " AND ".join(f"k.c{key} IS NOT DISTINCT FROM q.c{key}" for key in range(keys))
    return f"""
        _cells AS MATERIALIZED (
            SELECT k.*, oq, xq, mx, ko, kx, g, r, r AND v IS NOT DISTINCT FROM g.v AS t
            FROM _counted k JOIN _guessed q ON {alike}
        )"""


_BASELINE = "(SELECT sum(o::HUGEINT * o) / nullif(sum(o)::DOUBLE ** 2, 0) FROM _margins)"
_IS_MODAL = "v IS NOT DISTINCT FROM (SELECT v FROM _modal)"
_TCAP_FIGURES = f"""
    coalesce(sum(oq) FILTER (r), 0)::BIGINT AS hits, coalesce(sum(g.o) FILTER (r), 0)::BIGINT AS correct,
    coalesce(sum(oq), 0)::BIGINT AS originals, coalesce(sum(om) FILTER (r), 0)::BIGINT AS _modal_hits,
    coalesce(sum(g.o) FILTER (r AND g.{_IS_MODAL}), 0)::BIGINT AS _modal_correct,
    {total("mx * g.o / oq", "r AND oq > 0")} / nullif(sum(mx) FILTER (r AND oq > 0), 0) AS _by_synthetic,
    {_BASELINE} AS baseline"""


def plan_tcap(
    session: Session, original: str | None, synthetic: str | None, keys: list[str] | None, sensitive: list[str] | None,
    tau: float | None, weighting: str | None, key_sizes: list[int] | None,
) -> str:  # fmt: skip
    """``sdc_tcap``: a row for each target and number of keys."""
    compared, wanted, at_least = _attribution(session.cursor(), original, synthetic, keys, sensitive, tau)
    weighed_by = choice(weighting, "weighting", _WEIGHTINGS)
    most = len(compared.names) - len(wanted)
    sizes = key_sizes or [most]
    if any(size is None or not 1 <= size <= most for size in sizes):
        raise wrong("key_sizes", f"hold numbers of keys, from 1 to {most}")
    tcap = "coalesce(correct / nullif(hits, 0), 0)" if weighed_by == "original" else "_by_synthetic"
    parts = []
    for place, target in enumerate(wanted):
        for size in sorted(set(sizes)):
            classes = _classes(compared, size, most + place, at_least)
            parts.append(f"""
                SELECT * FROM (
                    WITH {classes}
                    SELECT {place} AS _place, {literal(target)} AS target, {size}::BIGINT AS n_keys, originals, hits,
                        correct, hits / nullif(originals, 0) AS recall, {tcap} AS tcap, baseline,
                        CASE WHEN 1 - baseline > 1e-12 THEN (tcap - baseline) / (1 - baseline) END AS marginal_tcap,
                        _modal_hits / nullif(hits, 0) AS modal_baseline, tcap - modal_baseline AS lift,
                        (correct - _modal_correct) / nullif(hits - _modal_hits, 0) AS tcap_not_modal
                    FROM (SELECT {_TCAP_FIGURES} FROM _guessed)
                )""")
    return f"SELECT * EXCLUDE (_place) FROM ({' UNION ALL '.join(parts)}) ORDER BY _place, n_keys"


_TCAP_COLUMNS = ("matches", "cap", "agreement", "guess", "hit", "correct", "modal_correct")


def plan_tcap_records(
    session: Session, original: str | None, synthetic: str | None, keys: list[str] | None, sensitive: str | None,
    tau: float | None,
) -> str:  # fmt: skip
    """``sdc_tcap_records``: a row for each original record."""
    learned = needed(sensitive, "sensitive", "name the column to be learned")
    compared, _, at_least = _attribution(session.cursor(), original, synthetic, keys, [learned], tau)
    records, number = compared.tables["original"], len(compared.names) - 1
    refuse_taken(records.columns, _TCAP_COLUMNS)
    values = ", ".join(
        f"{compared.category('original', name)} AS _sdc_c{place}" for place, name in enumerate(compared.names)
    )
    alike = " AND ".join(
        f"_sdc_c{place} IS NOT DISTINCT FROM {'v' if place == number else f'k.c{place}'}" for place in range(number + 1)
    )
    return f"""
        WITH {_classes(compared, number, number, at_least)}, {_cells(number)}
        SELECT r.* EXCLUDE ({", ".join(f"_sdc_c{place}" for place in range(number + 1))}), k.xq AS matches,
            k.x / nullif(k.xq, 0) AS cap, k.mx / nullif(k.xq, 0) AS agreement,
            CASE WHEN k.r THEN k.g.v::VARCHAR END AS guess, k.r AS hit, CASE WHEN k.r THEN k.t END AS correct,
            k.{_IS_MODAL} AS modal_correct
        FROM (SELECT *, {values} FROM {records.sql}) r JOIN _cells k ON {alike}"""


def plan_disclosure(
    session: Session, original: str | None, synthetic: str | None, keys: list[str] | None, sensitive: list[str] | None,
    tau: float | None,
) -> str:  # fmt: skip
    """``sdc_disclosure``: a row for each target."""
    compared, wanted, at_least = _attribution(session.cursor(), original, synthetic, keys, sensitive, tau)
    keys_number = len(compared.names) - len(wanted)
    parts = [
        f"SELECT * FROM ({_disclosure(compared, keys_number, place, target, at_least)})"
        for place, target in enumerate(wanted)
    ]
    return f"SELECT * EXCLUDE (_place) FROM ({' UNION ALL '.join(parts)}) ORDER BY _place"


def _disclosure(compared: Compared, keys: int, place: int, target: str, tau: float) -> str:
    classes = _classes(compared, keys, keys + place, tau)
    # A key that tells the target by itself: of the originals with one of its values, most have the same target.
    two_way = " UNION ALL ".join(
        f"SELECT sum(c) AS correct, sum(o) / sum(sum(o)) OVER (PARTITION BY c{key}) AS share "
        f"FROM (SELECT c{key}, v, o, CASE WHEN t THEN o ELSE 0 END AS c FROM _cells) GROUP BY c{key}, v"
        for key in range(keys)
    )
    n, n_x = "nullif(original_records, 0)", "nullif(synthetic_records, 0)"
    return f"""
        WITH {classes}, {_cells(keys)}, _uniques AS (
            SELECT count(*) FILTER (oq = 1) AS uio, count(*) FILTER (xq = 1) AS uis,
                count(*) FILTER (oq = 1 AND xq > 0) AS found, count(*) FILTER (oq = 1 AND xq = 1) AS rep
            FROM _guessed
        ), _one_way AS (
            SELECT max(c) AS correct, max(c) / nullif(sum(c), 0) AS share
            FROM (SELECT sum(o) FILTER (t) AS c FROM _cells GROUP BY v)
        ), _two_way AS (SELECT coalesce(max(correct) FILTER (share >= {_TWO_WAY[0]}), 0) AS correct FROM ({two_way})),
        _figures AS (
            SELECT coalesce(sum(x), 0)::BIGINT AS synthetic_records,
                coalesce(sum(o) FILTER (xq > 0), 0) AS _met, coalesce(sum(o) FILTER (t AND ko = 1), 0) AS _both,
                coalesce(sum(o) FILTER (ko = 1), 0) AS _orig, coalesce(sum(x) FILTER (kx = 1), 0) AS _syn,
                coalesce({total("x / xq * o", "xq > 0")}, 0) AS _dcap, {total("x * x / xq", "xq > 0")} AS _weap,
                {total("o * o / oq", "oq > 0")} AS _cap, sum(o) FILTER ({_IS_MODAL}) AS _modal_originals
            FROM _cells
        )
        SELECT {place} AS _place, {literal(target)} AS target, f.originals AS original_records, synthetic_records,
            uio / {n} AS uio, uis / {n_x} AS uis, found / {n} AS uiois, rep / {n} AS repu,
            _orig / {n} AS dorig, _syn / {n_x} AS dsyn, _met / {n} AS is_share, hits / {n} AS dis,
            f.correct / {n} AS disco,
            _both / {n} AS disdio, _cap / {n} AS cap_original, _weap / {n_x} AS weap, _dcap / {n} AS dcap,
            _dcap / nullif(_met, 0) AS dcap_match, coalesce(f.correct / nullif(hits, 0), 0) AS tcap,
            f.correct / nullif(_met, 0) AS tcap_match, baseline,
            CASE WHEN 1 - baseline > 1e-12 THEN (dcap_match - baseline) / (1 - baseline) END AS marginal_dcap,
            CASE WHEN 1 - baseline > 1e-12 THEN (tcap - baseline) / (1 - baseline) END AS marginal_tcap,
            _modal_originals / {n} AS modal_baseline,
            coalesce(o.correct >= {_ONE_WAY[1]} AND o.share >= {_ONE_WAY[0]}, false) AS flag_1way,
            w.correct >= {_TWO_WAY[1]} AS flag_2way,
            nullif(concat_ws('; ',
                CASE WHEN flag_1way THEN 'nearly all right inferences are of one value, which may be no secret' END,
                CASE WHEN flag_2way THEN 'right inferences that a single key tells, which may be common knowledge' END,
                CASE WHEN _values > 0.5 * {n} AND {n} >= 20
                    THEN 'the target has nearly as many values as there are records: group it' END
            ), '') AS warning
        FROM (SELECT {_TCAP_FIGURES} FROM _guessed) f, _figures, _uniques, _one_way o, _two_way w,
            (SELECT count(*) AS _values FROM _margins WHERE o > 0)"""


def overlap_texts(session: Session, *counts: pa.ChunkedArray) -> pa.Array:
    """What to say of a holdout, by its counts (see `overlap_warning`)."""
    rows = zip(*(column.to_pylist() for column in counts), strict=True)
    return pa.array([overlap_warning(*row) for row in rows], pa.string())


FAMILY = Family(
    name="synthetic_risk",
    temporary=("synthetic_risk_tables.sql",),
    planners=(
        *planners(plan_identical_matches, plan_replicated_uniques, plan_tcap, plan_tcap_records, plan_disclosure),
        *closest_records.PLANNERS,
    ),
    scalars=(Scalar("_sdc_overlap", ("BIGINT", "BIGINT", "BIGINT", "BIGINT"), "VARCHAR", overlap_texts),),
)
