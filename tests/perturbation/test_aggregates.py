"""Protected aggregates in the SQL that people write: what holds whatever the query, the threads and the version."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from products import each_once

import sdcduck


@pytest.fixture(scope="module")
def people() -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect()
    con.execute(
        """CREATE TABLE people AS SELECT range AS id, 'r' || hash(range, 1) % 7 AS region, hash(range, 2) % 2 AS sex,
            (hash(range, 3) % 90)::INTEGER AS age, (hash(range, 4) % 100000000)::INTEGER AS record_key,
            (hash(range, 5) % 5000)::INTEGER AS income, (hash(range, 6) % 1000000) / 997 AS wealth,
            (1 + hash(range, 8) % 50)::INTEGER AS weight
        FROM range(20000)"""
    )
    return con


def noise_of(con: duckdb.DuckDBPyConnection, name: str, n: np.ndarray, key: np.ndarray) -> np.ndarray:
    """The noise of cells of a count table, from the stored intervals and nothing else."""
    columns = con.execute(
        "SELECT i, v, ub FROM sdc.ptable_intervals WHERE name = ? ORDER BY i, ub", [name]
    ).fetchnumpy()
    last = columns["i"].max()
    noise = np.empty(len(n), dtype=np.int64)
    for k, (count, cell_key) in enumerate(zip(n, key, strict=True)):
        row = columns["i"] == min(count, last)
        noise[k] = columns["v"][row][np.searchsorted(columns["ub"][row], cell_key, side="right")]
    return noise


@pytest.mark.parametrize(
    "grouping",
    ["region, sex, age", "CUBE (region, sex, age)", "ROLLUP (region, sex, age)",
     "GROUPING SETS ((region, age), (sex, age), (age), ())", "ALL"],
)  # fmt: skip
def test_counts_equal_an_independent_computation(people: duckdb.DuckDBPyConnection, grouping: str) -> None:
    columns = people.execute(
        f"""SELECT region, sex, age, count(*) AS n, sum(record_key)::BIGINT % 100000000 AS key, sdc_count(record_key) AS n_hat
        FROM people GROUP BY {grouping}"""
    ).fetchnumpy()
    expected = columns["n"] + noise_of(people, "default", columns["n"], columns["key"])
    np.testing.assert_array_equal(columns["n_hat"], expected)


@pytest.mark.parametrize(
    ("law", "modified"), each_once([(1, 0.5, 0), (2, 2, 1), (8, 3, 2), (10, 9, 0), (60, 40, 0)], [False, True])
)
def test_every_key_and_count(con: duckdb.DuckDBPyConnection, law: tuple[int, float, int], modified: bool) -> None:
    """Keys at every border, just below and above, and a few thousand at random; noise beyond the guide's characters."""
    D, V, js = law
    con.execute(
        f"FROM sdc_store_ptable('t', '(FROM sdc_ptable(D := {D}, V := {V}, js := {js}, modified := {modified}, seed := 3))')"
    )
    con.execute(
        """CREATE TABLE cells AS SELECT n, key FROM range(0, 80) t(n), (
            SELECT unnest([ub - 2, ub - 1, ub, ub + 1]) AS key FROM sdc.ptable_intervals WHERE name = 't' AND i <= 3
            UNION SELECT (hash(range, 3) % 100000000)::BIGINT FROM range(300)
        ) WHERE key BETWEEN 0 AND 99999999 USING SAMPLE 20000 ROWS (reservoir, 1)"""
    )
    columns = con.execute("SELECT n, key, sdc_ckm_count(n, key, ptable := 't') AS n_hat FROM cells").fetchnumpy()
    expected = columns["n"] + noise_of(con, "t", columns["n"], columns["key"])
    np.testing.assert_array_equal(columns["n_hat"], expected)
    assert (columns["n_hat"] >= 0).all()
    assert not ((columns["n_hat"] >= 1) & (columns["n_hat"] <= js)).any()
    assert (columns["n_hat"][columns["n"] == 0] == 0).all()


CONDITIONS = st.lists(
    st.sampled_from(["age < 40", "age >= 20", "sex = 1", "region IN ('r1', 'r2')", "income > 2500", "id % 3 = 0", "true"]),
    min_size=1, max_size=4,
)  # fmt: skip


@settings(max_examples=times(12, 25), deadline=None)
@given(CONDITIONS)
def test_noise_depends_only_on_the_set_of_units(people: duckdb.DuckDBPyConnection, conditions: list[str]) -> None:
    where = " AND ".join(conditions)
    measures = "sdc_count(record_key), sdc_sum(income, record_key), sdc_mean(wealth, record_key)"
    reworded = [
        f"SELECT {measures} FROM people WHERE {where}",
        f"SELECT {measures} FROM people WHERE {' AND '.join(reversed(conditions))}",
        f"SELECT {measures} FROM (SELECT * FROM people ORDER BY hash(id)) WHERE {where}",
        f"SELECT {measures} FROM people WHERE id IN (SELECT id FROM people WHERE {where})",
        f"SELECT sdc_count(record_key, filter := {where}), sdc_sum(income, record_key, filter := {where}), "
        f"sdc_mean(wealth, record_key, filter := {where}) FROM people",
        f"SELECT * EXCLUDE (g) FROM (SELECT {where} AS g, {measures} FROM people GROUP BY ROLLUP (g)) WHERE g",
    ]
    answers = {tuple(people.execute(query).fetchall()) for query in reworded if query}
    # A set that is empty gives no row in the last form.
    answers.discard(())
    assert len(answers) == 1


def test_the_same_bits_on_any_number_of_threads(people: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT region, sdc_count(record_key), sdc_sum(wealth, record_key), sdc_mean(wealth, record_key),
        sdc_sum(wealth, record_key, epsilon := [1, 0.5, 0.2]), sdc_weighted_sum(wealth, weight, record_key),
        sdc_weighted_count(weight / 7, record_key)
        FROM big GROUP BY CUBE (region, sex) ORDER BY ALL"""
    con = people.cursor()
    con.execute("CREATE OR REPLACE TEMP TABLE big AS SELECT people.* FROM people, range(40)")
    answers = []
    for threads in (1, 2, 4, 1):
        con.execute(f"SET threads = {threads}")
        answers.append(
            [[float.hex(v) if isinstance(v, float) else v for v in row] for row in con.execute(query).fetchall()]
        )
    assert answers[1:] == answers[:-1]


def test_known_bits(con: duckdb.DuckDBPyConnection) -> None:
    """The same numbers on every DuckDB version and platform: written down once."""
    row = con.execute(
        """SELECT sdc_count(k), sdc_sum(y, k), sdc_sum(y, k, epsilon := [1, 0.5, 0.2], fp := 50, p_small := 0.2),
            sdc_mean(y, k), sdc_weighted_sum(y, w, k)
        FROM (SELECT (range * 7919 * 6151) % 100000000 AS k, range * range / 7.0 AS y, 1 + range % 5 AS w FROM range(1, 41))"""
    ).fetchall()[0]
    assert [float.hex(float(value)) for value in row] == KNOWN_BITS


KNOWN_BITS = [
    "0x1.4000000000000p+5",
    "0x1.87edb6818cf60p+11",
    "0x1.84600d6afac50p+11",
    "0x1.398af867a3f80p+6",
    "0x1.274db6f1e5e72p+13",
]


def test_multiple_rows_a_unit(people: duckdb.DuckDBPyConnection) -> None:
    """Visits of people count like the people themselves: the key of a set of units is the same however many rows."""
    people.execute("CREATE OR REPLACE TABLE visits AS SELECT people.* FROM people, range(1 + people.id % 4)")
    # Two units that share a key are two units.
    people.execute("UPDATE people SET record_key = 4711 WHERE id < 3; UPDATE visits SET record_key = 4711 WHERE id < 3")
    assert (
        people.execute("SELECT region, sex, sdc_count_units(id, record_key) FROM visits GROUP BY CUBE (region, sex) ORDER BY ALL").fetchall()
        == people.execute("SELECT region, sex, sdc_count(record_key) FROM people GROUP BY CUBE (region, sex) ORDER BY ALL").fetchall()
    )  # fmt: skip


def test_having_views_prepared_statements_and_subqueries(people: duckdb.DuckDBPyConnection) -> None:
    plain = people.execute(
        "SELECT region, sdc_count(record_key) AS n FROM people GROUP BY region ORDER BY ALL"
    ).fetchall()
    people.execute(
        "CREATE OR REPLACE VIEW regions AS SELECT region, sdc_count(record_key) AS n FROM people GROUP BY region"
    )
    assert people.execute("FROM regions ORDER BY ALL").fetchall() == plain
    limit = sorted(n for _, n in plain)[3]
    expected = [row for row in plain if row[1] > limit]
    query = "SELECT region, sdc_count(record_key) AS n FROM people GROUP BY region HAVING sdc_count(record_key) > {} ORDER BY ALL"
    assert people.execute(query.format(limit)).fetchall() == expected
    assert people.execute(query.format("?"), [limit]).fetchall() == expected
    people.execute(
        "PREPARE p AS SELECT region, sdc_count(record_key, ptable := $1) FROM people GROUP BY 1 ORDER BY ALL"
    )
    assert people.execute("EXECUTE p('default')").fetchall() == plain
    joined = people.execute(
        """SELECT cells.region, n + p.v::BIGINT FROM (
            SELECT region, count(*) AS n, sum(record_key)::BIGINT % 100000000 AS key FROM people GROUP BY region) cells
        JOIN sdc.ptable_intervals p ON p.name = 'default' AND p.i = least(n, 5) AND key >= p.lb AND key < p.ub ORDER BY ALL"""
    ).fetchall()
    assert joined == plain


@pytest.mark.parametrize("name", ["default", "d8"])
def test_mean_and_variance_of_the_noise(con: duckdb.DuckDBPyConnection, name: str) -> None:
    if name == "d8":
        con.execute("FROM sdc_store_ptable('d8', '(FROM sdc_ptable(D := 8, V := 3, js := 2, modified := true))')")
    cells = 60_000
    con.execute(
        f"""CREATE TABLE cells AS SELECT hash(range, 1) % {cells} AS cell, (hash(range, 2) % 100000000)::INTEGER AS record_key
        FROM range({cells} * 6)"""
    )
    rows = con.execute(
        f"""SELECT least(n, 11) AS i, count(*), avg(n_hat - n), var_pop(n_hat - n), any_value(p_mean), any_value(p_var)
        FROM (SELECT count(*) AS n, sdc_count(record_key, ptable := '{name}') AS n_hat FROM cells GROUP BY cell)
        JOIN sdc_ptable_check('{name}') c ON c.i = least(n, (SELECT max(i) FROM sdc.ptable_intervals WHERE name = '{name}'))
        GROUP BY 1 HAVING count(*) > 500"""
    ).fetchall()
    assert len(rows) > 6
    for _, size, mean, variance, expected_mean, expected_variance in rows:
        assert abs(mean - expected_mean) < 4.5 * np.sqrt(expected_variance / size)
        # The fourth moment of the noise is at most D^2 V.
        assert abs(variance - expected_variance) < 4.5 * np.sqrt(64 * expected_variance / size)


def test_sums_keep_their_sign_and_zeros(people: duckdb.DuckDBPyConnection) -> None:
    rows = people.execute(
        """SELECT sum(y), sdc_sum(y, record_key, p_large := 0.5) FROM
        (SELECT id % 3000 AS cell, record_key, (CASE WHEN id % 3000 < 100 THEN 0 WHEN id % 2 = 0 THEN -1 ELSE 1 END) * income AS y
        FROM people) GROUP BY cell"""
    ).fetchall()
    assert all(x * x_hat >= 0 for x, x_hat in rows)
    assert all(x_hat == 0 for x, x_hat in rows if x == 0)
    assert sum(x != x_hat for x, x_hat in rows) > 2000


def test_the_short_cut_for_large_cells_gives_the_same_bits(people: duckdb.DuckDBPyConnection) -> None:
    """`sdc_sum` answers most cells without lists; `sdc_ckm_sum` takes the long way."""
    rows = people.execute(
        """SELECT sdc_sum(income, record_key, fp := 1000, p_small := 0.2),
            sdc_ckm_sum(sum(income), [max(income)], sum(CASE WHEN income <> 0 THEN record_key END), fp := 1000, p_small := 0.2),
            sdc_sum(income, record_key, same_key := false),
            sdc_ckm_sum(sum(income), [max(income)], sum(CASE WHEN income <> 0 THEN record_key END), same_key := false)
        FROM people GROUP BY id % 2500"""
    ).fetchall()
    assert all(a == b and c == d for a, b, c, d in rows)


def store_parity(con: duckdb.DuckDBPyConnection) -> None:
    """A p-table with one block for even and one for odd numbers of contributors."""
    con.execute(
        """CREATE TABLE parity AS
            FROM sdc_ptable(D := 8, V := 1, kind := 'magnitudes', icat := [1, 5, 8], type := 'even')
            UNION ALL FROM sdc_ptable(D := 10, V := 2, kind := 'magnitudes', icat := [1, 10], type := 'odd', optim := [4, 1])"""
    )
    assert con.execute("SELECT rows FROM sdc_store_ptable('parity', 'parity')").fetchall() == [(7,)]


def test_even_and_odd_tables(con: duckdb.DuckDBPyConnection) -> None:
    store_parity(con)
    for name in ("even", "odd"):
        con.execute(
            f"FROM sdc_store_ptable('{name}', '(SELECT * REPLACE (''all'' AS type) FROM parity WHERE type = ''{name}'')')"
        )
    rows = con.execute(
        """SELECT count(*) % 2, sdc_sum(y, k, ptable := 'parity'), sdc_sum(y, k, ptable := 'even'), sdc_sum(y, k, ptable := 'odd')
        FROM (SELECT hash(range, 1) % 200 AS cell, (hash(range, 2) % 100000000)::INTEGER AS k, hash(range, 3) % 900 AS y
            FROM range(900)) GROUP BY cell"""
    ).fetchall()
    assert all(both == (odd if parity else even) for parity, both, even, odd in rows)
    assert any(even != odd for _, _, even, odd in rows)


def test_longer_and_shorter_keys(con: duckdb.DuckDBPyConnection) -> None:
    """u = key / 10^digits decides: 12345678 of 8 digits, 1234567800 of 10 and, rounded to 5 digits, 12345."""
    row = con.execute(
        """SELECT sdc_ckm_count(3, 12345678), sdc_ckm_count(3, 1234567899, digits := 10), sdc_ckm_count(3, 12345, digits := 5),
            sdc_ckm_count(3, 12345000), sdc_ckm_count(3, 123456789012345678, digits := 18)"""
    ).fetchall()[0]
    assert row[0] == row[1] == row[4]
    assert row[2] == row[3]
    large = con.execute(
        "SELECT sdc_count(k, digits := 18), sdc_cell_key(k, digits := 18) FROM (SELECT 999999999999999999 - range AS k FROM range(1000))"
    ).fetchall()
    assert large[0][1] == sum(999999999999999999 - k for k in range(1000)) % 10**18


def test_variances_by_hand(people: duckdb.DuckDBPyConnection) -> None:
    """The sum of squared deviations is a magnitude, and its largest contribution the largest squared deviation."""
    rows = people.execute("""
        SELECT sdc_variance(y, record_key), var_samp(y), count(y), sdc_count(record_key, filter := y IS NOT NULL),
            greatest(max(y) - avg(y), avg(y) - min(y)) ** 2, sum(CASE WHEN y IS NOT NULL THEN record_key END)
        FROM (SELECT *, CASE WHEN id % 9 > 0 THEN round(wealth, 4) END AS y FROM people) GROUP BY region, sex""").fetchall()
    assert len(rows) > 5
    for spread, original, n, published, largest, key in rows:
        perturbed = people.execute("SELECT sdc_ckm_sum(?, [?], ?)", [original * (n - 1), largest, key]).fetchall()[0][0]
        assert spread == pytest.approx(perturbed / (published - 1), rel=1e-9)
        assert spread == pytest.approx(original, rel=0.5)


def test_variances_of_too_few_or_equal_values(con: duckdb.DuckDBPyConnection) -> None:
    spread = "SELECT sdc_variance(y, k) FROM (VALUES {}) t(y, k)"
    assert con.execute(spread.format("(1, 12345678)")).fetchall() == [(None,)]
    equal = ", ".join(f"(7.5, {12345678 * i % 100000000})" for i in range(1, 40))
    assert con.execute(spread.format(equal)).fetchall() == [(0.0,)]
    assert con.execute("SELECT sdc_variance(y, k) FROM (VALUES (1, 2)) t(y, k) WHERE false").fetchall() == [(None,)]
    for values, message in (
        ("(1, 5), (2, NULL)", "a record without a key"),
        ("('nan'::DOUBLE, 5)", "NaN, infinite or too large"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            con.execute(spread.format(values)).fetchall()


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_quantiles_by_hand(people: duckdb.DuckDBPyConnection, q: float) -> None:
    """The first bin of two significant digits whose published cumulative count reaches the share of the published count."""
    answers = people.execute(
        f"SELECT region, sex, sdc_quantile(wealth, record_key, {q}) FROM people GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    found = 0
    for region, sex, answer in answers:
        columns = people.execute(
            "SELECT wealth, record_key FROM people WHERE region = ? AND sex = ? AND wealth IS NOT NULL", [region, sex]
        ).fetchnumpy()
        wealth, keys = np.asarray(columns["wealth"], dtype=float), np.asarray(columns["record_key"], dtype=np.int64)
        step = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(wealth), 1e-300))) - 1)
        bins = np.where(wealth == 0, 0.0, np.round(wealth / step) * step)
        edges = np.unique(np.round(bins, 9))
        inside = [np.round(bins, 9) <= edge for edge in edges]
        n = np.array([mask.sum() for mask in inside])
        published = n + noise_of(people, "default", n, np.array([keys[mask].sum() % 10**8 for mask in inside]))
        if min(q, 1 - q) * published[-1] < 5:
            assert answer is None
            continue
        found += 1
        assert answer == pytest.approx(edges[np.argmax(published >= q * published[-1])], rel=1e-9)
    assert found


def test_quantiles_of_small_groups_are_null(con: duckdb.DuckDBPyConnection) -> None:
    quantile = "SELECT sdc_quantile(y, k, {}) FROM (SELECT i AS y, i * 48708721 % 100000000 AS k FROM range({}) t(i))"
    assert con.execute(quantile.format(0.5, 4)).fetchall() == [(None,)]
    assert con.execute(quantile.format(0.99, 100)).fetchall() == [(None,)]
    assert con.execute(quantile.format(0.5, 0)).fetchall() == [(None,)]
    assert con.execute(quantile.format(0.5, 100)).fetchall()[0][0] == pytest.approx(50, abs=6)
    with pytest.raises(duckdb.Error, match="q must lie between 0 and 1"):
        con.execute(quantile.format(1, 100)).fetchall()
    with pytest.raises(duckdb.Error, match="a record without a key"):
        con.execute("SELECT sdc_quantile(y, k, 0.5) FROM (VALUES (1, 5), (2, NULL)) t(y, k)").fetchall()


@pytest.mark.parametrize("ptable", ["default_magnitude", "parity"])
@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "DECIMAL(12, 2)"])
def test_the_short_form_of_the_guard_is_the_same_to_the_bit(
    con: duckdb.DuckDBPyConnection, ptable: str, kind: str
) -> None:
    if ptable == "parity":
        store_parity(con)
    added = "_sdc_grid_sum(CASE WHEN f THEN y END)" if kind == "DOUBLE" else "sum(CASE WHEN f THEN y END)::DOUBLE"
    figures = (
        f"{added} AS x, max(_sdc_contribution(y, k, f)) AS t, "
        "_sdc_contributors_key_sum(y, k, f, false) AS key_sum, count(CASE WHEN f THEN y END) AS n"
    )
    rows = con.execute(
        f"""WITH records AS (
            SELECT i % 5000 AS g, hash(i) % 100000000 AS k, hash(i + 99) % 7 > 0 AS f,
                CASE WHEN hash(i + 7) % 5 = 0 THEN NULL WHEN hash(i + 5) % 6 = 0 THEN 0
                ELSE ((hash(i + 3) % 100000)::BIGINT - 20000) * CASE WHEN i % 3 = 0 THEN 1 ELSE 0.01 END END::{kind} AS y
            FROM range(20000) t(i) WHERE i % 5000 < 3000 OR i < 10000)
        SELECT plain, _sdc_stepped_sum('{ptable}', x, t, key_sum, rung, upper, key, code)
        FROM (
            SELECT *, _sdc_sum_code('{ptable}', rung, key) AS code, _sdc_sum_upper(rung, x, t) AS upper
            FROM (
                SELECT *, _sdc_scaled_key(key_sum, '{ptable}', 8) AS key, _sdc_sum_rung('{ptable}', x, t, n) AS rung
                FROM (SELECT sdc_sum(y, k, ptable := '{ptable}', filter := f) AS plain, {figures} FROM records GROUP BY g)))"""
    ).fetchall()
    assert len(rows) == 5000
    assert all(plain == short for plain, short in rows)
    assert len({plain for plain, _ in rows}) > 3000
    assert any(plain is None for plain, _ in rows)


@pytest.mark.parametrize(
    ("ptable", "code", "guide"),
    [
        ("default", "_sdc_count_code", "_sdc_ptable_count_guide"),
        ("default_magnitude", "_sdc_magnitude_code", "_sdc_ptable_magnitude_guide"),
    ],
)
def test_codes_of_the_guard_are_those_of_the_guide(
    con: duckdb.DuckDBPyConnection, ptable: str, code: str, guide: str
) -> None:
    """Of every row and the first and the last key of every bucket."""
    found = con.execute(
        f"""SELECT count(*), count(*) FILTER ({code}('{ptable}', slot, key)
            IS DISTINCT FROM _sdc_guide_code({guide}('{ptable}'), '{ptable}', slot, key >> _sdc_ptable_shift('{ptable}')))
        FROM (SELECT slot, bucket << _sdc_ptable_shift('{ptable}') | ((1 << _sdc_ptable_shift('{ptable}')) - 1) * last AS key
            FROM range(length({guide}('{ptable}')) // (2 * _sdc_ptable_buckets('{ptable}'))) a(slot),
                range(_sdc_ptable_buckets('{ptable}')) b(bucket), range(2) c(last))"""
    ).fetchall()
    assert found[0][0] > 6000
    assert found[0][1] == 0
