"""SUMMARIZE: of each column the figures that have a protected answer, in the columns that DuckDB has for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier, literal

COLUMNS_OF_SUMMARY = (
    "column_name", "column_type", "min", "max", "approx_unique", "avg", "std", "q25", "q50", "q75", "count",
    "null_percentage",
)  # fmt: skip

_MOST = 60
_NUMBERS = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)")
_TIMES = re.compile(r"DATE|TIMESTAMP.*")
_ANY, _NUMBER, _SCALE = "", "number", "number or time"
_FIGURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "min": (_ANY, ("min({0})",)),
    "max": (_ANY, ("max({0})",)),
    "approx_unique": (_ANY, ("approx_count_distinct({0})", "count(DISTINCT {0})")),
    "avg": (_SCALE, ("avg({0})",)),
    "std": (_NUMBER, ("stddev({0})",)),
    "q25": (_SCALE, ("approx_quantile({0}, 0.25)",)),
    "q50": (_SCALE, ("approx_quantile({0}, 0.5)",)),
    "q75": (_SCALE, ("approx_quantile({0}, 0.75)",)),
    "known": (_ANY, ("count({0})",)),
}
"""Of which columns there is a figure, and how it may be asked for: the first that is answered is taken."""

_TYPES = {name: "BIGINT" if name == "approx_unique" else "VARCHAR" for name in _FIGURES}


def summary(source: str, columns: Sequence[tuple[str, str]], answers: Callable[[str], bool]) -> str:
    """A query with a row for each column of a relation.

    Args:
        source: the relation, for FROM.
        columns: their names and DuckDB types.
        answers: whether a question is answered; of what is not, there is NULL.

    Raises:
        Refused: there are too many columns, or two of one name.
    """
    if len(columns) > _MOST:
        raise Refused("SDC002", f"SUMMARIZE of more than {_MOST} columns: name some, SUMMARIZE SELECT a, b FROM ..")
    if len({folded(name) for name, _ in columns}) < len(columns):
        raise Refused("SDC031", "SUMMARIZE of two columns with one name")
    called = "summed"
    while called in folded(source):
        called += "_"
    asked, rows = ["count(*) AS n"], []
    for place, (name, kind) in enumerate(columns):
        known = _answered(source, identifier(name), kind, answers)
        asked += [f"{expression} AS c{place}_{figure}" for figure, expression in known.items()]
        rows.append(_row(called, place, name, kind, known))
    return f"WITH {called} AS (SELECT {', '.join(asked)} FROM {source}) {' UNION ALL '.join(rows)}"


def _answered(source: str, column: str, kind: str, answers: Callable[[str], bool]) -> dict[str, str]:
    """The figures of a column that are answered, as they are asked for."""
    possible = {
        figure: [one.format(column) for one in ways] for figure, (of, ways) in _FIGURES.items() if _has(of, kind)
    }
    found = {}
    for figure, ways in possible.items():
        for way in ways:
            if answers(f"SELECT {way} AS x FROM {source}"):
                found[figure] = way
                break
    return found


def _has(of: str, kind: str) -> bool:
    """Whether columns of a type have a figure, in DuckDB's own summaries."""
    is_number = _NUMBERS.fullmatch(kind) is not None
    return of == _ANY or is_number or (of == _SCALE and _TIMES.fullmatch(kind) is not None)


def _row(called: str, place: int, name: str, kind: str, known: dict[str, str]) -> str:
    shown = [f'{place} AS "place"', f"{literal(name)} AS column_name", f"{literal(kind)} AS column_type"]
    for figure, written in _TYPES.items():
        if figure != "known":
            value = f"c{place}_{figure}" if figure in known else "NULL"
            shown.append(f"CAST({value} AS {written}) AS {identifier(figure)}")
    missing = "NULL"
    if "known" in known:
        without = f"(n - c{place}_known) * 100.0 / nullif(n, 0)"  # NULL where either is not shown
        missing = f"CASE WHEN c{place}_known > n THEN 0 ELSE {without} END"
    shown += ['CAST(n AS BIGINT) AS "count"', f"CAST({missing} AS DECIMAL(9, 2)) AS null_percentage"]
    return f"SELECT {', '.join(shown)} FROM {called}"
