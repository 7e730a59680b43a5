"""What somebody works out of persons from answers and outside tables: the hospital of the paper, and a search in Python.

Anantharaman, Frittella and Nguyen (2022), "Privacy Analysis with a Distributed Transition System and a Data-Wise Metric".
"""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import numpy as np
import pytest

KINDS = """{'name': 'nominal', 'age': 'interval', 'sex': 'nominal', 'dept': 'nominal', 'ailment': {'taxonomy': 'ailments'}}"""
MEN = "(SELECT * EXCLUDE row FROM published WHERE sex = ''M'')"


@pytest.fixture
def hospital(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("""
        CREATE TABLE ailments AS FROM (VALUES ('Ailment', NULL), ('Heart-Disease', 'Ailment'), ('Cancer', 'Ailment'),
            ('Viral-Infection', 'Ailment'), ('Flu', 'Viral-Infection'), ('CoVid', 'Viral-Infection')) t(child, parent);
        CREATE TABLE published AS FROM (VALUES
            ('l1', '[20,30[', 'F', 'Chemistry', 'Heart-Disease', 1), ('l2', '[40,50[', 'M', 'Chemistry', 'Cancer', 1),
            ('l3', '[20,30[', 'F', 'Physics', 'Viral-Infection', 1), ('l4', '[50,60[', 'M', 'Maths', 'Viral-Infection', 1),
            ('l5', '[40,50[', 'M', 'Physics', 'Viral-Infection', 2)) t(row, age, sex, dept, ailment, likely);
        CREATE TABLE john AS FROM (VALUES ('John', 46, 'M', 'Viral-Infection')) t(name, age, sex, ailment);
        CREATE TABLE statement AS FROM (VALUES ('Physics', 'M', 'CoVid')) t(dept, sex, ailment);
        CREATE TABLE policy AS FROM (VALUES ('John', 46, 'M', '#', 'CoVid')) t(name, age, sex, dept, ailment);
    """)
    return con


def tracked(
    con: duckdb.DuckDBPyConnection, rest: str, answers: str = MEN, policy: str = "policy"
) -> list[dict[str, object]]:
    found = con.sql(f"FROM sdc_policy_tracker('{answers}', '{policy}', {rest})").to_arrow_table()
    return found.to_pylist()  # type: ignore[no-any-return]


def test_the_hospital(hospital: duckdb.DuckDBPyConnection) -> None:
    """0, 1/3 and 2/3 for l2, l4 and l5, and the secret is found out by l5."""
    rest = f"{KINDS}, known := 'john', by := ['sex', 'ailment'], weight := 'likely'"
    alone = tracked(hospital, rest)
    assert [(row["question"], row["probability"], row["violates"]) for row in alone] == [
        (0, 1, False), (1, pytest.approx(2 / 3), False), (1, pytest.approx(1 / 3), False),
    ]  # fmt: skip
    joined = tracked(hospital, f"{rest}, outside := {{'statement': ['dept', 'sex']}}")
    assert [(row["question"], row["probability"], row["violates"], row["knows"]["dept"]) for row in joined] == [  # type: ignore[index]
        (0, 1, False, None), (1, pytest.approx(2 / 3), True, "Physics"), (1, pytest.approx(1 / 3), False, "Maths"),
    ]  # fmt: skip
    assert joined[1]["knows"] == {"name": "John", "age": "46", "sex": "M", "dept": "Physics", "ailment": "CoVid"}
    assert [row["distance"] for row in joined] == pytest.approx([1 / 5, 0, 1 / 5])
    two, one = (row["probability"] for row in joined[1:])
    [(epsilon,)] = hospital.execute("SELECT sdc_eps_min(?, ?)", [one, two]).fetchall()
    assert epsilon == pytest.approx(math.log(2))


def test_of_whom_nothing_is_known_each_row_is_a_branch(hospital: duckdb.DuckDBPyConnection) -> None:
    """Distances 3/2, 6/5 and 11/10 of the paper, and the nearest is l5."""
    kinds = KINDS.replace("'name': 'nominal', ", "")
    target = "(SELECT * EXCLUDE name FROM policy)"
    rows = [row for row in tracked(hospital, kinds, policy=target) if row["question"] == 1]
    assert sorted((row["knows"]["dept"], row["distance"]) for row in rows) == [  # type: ignore[index]
        ("Chemistry", pytest.approx(3 / 2)), ("Maths", pytest.approx(6 / 5)), ("Physics", pytest.approx(11 / 10)),
    ]  # fmt: skip
    assert [row["probability"] for row in rows] == pytest.approx([1 / 3] * 3)


def test_an_age_that_is_known_leaves_one_row(hospital: duckdb.DuckDBPyConnection) -> None:
    """Without `by` all columns count, and [50, 60) is no age of who is 46."""
    rows = tracked(hospital, f"{KINDS}, known := 'john', outside := {{'statement': ['dept', 'sex']}}")
    assert [(row["probability"], row["violates"]) for row in rows] == [(1, False), (1, True)]


def test_tables_are_joined_until_none_adds_anything(con: duckdb.DuckDBPyConnection) -> None:
    """The second table makes the first one useful, in whichever order they stand."""
    con.execute("""
        CREATE TABLE told AS SELECT 'West' AS region; CREATE TABLE known AS SELECT 'Ann' AS name;
        CREATE TABLE streets AS FROM (VALUES ('West', 'Hill'), ('East', 'Lake')) t(region, street);
        CREATE TABLE owners AS FROM (VALUES ('Hill', 'rich'), ('Lake', 'poor')) t(street, wealth);
        CREATE TABLE secret AS SELECT 'Ann' AS name, 'rich' AS wealth;
    """)
    kinds = "{'name': 'nominal', 'region': 'nominal', 'street': 'nominal', 'wealth': 'nominal'}"
    streets, owners = "'streets': ['region']", "'owners': 'street'"
    for outside in (f"{streets}, {owners}", f"{owners}, {streets}"):
        rows = tracked(con, f"{kinds}, known := 'known', outside := {{{outside}}}", "told", "secret")
        assert [(row["question"], row["distance"], row["violates"]) for row in rows] == [(0, 1, False), (1, 0, True)]
    # Candidates that agree are one branch: whoever of the two owners she is, she is rich.
    con.execute("INSERT INTO owners VALUES ('Hill', 'rich')")
    assert len(tracked(con, f"{kinds}, known := 'known', outside := {{{outside}}}", "told", "secret")) == 2


def test_questions_one_after_the_other(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE told AS FROM (VALUES (10, 'A', '[20, 40)', NULL), (10, 'B', '[20, 40)', NULL), (10, 'C', '[60, 80)', NULL),
            (20, NULL, '[30, 50)', 'yes'), (30, 'B', '[30, 32)', 'yes'), (30, 'D', '[30, 32)', 'no')) t(asked, region, age, ill);
        CREATE TABLE known AS SELECT '[10, 60)' AS age; CREATE TABLE secret AS SELECT 'B' AS region, 'yes' AS ill;
    """)
    kinds = "{'region': 'nominal', 'age': 'interval', 'ill': 'nominal'}"
    rows = tracked(con, f"{kinds}, known := 'known', question := 'ASKED'", "told", "secret")
    assert [(row["question"], row["probability"], row["violates"], row["knows"]) for row in rows] == [
        (0, 1, False, {"region": None, "age": "[10, 60)", "ill": None}),
        (1, 0.5, False, {"region": "A", "age": "[20, 40)", "ill": None}),
        (1, 0.5, False, {"region": "B", "age": "[20, 40)", "ill": None}),
        (2, 0.5, False, {"region": "A", "age": "[30, 40)", "ill": "yes"}),
        (2, 0.5, True, {"region": "B", "age": "[30, 40)", "ill": "yes"}),
        (3, 0.5, False, {"region": "A", "age": "[30, 40)", "ill": "yes"}),  # is in no row of the third answer
        (3, 0.5, True, {"region": "B", "age": "[30, 32)", "ill": "yes"}),
    ]


def test_lists_numbers_and_nodes_above_a_secret(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE tree AS FROM (VALUES ('virus', 'illness'), ('flu', 'virus')) t(child, parent);
        CREATE TABLE told AS FROM (VALUES (['a', 'b'], 100, 'flu'), (['c'], 100, 'illness'), (['b'], 200, 'flu')) t(code, income, ill);
        CREATE TABLE known AS FROM (VALUES (['b', 'c'], 100)) t(code, income);
        CREATE TABLE secret AS FROM (VALUES ('#', NULL, 'virus'), (NULL, 150, NULL)) t(code, income, ill);
    """)
    kinds = "{'code': 'nominal', 'income': {'largest': 1000}, 'ill': {'taxonomy': 'tree'}}"
    rows = [row for row in tracked(con, f"{kinds}, known := 'known'", "told", "secret") if row["question"]]
    assert [(row["probability"], row["violates"], row["knows"]) for row in rows] == [
        (0.5, True, {"code": "b", "income": "100", "ill": "flu"}),  # who has the flu has a virus
        (0.5, False, {"code": "c", "income": "100", "ill": "illness"}),
    ]
    assert [row["distance"] for row in rows] == pytest.approx([0, 0.05])


def test_against_a_search_in_python(con: duckdb.DuckDBPyConnection) -> None:
    """Random tables of categories: chances as exact fractions, persons and questions at once."""
    for seed in range(4):
        chance = np.random.default_rng(seed)
        persons = [tuple(row) for row in chance.integers(0, 3, (4, 2)).tolist()]
        told = [[tuple(row) for row in chance.integers(0, 3, (5, 3)).tolist()] for _ in range(2)]
        weights = chance.integers(1, 4, (2, 5)).tolist()
        con.execute(
            "CREATE OR REPLACE TABLE known AS FROM (VALUES "
            + ", ".join(f"({n}, {a}, {b})" for n, (a, b) in enumerate(persons))
            + ") t(name, a, b)"
        )
        lines = [f"({q}, {a}, {b}, {c}, {weights[q][n]})" for q in range(2) for n, (a, b, c) in enumerate(told[q])]
        con.execute(f"CREATE OR REPLACE TABLE told AS FROM (VALUES {', '.join(lines)}) t(q, a, b, c, w)")
        con.execute("CREATE OR REPLACE TABLE secret AS SELECT 1 AS c")
        kinds = "{'name': 'nominal', 'a': 'nominal', 'b': 'nominal', 'c': 'nominal'}"
        rows = tracked(con, f"{kinds}, known := 'known', question := 'q', weight := 'w'", "told", "secret")
        found = {(row["question"], row["knows"]["name"], row["knows"]["c"]): row["probability"] for row in rows}  # type: ignore[index]
        for name, (a, b) in enumerate(persons):
            branches: dict[int | None, Fraction] = {None: Fraction(1)}
            for question in range(2):
                after: dict[int | None, Fraction] = {}
                for knows, p in branches.items():
                    fits = [
                        (c, weights[question][n])
                        for n, (x, y, c) in enumerate(told[question])
                        if (x, y) == (a, b) and knows in (None, c)
                    ]
                    for c, weight in fits or [(knows, 1)]:
                        total = sum(w for _, w in fits) or 1
                        after[c] = after.get(c, Fraction(0)) + p * Fraction(weight, total)
                branches = after
                for knows, p in branches.items():
                    value = found.pop((question + 1, str(name), None if knows is None else str(knows)))
                    assert value == pytest.approx(float(p))
        assert {key[0] for key in found} == {0}  # and before the first question nothing but what was known
        assert len(found) == len(persons)


def test_the_answer_does_not_depend_on_the_order_of_rows(hospital: duckdb.DuckDBPyConnection) -> None:
    rest = f"{KINDS}, known := 'john', by := 'sex', weight := 'likely', outside := {{'statement': ['dept', 'sex']}}"
    answers = {
        repr(tracked(hospital, rest, f"(SELECT * EXCLUDE row FROM published ORDER BY {order})"))
        for order in ("row", "row DESC", "md5(row)")
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("{'shoe': 'nominal'}", "unknown column 'shoe'"),
        ("{'sex': 'fuzzy'}", "argument 'kinds' must"),
        (f"{KINDS}, by := ['shoe']", "unknown column 'shoe'"),
        (f"{KINDS}, known := 'nobody'", "nobody"),
        (f"{KINDS}, question := 'shoe'", "unknown column 'shoe'"),
        (f"{KINDS}, weight := 'sex'", "weight"),
        (f"{KINDS}, weight := 'none'", "a weight is no finite number above 0"),
        (f"{KINDS}, outside := {{'statement': []}}", "argument 'outside' must name the columns"),
        (f"{KINDS}, outside := {{'statement': ['shoe']}}", "unknown column 'shoe'"),
        (f"{KINDS}, outside := {{'statement': ['likely']}}", "unknown column 'likely'"),
        (f"{KINDS}, outside := {{'wrong': ['dept']}}", "a value is not in the taxonomy"),
    ],
)
def test_bad_input(hospital: duckdb.DuckDBPyConnection, rest: str, said: str) -> None:
    hospital.execute("CREATE TABLE wrong AS SELECT 'Physics' AS dept, 'Ague' AS ailment")
    answers = "(SELECT *, likely - 1 AS none FROM published)"
    with pytest.raises(duckdb.Error, match=said):
        tracked(hospital, rest, answers)


def test_too_many_branches_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE told AS SELECT a, b FROM range(200) t(a), range(101) u(b); CREATE TABLE secret AS SELECT 1 AS a"
    )
    with pytest.raises(duckdb.Error, match="more than 20,000 branches"):
        tracked(con, "{'a': 'nominal', 'b': 'nominal'}", "told", "secret")


def test_no_rows(hospital: duckdb.DuckDBPyConnection) -> None:
    rest = f"{KINDS}, known := 'john'"
    assert [row["question"] for row in tracked(hospital, rest, "(FROM published LIMIT 0)")] == [0]
    assert tracked(hospital, rest, policy="(FROM policy LIMIT 0)") == []


def test_names_with_quotes_and_capitals(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""CREATE TABLE "To ld" AS SELECT 'x' AS "It's"; CREATE TABLE secret AS SELECT 'x' AS "IT'S" """)
    rows = tracked(con, "{'it''s': 'nominal'}", '"To ld"', "secret")
    assert [(row["violates"], row["knows"]) for row in rows] == [(False, {"it's": None}), (True, {"it's": "x"})]
