"""What the guard answers of what people write: the queries of ``queries.sql`` under each method.

``python tests/guard/acceptance/table.py`` (``make acceptance``) writes ``docs/guard-acceptance.md``; a test keeps page and
behaviour in line.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

import sdcduck
from sdcduck.guard import REASONS, Guard, Refused, guard

METHODS = ("cell_key", "suppression", "threshold", "rounding")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "guard-acceptance.md"
SECRET = "the secret of the tests"

_DATA = """
CREATE TABLE people AS SELECT i AS person_id, ['North', 'South', 'East', 'West'][1 + i * i % 7 % 4] AS region,
    ['f', 'm'][1 + i * 37 % 101 % 2] AS sex, i * 31 % 8 * 10 AS age,
    DATE '2023-01-01' + INTERVAL 1 MONTH * (i * 53 % 12) AS month_,
    CASE WHEN i % 50 = 0 THEN NULL ELSE 1000 + i * 7919 % 4000 END AS income
    FROM range(1, 1201) t(i);
ALTER TABLE people ADD COLUMN month DATE;
UPDATE people SET month = month_;
ALTER TABLE people DROP COLUMN month_;
CREATE TABLE stays AS SELECT person_id, ['surgery', 'medicine', 'eyes'][1 + (person_id * 7 + nth * nth) % 3] AS ward,
    (DATE '2023-01-01' + INTERVAL 1 MONTH * ((person_id * 11 + nth * 5) % 12))::DATE AS month, 1 + (person_id + 7 * nth) % 9 AS days
    FROM people, range(person_id % 5) numbers(nth);
CREATE TABLE regions AS FROM (VALUES ('North', 'cold', 900), ('South', 'warm', 700), ('East', 'mild', 800),
    ('Far', 'cold', 10)) r(region, climate, population);
CREATE TABLE zones AS FROM (VALUES ('cold', 'polar'), ('warm', 'tropic'), ('mild', 'temperate')) z(climate, zone);
CREATE VIEW cold_regions AS FROM regions WHERE climate = 'cold';
"""
_PARAMETERS: Mapping[str, object] = {
    "by place": ["North", 30],
    "by name": {"region": "North"},
    "in a group": [60],
    "in a list without blanks": ["North", "South"],
}
_COLUMNS = {
    "people": (["region", "sex", "age", "month"], "income", "(region, sex, age), (region, month), (sex, month)"),
    "stays": (["ward", "month"], "days", "(ward, month)"),
}
_QUERY = re.compile(r"^-- (?P<title>[^\n]+)\n(?P<sql>[^-].*?);$", re.M | re.S)


@dataclass(frozen=True)
class Query:
    """One query of the file: the heading it stands under, what it does, its text."""

    heading: str
    title: str
    sql: str

    @property
    def parameters(self) -> object:
        """What its placeholders are."""
        return _PARAMETERS.get(self.title)


def queries() -> list[Query]:
    """All of them, in order."""
    found = []
    for part in (Path(__file__).parent / "queries.sql").read_text(encoding="utf-8").split("--| ")[1:]:
        heading = part.split("\n", 1)[0]
        found += [Query(heading, match["title"], match["sql"]) for match in _QUERY.finditer(part)]
    return found


@contextlib.contextmanager
def guarded(method: str, *, exact: bool = False, own: bool = False) -> Iterator[Guard]:
    """A guard over the people of the page, all under one method.

    Args:
        exact: with parameters under which answers are the original numbers.
        own: over a database of its own, which may be changed; the others of a process look at the same one.
    """
    if own:
        with _database(method, exact) as con:
            yield guard(con)
    else:
        yield guard(_looked_at(method, exact))


@functools.cache
def _looked_at(method: str, exact: bool) -> duckdb.DuckDBPyConnection:
    return _database(method, exact)


def _database(method: str, exact: bool) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret=SECRET)
    con.execute(_DATA)
    for name in ("people", "stays"):
        con.execute(f"FROM sdc_add_record_key('{name}', unit := 'person_id')").fetchall()
    con.execute("CREATE VIEW women AS FROM people WHERE sex = 'f'")
    for name in ("regions", "zones", "cold_regions"):
        con.execute(f"FROM sdc_declare_public('{name}')").fetchall()
    for name in ("people", "women", "stays"):
        # Two publications of the same people would be two patterns of suppression, which tell one another.
        if (name, method) != ("women", "suppression"):
            declare(con, name, method, exact=exact)
    return con


def database_of_file(con: duckdb.DuckDBPyConnection, more: str) -> None:
    """The same people alone, with more arguments of their policy, in the file of a connection."""
    con.execute(_DATA).fetchall()
    con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
    for name in ("regions", "zones", "cold_regions"):
        con.execute(f"FROM sdc_declare_public('{name}')").fetchall()
    dimensions, measure, _ = _COLUMNS["people"]
    con.execute(f"""FROM sdc_protect('people', unit := 'person_id', dimensions := {dimensions}, measures := ['{measure}'],
        bounds := {{'income': [1, 10000]}}, bands := {{'income': [0, 2000, 4000]}}{more})""").fetchall()


def declare(con: duckdb.DuckDBPyConnection, name: str, method: str, *, exact: bool) -> None:
    """The policy of one table."""
    arguments = {
        "cell_key": "",
        "threshold": f", min_units := {1 if exact else 5}",
        "rounding": ", base := 5",
        "suppression": f", publication := 'published_{name}'",
    }[method]
    dimensions, measure, sets = _COLUMNS["stays" if name == "stays" else "people"]
    if measure == "income" and method != "suppression":
        arguments += ", bounds := {'income': [1, 10000]}, bands := {'income': [0, 2000, 4000]}"
    if method == "suppression":
        con.execute(
            f"FROM sdc_publish('published_{name}', 'SELECT {', '.join(dimensions)}, count(*) AS n, sum({measure}) AS "
            f"{measure} FROM {name} GROUP BY GROUPING SETS ({sets})', max_count := {0 if exact else 2})"
        ).fetchall()
    con.execute(
        f"FROM sdc_protect('{name}', unit := 'person_id', dimensions := {dimensions}, measures := ['{measure}'], "
        f"population := 'persons', method := '{method}'{arguments})"
    ).fetchall()


def verdict(guarded: Guard, query: Query) -> str:
    """'yes', or the code of the refusal."""
    return told(guarded, query)[0]


def told(guarded: Guard, query: Query) -> tuple[str, pa.Table | None]:
    """The same, and the answer."""
    try:
        return "yes", guarded.sql(query.sql, query.parameters)  # type: ignore[arg-type]
    except Refused as refused:
        return refused.code, None


def page() -> str:
    """The text of the page."""
    verdicts: dict[Query, list[str]] = {query: [] for query in queries()}
    for method in METHODS:
        with guarded(method) as one:
            for query, found in verdicts.items():
                found.append(verdict(one, query))
    parts = [_INTRODUCTION.format(queries=len(verdicts), answered=_shares(verdicts))]
    heading = ""
    for query, found in verdicts.items():
        if query.heading != heading:
            heading = query.heading
            parts.append(f"\n## {heading}\n\n| query | {' | '.join(METHODS)} |\n|---|{'---|' * len(METHODS)}\n")
        parts.append(row(query, found) + " |\n")
    met = sorted({code for found in verdicts.values() for code in found if code != "yes"})
    parts.append("\n## The codes\n\n| code | found | instead |\n|---|---|---|\n")
    parts += [f"| {code} | {REASONS[code][0]} | {REASONS[code][1]} |\n" for code in met]
    return "".join(parts)


def row(query: Query, found: list[str]) -> str:
    """The row of a query, with so many verdicts."""
    text = query.sql.replace("|", "\\|").replace("\n", " ")
    return f"| {query.title}: `{text}` | " + " | ".join(found)


def _shares(verdicts: Mapping[Query, list[str]]) -> str:
    counts = [sum(found[place] == "yes" for found in verdicts.values()) for place in range(len(METHODS))]
    return ", ".join(f"`{method}` {count}" for method, count in zip(METHODS, counts, strict=True))


_INTRODUCTION = """# What the guard answers

What analysts and BI tools write, asked of the [guard](guard.md) under each method: *yes*, or the code of the refusal. Of
{queries} queries it answers: {answered}.

A query that is answered under `threshold` with nothing to hide gives what DuckDB gives for it, and lists and summaries have of it what
may be seen; tests see to that. The page is written by `make acceptance`, and a test keeps it in line with what the guard does.

The queries are over `people` (`person_id` the unit; `region`, `sex`, `age`, `month` dimensions; `income` a measure, with
bounds from 1 to 10000 and bands at 0, 2000 and 4000 where the method has them), a view
`women` of it (not under `suppression`, which takes no two publications of the same people), `stays` of the same persons (`ward`, `month` dimensions; `days` a measure), and the public `regions(region, climate, population)`, `zones(climate, zone)` and `cold_regions`.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
