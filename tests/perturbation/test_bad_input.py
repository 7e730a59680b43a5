"""Bad input gives one clear error, or the documented result; never half a write, never a data value in a message."""

from __future__ import annotations

import duckdb
import pytest


def error(con: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The first line of the error that a statement raises."""
    with pytest.raises(duckdb.Error) as caught:
        con.execute(sql).fetchall()
    text = str(caught.value)
    assert "Traceback" not in text
    assert "Python exception" not in text
    return text.splitlines()[0]


@pytest.fixture
def people(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    lasting.execute(
        """CREATE OR REPLACE TABLE people AS SELECT range AS id, 'r' || range % 3 AS region, range * 1000003 % 100000000 AS record_key,
            (range * 10)::DOUBLE AS y, range AS whole, range::VARCHAR AS text FROM range(30)"""
    )
    return lasting


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "sdc_count(CASE WHEN id <> 7 THEN record_key END)",
            "a record without a key: the record key is NULL somewhere",
        ),
        ("sdc_count_units(id, CASE WHEN id <> 7 THEN record_key END)", "a record without a key"),
        ("sdc_count_units(CASE WHEN id <> 7 THEN id END, record_key)", "a row without a unit"),
        ("sdc_sum(y, CASE WHEN id <> 7 THEN record_key END)", "a record without a key"),
        ("sdc_sum(CASE WHEN id <> 7 THEN y END, CASE WHEN id <> 7 THEN record_key END)", "a record without a key"),
        ("sdc_weighted_sum(y, 2, CASE WHEN id <> 7 THEN record_key END)", "a record without a key"),
        ("sdc_weighted_sum(y, CASE WHEN id <> 7 THEN 2 END, record_key)", "a record without a key (or weight)"),
        ("sdc_weighted_count(CASE WHEN id <> 7 THEN 2 END, record_key)", "a weight is NULL"),
        ("sdc_count(-record_key)", "negative record keys"),
        ("sdc_sum(y, -record_key)", "negative record keys"),
        ("sdc_count(record_key / 1e8)", "record keys must be integers, not DOUBLE"),
        ("sdc_sum(y, record_key / 1e8)", "record keys must be integers, not DOUBLE"),
        ("sdc_count(record_key::DECIMAL(10, 2))", "record keys must be integers, not DECIMAL(10,2)"),
        ("sdc_count(text)", "No function matches"),
        ("sdc_sum(text, record_key)", "No function matches"),
        ("sdc_count(record_key, ptable := 'nope')", "unknown p-table 'nope'; stored: default, default_magnitude"),
        ("sdc_sum(y, record_key, ptable := 'nope')", "unknown p-table 'nope'"),
        ("sdc_sum(y, record_key, small_cells := 'nope')", "unknown p-table 'nope'"),
        ("sdc_count(record_key, ptable := 'default_magnitude')", "is for magnitudes; a count needs one for counts"),
        ("sdc_sum(y, record_key, ptable := 'default')", "is for counts; a sum needs one for magnitudes"),
        ("sdc_count(record_key, digits := 0)", "digits must be between 1 and 18"),
        ("sdc_count(record_key, digits := 19)", "digits must be between 1 and 18"),
        ("sdc_sum(y, record_key, digits := 4)", "digits must be between 5 and 18"),
        ("sdc_sum(y, record_key, p_large := 0)", "noise coefficients must satisfy 0 < p_large <= p_small"),
        ("sdc_sum(y, record_key, p_large := 0.3, p_small := 0.2, fp := 10)", "noise coefficients must satisfy"),
        ("sdc_sum(y, record_key, p_small := 0.2, fp := -1)", "the flex point fp must be positive"),
        (
            "sdc_sum(y, record_key, p_small := 0.2, fp := 10, q := 1)",
            "the exponent q of the flex function must be above 1",
        ),
        ("sdc_sum(y, record_key, epsilon := [0.5])", "epsilon must be 1 to 6 numbers that begin with 1 and never rise"),
        ("sdc_sum(y, record_key, epsilon := [1, 0.2, 0.5])", "epsilon must be"),
        ("sdc_sum(y, record_key, epsilon := [1, 1, 1, 1, 1, 1, 1])", "epsilon must be"),
        ("sdc_sum(y, record_key, mu_c := -1, sensitive := true)", "mu_c must not be negative"),
        ("sdc_sum(y, record_key, magnifier := 'median')", "magnifier must be"),
        ("sdc_sum(y / 0, record_key)", "a measure is NaN, infinite or too large"),
        ("sdc_sum('nan'::DOUBLE, record_key)", "a measure is NaN, infinite or too large"),
        ("sdc_sum(-1e300, record_key)", "No function matches|a measure is NaN, infinite or too large"),
        ("sdc_sum(1e15::DOUBLE, record_key)", "too large for decimals := 4"),
        ("sdc_ckm_count(-1, 5)", "a count is negative or NULL"),
        ("sdc_ckm_count(NULL, 5)", "a count is negative or NULL"),
        ("sdc_ckm_count(1, -5)", "a key sum is negative or NULL"),
        ("sdc_ckm_count(1, NULL)", "a key sum is negative or NULL"),
        ("sdc_ckm_sum('inf'::DOUBLE, [1.0], 5)", "a cell value is NaN or infinite"),
        ("sdc_ckm_sum(1, [1.0], -5)", "negative record keys"),
        ("sdc_ckm_sum(1, [1.0], NULL)", "a key sum is NULL"),
        ("sdc_ckm_sum(1, [1.0, NULL], 5, epsilon := [1, 0.5])", "a contribution is NULL, NaN or infinite"),
        ("sdc_ckm_sum(1, ['nan'::DOUBLE], 5)", "a contribution is NULL, NaN or infinite"),
        ("sdc_ckm_count(2, 0.62)", "key sums are whole numbers; multiply keys between 0 and 1 by 10^digits"),
        ("sdc_ckm_count(2.5, 7)", "counts and key sums are whole numbers"),
        ("sdc_ckm_sum(5, [1.0], 0.62)", "key sums are whole numbers; multiply keys between 0 and 1 by 10^digits"),
        ("sdc_ckm_sum(5, [1.0], 'nan'::DOUBLE)", "key sums are whole numbers"),
        ("sdc_cell_key(record_key, digits := 0)", "digits must be between 1 and 18"),
        ("sdc_cell_key(record_key, digits := 25)", "digits must be between 1 and 18"),
        ("sdc_cell_key(record_key, digits := NULL)", "digits must be between 1 and 18"),
        ("sdc_digits_of_noise(1, -1, 3)", "x and t must be finite numbers, and t not negative"),
        ("sdc_digits_of_noise('nan'::DOUBLE, 1, 3)", "x and t must be finite numbers"),
        ("sdc_digits_of_noise(1, 'inf'::DOUBLE, 3)", "x and t must be finite numbers"),
        ("sdc_digits_of_noise(1, 1, -3)", "negative record keys"),
        ("sdc_digits_of_noise(1, 1, 3, ptable := 'nope')", "unknown p-table 'nope'"),
        ("sdc_digits_of_noise(1, 1, 3, ptable := 'default')", "p-table 'default' is for counts"),
        ("sdc_digits_of_noise(1, 1, 3, p_large := 10)", "p_large is a share of the contribution"),
        ("sdc_mbs(1050, -6, 7)", "sdc_mbs: a count is negative"),
        ("sdc_mbs(1050, 6, -7)", "sdc_mbs: a count is negative"),
        ("sdc_count(record_key, ptable := 5)", "unknown p-table '5'; stored: default, default_magnitude"),
        ("sdc_count_units(id, record_key, ptable := 5)", "unknown p-table '5'"),
        ("sdc_ckm_count(3, 7, ptable := 5)", "unknown p-table '5'"),
        ("sdc_sum(y, record_key, ptable := 5)", "unknown p-table '5'"),
        ("sdc_sum(y, record_key, small_cells := 5)", "unknown p-table '5'"),
        ("sdc_sum(y, record_key, epsilon := [1, 0.5], ptable := 5)", "unknown p-table '5'"),
        ("sdc_weighted_sum(y, 2, record_key, ptable := 5)", "unknown p-table '5'"),
        ("sdc_mean(y, record_key, count_ptable := 5)", "unknown p-table '5'"),
        ("sdc_count(record_key, digits := NULL)", "digits must be between 1 and 18"),
        ("sdc_sum(y, record_key, digits := NULL)", "digits must be between 5 and 18"),
        ("sdc_sum(y, record_key, decimals := NULL)", "too large for decimals := NULL"),
        ("sdc_sum(y, record_key, p_large := NULL)", "noise coefficients must satisfy 0 < p_large <= p_small"),
        ("sdc_sum(y, record_key, p_large := 'nan'::DOUBLE)", "must be finite numbers"),
        ("sdc_sum(y, record_key, p_small := 'inf'::DOUBLE, fp := 10)", "must be finite numbers"),
        ("sdc_sum(y, record_key, p_small := 0.2, fp := 'inf'::DOUBLE)", "must be finite numbers"),
        ("sdc_sum(y, record_key, p_small := 0.2, fp := 10, q := NULL)", "the exponent q of the flex function"),
        ("sdc_sum(y, record_key, mu_c := NULL, sensitive := true)", "mu_c must not be negative"),
        ("sdc_sum(y, record_key, mu_c := 'nan'::DOUBLE, sensitive := true)", "must be finite numbers"),
        ("sdc_sum(y, record_key, epsilon := [])", "epsilon must be"),
        ("sdc_sum(y, record_key, epsilon := NULL)", "epsilon must be"),
        *(
            (f"{call}, {option} := NULL)", "same_key, sensitive and compat must be true or false, not NULL")
            for call in (
                "sdc_sum(y, record_key",
                "sdc_weighted_sum(y, 2, record_key",
                "sdc_sum(y, record_key, epsilon := [1, 0.5]",
            )
            for option in ("same_key", "sensitive", "compat")
        ),
        ("sdc_sum(y, record_key, sensitive := NULL, compat := true)", "same_key, sensitive and compat must be true"),
        ("sdc_sum(y, record_key, magnifier := NULL)", "magnifier must be 'top', 'mean', 'range' or 'sum'"),
        ("sdc_weighted_sum(y, 2, record_key, magnifier := NULL)", "magnifier must be 'top', 'mean', 'range' or 'sum'"),
        ("sdc_ckm_sum(100, [50.0], 5, same_key := NULL)", "same_key, sensitive and compat must be true or false"),
        ("sdc_ckm_count(10, 5, ptable := NULL)", "unknown p-table 'NULL'"),
        ("sdc_quantile(y, record_key, NULL)", "q must lie between 0 and 1"),
        ("sdc_quantile(y, record_key, 0.5, significant := NULL)", "significant and least_beyond must be numbers"),
        ("sdc_quantile(y, record_key, 0.5, least_beyond := NULL)", "significant and least_beyond must be numbers"),
        ("sdc_sum(y, record_key, epsilon := [1, NULL])", "epsilon must be"),
        ("sdc_weighted_sum(y, 2, record_key, epsilon := [])", "epsilon must be"),
    ],
)
def test_aggregates(people: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    text = error(people, f"SELECT region, {call} FROM people GROUP BY region")
    assert any(part in text for part in message.split("|")), text


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("FROM sdc_ptable(V := 2)", "sdc_ptable: D (largest noise) and V (variance of the noise) must be given"),
        ("FROM sdc_ptable(D := 5, V := 3, js := 3)", "V >= 4"),
        ("FROM sdc_ptable(D := 5, V := 2, pstay := 1.5)", "pstay"),
        ("FROM sdc_ptable(D := 5, V := 2, pstay := 'x')", "argument 'pstay' must be a number, true, false, or a list"),
        ("FROM sdc_ptable(D := 5, V := 2, mono := [true, false])", "mono"),
        ("FROM sdc_ptable(D := 5, V := 2, kind := 'nums')", "argument 'kind' must be 'counts' or 'magnitudes'"),
        ("FROM sdc_ptable(D := 5, V := 2, kind := 'magnitudes', icat := [2, 5])", "icat"),
        ("FROM sdc_ptable(D := 5, V := 2, kind := 'magnitudes', js := 1)", "js and pstay are for kind := 'counts'"),
        ("FROM sdc_ptable(D := 5, V := 2, icat := [1, 5])", "icat and type are for kind := 'magnitudes'"),
        ("FROM sdc_ptable(D := 5, V := 'nan'::DOUBLE)", "V"),
        ("FROM sdc_ptable(D := 5, V := -1)", "V"),
        ("FROM sdc_ptable(D := 0, V := 1)", "D"),
        ("FROM sdc_ptable(D := 100000, V := 1)", "D"),
        ("FROM sdc_ptable(D := 5.5, V := 1)", "sdc_ptable: argument 'D' must be a whole number"),
        ("FROM sdc_ptable(D := 'inf'::DOUBLE, V := 1)", "sdc_ptable: argument 'D' must be a whole number"),
        ("FROM sdc_ptable(D := 5, V := 3, js := 1.5)", "sdc_ptable: argument 'js' must be a whole number"),
        ("FROM sdc_ptable(D := 5, V := 3, kind := 'magnitudes', step := 'nan'::DOUBLE)", "argument 'step' must be a whole number"),
        ("FROM sdc_ptable(D := 5, V := 2, modified := true, threshold := 2)", "threshold"),
        ("FROM sdc_ptable_check('defualt')", "unknown p-table 'defualt'; did you mean 'default'?"),
        ("FROM sdc_ptable_check(NULL)", "unknown p-table"),
        ("FROM sdc_store_ptable('x', 'nowhere')", "unknown table 'nowhere'"),
        ("FROM sdc_store_ptable('x', 'poeple')", "did you mean 'people'?"),
        ("FROM sdc_store_ptable('x', 'people')", "is no p-table: there is no column 'i'"),
        ("FROM sdc_store_ptable('x', '(SELECT 1 AS i')", "argument 'source'"),
        ("FROM sdc_store_ptable('x', 'folder/file.csv')", "a file is read by one: (FROM 'folder/file.csv')"),
        ("FROM sdc_store_ptable('x', NULL)", "argument 'source' must name a table or view"),
        ("FROM sdc_store_ptable(NULL, 'people')", "argument 'name' must be given"),
        ("FROM sdc_store_ptable('', '(FROM sdc_ptable(D := 2, V := 1))')", "argument 'name' must be given"),
        ("FROM sdc_store_ptable('default', '(FROM sdc_ptable(D := 2, V := 1))')", "is a built-in p-table"),
        ("FROM sdc_store_ptable('x', '(SELECT 1 AS i, 0 AS v, 0.5 AS ub)')", "do not end at 1"),
        ("FROM sdc_store_ptable('x', '(SELECT 1 AS i, NULL AS v, 1 AS ub)')", "must be numbers"),
        ("FROM sdc_store_ptable('x', '(SELECT 0 AS i, 1 AS v, 1 AS ub)')", "zeros must stay zeros"),
        ("FROM sdc_store_ptable('x', '(SELECT 1 AS i, 0.0001 AS v, 1 AS ub)')", "on no grid"),
        ("FROM sdc_store_ptable('x', '(SELECT 1 AS i, 0 AS v, 1 AS ub WHERE false)')", "is empty"),
        ("FROM sdc_store_ptable('x', '(SELECT 2 AS i, 0 AS v, 1 AS ub)', kind := 'counts')", "without gaps"),
        ("FROM sdc_store_ptable('x', '(SELECT 1 AS i, 5000 AS v, 1 AS ub)')", "noise beyond"),
        ("FROM sdc_store_ptable('x', '(SELECT unnest([1, 1]) AS i, unnest([0, 1]) AS v, unnest([.5, 1]) AS ub, unnest([0, .6]) AS lb)')", "do not follow each other"),
        ("FROM sdc_store_ptable('x', '(SELECT 1 AS pcv, 1 AS ckey, 0 AS pvalue)')", "one row for every pcv from 1 and every ckey from 0"),
        ("FROM sdc_store_ptable('x', '(SELECT 1 AS pcv, unnest([0, 1]) AS ckey, -2 AS pvalue)')", "a count would become negative"),
        ("FROM sdc_drop_ptable('default')", "is a built-in p-table and cannot be dropped"),
        ("FROM sdc_drop_ptable('nope')", "unknown p-table 'nope'"),
        ("FROM sdc_add_record_key('people')", "argument 'unit' must name a column of 'people'"),
        ("FROM sdc_add_record_key('people', unit := 'idd')", "unknown column 'idd' in 'people'; did you mean 'id'?"),
        ("FROM sdc_add_record_key('people', unit := 'id')", "'people' has a column 'record_key' already"),
        ("FROM sdc_add_record_key('people', unit := 'id', record_key := 'k', digits := 3)", "argument 'digits' must be a whole number from 5 to 18"),
        ("FROM sdc_add_record_key('people', unit := 'id', record_key := 'k', digits := 8.5)", "argument 'digits' must be a whole number"),
        ("FROM sdc_check_keys('people', digits := 8.5)", "argument 'digits' must be a whole number"),
        ("FROM sdc_add_record_key('(FROM people)', unit := 'id')", "must name a table"),
        ("FROM sdc_add_record_key('nowhere', unit := 'id')", "unknown table 'nowhere'"),
        ("FROM sdc_check_keys('people', record_key := 'text')", "must hold integers"),
        ("FROM sdc_check_keys('people', record_key := 'nope')", "unknown column 'nope' in 'people'"),
        ("FROM sdc_check_keys('people; DROP TABLE people')", "must name one table"),
        ("FROM sdc_table_risk_utility('people', 'people')", "argument 'dimensions' must list the columns"),
        ("FROM sdc_table_risk_utility('people', 'people', dimensions := ['regoin'])", "unknown column 'regoin' in 'people'; did you mean 'region'?"),
        ("FROM sdc_table_risk_utility('people', 'people', dimensions := ['id'])", "unknown column 'n' in 'people'"),
        ("FROM sdc_table_risk_utility('people', 'people', dimensions := ['id'], freq := NULL)", "argument 'freq' must name a column of 'people'"),
        ("FROM sdc_noise_distribution('people', 'people', dimensions := ['id'], freq := 'id', protected_freq := NULL)", "argument 'protected_freq' must name a column"),
        ("FROM sdc_table_risk_utility('people', 5, dimensions := ['id'], freq := 'id')", "argument 'protected' must name a table or view"),
        ("FROM sdc_add_record_key('people', unit := 3)", "unknown column '3' in 'people'"),
        ("FROM sdc_ptable_check(5)", "unknown p-table '5'"),
        ("FROM sdc_table_risk_utility('people', 'people', dimensions := ['region'], freq := 'whole', protected_freq := 'whole')", "the dimensions do not identify the cells"),
        ("FROM sdc_table_risk_utility('people', 'people', dimensions := ['id'], freq := 'whole', protected_freq := 'whole', value := 'y')", "arguments 'value' and 'protected_value' go together"),
        ("FROM sdc_table_risk_utility('people', '(SELECT id, -whole AS whole FROM people)', dimensions := ['id'], freq := 'whole', protected_freq := 'whole')", "a count is negative, NaN or infinite"),
        ("FROM sdc_table_risk_utility('people', 'people', dimensions := ['id'], freq := 'y', protected_freq := 'whole', value := 'lost', protected_value := 'lost')", "unknown column 'lost' in 'people'"),
        ("FROM sdc_table_risk_utility('people', '(SELECT id, ''nan''::DOUBLE AS m FROM people)', dimensions := ['id'], freq := 'y', protected_freq := 'm')", "a count is negative, NaN or infinite"),
        ("FROM sdc_count_utility('people', '(SELECT id, ''inf''::DOUBLE AS m FROM people)', dimensions := ['id'], freq := 'y', protected_freq := 'm')", "a count is negative, NaN or infinite"),
        ("FROM sdc_noise_distribution('people', '(SELECT id, ''nan''::DOUBLE AS m FROM people)', dimensions := ['id'], freq := 'y', protected_freq := 'm')", "a count is negative, NaN or infinite"),
        ("FROM sdc_table_risk_utility('people', '(SELECT id, 1 AS n, ''-inf''::DOUBLE AS m FROM people)', dimensions := ['id'], freq := 'whole', value := 'y', protected_value := 'm')", "a sum is NaN or infinite"),
        ("FROM sdc_table_risk_utility('people', 'people', dimensions := ['id'], freq := 'whole', protected_freq := 'whole', by := 'sex')", "unknown dimension 'sex'"),
        ("FROM sdc_functions(name := 'sdc_cuont')", "unknown function 'sdc_cuont'; did you mean 'sdc_count'?"),
        ("SELECT sdc_record_key(1, digits := 30)", "digits must be between 5 and 18"),
        ("SELECT sdc_record_key(1, digits := 8.5)", "digits must be between 5 and 18"),
        ("FROM sdc_ptable(D := 10, V := 3, kind := 'magnitudes', icat := [1, 5.5, 10])", "icat[1] must be a whole number from 1 to 10; 5.5 was given"),
    ],
)  # fmt: skip
def test_table_functions(people: duckdb.DuckDBPyConnection, statement: str, message: str) -> None:
    before = people.execute(
        "SELECT table_name FROM duckdb_tables() UNION SELECT name FROM sdc.ptables ORDER BY 1"
    ).fetchall()
    assert message in error(people, statement)
    after = people.execute(
        "SELECT table_name FROM duckdb_tables() UNION SELECT name FROM sdc.ptables ORDER BY 1"
    ).fetchall()
    assert after == before


def test_a_null_unit_leaves_the_table_as_it_was(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("INSERT INTO people (id, region) VALUES (NULL, 'r1')")
    assert "is NULL in 1 rows" in error(people, "FROM sdc_add_record_key('people', unit := 'id', record_key := 'k')")
    assert "k" not in [row[0] for row in people.execute("DESCRIBE people").fetchall()]


def test_empty_tables_and_groups(people: duckdb.DuckDBPyConnection) -> None:
    empty = people.execute(
        """SELECT sdc_count(record_key), sdc_sum(y, record_key), sdc_mean(y, record_key), sdc_count_units(id, record_key),
            sdc_weighted_count(whole, record_key), sdc_weighted_sum(y, whole, record_key), sdc_cell_key(record_key),
            sdc_sum(y, record_key, epsilon := [1, 0.5])
        FROM people WHERE false"""
    ).fetchall()
    assert empty == [(0, None, None, 0, 0.0, None, None, None)]
    result = people.execute("SELECT region, sdc_count(record_key) AS n FROM people WHERE false GROUP BY region")
    assert [column[0] for column in result.description or []] == ["region", "n"]
    assert result.fetchall() == []
    nulls = people.execute(
        "SELECT sdc_sum(NULL::DOUBLE, record_key), sdc_sum(0, record_key), sdc_mean(NULL::INTEGER, record_key) FROM people"
    )
    assert nulls.fetchall() == [(None, 0, None)]
    people.execute("CREATE OR REPLACE TABLE none AS SELECT 'a' AS g, 1 AS n WHERE false")
    assert (
        people.execute("SELECT cells, U FROM sdc_table_risk_utility('none', 'none', dimensions := ['g'])").fetchall()
        == []
    )


def test_null_dimensions_are_a_cell_of_their_own(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("UPDATE people SET region = NULL WHERE region = 'r1'")
    rows = dict(people.execute("SELECT region, sdc_count(record_key) FROM people GROUP BY region").fetchall())
    assert set(rows) == {None, "r0", "r2"}
    paired = people.execute(
        """SELECT cells, false_zero FROM sdc_table_risk_utility(
            '(SELECT region, count(*) AS n FROM people GROUP BY 1)', '(SELECT region, count(*) AS n FROM people GROUP BY 1)',
            dimensions := ['region'])"""
    ).fetchall()
    assert paired == [(3, 0)]


def test_a_cell_that_one_table_lacks_is_zero_there(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE a AS SELECT unnest(['x', 'y']) AS g, 2 AS n; CREATE TABLE b AS SELECT unnest(['y', 'z']) AS g, 3 AS m"
    )
    row = con.execute(
        "SELECT cells, false_zero, false_nonzero FROM sdc_table_risk_utility('a', 'b', dimensions := ['g'], protected_freq := 'm')"
    ).fetchall()
    assert row == [(3, 1, 1)]


def test_keys_out_of_range_are_counted_and_taken_modulo(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT range AS id, range * 60000000 AS record_key FROM range(4)")
    assert con.execute("SELECT keys_out_of_range FROM sdc_check_keys('t', unit := 'id')").fetchall() == [(2,)]
    assert con.execute("SELECT sdc_cell_key(record_key) FROM t").fetchall() == [(60000000,)]
    # Also where their sum is beyond 64 bits.
    huge = "(SELECT 9223372036854775807 AS record_key FROM range(60))"
    assert (
        con.execute(f"SELECT sdc_cell_key(record_key), sdc_count(record_key) FROM {huge}").fetchall()
        == con.execute("SELECT 86548420, sdc_ckm_count(60, 86548420)").fetchall()
    )


@pytest.mark.parametrize("name", ["select", "Größe und Maß", 'with "quotes"', "o'clock", "table.dotted", "日本"])
def test_names_that_need_quoting(con: duckdb.DuckDBPyConnection, name: str) -> None:
    quoted, text = '"' + name.replace('"', '""') + '"', "'" + name.replace("'", "''") + "'"
    con.execute(f"CREATE TABLE {quoted} AS SELECT range AS {quoted}, 1 AS n FROM range(5)")
    assert con.execute(f"SELECT rows, units FROM sdc_add_record_key({text}, unit := {text})").fetchall() == [(5, 5)]
    assert con.execute(f"SELECT null_keys, units FROM sdc_check_keys({text}, unit := {text})").fetchall() == [(0, 5)]
    assert con.execute(
        f"SELECT cells FROM sdc_table_risk_utility({text}, {text}, dimensions := [{text}])"
    ).fetchall() == [(5,)]
    con.execute(f"FROM sdc_store_ptable({text}, '(FROM sdc_ptable(D := 2, V := 1))')")
    assert con.execute(f"SELECT count(*) FROM sdc_ptable_check({text})").fetchall() == [(3,)]
    assert con.execute(f"SELECT sdc_count(record_key, ptable := {text}) BETWEEN 3 AND 7 FROM {quoted}").fetchall() == [
        (True,)
    ]
    assert con.execute(f"FROM sdc_drop_ptable({text})").fetchall() == [(name,)]


def test_schemas_and_views(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE SCHEMA s; CREATE TABLE s.people AS SELECT range AS id FROM range(3)")
    assert con.execute("SELECT rows FROM sdc_add_record_key('s.people', unit := 'ID')").fetchall() == [(3,)]
    con.execute("CREATE VIEW v AS FROM s.people")
    assert con.execute("SELECT units FROM sdc_check_keys('v', unit := 'id')").fetchall() == [(3,)]


def test_a_dimension_with_a_million_values(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT range AS g, (range * 7919 % 100000000)::INTEGER AS k FROM range(1000000)")
    cells, least = con.execute(
        "SELECT count(*), min(n) FROM (SELECT g, sdc_count(k) AS n FROM t GROUP BY g)"
    ).fetchall()[0]
    assert (cells, least) == (1_000_000, 0)


def test_keys_out_of_range_count_as_they_add_up_and_are_reported(con: duckdb.DuckDBPyConnection) -> None:
    """Documented with `sdc_count`: the cell key is the sum modulo 10^digits; less than 0 in all is an error."""
    con.execute(
        "CREATE TABLE records (id INTEGER, k BIGINT); INSERT INTO records VALUES (1, 12345678905), (2, -5), (3, 100)"
    )
    assert con.execute(
        "SELECT sdc_cell_key(k), sdc_count(k) = sdc_ckm_count(3, 45679000), sdc_count_units(id, k) = sdc_count(k), "
        "sdc_sum(id, k) = sdc_ckm_sum(6, [3], 45679000) FROM records"
    ).fetchall() == [(45679000, True, True, True)]
    assert con.execute("SELECT keys_out_of_range FROM sdc_check_keys('records', record_key := 'k')").fetchall() == [
        (2,)
    ]
    assert "negative record keys" in error(con, "SELECT id, sdc_count(k) FROM records GROUP BY id")


def test_a_prepared_statement_meets_a_p_table_that_is_no_name(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("PREPARE p AS SELECT sdc_count(record_key, ptable := $1) FROM people")
    assert (
        people.execute("EXECUTE p('default')").fetchall()
        == people.execute("SELECT sdc_count(record_key) FROM people").fetchall()
    )
    assert "unknown p-table '5'" in error(people, "EXECUTE p(5)")


def test_whole_numbers_may_be_written_with_decimals(con: duckdb.DuckDBPyConnection) -> None:
    """As R writes them: DuckDB reads [1, 5.0, 10] as decimals, all of them."""
    tables = [
        con.execute(
            f"FROM sdc_ptable(D := 10, V := 3, kind := 'magnitudes', icat := {icat}, optim := {optim})"
        ).fetchall()
        for icat, optim in (("[1, 5, 10]", "[4, 1, 1]"), ("[1, 5.0, 10]", "[4.0, 1, 1]"))
    ]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("strange", ["-inf", "inf", "nan"])
def test_quantiles_beside_values_that_are_not_finite(con: duckdb.DuckDBPyConnection, strange: str) -> None:
    """Documented with `sdc_quantile`: infinite values stand below or above all numbers, NaN above everything."""
    con.execute(
        f"""CREATE TABLE records AS
        SELECT i * 48708721 % 100000000 AS k, CASE WHEN i < 100 THEN i ELSE '{strange}'::DOUBLE END AS y FROM range(200) t(i)"""
    )
    low, high = con.execute("SELECT sdc_quantile(y, k, 0.25), sdc_quantile(y, k, 0.75) FROM records").fetchall()[0]
    number, other = (high, low) if strange == "-inf" else (low, high)
    assert number == pytest.approx(50, abs=6)
    assert str(other) == strange


def test_huge_counts_and_key_sums(con: duckdb.DuckDBPyConnection) -> None:
    row = con.execute(
        "SELECT sdc_ckm_count(4000000000000, 9000000000000000000), sdc_ckm_sum(1e300, [1e299], 5)"
    ).fetchall()[0]
    assert abs(row[0] - 4_000_000_000_000) <= 5
    assert row[1] == pytest.approx(1e300, rel=0.5)


def test_a_statement_that_is_only_explained_writes_nothing(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("EXPLAIN FROM sdc_store_ptable('x', '(FROM sdc_ptable(D := 2, V := 1))')").fetchall()
    people.execute("EXPLAIN FROM sdc_add_record_key('people', unit := 'id', record_key := 'k')").fetchall()
    assert people.execute("SELECT count(*) FROM sdc.ptables WHERE name = 'x'").fetchall() == [(0,)]
    assert "k" not in [row[0] for row in people.execute("DESCRIBE people").fetchall()]


def test_no_data_value_in_the_messages(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("INSERT INTO people VALUES (987654321, 'secret place', NULL, 'nan', 1, 'x')")
    for call in ("sdc_count(record_key)", "sdc_sum(y, record_key)", "sdc_sum(y, id)", "sdc_count(-id)"):
        text = error(people, f"SELECT region, {call} FROM people GROUP BY region")
        assert "987654321" not in text
        assert "secret place" not in text


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("FROM sdc_ptable(D := 5, V := 100)", "noise of at most D = 5 has a variance of at most 25; V = 100 was given"),
        ("FROM sdc_ptable(D := 5, V := 25.001)", "a variance of at most 25"),
        ("SELECT sdc_sum(y, k, p_large := 10) FROM (SELECT 1 AS y, 5 AS k)", "p_large is a share of the contribution"),
        ("SELECT sdc_sum(y, k, p_large := 1.01, p_small := 2) FROM (SELECT 1 AS y, 5 AS k)", "p_large is a share"),
    ],
)
def test_a_percentage_for_a_share(con: duckdb.DuckDBPyConnection, sql: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        con.execute(sql).fetchall()
