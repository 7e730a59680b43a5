"""Guesses of an attacker from published tables: planners behind ``sql/reconstruction_tables.sql``."""

from __future__ import annotations

from collections.abc import Sequence

from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import choice, each_share, needed, whole, wrong
from sdcduck.udfs.compared import check_kinds, kind_of
from sdcduck.udfs.source import Source, is_number, source


def _count_column(relation: Source, freq: str | None, *, negative: bool) -> str:
    """SQL for a column of counts, as DOUBLE: a noisy one may be negative, none may be NULL, NaN or infinite."""
    number = relation.number(freq, "freq")
    known = f"isfinite({number}::DOUBLE)" if negative else f"({number} >= 0 AND isfinite({number}::DOUBLE))"
    problem = f"a count of {relation.described} is NULL or infinite" + ("" if negative else ", or negative")
    return f"CASE WHEN {known} THEN {number}::DOUBLE ELSE error({literal(problem)}) END"


def _as_texts(columns: Sequence[tuple[Source, str]]) -> list[str]:
    """SQL for the values of several columns as texts that are equal where the values are: 1.0 is 1."""
    types = [relation.type_of(name) for relation, name in columns]
    through = "::DOUBLE" if len(set(types)) > 1 and all(map(is_number, types)) else ""
    return [f"{relation.column(name, 'sensitive')}{through}::VARCHAR" for relation, name in columns]


def _modal(
    session: Session, protected: str | None, original: str | None, area: str | None, sensitive: str | None,
    freq: str | None, min_modal: int | None, gate: str | None,
) -> str:  # fmt: skip
    """A query for the guess in each unit: ``_unit`` and the columns of ``sdc_modal_guess``."""
    cursor = session.cursor()
    least = whole(min_modal, "min_modal", least=0)
    by_truth = choice(gate, "gate", ("truth", "released")) == "truth"
    parts = []
    tables = {name: source(cursor, text, name) for name, text in (("protected", protected), ("original", original))}
    check_kinds(tables, [area], "area")
    check_kinds(tables, [sensitive], "sensitive")
    words = _as_texts([(relation, str(sensitive)) for relation in tables.values()])
    for (argument, relation), what in zip(tables.items(), words, strict=True):
        where = relation.column(area, "area")
        counts = _count_column(relation, freq, negative=argument == "protected")
        checked = f"CASE WHEN {where} IS NULL THEN error('an area is NULL in ''{argument}''') ELSE {where} END"
        parts.append(
            f"SELECT {checked} AS _unit, {what} AS _category, sum({counts})::DOUBLE AS _n FROM {relation.sql} "
            "GROUP BY ALL"
        )
    compared = "coalesce(modal_true, 0)" if by_truth else "modal_released"
    return f"""
        WITH _released AS MATERIALIZED ({parts[0]}), _truth AS MATERIALIZED ({parts[1]}),
        _modal AS (
            SELECT _unit, arg_min(_category, _rank) AS _category, max(_n) AS _n, count(*) FILTER (_n = _top) > 1 AS _tie
            FROM (
                SELECT *, max(_n) OVER (PARTITION BY _unit) AS _top,
                    row_number() OVER (PARTITION BY _unit ORDER BY _n DESC, _category NULLS LAST) AS _rank
                FROM _released
            ) GROUP BY _unit HAVING max(_n) > 0
        ),
        _units AS (SELECT _unit, sum(_n) AS _n FROM _truth GROUP BY _unit HAVING sum(_n) > 0),
        _guessed AS (
            SELECT u._unit, m._unit IS NOT NULL AS _known, m._category AS modal_category,
                coalesce(m._tie, false) AS is_tie, m._n AS modal_released,
                CASE WHEN m._unit IS NOT NULL THEN coalesce(t._n, 0) END AS modal_true,
                u._n AS unit_true
            FROM _units u LEFT JOIN _modal m ON u._unit = m._unit
            LEFT JOIN _truth t ON t._unit = m._unit AND t._category IS NOT DISTINCT FROM m._category
        ),
        _scored AS (
            SELECT *, _known AND {compared} >= {least} AS predicted,
                CASE WHEN _known AND {compared} >= {least} THEN modal_true / unit_true ELSE 0 END AS precision
            FROM _guessed
        )"""


def plan_modal_guess(
    session: Session, protected: str | None, original: str | None, area: str | None, sensitive: str | None,
    freq: str | None, min_modal: int | None, gate: str | None,
) -> str:  # fmt: skip
    """``sdc_modal_guess``: one row a unit."""
    scored = _modal(session, protected, original, area, sensitive, freq, min_modal, gate)
    known = source(session.cursor(), original, "original")
    [shown] = map(identifier, known.named([area], "area", _GUESSED))
    return f"""{scored}
        SELECT _unit AS {shown}, modal_category, is_tie, modal_released, modal_true, unit_true, predicted, precision
        FROM _scored ORDER BY _unit"""


def plan_modal_guess_curve(
    session: Session, protected: str | None, original: str | None, area: str | None, sensitive: str | None,
    freq: str | None, min_modal: int | None, gate: str | None, grid: list[float] | None,
) -> str:  # fmt: skip
    """``sdc_modal_guess_curve``: for how many people the guess is at least so good."""
    scored = _modal(session, protected, original, area, sensitive, freq, min_modal, gate)
    shares = sorted(set(each_share(needed(grid, "grid", "hold numbers from 0 to 1"), "grid")))
    points = ", ".join(f"({point!r}::DOUBLE)" for point in shares)
    return f"""{scored}
        SELECT _p AS precision_at_least,
            coalesce(sum(unit_true) FILTER (predicted AND precision >= _p - 1e-12), 0) AS persons,
            coalesce(persons / nullif(sum(unit_true), 0), 0) AS recall
        FROM (VALUES {points}) points(_p) LEFT JOIN _scored ON true GROUP BY _p ORDER BY _p"""


def plan_modal_guess_summary(
    session: Session, protected: str | None, original: str | None, area: str | None, sensitive: str | None,
    freq: str | None, min_modal: int | None, gate: str | None,
) -> str:  # fmt: skip
    """``sdc_modal_guess_summary``: one row."""
    scored = _modal(session, protected, original, area, sensitive, freq, min_modal, gate)
    return f"""{scored}
        SELECT coalesce(sum(unit_true), 0) AS persons, coalesce(sum(unit_true) FILTER (predicted), 0) AS guessed,
            coalesce(sum(modal_true) FILTER (predicted), 0) AS "right", "right" / nullif(guessed, 0) AS precision,
            coalesce(guessed / nullif(persons, 0), 0) AS recall, coalesce("right" / nullif(persons, 0), 0) AS accuracy,
            (SELECT count(DISTINCT _unit) FROM _released WHERE _unit NOT IN (SELECT _unit FROM _units))
                AS unmatched_units
        FROM _scored"""


def plan_attack_score(
    session: Session, attack: str | None, protected: str | None, area: str | None, sensitive: str | None,
    freq: str | None, linked: str | None, predicted: str | None, actual: str | None, size_bins: list[int] | None,
) -> str:  # fmt: skip
    """``sdc_attack_score``: an attack beside the guess of the most frequent category, by size of the unit."""
    cursor = session.cursor()
    targets, table = source(cursor, attack, "attack"), source(cursor, protected, "protected")
    wanted = "hold the smallest size of each class of units, such as [1, 10, 50]"
    bins = sorted({whole(size, "size_bins", least=1) for size in needed(size_bins, "size_bins", wanted)})
    check_kinds({"attack": targets, "protected": table}, [area], "area")
    where, place = targets.column(area, "area"), table.column(area, "area")
    said = targets.column(linked, "linked")
    if targets.type_of(str(linked)) not in ("BOOLEAN", '"NULL"'):
        raise wrong("linked", f"name a column of truth values: '{linked}' is none")
    table.column(sensitive, "sensitive")
    for name, argument in ((predicted, "predicted"), (actual, "actual")):
        targets.column(name, argument)
        sql_type = targets.type_of(str(name))
        if kind_of(sql_type) != kind_of(table.type_of(str(sensitive))) and sql_type != '"NULL"':
            raise SDCError(f"arguments '{argument}' and 'sensitive' name columns of different types: cast one of them")
    told, so, what = _as_texts([(targets, str(predicted)), (targets, str(actual)), (table, str(sensitive))])
    number = _count_column(table, freq, negative=True)
    binned = "list_max(list_filter([" + ", ".join(map(str, bins)) + "]::BIGINT[], lambda b: b <= _size))"
    return f"""
        WITH _modal AS (
            SELECT _unit, arg_min(_category, _rank) AS _guess FROM (
                SELECT *, row_number() OVER (PARTITION BY _unit ORDER BY _n DESC, _category NULLS LAST) AS _rank
                FROM (
                    SELECT {place} AS _unit, {what} AS _category, sum({number}) AS _n
                    FROM {table.sql} GROUP BY ALL
                ) WHERE _n > 0
            ) GROUP BY _unit
        ),
        _targets AS MATERIALIZED (
            SELECT {binned} AS _bin, _linked, _linked AND _predicted IS NOT DISTINCT FROM _actual AS _correct,
                m._unit IS NOT NULL AS _guessed, m._unit IS NOT NULL AND m._guess IS NOT DISTINCT FROM _actual AS _modal
            FROM (
                SELECT {where} AS _unit, coalesce({said}::BOOLEAN, false) AS _linked,
                    {told} AS _predicted, {so} AS _actual,
                    count(*) OVER (PARTITION BY {where}) AS _size
                FROM {targets.sql}
            ) t LEFT JOIN _modal m ON t._unit = m._unit
        )
        SELECT _bin AS size_from, count(*) AS targets, count(*) FILTER (_linked) AS linked,
            count(*) FILTER (_correct) AS correct, correct / nullif(linked, 0) AS precision,
            linked / nullif(targets, 0) AS recall_linked, correct / nullif(targets, 0) AS recall_confirmed,
            count(*) FILTER (_modal) / nullif(count(*) FILTER (_guessed), 0) AS baseline_precision,
            precision - baseline_precision AS lift,
            (precision - baseline_precision) / nullif(1 - baseline_precision, 0) AS relative_gain,
            count(*) FILTER (_correct AND NOT _modal) / nullif(count(*) FILTER (_linked AND NOT _modal), 0)
                AS precision_nonmodal
        FROM _targets GROUP BY GROUPING SETS ((_bin), ()) ORDER BY GROUPING(_bin) DESC, _bin"""


_GUESSED = ("modal_category", "is_tie", "modal_released", "modal_true", "unit_true", "predicted", "precision")
