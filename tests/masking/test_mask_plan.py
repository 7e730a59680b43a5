"""A plan of masking: what it says of each step is what the step gives, and its end is a file that can be released."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import pytest

KEYS = "['region', 'sex', 'age', 'born']"
HIERARCHIES = "{'age': [5, 10, 20], 'born': ['month', 'year'], 'REGION': 'regions'}"


@pytest.fixture
def survey(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("""
        CREATE TABLE regions AS FROM (VALUES ('N', 'Land'), ('S', 'Land'), ('E', 'Sea'), ('W', 'Sea'), ('Land', 'All'), ('Sea', 'All')) t(child, parent);
        CREATE TABLE survey AS
        SELECT i AS id, ['N', 'S', 'E', 'W'][1 + (i * 7919 % 1009) % 4] AS region, i % 2 = 0 AS sex, 20 + (i * 104729 % 1013) % 50 AS age,
            DATE '1990-01-01' + ((i * 1299709 % 1019) % 700)::INTEGER AS born, 1000.0 + (i * 37) % 900 AS income,
            CASE WHEN i % 9 > 0 THEN 10 + (i * 13) % 40 END AS hours, 20.0 + i % 3 AS weight
        FROM range(240) r(i);
    """)
    return con


def plan(con: duckdb.DuckDBPyConnection, arguments: str) -> list[dict[str, object]]:
    found = con.execute(f"FROM sdc_mask_plan('survey', {arguments}, id := 'id')")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_what_is_planned_is_what_comes_out(survey: duckdb.DuckDBPyConnection) -> None:
    steps = plan(survey, f"{KEYS}, measures := ['income', 'hours'], k := 3, hierarchies := {HIERARCHIES}")
    assert [step["step"] for step in steps] == list(range(len(steps)))
    actions = [step["action"] for step in steps]
    recodes = actions.count("recode")
    assert actions == ["as it is", *["recode"] * recodes, "local suppression", "microaggregation"]
    assert 2 <= recodes <= 6
    for place, step in enumerate(steps):
        survey.execute(f"CREATE OR REPLACE TABLE made AS {step['query']}")
        nulls = "match" if place > recodes else "category"
        measured = survey.execute(
            f"SELECT k, uniques, below_k, mean_risk * records FROM sdc_k_anonymity('made', {KEYS}, k := 3, nulls := '{nulls}')"
        ).fetchall()[0]
        assert measured == (step["k"], step["uniques"], step["below_k"], step["expected"])
        if place:
            changed, gone, il = survey.execute("""
                SELECT sum(changed) FILTER (column_name NOT IN ('income', 'hours')), sum(suppressed) FILTER (column_name NOT IN ('income', 'hours')),
                    avg(il) FILTER (column_name IN ('income', 'hours'))
                FROM sdc_mask_loss('survey', 'made', ['region', 'sex', 'age', 'born', 'income', 'hours'], id := 'id')
            """).fetchall()[0]
            assert (changed, gone, il) == (step["changed"], step["suppressed"], step["il"])
        assert survey.execute("SELECT count(*), count(DISTINCT id) FROM made").fetchall() == [(240, 240)]
    # Each step lowers the risk; the last leaves nobody who is rare.
    rare = [step["below_k"] for step in steps]
    assert rare == sorted(rare, reverse=True)  # type: ignore[type-var]
    assert rare[-1] == 0
    assert (
        survey.execute(
            "SELECT min(n) FROM (SELECT count(*) AS n FROM made WHERE hours IS NOT NULL GROUP BY income, hours)"
        ).fetchall()[0][0]
        >= 3
    )
    assert survey.execute("SELECT count(*) FROM made WHERE hours IS NULL").fetchall() == [(27,)]
    assert (
        survey.execute(
            "SELECT count(DISTINCT region) FROM made WHERE region IN ('N', 'S', 'E', 'W', 'Land', 'Sea')"
        ).fetchall()[0][0]
        > 0
    )


def test_the_key_in_most_rare_combinations_comes_first(survey: duckdb.DuckDBPyConnection) -> None:
    steps = plan(survey, f"{KEYS}, hierarchies := {HIERARCHIES}, suppress_limit := 0.0")
    for before, step in pairwise(steps):
        if step["action"] != "recode":
            break
        survey.execute(f"CREATE OR REPLACE TABLE made AS {before['query']}")
        unsafe = dict(
            survey.execute(
                f"SELECT variable, list(unsafe ORDER BY dimension) FROM sdc_unsafe_combinations('made', {KEYS}, max_size := 3) GROUP BY 1"
            ).fetchall()
        )
        [key] = step["columns"]  # type: ignore[misc]
        used = [one["columns"][0] for one in steps if one["action"] == "recode" and one["step"] < step["step"]]  # type: ignore[index, operator]
        left = [name for name, levels in (("region", 1), ("age", 3), ("born", 2)) if used.count(name) < levels]
        assert unsafe[key] == max(unsafe[name] for name in left)


def test_limits_and_other_masks(survey: duckdb.DuckDBPyConnection) -> None:
    steps = plan(survey, f"{KEYS}, suppress_limit := 1")
    assert [step["action"] for step in steps] == ["as it is", "local suppression"]
    assert steps[1]["suppressed"] == steps[1]["changed"]
    assert steps[0]["il"] is None
    steps = plan(survey, "['sex'], measures := ['income'], mask := 'noise', hierarchies := NULL")
    assert [step["action"] for step in steps] == ["as it is", "noise"]  # nobody is rare
    assert 0 < steps[1]["il"] < 20  # type: ignore[operator]
    steps = plan(survey, "['sex'], measures := ['income'], mask := 'none'")
    assert [step["action"] for step in steps] == ["as it is"]
    weighted = plan(survey, f"{KEYS}, weight := 'weight', suppress_limit := 1")
    assert weighted[0]["expected"] == pytest.approx(
        survey.execute(f"SELECT expected FROM sdc_global_risk('survey', {KEYS}, weight := 'weight')").fetchall()[0][0]
    )
    rules = "{'age': [{'breaks': [40]}, {'map': MAP {20: 'x'}, 'other': 'y'}], 'region': [{'groups': {'NS': ['N', 'S'], 'EW': ['E', 'W']}}]}"
    own = plan(survey, f"['region', 'age'], hierarchies := {rules}, suppress_limit := 0")
    assert {step["action"] for step in own} <= {"as it is", "recode", "local suppression"}
    assert "recode" in {step["action"] for step in own}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("[], id := 'id'", "argument 'keys' must name the columns"),
        ("['age']", "argument 'id' must name a column that is different in each record"),
        ("['age'], id := 'sex'", "column 'sex' is the same in several records"),
        ("['age'], id := 'age'", "argument 'id' must name other columns than 'keys' and 'measures'"),
        ("['age'], measures := ['age'], id := 'id'", "argument 'measures' must name other columns"),
        ("['age'], measures := ['region'], id := 'id'", "must name a column of numbers"),
        ("['age'], k := 1, id := 'id'", "argument 'k' must be a whole number of at least 2"),
        ("['age'], suppress_limit := 5, id := 'id'", "argument 'suppress_limit' must lie between 0 and 1; 5 per cent is 0.05"),
        ("['age'], mask := 'swap', id := 'id'", "argument 'mask' must be 'microaggregation', 'noise' or 'none'"),
        ("['age'], hierarchies := {'sex': [5]}, id := 'id'", "unknown key 'sex'"),
        ("['age'], hierarchies := {'age': 5}, id := 'id'", "that of 'age' must be widths, periods"),
        ("['age'], hierarchies := {'age': [0]}, id := 'id'", "argument 'hierarchies': "),
        ("['region'], hierarchies := {'region': [5]}, id := 'id'", "argument 'hierarchies': "),
        ("['born'], hierarchies := {'born': ['moon']}, id := 'id'", "argument 'hierarchies': "),
        ("['region'], hierarchies := {'region': 'nowhere'}, id := 'id'", "unknown table 'nowhere'"),
    ],
)  # fmt: skip
def test_bad_input(survey: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as raised:
        survey.execute(f"FROM sdc_mask_plan('survey', {arguments})").fetchall()
    assert message in str(raised.value)
