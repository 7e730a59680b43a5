"""Noise on numbers: moments are what the theory of each method says, within four standard errors, or exactly."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sdcduck.methods.masking.noise import METHODS, outlying, rotated, with_kept_moments

N = 4000
TAX = ("AFNLWGT", "AGI", "FEDTAX", "STATETAX")


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> None:
    """Three correlated columns: x normal, y whole numbers, z nearly x."""
    chance = np.random.default_rng(5)
    x = 100 + 15 * chance.normal(size=N)
    y = np.rint(0.5 * x + 20 * chance.normal(size=N))
    z = x + 2 * chance.normal(size=N)
    con.execute(
        "CREATE TABLE p AS SELECT generate_subscripts(x, 1) AS id, unnest(x) AS x, unnest(y)::INT AS y, unnest(z) AS z FROM (SELECT ? AS x, ? AS y, ? AS z)",
        [x.tolist(), y.tolist(), z.tolist()],
    )


def _numbers(con: duckdb.DuckDBPyConnection, source: str, columns: str = "x, y, z") -> np.ndarray:
    return np.array(con.execute(f"SELECT {columns} FROM {source} ORDER BY id").fetchall(), dtype=float)


def _masked(con: duckdb.DuckDBPyConnection, method: str, noise: float, more: str = "") -> np.ndarray:
    return _numbers(con, f"sdc_add_noise('p', ['x', 'y', 'z'], '{method}', noise := {noise}, id := 'id'{more})")


@pytest.mark.parametrize("noise", [0.1, 0.5])
@pytest.mark.parametrize("method", METHODS)
def test_moments_are_those_of_the_theory(
    con: duckdb.DuckDBPyConnection, people: None, method: str, noise: float
) -> None:
    before, after = _numbers(con, "p"), _masked(con, method, noise)
    moved, spread = after - before, before.std(axis=0, ddof=1)
    covariance = np.cov(before.T)
    changed = np.full(N, True) if method != "outdect" else outlying(before)
    scale = noise * math.sqrt(changed.mean())
    grown = {
        "additive": covariance + np.diag(noise**2 * np.diag(covariance)),
        "correlated": covariance * (1 + noise**2),
        "outdect": covariance + np.diag(scale**2 * np.diag(covariance)),
    }.get(method, covariance)
    exact = method in ("restricted", "romm")
    # The mean of the noise, and with the values it has covariances of chance alone.
    mean_error = 1e-9 if exact else 4 * scale / math.sqrt(N)
    error = 1e-9 if exact else 4 * (2 * scale + 1.5 * scale**2) / math.sqrt(N)
    assert (np.abs(moved.mean(axis=0)) / spread <= mean_error).all()
    assert (np.abs(np.cov(after.T) - grown) / np.outer(spread, spread) <= error).all()
    # How far values move: of those drawn to their means by that, too.
    drawn = (1 - math.sqrt(1 - noise**2)) if method in ("correlated2", "restricted") else 0.0
    wanted = math.sqrt(noise**2 + drawn**2) if method != "outdect" else scale
    share = 4 / math.sqrt(2 * N * changed.mean())
    assert (np.abs(moved.std(axis=0) / spread / wanted - 1) <= share).all()
    assert (changed == (moved != 0).all(axis=1)).all()
    assert changed.all() == (method != "outdect")


@pytest.mark.parametrize("method", METHODS)
def test_correlations(con: duckdb.DuckDBPyConnection, people: None, method: str) -> None:
    noise = 0.3
    before, after = _numbers(con, "p"), _masked(con, method, noise)
    was, now = (np.corrcoef(table.T)[np.triu_indices(3, 1)] for table in (before, after))
    weaker = 1 + noise**2 * (1 if method == "additive" else outlying(before).mean() if method == "outdect" else 0)
    exact = method in ("restricted", "romm")
    assert (np.abs(now - was / weaker) <= (1e-9 if exact else 4 * 2 * noise / math.sqrt(N))).all()
    noises = np.corrcoef((after - before)[(after != before).all(axis=1)].T)[np.triu_indices(3, 1)]
    expected = 0 if method in ("additive", "outdect") else was
    rows = int((after != before).all(axis=1).sum())
    assert (np.abs(noises - expected) <= 4 / math.sqrt(rows if method != "romm" else rows / 2)).all()


def test_noise_of_sdcmicro_is_a_share_of_the_same(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    """noise 10 of sdcMicro: 0.1 of additive, the root of 0.1 of correlated; four standard errors."""
    folder = reference_data / "sdcmicro"
    con.execute(
        f"CREATE TABLE census AS SELECT *, row_number() OVER () AS id FROM '{folder}/input_CASCrefmicrodata.csv.gz'"
    )
    before = _numbers(con, "census", ", ".join(TAX))
    for theirs, method, noise in (("additive", "additive", 0.1), ("correlated", "correlated", math.sqrt(0.1))):
        after = _numbers(con, f"sdc_add_noise('census', {list(TAX)}, '{method}', noise := {noise}, id := 'id')", ", ".join(TAX))  # fmt: skip
        known = np.loadtxt(folder / f"CASC_addNoise_{theirs}.csv.gz", delimiter=",", skiprows=1)
        for masked in (after, known):
            moved = (masked - before).std(axis=0) / before.std(axis=0)
            assert (np.abs(moved / noise - 1) < 4 / math.sqrt(2 * len(before))).all()
            related = np.corrcoef((masked - before).T) - (np.eye(4) if method == "additive" else np.corrcoef(before.T))
            assert np.abs(related).max() < 4 / math.sqrt(len(before))


def test_the_other_methods_of_sdcmicro(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    """What sdcMicro's other methods make of the census file, and what ours of the same name keep of it."""
    folder = reference_data / "sdcmicro"
    con.execute(
        f"CREATE TABLE census AS SELECT *, row_number() OVER () AS id FROM '{folder}/input_CASCrefmicrodata.csv.gz'"
    )
    before = _numbers(con, "census", ", ".join(TAX))
    theirs = {
        method: np.loadtxt(folder / f"CASC_addNoise_{method}.csv.gz", delimiter=",", skiprows=1)
        for method in ("additive", "correlated2", "restr", "ROMM", "outdect")
    }
    ours = {
        method: _numbers(
            con, f"sdc_add_noise('census', {list(TAX)}, '{method}', noise := 0.1, id := 'id')", ", ".join(TAX)
        )
        for method in ("correlated2", "restricted", "romm", "outdect")
    }
    spread, covariance = before.std(axis=0), np.cov(before.T)
    scale = np.outer(spread, spread)
    # Values are drawn to their means by the root of 1 - 0.1^2, and get noise. Theirs is that of `additive`, column by column,
    # so that only variances are kept; ours is correlated as the columns are.
    drawn = math.sqrt(1 - 0.1**2)
    noise = theirs["additive"] - before
    assert theirs["correlated2"] == pytest.approx(before.mean(axis=0) + drawn * (before - before.mean(axis=0)) + noise)
    rest = ours["correlated2"] - before.mean(axis=0) - drawn * (before - before.mean(axis=0))
    assert rest.std(axis=0) / spread == pytest.approx(np.full(4, 0.1), rel=4 / math.sqrt(2 * len(before)))
    assert np.abs(np.corrcoef(rest.T) - np.corrcoef(before.T)).max() < 4 / math.sqrt(len(before))
    # ROMM: theirs keeps moments nearly, ours exactly, and so does `restricted`; what theirs does there keeps nothing.
    for method, error in ((theirs["ROMM"], 0.01), (ours["romm"], 1e-9), (ours["restricted"], 1e-9)):
        assert (np.abs(method - before).max(axis=1) > 0).all()
        assert (np.abs(method.mean(axis=0) - before.mean(axis=0)) / spread).max() < error
        assert (np.abs(np.cov(method.T) - covariance) / scale).max() < error
    assert ((theirs["restr"].mean(axis=0) - before.mean(axis=0)) / spread).max() > 1.5
    # Outliers only, whole records: by another measure of what is one, but most of ours are among theirs.
    changed = {name: (tables["outdect"] != before) for name, tables in (("theirs", theirs), ("ours", ours))}
    assert all((one.all(axis=1) == one.any(axis=1)).all() for one in changed.values())
    rows = {name: one.any(axis=1) for name, one in changed.items()}
    assert {name: int(one.sum()) for name, one in rows.items()} == {"theirs": 149, "ours": 75}
    assert int((rows["theirs"] & rows["ours"]).sum()) == 65


def test_noise_belongs_to_a_record(con: duckdb.DuckDBPyConnection, people: None) -> None:
    con.execute("CREATE TABLE fewer AS SELECT z, y, x, id FROM p WHERE id % 3 > 0 ORDER BY hash(id)")
    for known in (", id := 'id'", ""):
        call = (
            "SELECT id, x FROM sdc_add_noise('{}', ['x'], sd := {{'x': 3}}"
            + known
            + ", seed := 5) WHERE id % 3 > 0 ORDER BY id"
        )
        whole = con.execute(call.format("p")).fetchall()
        assert con.execute(call.format("fewer")).fetchall() == whole
        both = call.replace("['x'], sd := {{'x': 3}}", "['y', 'x'], sd := {{'X': 3, 'y': 1}}")
        assert con.execute(both.format("p")).fetchall() == whole
        assert con.execute(call.replace(":= 5", ":= 6").format("p")).fetchall() != whole
    # As a share of the standard deviation it is the same in units of that.
    drawn = []
    for table in ("p", "fewer"):
        before, after = (_numbers(con, f"{source} WHERE id % 3 > 0", "x") for source in (table, f"sdc_add_noise('{table}', ['x'], id := 'id')"))  # fmt: skip
        drawn.append((after - before) / _numbers(con, table, "x").std(ddof=1))
    assert drawn[0] == pytest.approx(drawn[1], rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_released_twice_it_is_the_same(con: duckdb.DuckDBPyConnection, people: None, method: str) -> None:
    con.execute("CREATE TABLE q AS FROM p ORDER BY hash(id)")
    call = f"SELECT id, x, y FROM sdc_add_noise('{{}}', ['x', 'y'], '{method}', id := 'id') ORDER BY id"
    first = con.execute(call.format("p")).fetchall()
    assert con.execute(call.format("q")).fetchall() == first
    con.execute("SET threads = 1")
    assert con.execute(call.format("p")).fetchall() == first


def test_bounds_are_kept(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, i % 100 AS x, (i * 7) % 50 AS y FROM range(2000) r(i)")
    for method in METHODS:
        made = f"sdc_add_noise('p', ['y', 'x'], '{method}', noise := 0.8, bounds := {{'x': [0, 100], 'Y': [0, NULL]}}, id := 'id')"
        found = con.execute(
            f"SELECT min(x) >= 0, max(x) <= 100, min(y) >= 0, count(DISTINCT x) > 80 FROM {made}"
        ).fetchall()
        assert found == [(True, True, True, True)]
    # What no noise moved stays where it is, even outside.
    outside = "sdc_add_noise('(SELECT 5 AS x, i AS y FROM range(9) r(i))', ['x', 'y'], bounds := {'x': [6, 9]})"
    assert con.execute(f"SELECT DISTINCT x FROM {outside}").fetchall() == [(5.0,)]


@pytest.mark.parametrize("n", [3, 4, 5, 16, 17, 18, 33, 34, 35, 200])
def test_rotations_keep_sums_and_covariances_of_any_number_of_records(n: int) -> None:
    chance = np.random.default_rng(n)
    values = chance.normal(size=(n, 2)) @ np.array([[1.0, 0.5], [0, 2]]) + 7
    drawn = chance.normal(size=(n + 40, n))
    found = rotated(values, chance.permutation(n), lambda number: drawn[number], 0.5)
    assert np.allclose(found.sum(axis=0), values.sum(axis=0))
    assert np.allclose(np.cov(found.T), np.cov(values.T))
    assert np.abs(found - values).min() > 0
    if n <= 17 and n % 2:  # one block, without a direction that stays
        assert ((found - values) ** 2).sum() == pytest.approx(0.5**2 * n / (n - 1) * ((values - values.mean(axis=0)) ** 2).sum())  # fmt: skip


def test_columns_that_say_nothing_new() -> None:
    """Singular covariances: a constant column and one that is another one twice."""
    chance = np.random.default_rng(2)
    x = chance.normal(size=50)
    values = np.column_stack([x, 2 * x, np.full(50, 4.0)])
    found = with_kept_moments(values, chance.normal(size=(50, 3)), 0.4)
    assert np.allclose(found[:, 2], 4)
    assert np.allclose(found[:, 1], 2 * found[:, 0])
    assert np.allclose(np.cov(found.T), np.cov(values.T))


def test_outliers() -> None:
    chance = np.random.default_rng(8)
    values = chance.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=2000)
    values[:5] = [[9, 9], [-7, 7], [2, -2], [0, 30], [40, 0]]
    found = outlying(values)
    assert found[:5].all()
    assert abs(found[5:].mean() - 0.025) < 4 * math.sqrt(0.025 / 2000)
    assert not outlying(np.full((10, 2), 3.0)).any()


def test_null_types_and_nobody(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 4 THEN i END AS \"The x\", (i * 7 % 31)::DECIMAL(9,2) AS d, 'n' || i AS name, 5 AS same "
        "FROM range(80) r(i)"
    )
    for method in METHODS:
        made = f"sdc_add_noise('p', ['the X', 'd', 'same'], '{method}', nulls := 'keep', id := 'id')"
        assert [row[:2] for row in con.execute(f"DESCRIBE FROM {made}").fetchall()] == [
            ("id", "BIGINT"), ("The x", "DOUBLE"), ("d", "DOUBLE"), ("name", "VARCHAR"), ("same", "DOUBLE"),
        ]  # fmt: skip
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM {made}")
        assert con.execute('SELECT count("The x"), max(abs(same - 5)) < 1e-9 FROM m').fetchall() == [(60, True)]
        untouched = con.execute(
            'SELECT count(*) FROM p JOIN m USING (id, name) WHERE p."The x" IS NULL AND p.d = m.d'
        ).fetchall()
        assert untouched == [(0 if method == "additive" else 20,)]
        assert con.execute(f"FROM sdc_add_noise('(FROM p LIMIT 0)', ['d'], '{method}')").fetchall() == []


@pytest.mark.parametrize("method", [method for method in METHODS if method != "additive"])
def test_records_with_the_same_gaps_apart(con: duckdb.DuckDBPyConnection, method: str) -> None:
    """Each pattern of gaps is what the method makes of its records and columns alone."""
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 4 THEN i * 13 % 97 END AS x, CASE WHEN i % 3 THEN i * 7 % 31 END AS y, i * 5 % 53 AS z "
        "FROM range(240) r(i)"
    )
    made = f"sdc_add_noise({{}}, {{}}, '{method}', nulls := '{{}}', id := 'id')"
    con.execute("CREATE TABLE m AS FROM " + made.format("'p'", "['x', 'y', 'z']", "apart"))
    for gaps in ([], ["x"], ["y"], ["x", "y"]):
        having = " AND ".join(f"{name} IS {'' if name in gaps else 'NOT '}NULL" for name in ("x", "y"))
        names = [name for name in ("x", "y", "z") if name not in gaps]
        alone = made.format(f"'(FROM p WHERE {having})'", names, "refuse")
        columns = ", ".join(["id", *names])
        assert con.execute(f"SELECT {columns} FROM m WHERE {having} ORDER BY id").fetchall() == (
            con.execute(f"SELECT {columns} FROM {alone} ORDER BY id").fetchall()
        )
    if method != "outdect":
        assert con.execute("SELECT count(*) FROM p JOIN m USING (id, z)").fetchall() == [(0,)]


def test_where_there_is_nothing_to_take_apart(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, i * 7 % 31 AS x, CASE WHEN i <> 5 THEN i END AS y, NULL::INT AS z FROM range(60) r(i)")  # fmt: skip
    with pytest.raises(duckdb.Error, match="'nulls' must be"):
        con.execute("FROM sdc_add_noise('p', ['x'], nulls := 'apart')")
    with pytest.raises(duckdb.Error, match="is 1 record, fewer than"):
        con.execute("FROM sdc_add_noise('p', ['x', 'y'], 'correlated', nulls := 'apart', id := 'id')")
    made = "FROM sdc_add_noise('p', ['z'], 'correlated', nulls := 'apart', id := 'id')"
    assert con.execute(f"SELECT count(*), count(z) {made}").fetchall() == [(60, 0)]


def test_from_a_risky_file_to_a_released_one(con: duckdb.DuckDBPyConnection) -> None:
    """No exact income is left to find a person by, and means and regressions are what they were."""
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, 20 + i % 60 AS age, 15 + i % 11 AS edu, "
        "(20000 + 300 * (i % 60) + 900 * (i % 11) + (i * i * 31) % 4001)::DOUBLE AS income FROM range(3000) r(i)"
    )
    con.execute(
        "CREATE TABLE released AS FROM sdc_add_noise('p', ['income', 'edu'], 'restricted', noise := 0.3, id := 'id', seed := 5)"
    )
    assert con.execute("SELECT count(*) FROM p JOIN released r USING (income)").fetchall() == [(0,)]
    slopes = "SELECT regr_slope(income, edu), avg(income), stddev(income) FROM {}"
    assert con.execute(slopes.format("released")).fetchone() == pytest.approx(
        con.execute(slopes.format("p")).fetchone()
    )
    lost = con.execute(
        "SELECT il FROM sdc_microaggregate_quality('p', 'released', ['income', 'edu'], id := 'id')"
    ).fetchall()[0][0]
    assert lost == pytest.approx(100 * (0.3**2 + (1 - math.sqrt(1 - 0.3**2)) ** 2), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'p'", "argument 'columns' must name the columns of numbers"),
        ("'p', ['name']", "'name' of 'p' is VARCHAR"),
        ("'p', ['day']", "'day' of 'p' is DATE"),
        ("'p', ['yes']", "'yes' of 'p' is BOOLEAN"),
        ("'p', ['x'], 'adaptive'", "argument 'method' must be 'additive', 'correlated'"),
        ("'p', ['x'], noise := 10", "argument 'noise' must be above 0 and at most 1: a share of the standard deviation; 10 per cent is 0.1"),
        ("'p', ['x'], noise := 0", "argument 'noise' must be above 0"),
        ("'p', ['x'], noise := 0.1, sd := {'x': 1}", "give 'noise' or 'sd', and not both"),
        ("'p', ['x'], 'romm', sd := {'x': 1}", "argument 'sd' is for method := 'additive' and 'outdect'"),
        ("'p', ['x'], sd := {'x': -1}", "argument 'sd' must be a number above 0"),
        ("'p', ['x'], sd := {'y': 1}", "unknown column 'y'"),
        ("'p', ['x'], sd := {'gap': 1}", "argument 'sd' names column 'gap', which is none of those that are changed"),
        ("'p', ['x', 'big'], sd := {'x': 1}", "argument 'sd' must have one number for each of the columns"),
        ("'p', ['x'], bounds := {'x': 1}", "argument 'bounds' must give two numbers for a column"),
        ("'p', ['x'], bounds := {'x': [5, 1]}", "argument 'bounds' must give the lower one first"),
        ("'p', ['gap']", "1 of 9 records have NULL in a column that is to be changed"),
        ("'p', ['odd']", "a record has NaN or an infinite number"),
        ("'p', ['huge']", "column 'huge' has whole numbers beyond 2^53"),
        ("'p', ['big']", "numbers of a column, or 'sd', are beyond 1e+150"),
        ("'p', ['x'], sd := {'x': 1e200}", "numbers of a column, or 'sd', are beyond 1e+150"),
        ("'p', ['x'], id := 'yes'", "column 'yes' is the same in several records"),
        ("'(FROM p LIMIT 2)', ['x'], 'romm'", "there are 2 records, fewer than the 3 that method := 'romm' needs"),
        ("'(FROM p LIMIT 3)', ['x'], 'restricted'", "there are 3 records, fewer than the 4 that method := 'restricted' needs"),
        ("'(FROM p LIMIT 1)', ['x'], 'correlated'", "there is 1 record, fewer than the 2 that method := 'correlated' needs"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE p AS SELECT i AS x, 'n' || i AS name, DATE '2020-01-01' + i::INT AS day, true AS yes, nullif(i, 3) AS gap, "
        "CASE WHEN i = 2 THEN 'inf'::DOUBLE ELSE i END AS odd, i + 9007199254740992 AS huge, CASE WHEN i = 2 THEN 1.7e308 ELSE 1 END AS big "
        "FROM range(9) r(i)"
    )
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM sdc_add_noise({call})").fetchall()
    assert message in str(raised.value)


def _with_ipso(con: duckdb.DuckDBPyConnection, more: str, source: str = "survey") -> np.ndarray:
    made = f"sdc_add_noise('{source}', ['y1', 'y2'], 'ipso', predictors := ['x1', 'x2'], id := 'id'{more})"
    return np.array(con.execute(f"SELECT x1, x2, y1, y2 FROM {made} ORDER BY id").fetchall(), np.float64)


@pytest.mark.parametrize("noise", [1.0, 0.5, 0.01])
def test_residuals_drawn_anew_keep_every_regression(con: duckdb.DuckDBPyConnection, noise: float) -> None:
    """As RegSDCipso, and with noise below 1 RegSDCnew: x'y, y'y and the fitted values are what they were."""
    con.execute(
        "CREATE TABLE survey AS SELECT i AS id, (i * 37 % 101) * 1e4 AS x1, i * i % 53 AS x2, i % 2 AS unused, "
        "3e4 * (i * 37 % 101) + (i * i * i % 29) * 2.5e4 AS y1, (i * i % 53) - (i * 7919 % 31) AS y2 FROM range(80) r(i)"
    )
    before = np.array(con.execute("SELECT x1, x2, y1, y2 FROM survey ORDER BY id").fetchall(), np.float64)
    after = _with_ipso(con, f", noise := {noise}, seed := 3")
    assert np.array_equal(before[:, :2], after[:, :2])
    assert np.allclose(before.mean(axis=0), after.mean(axis=0), rtol=1e-12)
    assert np.allclose(np.cov(before.T), np.cov(after.T), rtol=1e-9, atol=1e-6)
    design = np.column_stack([np.ones(80), before[:, :2] / [1e4, 1]])
    fits = [np.linalg.lstsq(design, table[:, 2:], rcond=None)[0] for table in (before, after)]
    assert np.allclose(*fits, rtol=1e-8, atol=1e-8)
    old, new = (table[:, 2:] - design @ fit for table, fit in zip((before, after), fits, strict=True))
    together = np.diag(old.T @ new) / np.diag(old.T @ old)
    if noise == 1:
        assert np.abs(together).max() < 0.4
    else:
        assert together == pytest.approx([(1 - noise**2) ** 0.5] * 2)
    assert np.array_equal(after, _with_ipso(con, f", noise := {noise}, seed := 3"))
    assert not np.allclose(after, _with_ipso(con, f", noise := {noise}, seed := 4"))
    con.execute("CREATE TABLE shuffled AS FROM survey ORDER BY y2, id")
    assert np.array_equal(after, _with_ipso(con, f", noise := {noise}, seed := 3", "shuffled"))


def test_ipso_without_predictors_and_with_gaps(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 9 > 0 THEN i END AS x, 2 AS same, i * i % 23 AS y FROM range(60) r(i)"
    )
    moments = "round(avg(y), 9), round(var_samp(y), 9)"
    alone = con.execute(f"SELECT {moments} FROM sdc_add_noise('p', ['y'], 'ipso', id := 'id')").fetchall()
    assert alone == con.execute(f"SELECT {moments} FROM p").fetchall()
    for nulls in ("keep", "apart"):
        call = f"sdc_add_noise('p', ['y'], 'ipso', predictors := ['x', 'same'], id := 'id', nulls := '{nulls}')"
        found = con.execute(f"SELECT {moments}, round(covar_samp(x, y), 6) FROM {call} WHERE x IS NOT NULL").fetchall()
        assert (
            found == con.execute(f"SELECT {moments}, round(covar_samp(x, y), 6) FROM p WHERE x IS NOT NULL").fetchall()
        )
        gaps = con.execute(
            f"SELECT count(*) FROM {call} n JOIN p USING (id) WHERE p.x IS NULL AND n.y = p.y"
        ).fetchall()
        assert gaps == [(7 if nulls == "keep" else 0,)]


@pytest.mark.parametrize("noise", [1, 0.3])
def test_what_predictors_explain_alone_is_no_release(con: duckdb.DuckDBPyConnection, noise: float) -> None:
    """The only record of a category, and a column that follows from predictors, came out as they went in."""
    con.execute("""CREATE TABLE p AS SELECT i AS id, i * i % 23 * 1e5 + 3 AS y, i * 7 % 11 + 2e9 AS x, 3 * x - 7 AS z, (i = 4)::INT AS alone,
        (i IN (4, 5))::INT AS pair, (i > 5)::INT AS others, CASE WHEN i = 9 THEN 1e6 ELSE i % 5 END AS far, 8 AS same FROM range(30) r(i)""")
    call = f"method := 'ipso', noise := {noise}, id := 'id', predictors :="
    for columns, predictors, message in (
        ("y", "['x', 'alone']", "alone explain the numbers of 1 of 30 records"),
        ("y", "['pair', 'others', 'alone']", "alone explain the numbers of 2 of 30 records"),
        ("y", "['far']", "alone explain the numbers of 1 of 30 records"),
        ("y', 'z", "['same', 'x']", "column 'z' follows from 'predictors'"),
    ):
        with pytest.raises(duckdb.Error) as raised:
            con.execute(f"FROM sdc_add_noise('p', ['{columns}'], {call} {predictors})").fetchall()
        assert message in str(raised.value)
    moved = f"SELECT count(*) FROM p JOIN sdc_add_noise('p', ['y', 'same'], {call} ['x', 'pair']) n USING (id)"
    assert con.execute(f"{moved} WHERE abs(n.y - p.y) > 100").fetchall() == [(30,)]
    assert con.execute(f"{moved} WHERE n.same = p.same").fetchall() == [(30,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("predictors := ['x']", "argument 'predictors' is for method := 'ipso'"),
        ("method := 'ipso', predictors := ['y']", "can not be in 'predictors'"),
        ("method := 'ipso', predictors := ['c']", "'c' of 'p' is VARCHAR"),
        ("method := 'ipso', predictors := ['z']", "unknown column 'z'"),
        ("method := 'ipso', predictors := ['x', 'a', 'b']", "fewer than the 6 that method := 'ipso' needs"),
        ("method := 'ipso', predictors := ['x', 'gap']", "have NULL in a column"),
    ],
)
def test_wrong_predictors(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS x, i * i AS y, 'c' AS c, i + 1 AS a, -i AS b, NULL::INT AS gap FROM range(5) r(i)"
    )
    with pytest.raises(duckdb.Error) as raised:
        con.execute(f"FROM sdc_add_noise('p', ['y'], {arguments})").fetchall()
    assert message in str(raised.value)
