"""Refusals say what to write in this case, and no value of the data."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET
from sdcduck.guard import Guard, Refused
from sdcduck.guard.failures import failure

_PARTS = "unit := 'person_id', dimensions := ['region', 'age', 'kind'], measures := ['income']"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=EXAMPLE_SECRET) as made:
        made.execute(EXAMPLE_DATA)
        made.execute("CREATE TYPE kinds AS ENUM ('SECRET', 'OTHER LABEL')")
        made.execute("ALTER TABLE people ADD COLUMN kind kinds DEFAULT 'SECRET'")
        made.execute(f"FROM sdc_protect('people', {_PARTS})").fetchall()
        made.execute(
            f"FROM sdc_protect('people', {_PARTS}, method := 'threshold', min_units := 3, role := 'exact')"
        ).fetchall()
        yield made


def _said(guarded: Guard, query: str) -> Refused:
    with pytest.raises(Refused) as refused:
        guarded.sql(query)
    return refused.value


@pytest.mark.parametrize(
    ("role", "query", "code", "detail", "instead"),
    [
        ("", "SELECT region, max(income) FROM people GROUP BY region", "SDC050", "max; write quantile_cont(income, 0.95)",
         "SELECT region, quantile_cont(income, 0.95) FROM people GROUP BY region"),
        ("", "SELECT min(p.income) FROM people AS p", "SDC050", "min; write quantile_cont(income, 0.05)",
         "SELECT quantile_cont(income, 0.05) FROM people AS p"),
        ("", "SELECT mad(income) FROM people", "SDC050", "mad; write quantile_cont(income, 0.75) - quantile_cont(income, 0.25)",
         "SELECT quantile_cont(income, 0.75) - quantile_cont(income, 0.25) FROM people"),
        ("exact", "SELECT mad(age) FROM people", "SDC050", "mad; write quantile_cont(age, 0.75) - quantile_cont(age, 0.25)",
         "SELECT quantile_cont(age, 0.75) - quantile_cont(age, 0.25) FROM people"),
        ("", "SELECT region, first(age) FROM people GROUP BY region", "SDC050", "first; write mode(age), or SELECT age, count(*) .. GROUP BY age",
         "SELECT region, mode(age) FROM people GROUP BY region"),
        ("", "SELECT histogram(age, [20, 40]) FROM people", "SDC050", "histogram; write SELECT age, count(*) .. GROUP BY age",
         "SELECT age, count(*) FROM people GROUP BY age"),
        ("", "SELECT q, count(*) FROM (SELECT ntile(4) OVER (ORDER BY income) AS q FROM people) GROUP BY q", "SDC045",
         "a rank among records: the borders of 4 groups are quantile_cont(income, [0.25, 0.5, 0.75]); OVER (PARTITION BY the unit ..) is answered", "SELECT quantile_cont(income, [0.25, 0.5, 0.75]) FROM people"),
        ("", "SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)", "SDC041", "income", "SELECT avg(income) FROM people"),
        ("", "SELECT list(income) FROM people", "SDC050", "array_agg; write sum(income) or avg(income)", "SELECT sum(income) FROM people"),
        ("exact", "SELECT max(income) FROM people", "SDC050", "max; write sum(income) or avg(income)",
         "SELECT avg(income) FROM people"),
        ("", "SELECT count(*) FROM people WHERE income >= 2500", "SDC041",
         "income; 2500 is no border of a band, which the custodian declares: "
         "sdc_protect(.., bands := {'income': [.., 2500, ..]})", "SELECT count(*) FROM people"),
        ("", "SELECT count(*) FROM people WHERE 3000 < income", "SDC041",
         "income; 3001 is no border of a band, which the custodian declares: "
         "sdc_protect(.., bands := {'income': [.., 3001, ..]})", "SELECT count(*) FROM people"),
        ("", "SELECT count(*) FROM people WHERE income BETWEEN 1000 AND 1000 + 500", "SDC041",
         "income; 1000 and 1501 are no borders of a band, which the custodian declares: "
         "sdc_protect(.., bands := {'income': [.., 1000, 1501, ..]})", "SELECT count(*) FROM people"),
        ("", "SELECT income FROM people GROUP BY income", "SDC041", "income", "SELECT sum(income) FROM people"),
    ],
)  # fmt: skip
def test_what_to_write_instead(
    con: duckdb.DuckDBPyConnection, role: str, query: str, code: str, detail: str, instead: str
) -> None:
    guarded = sdcduck.open_guard(con, role=role)
    refused = _said(guarded, query)
    assert (refused.code, refused.detail) == (code, detail)
    assert guarded.sql(instead).num_rows > 0


def test_a_number_that_is_too_large_says_that_a_cast_helps(con: duckdb.DuckDBPyConnection) -> None:
    guarded = sdcduck.open_guard(con)
    product = "(count(*) * 100000000000 * 100000000000)"
    refused = _said(guarded, f"SELECT {product} AS x FROM people")
    assert refused.code == "SDC090"
    assert refused.detail.endswith("a number is too large for its type: a cast helps, as x::DOUBLE or x::HUGEINT")
    assert guarded.sql("SELECT count(*)::DOUBLE * 100000000000 * 100000000000 AS x FROM people").num_rows == 1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT region || 'x' > DATE '2024-01-01' AS x FROM (SELECT region, count(*) FROM people GROUP BY region)", "VARCHAR"),
        ("SELECT substr(x, 'a') FROM (SELECT count(*) AS x FROM people)", "substr"),
    ],
)  # fmt: skip
def test_errors_of_types_are_shown(con: duckdb.DuckDBPyConnection, query: str, words: str) -> None:
    refused = _said(sdcduck.open_guard(con), query)
    assert refused.code == "SDC090"
    assert words in refused.detail
    assert "a cast helps" in refused.detail


@pytest.mark.parametrize(
    "message",
    [
        "Binder Error: Cannot compare values of type ENUM('SECRET', 'OTHER LABEL') and type INTEGER",
        "Binder Error: Cannot compare values of type VARCHAR and type ENUM('SECRET')",
        "Binder Error: No function matches the given name and argument types 'abs(ENUM('SECRET'))'. You might",
        "Binder Error: No function matches the given name and argument types '_sdc_secret(INTEGER)'. You might",
        "Binder Error: No function matches the given name and argument types 'abs(STRUCT(\"SECRET\" INTEGER))'. You",
        "Binder Error: Cannot compare values of type SECRET and type INTEGER",
        "Binder Error: Cannot mix values of type ENUM('SECRET') and INTEGER in CASE expression",
        'Binder Error: Referenced column "SECRET" not found in FROM clause!',
        "Conversion Error: Could not convert string 'SECRET' to INT32",
        "Out of Range Error: Overflow in multiplication of INT32 (4711 * 4711)!",
        "Invalid Input Error: Failed to cast SECRET",
    ],
)
@pytest.mark.parametrize(
    "kind", [duckdb.BinderException, duckdb.ConversionException, duckdb.OutOfRangeException, OSError]
)
def test_no_value_and_no_label_gets_through(kind: type[Exception], message: str) -> None:
    said = failure(kind(message))
    assert said.startswith(kind.__name__)
    for value in ("SECRET", "LABEL", "4711", "secret"):
        assert value not in said


def test_a_label_does_not_get_through_the_engine_either(con: duckdb.DuckDBPyConnection) -> None:
    guarded = sdcduck.open_guard(con)
    for query in (
        "SELECT abs(kind) FROM (SELECT kind, count(*) FROM people GROUP BY kind)",
        "SELECT kind + 1 FROM (SELECT kind, count(*) FROM people GROUP BY kind)",
        "SELECT kind::INTEGER FROM (SELECT kind, count(*) FROM people GROUP BY kind)",
        "SELECT CASE WHEN n > 3 THEN kind ELSE DATE '2024-01-01' END FROM (SELECT kind, count(*) AS n FROM people GROUP BY kind)",
    ):
        with pytest.raises(Refused) as refused:
            guarded.sql(query)
        assert "SECRET" not in str(refused.value)
        assert "LABEL" not in str(refused.value)
