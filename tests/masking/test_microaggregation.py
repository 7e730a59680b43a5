"""``sdc_microaggregate`` and ``sdc_microaggregate_quality``: what a user of SQL gets, and what sdcMicro makes of its files."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sdcduck.methods.masking.microaggregation import by_component, group_means, in_turn, information_loss, standardised
from sdcduck.methods.masking.nearest_groups import mdav


def records(folder: Path, name: str) -> np.ndarray:
    return np.loadtxt(folder / f"input_{name}.csv.gz", delimiter=",", skiprows=1)


@pytest.mark.parametrize(("name", "file"), [("CASC", "CASCrefmicrodata"), ("Tarragona", "Tarragona")])
@pytest.mark.parametrize("k", [3, 5, 10])
def test_the_groups_are_those_of_sdcmicro(reference_data: Path, name: str, file: str, k: int) -> None:
    folder = reference_data / "sdcmicro"
    values = records(folder, file)
    groups = mdav(standardised(values), k)
    loss = information_loss(values, group_means(values, groups))
    theirs = json.loads((folder / "index.json").read_text())["cases"][f"mdav_{name}_k{k}"]
    assert loss == pytest.approx(theirs["IL_SSE_over_SST_pct"], abs=1e-9)
    assert (groups.max() + 1, np.bincount(groups).min()) == (theirs["groups"], theirs["min_group"])


def test_the_numbers_are_those_of_sdcmicro(reference_data: Path, con: duckdb.DuckDBPyConnection) -> None:
    folder = reference_data / "sdcmicro"
    con.execute(f"CREATE TABLE census AS FROM '{folder}/input_CASCrefmicrodata.csv.gz'")
    names = [row[0] for row in con.execute("DESCRIBE census").fetchall()]
    made = con.execute("SELECT * EXCLUDE (group_id, group_size) FROM sdc_microaggregate('census', ?, k := 10)", [names])
    found = np.array(made.fetchall())
    theirs = np.loadtxt(folder / "mdav_CASC_k10.csv.gz", delimiter=",", skiprows=1)
    assert np.allclose(found[np.lexsort(found.T)], theirs[np.lexsort(theirs.T)], rtol=1e-12)


@pytest.mark.parametrize("name", ["EIA"])
@pytest.mark.parametrize("k", [3, 5, 10])
def test_another_file_of_sdcmicro(reference_data: Path, con: duckdb.DuckDBPyConnection, name: str, k: int) -> None:
    folder = reference_data / "sdcmicro"
    theirs = json.loads((folder / "index.json").read_text())["cases"][f"mdav_{name}_k{k}"]
    con.execute(f"CREATE TABLE eia AS SELECT *, row_number() OVER () AS id FROM '{folder}/input_{name}.csv.gz'")
    kinds = con.execute("DESCRIBE eia").fetchall()
    names = [
        row[0] for row in kinds if row[1] in ("BIGINT", "DOUBLE") and row[0] not in ("id", "YEAR", "MONTH", "UTILITYID")
    ]
    assert len(names) == theirs["p"]
    con.execute("CREATE TABLE masked AS FROM sdc_microaggregate('eia', ?, k := ?, id := 'id')", [names, k])
    found = con.execute("FROM sdc_microaggregate_quality('eia', 'masked', ?, id := 'id')", [names]).fetchone()
    assert found is not None
    assert found[0] == theirs["n"]
    assert (found[2], found[1]) == (theirs["groups"], theirs["min_group"])  # some groups have equal means
    assert found[5] == pytest.approx(theirs["IL_SSE_over_SST_pct"], abs=1e-9)


@pytest.mark.parametrize("method", ["onedims", "single", "simple", "pca"])
def test_the_other_methods_of_sdcmicro(reference_data: Path, con: duckdb.DuckDBPyConnection, method: str) -> None:
    folder = reference_data / "sdcmicro"
    con.execute(
        f"CREATE TABLE census AS SELECT *, row_number() OVER () AS id FROM '{folder}/input_CASCrefmicrodata.csv.gz'"
    )
    names = [row[0] for row in con.execute("DESCRIBE census").fetchall() if row[0] != "id"]
    made = con.execute(
        f"SELECT {', '.join(names)} FROM sdc_microaggregate('census', ?, k := 3, method := ?, id := 'id') ORDER BY id",
        [names, method],
    )
    theirs = np.loadtxt(folder / f"microaggr_{method}_CASC_k3.csv.gz", delimiter=",", skiprows=1)
    assert np.allclose(np.array(made.fetchall()), theirs, rtol=1e-9)


@pytest.mark.parametrize("method", ["onedims", "single", "simple", "pca"])
def test_the_other_methods_on_another_file(reference_data: Path, con: duckdb.DuckDBPyConnection, method: str) -> None:
    folder = reference_data / "sdcmicro"
    theirs = json.loads((folder / "index.json").read_text())["cases"][f"{method}_Tarragona_k3"]["IL_SSE_over_SST_pct"]
    con.execute(f"CREATE TABLE firms AS SELECT *, row_number() OVER () AS id FROM '{folder}/input_Tarragona.csv.gz'")
    names = [row[0] for row in con.execute("DESCRIBE firms").fetchall() if row[0] != "id"]
    con.execute(
        "CREATE TABLE masked AS FROM sdc_microaggregate('firms', ?, k := 3, method := ?, id := 'id')", [names, method]
    )
    lost = con.execute("SELECT il FROM sdc_microaggregate_quality('firms', 'masked', ?, id := 'id')", [names])
    assert lost.fetchall()[0][0] == pytest.approx(theirs, abs=1e-9)


def test_consecutive_groups_by_themselves() -> None:
    """Where the number of records is no multiple of k, the last group takes what is left, as in sdcMicro."""
    values = np.array([3.0, 1, 2, 7, 5, 6, 4])
    assert in_turn(np.argsort(values), 3).tolist() == [0, 0, 0, 1, 1, 1, 1]
    points = standardised(np.column_stack([values, -values]))
    assert sorted(np.bincount(by_component(points, 3)).tolist()) == [3, 4]
    assert by_component(points, 3).tolist() == by_component(points * [1, 1 + 1e-13], 3).tolist()


def test_records_keep_what_is_not_named(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT 'p' || i AS name, i * i AS x, 7 AS same, -i AS y FROM range(10) r(i)")
    made = "sdc_microaggregate('p', ['X', 'same'])"
    assert [row[:2] for row in con.execute(f"DESCRIBE FROM {made}").fetchall()] == [
        ("name", "VARCHAR"), ("x", "DOUBLE"), ("same", "DOUBLE"), ("y", "BIGINT"),
        ("group_id", "BIGINT"), ("group_size", "BIGINT"),
    ]  # fmt: skip
    assert (
        con.execute(f"SELECT name, y FROM {made} ORDER BY y DESC").fetchall()
        == con.execute("SELECT name, y FROM p ORDER BY y DESC").fetchall()
    )
    assert con.execute(f"SELECT round(sum(x), 9), sum(same), min(same) FROM {made}").fetchall() == [(285.0, 70.0, 7.0)]
    con.execute(f"CREATE TABLE m AS FROM {made}")
    means = "SELECT group_id, avg(p.x) AS mean, count(*) AS n FROM m JOIN p USING (name) GROUP BY ALL"
    wrong = f"SELECT count(*) FROM m JOIN ({means}) USING (group_id) WHERE abs(x - mean) > 1e-9 OR n < 3"
    assert con.execute(wrong).fetchall() == [(0,)]


def test_the_order_of_the_records_does_not_matter(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, (i * 7919) % 13 AS x, (i * 104729) % 11 AS y FROM range(40) r(i)")
    con.execute("CREATE TABLE q AS FROM p ORDER BY hash(id)")
    rows = [con.execute(f"FROM sdc_microaggregate('{table}', ['x', 'y']) ORDER BY id").fetchall() for table in "pq"]
    assert rows[0] == rows[1]


def test_an_empty_table_stays_empty(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute("FROM sdc_microaggregate('(SELECT 1 AS x LIMIT 0)', ['x'])").fetchall() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'nobody', ['x']", "unknown table 'nobody'"),
        ("'p'", "argument 'columns' must name the columns of numbers"),
        ("'p', ['agge']", "unknown column 'agge' in 'p'; did you mean 'age'?"),
        ("'p', ['age', 'AGE']", "names column 'age' twice"),
        ("'p', ['name'], method := 'swap'", "method := 'swap' takes columns of numbers, and 'name' is VARCHAR"),
        ("'(SELECT [age] AS ages FROM p)', ['ages']", "argument 'columns' must name a column of numbers: 'ages' of the query is BIGINT[]"),
        ("'p', ['age'], k := 1", "argument 'k' must be a whole number of at least 2"),
        ("'p', ['age'], k := NULL", "argument 'k' must be a whole number of at least 2"),
        ("'p', ['age'], k := 11", "there are 10 records, fewer than k := 11"),
        ("'p', ['age'], by := ['name']", "there is 1 record in one of the strata, fewer than k := 3"),
        ("'p', ['age'], by := ['age']", "column 'age' is one of those that are masked"),
        ("'p', ['age'], id := 'age'", "column 'age' is one of those that are masked"),
        ("'p', ['age'], by := ['agee']", "unknown column 'agee' in 'p'; did you mean 'age'?"),
        ("'p', ['age'], method := 'mdv'", "'pca' or 'rmd'; did you mean 'mdav'?"),
        ("'p', ['age'], gamma := 0.5", "argument 'gamma' is for method := 'vmdav' and 'swap' and 'decompose'"),
        ("'p', ['age'], method := 'vmdav', gamma := -1", "argument 'gamma' must be a number of at least 0"),
        ("'p', ['age'], method := 'swap', pieces := 2", "argument 'pieces' is for method := 'decompose'"),
        ("'p', ['age'], method := 'decompose', pieces := 0", "argument 'pieces' must be a whole number of at least 1"),
        ("'p', ['age'], method := 'decompose', time_limit := 0", "argument 'time_limit' must be a number above 0"),
        ("'(SELECT *, age AS b FROM p)', ['age', 'b'], method := 'optimal'", "takes one column at a time"),
        ("'(SELECT *, age AS b FROM p)', [['age'], ['b', 'age']]", "names column 'age' twice"),
        ("'p', [['age'], []]", "argument 'columns' must name columns, such as ['age', 'income']"),
        ("'p', ['age'], nulls := 'drop'", "argument 'nulls' must be 'refuse', 'keep' or 'apart'"),
        ("'(SELECT age, age // 2 AS id FROM p)', ['age'], id := 'id'", "10 records have 5 different ones"),
        ("'(SELECT age, nullif(age, 3) AS id FROM p)', ['age'], id := 'id'", "column 'id' is NULL in 1 record"),
        ("'(SELECT age AS group_id FROM p)', ['group_id']", "is also one of the result"),
        ("'(SELECT nullif(age, 3) AS age FROM p)', ['age']", "1 of 10 records have NULL in a column"),
        ("'(SELECT CASE WHEN age = 3 THEN ''nan''::DOUBLE ELSE age END AS age FROM p)', ['age']", "a record has NaN or an infinite number"),
        ("'(SELECT CASE WHEN age = 3 THEN ''inf''::DOUBLE ELSE age END AS age FROM p)', ['age']", "a record has NaN or an infinite number"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE p AS SELECT i AS age, 'p' || i AS name FROM range(10) r(i)")
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM sdc_microaggregate({call})").fetchall()
    assert message in str(raised.value)


def test_strata_are_grouped_by_themselves(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, i * i % 19 AS x, nullif(i % 3, 2) AS s FROM range(40) r(i)")
    con.execute("CREATE TABLE m AS FROM sdc_microaggregate('p', ['x'], k := 4, by := ['s'], method := 'swap')")
    mixed = "SELECT count(*) FROM (SELECT group_id FROM m GROUP BY group_id HAVING count(DISTINCT coalesce(s, 9)) > 1)"
    assert con.execute(mixed).fetchall() == [(0,)]
    assert con.execute(
        "SELECT min(group_size) >= 4, bool_and(group_size = n) FROM m JOIN "
        "(SELECT group_id, count(*) AS n FROM m GROUP BY group_id) USING (group_id)"
    ).fetchall() == [(True, True)]
    for stratum in ("s = 0", "s = 1", "s IS NULL"):
        alone = f"SELECT id, x FROM sdc_microaggregate('(FROM p WHERE {stratum})', ['x'], k := 4, method := 'swap')"
        assert con.execute(f"SELECT id, x FROM m WHERE {stratum} EXCEPT {alone}").fetchall() == []


def test_several_lists_are_grouped_by_themselves(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, i * 7 % 31 AS x, i * 11 % 37 AS y, i * 5 % 13 AS z FROM range(30) r(i)"
    )
    both = con.execute(
        "SELECT id, x, y, z, group_id_1, group_size_2 FROM sdc_microaggregate('p', [['x', 'z'], ['y']], k := 5) ORDER BY id"
    ).fetchall()
    one = con.execute(
        "SELECT id, x, z, group_id FROM sdc_microaggregate('p', ['x', 'z'], k := 5, id := 'id') ORDER BY id"
    )
    assert [(row[0], row[1], row[3], row[4]) for row in both] == one.fetchall()
    other = con.execute("SELECT y, group_size FROM sdc_microaggregate('p', ['y'], k := 5, id := 'id') ORDER BY id")
    assert [(row[2], row[5]) for row in both] == other.fetchall()


def test_records_with_gaps(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 4 > 0 THEN i * i % 19 END AS x, CASE WHEN i % 8 <> 1 THEN i * 7 % 23 END AS y "
        "FROM range(48) r(i)"
    )
    call = "sdc_microaggregate('p', ['x', 'y'], k := 3, nulls := '{}')"
    kept = con.execute(f"SELECT id, x, y, group_id FROM {call.format('keep')} ORDER BY id").fetchall()
    with_gaps = [row for row in con.execute("SELECT id, x, y FROM p ORDER BY id").fetchall() if None in row]
    assert [row[:3] for row in kept if row[3] is None] == with_gaps
    whole = con.execute(
        "SELECT id, x, y, group_id FROM sdc_microaggregate('(FROM p WHERE x IS NOT NULL AND y IS NOT NULL)', ['x', 'y']) ORDER BY id"
    ).fetchall()
    assert [row for row in kept if row[3] is not None] == whole
    # By itself, a column is masked wherever it is known, whatever else is missing.
    each = con.execute(
        "SELECT id, x, y, group_id_1, group_size_2 FROM sdc_microaggregate('p', [['x'], ['y']], k := 3, id := 'id', nulls := 'keep') ORDER BY id"
    ).fetchall()
    for place, name in ((1, "x"), (2, "y")):
        alone = con.execute(
            f"SELECT id, {name}, group_id, group_size FROM sdc_microaggregate('(SELECT id, {name} FROM p WHERE {name} IS NOT NULL)', ['{name}'], id := 'id') ORDER BY id"
        ).fetchall()
        assert [(row[0], row[place]) for row in each if row[place] is not None] == [row[:2] for row in alone]
        shown = 2 if name == "x" else 3
        assert [row[2 + place] for row in each if row[place] is not None] == [row[shown] for row in alone]
    assert [row[3] for row in each if row[1] is None] == [None] * 12
    con.execute(f"CREATE TABLE apart AS FROM {call.format('apart')}")
    assert con.execute(
        "SELECT count(*) FROM apart a JOIN p USING (id) WHERE (a.x IS NULL) <> (p.x IS NULL) OR (a.y IS NULL) <> (p.y IS NULL)"
    ).fetchall() == [(0,)]
    assert con.execute(
        "SELECT min(n), max(g) FROM (SELECT count(*) AS n, count(DISTINCT (x, y)) AS g FROM apart GROUP BY group_id)"
    ).fetchall() == [(3, 1)]
    assert con.execute(
        "SELECT round(sum(a.x) - sum(p.x), 9), round(sum(a.y) - sum(p.y), 9) FROM apart a JOIN p USING (id)"
    ).fetchall() == [(0, 0)]


@pytest.mark.parametrize("method", ["mdav", "vmdav", "swap", "decompose", "pca", "rmd", "onedims"])
def test_every_method_keeps_k_and_sums_and_ignores_the_order_of_rows(
    con: duckdb.DuckDBPyConnection, method: str
) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, (i * 7919) % 13 AS x, (i * 104729) % 11 AS y FROM range(47) r(i)")
    con.execute("CREATE TABLE q AS FROM p ORDER BY hash(id)")
    con.execute(f"CREATE TABLE m AS FROM sdc_microaggregate('p', ['x', 'y'], k := 4, method := '{method}')")
    con.execute(f"CREATE TABLE n AS FROM sdc_microaggregate('q', ['x', 'y'], k := 4, method := '{method}')")
    assert con.execute("SELECT count(*) FROM (FROM m EXCEPT FROM n)").fetchall() == [(0,)]
    assert con.execute("SELECT round(sum(m.x) - sum(p.x), 9), round(sum(m.y) - sum(p.y), 9) FROM m JOIN p USING (id)"
                       ).fetchall() == [(0, 0)]  # fmt: skip
    for columns in ("x", "y") if method == "onedims" else ("x, y",):
        assert con.execute(f"SELECT min(n) >= 4 FROM (SELECT count(*) AS n FROM m GROUP BY {columns})").fetchall() == [
            (True,)
        ]


def test_one_column_is_as_good_as_it_can_be(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, (i * i * 31) % 211 AS x FROM range(90) r(i)")
    lost = {}
    for method in ("optimal", "swap", "onedims"):
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM sdc_microaggregate('p', ['x'], k := 3, method := '{method}')")
        lost[method] = con.execute(
            "SELECT sse, bound, gap, k_min FROM sdc_microaggregate_quality('p', 'm', ['x'], id := 'id')"
        ).fetchone()
    assert lost["optimal"][:3] == (
        pytest.approx(lost["optimal"][1]),
        pytest.approx(lost["swap"][1]),
        pytest.approx(0, abs=1e-12),
    )
    assert lost["swap"][0] >= lost["optimal"][0]
    assert lost["onedims"][0] > lost["optimal"][0]
    assert lost["onedims"][2] == pytest.approx(1 - lost["optimal"][0] / lost["onedims"][0])


@pytest.mark.parametrize(
    ("original", "protected", "message"),
    [
        ("p", "(FROM p WHERE id > 1)", "of 10 original and 8 protected records 8 belong together by 'id'"),
        ("p", "(SELECT id // 2 AS id, x FROM p)", "argument 'protected': column 'id' is the same in several records"),
        ("(SELECT nullif(id, 2) AS id, x FROM p)", "p", "argument 'original': column 'id' is NULL in 1 record"),
        ("p", "(SELECT id, nullif(x, 3) AS x FROM p)", "a record has NULL in one of the columns"),
        ("p", "(SELECT id, ''nan''::DOUBLE AS x FROM p)", "a record has NaN or an infinite number"),
        ("p", "(SELECT id, ''a'' AS x FROM p)", "must name a column of numbers"),
    ],
)
def test_records_that_cannot_be_compared(
    lasting: duckdb.DuckDBPyConnection, original: str, protected: str, message: str
) -> None:
    lasting.execute("CREATE OR REPLACE TABLE p AS SELECT i AS id, i AS x FROM range(10) r(i)")
    with pytest.raises(duckdb.Error, match=None) as raised:
        lasting.execute(f"FROM sdc_microaggregate_quality('{original}', '{protected}', ['x'], id := 'id')").fetchall()
    assert message in str(raised.value)


def test_the_quality_of_records_that_do_not_differ(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, 7 AS x FROM range(5) r(i)")
    assert con.execute("FROM sdc_microaggregate_quality('p', 'p', ['x'], id := 'id')").fetchall() == [
        (5, 5, 1, 0.0, 0.0, 0.0, None, None)
    ]
    assert con.execute(
        "FROM sdc_microaggregate_quality('(FROM p LIMIT 0)', '(FROM p LIMIT 0)', ['x'], id := 'id')"
    ).fetchall() == [(0, 0, 0, 0.0, 0.0, 0.0, None, None)]


def test_medians(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, (i * 37 % 23) ** 2 AS x, i * i % 11 AS y, DATE '2026-01-01' + (i * i % 50)::INTEGER AS d, "
        "['u', 'v'][1 + i % 2] AS c FROM range(31) r(i)"
    )
    arguments = "'p', ['x', 'y', 'd', 'c'], k := 4, id := 'id'"
    means = con.execute(f"SELECT id, group_id, c FROM sdc_microaggregate({arguments}) ORDER BY id").fetchall()
    con.execute(f"CREATE TABLE m AS FROM sdc_microaggregate({arguments}, average := 'median')")
    assert con.execute("SELECT id, group_id, c FROM m ORDER BY id").fetchall() == means
    wrong = con.execute(
        """SELECT count(*) FROM m JOIN (
            SELECT group_id, median(p.x) AS x, median(p.y) AS y,
                make_timestamp(epoch_us(median(p.d::TIMESTAMP)) + 43_200_000_000)::DATE AS d
            FROM p JOIN m USING (id) GROUP BY group_id) t USING (group_id)
        WHERE m.x <> t.x OR m.y <> t.y OR m.d <> t.d"""
    )
    assert wrong.fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("average := 'mode'", "argument 'average' must be 'mean' or 'median'"),
        ("average := NULL", "argument 'average' must be"),
        ("average := 'median', weight := 'w'", "give 'weight' or average := 'median'"),
        ("method := 'simple'", "name it as 'id'"),
    ],
)
def test_wrong_averages(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS x, 1 AS w FROM range(9) r(i)")
    with pytest.raises(duckdb.Error) as raised:
        con.execute(f"FROM sdc_microaggregate('p', ['x'], {arguments})").fetchall()
    assert message in str(raised.value)
