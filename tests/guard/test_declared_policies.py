"""What `sdc_protect` refuses to declare, because it would protect nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

import sdcduck
from sdcduck import catalog
from sdcduck.guard import Refused, guard, methods
from sdcduck.methods.perturbation.record_keys import are_spread

PROTECT = "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], record_key := '{}', {})"
METHODS = ("method := 'cell_key'", "method := 'rounding', base := 5")


@pytest.fixture(scope="module")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            """CREATE TABLE people AS SELECT i + 1000 AS id, sdc_record_key(i) AS record_key, 'r' || i % 3 AS region,
            (20 + i % 70)::INTEGER AS age, 7 AS constant, 99_999_000 + i % 999 AS large, (i * 1234577) % 256 AS small,
            i AS number, i * 99_000 AS stretched, i % 16 * 6_250_000 AS sixteen, hash(i) % 100_000_000 AS hashed FROM range(1000) _(i)"""
        )
        con.execute("CREATE TABLE visits AS FROM people UNION ALL FROM people UNION ALL FROM people")
        ons = "SELECT i + 1 AS pcv, k AS ckey, CASE WHEN i > 5 THEN k % 3 - 1 ELSE 0 END AS pvalue FROM range(750) a(i), range(256) b(k)"
        con.execute(f"FROM sdc_store_ptable('ons', '({ons})')").fetchall()
        yield con


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("column", ["age", "constant", "large", "small", "number", "sixteen"])
def test_columns_that_are_no_record_keys(people: duckdb.DuckDBPyConnection, column: str, method: str) -> None:
    with pytest.raises(duckdb.Error, match="cannot hold record keys, which are random numbers from 0 to 99999999"):
        people.execute(PROTECT.format(column, method))


def test_the_unit_is_no_record_key(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("CREATE OR REPLACE VIEW known AS SELECT stretched AS id, region FROM people")
    for method in METHODS:
        with pytest.raises(duckdb.Error, match="is the unit: whoever knows the units"):
            people.execute(PROTECT.replace("people", "known").format("ID", method))


@pytest.mark.parametrize("column", ["record_key", "hashed", "stretched"])
def test_keys_that_are_spread(people: duckdb.DuckDBPyConnection, column: str) -> None:
    for table in ("people", "visits"):
        for method in METHODS:
            people.execute(PROTECT.replace("people", table).format(column, method)).fetchall()
    people.execute("FROM sdc_unprotect('visits')").fetchall()
    assert guard(people).sql("SELECT count(*) AS n FROM people").to_pylist()[0]["n"] == 1000


def test_keys_of_the_scale_of_the_ptable(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(PROTECT.format("small", "ptable := 'ons'")).fetchall()
    with pytest.raises(duckdb.Error, match="random numbers from 0 to 255"):
        people.execute(PROTECT.format("constant", "ptable := 'ons'"))


def test_a_few_people_may_have_any_keys(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(
        "CREATE OR REPLACE VIEW few AS FROM visits WHERE number < 3; CREATE OR REPLACE VIEW none AS FROM visits LIMIT 0"
    )
    for table in ("few", "none"):
        people.execute(PROTECT.replace("people", table).format("number", METHODS[0])).fetchall()
        people.execute(f"FROM sdc_unprotect('{table}')").fetchall()


def test_random_keys_are_not_refused_and_others_are() -> None:
    """At its level, 1 in 1e9 tables of random keys would be refused."""
    chance = np.random.default_rng(3)
    for size in (1, 2, 5, 9, 30, 1000, 10**6):
        for _ in range(50):
            assert are_spread(chance.multinomial(size, np.full(16, 1 / 16)), size, 10**8)
            keys = chance.integers(0, 256, size)
            counts = np.bincount(keys // 16, minlength=16)
            assert are_spread(counts, len(np.unique(keys)), 256)
    for size in (9, 30, 1000, 10**6):
        assert not are_spread(np.array([size, *[0] * 15]), size, 10**8)
        assert not are_spread(np.full(16, size), 16, 10**8)
    assert not are_spread(np.array([600, 400, *[0] * 14]), 1000, 10**8)


def test_publications_whose_names_differ_in_capitals_only_are_one() -> None:
    """They have the same tables: the second would have answered under the policies of the first."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE firms AS SELECT i AS id, 'r' || i % 4 AS region, 's' || (i * i % 7) AS sector FROM range(40) _(i)"
        )
        cube = "SELECT region, sector, count(*) AS n FROM firms GROUP BY CUBE (region, sector)"
        con.execute(f"FROM sdc_publish('inc', '{cube}', max_count := 3)").fetchall()
        con.execute(
            "FROM sdc_protect('firms', unit := 'id', dimensions := ['region', 'sector'], method := 'suppression', publication := 'Inc')"
        ).fetchall()
        asked = "SELECT region, sector, count(*) AS n FROM firms GROUP BY ALL"
        hidden = sum(row["n"] is None for row in guard(con).sql(asked).to_pylist())
        assert hidden > 2
        con.execute("FROM sdc_publish('INC', max_count := 1)").fetchall()
        assert con.execute("SELECT name FROM sdc.publications").fetchall() == [("INC",)]
        stored = con.execute(
            "SELECT count(*) FROM sdc.inc_cells WHERE status <> 'open' AND level = 'region x sector'"
        ).fetchall()
        assert [(sum(row["n"] is None for row in guard(con).sql(asked).to_pylist()),)] == stored
        con.execute("FROM sdc_drop_publication('iNC')").fetchall()
        assert con.execute("SELECT count(*) FROM sdc.publications").fetchall() == [(0,)]
        with pytest.raises(Refused, match="SDC060"):
            guard(con).sql(asked)


@pytest.mark.parametrize(
    "macro", ["upper(x) AS (SELECT string_agg(answer) FROM hidden)", '"+"(a, b) AS 7', "Sum(x) AS 1"]
)
def test_a_macro_does_not_run_in_place_of_a_function_of_duckdb(tmp_path: Path, macro: str) -> None:
    path = tmp_path / "macros.duckdb"
    asked = "SELECT upper(region) AS r FROM regions"
    with sdcduck.connect(path, secret="the secret of the tests") as con:
        con.execute("CREATE TABLE regions AS SELECT 'n' AS region; CREATE TABLE hidden AS SELECT 'secret' AS answer")
        con.execute("FROM sdc_declare_public('regions')").fetchall()
        con.execute(f"CREATE TEMP MACRO {macro}")  # that of one connection is not that of another
        before = guard(con)
        assert before.sql(asked).to_pylist() == [{"r": "N"}]
        con.execute(f"CREATE MACRO macros.main.{macro}")
        with pytest.raises(sdcduck.SDCError, match="DROP MACRO"):
            guard(con)
        con.execute("UPDATE sdc.settings SET value = 'another' WHERE name = 'policies'")
        with pytest.raises(Refused, match="SDC060"):
            before.sql(asked)
    with pytest.raises(sdcduck.SDCError, match="DROP MACRO"):
        guard(path)


def test_a_public_view_shows_no_records_of_a_protected_table(tmp_path: Path) -> None:
    path = tmp_path / "views.duckdb"
    asked = "SELECT sum(income) AS s FROM shown"
    with sdcduck.connect(path, secret="the secret of the tests") as con:
        con.execute(
            """CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, 'r' || i % 3 AS region, i AS income
            FROM range(99) _(i); CREATE TABLE open AS SELECT 1 AS income; CREATE VIEW shown AS FROM open;
            CREATE VIEW inner_view AS FROM people; CREATE MACRO of_people() AS TABLE FROM inner_view"""
        )
        protect = "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income'])"
        con.execute("FROM sdc_declare_public('shown')").fetchall()
        con.execute("FROM sdc_declare_public('inner_view')").fetchall()  # nothing is protected yet
        guarded = guard(con)
        assert guarded.sql(asked).to_pylist() == [{"s": 1}]
        con.execute(protect).fetchall()
        with pytest.raises(Refused, match="SDC060"):
            guarded.sql("SELECT max(income) AS m FROM inner_view")
        same_columns = "SELECT income::INTEGER AS income FROM people"
        for view in (
            same_columns,
            "FROM people",
            "FROM inner_view",
            "FROM of_people()",
            "SELECT max(income) AS income FROM people",
        ):
            con.execute(f"CREATE OR REPLACE VIEW shown AS {view}")
            with pytest.raises(Refused, match="SDC060"):
                guarded.sql(asked)
            con.execute(f"CREATE OR REPLACE VIEW another AS {view}")
            with pytest.raises(duckdb.Error, match="'another' reads 'people', which is not for everybody"):
                con.execute("FROM sdc_declare_public('another')")
    with pytest.raises(Refused, match="SDC060"):
        guard(path).sql(asked)
    with sdcduck.connect(path, secret="the secret of the tests") as con:
        con.execute("CREATE OR REPLACE VIEW shown AS FROM open")
        assert guard(con).sql(asked).to_pylist() == [{"s": 1}]


def test_a_preview_that_was_replaced_by_records_is_refused() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            """CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, 'r' || i % 3 AS region
            FROM range(99) _(i); CREATE TABLE made_up AS SELECT 'r1' AS region; CREATE VIEW preview AS FROM made_up"""
        )
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], preview := 'preview')"
        ).fetchall()
        guarded = guard(con)
        assert guarded.sql("SELECT region FROM people LIMIT 3").to_pylist() == [{"region": "r1"}]
        con.execute("CREATE OR REPLACE VIEW preview AS SELECT region FROM people")
        with pytest.raises(Refused, match="SDC060"):
            guarded.sql("SELECT region FROM people LIMIT 3")


OF_EVERY_FORM = (
    "SELECT * FROM open JOIN places USING (k)",
    "SELECT * FROM open NATURAL JOIN places",
    "SELECT * FROM open SEMI JOIN places USING (k)",
    "UNPIVOT open ON a, b INTO NAME n VALUE v",
    "SELECT COLUMNS('a|b') FROM open",
    "SELECT s.* FROM (SELECT {'x': a, 'y': b} AS s FROM open)",
    "SELECT * FROM open ASOF JOIN places USING (k)",
    "SELECT * FROM other.people",
    "SELECT * FROM attached.people",
    "WITH people AS (FROM open) FROM people",
    "FROM range(3)",
)


@pytest.fixture(scope="module")
def open_views() -> Iterator[duckdb.DuckDBPyConnection]:
    """A protected view of records and a public lookup table; other relations of the same names."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            """CREATE TABLE raw AS SELECT i AS id, sdc_record_key(i) AS record_key, i % 3 AS k, i AS income FROM range(99) _(i);
            CREATE TABLE places AS SELECT i AS k, 'p' || i AS place FROM range(3) _(i);
            CREATE VIEW people AS SELECT raw.*, place FROM raw JOIN places USING (k);
            CREATE TABLE open AS SELECT 1 AS k, 2 AS a, 3 AS b;
            CREATE SCHEMA other; CREATE TABLE other.people AS SELECT 1 AS a;
            ATTACH ':memory:' AS attached; CREATE TABLE attached.people AS SELECT 1 AS a"""
        )
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['place'], measures := ['income'], role := 'research')"
        ).fetchall()
        for table in ("places", "open"):
            con.execute(f"FROM sdc_declare_public('{table}')").fetchall()
        yield con


@pytest.mark.parametrize("view", OF_EVERY_FORM)
def test_a_public_view_of_other_tables_is_shown(open_views: duckdb.DuckDBPyConnection, view: str) -> None:
    open_views.execute(f"CREATE OR REPLACE VIEW shown AS {view}")
    open_views.execute("FROM sdc_declare_public('shown')").fetchall()
    expected = len(open_views.execute("FROM shown").fetchall())
    for role in ("", "research"):
        guarded = guard(open_views, role=role)
        assert guarded.sql("SELECT count(*) AS n FROM shown").to_pylist() == [{"n": expected}]
    assert guarded.sql("SELECT place, count(*) AS n FROM people GROUP BY place").num_rows == 3
    assert len(guarded.relations()) == 4


@pytest.mark.parametrize(
    "view",
    [
        "FROM raw",
        "SELECT income FROM people",
        "SELECT max(income) FROM raw JOIN places USING (k)",
        "FROM open WHERE a IN (SELECT income FROM raw)",
        "FROM sdc.settings",
        "FROM duckdb_tables()",
        "FROM pragma_storage_info('raw')",
        "SELECT * FROM information_schema.tables",
        "FROM query('FROM raw')",
    ],
)
@pytest.mark.parametrize("role", ["", "research"])
def test_a_public_view_of_what_is_protected_for_somebody_is_refused(
    open_views: duckdb.DuckDBPyConnection, view: str, role: str
) -> None:
    open_views.execute(f"CREATE OR REPLACE VIEW records AS {view}")
    with pytest.raises(duckdb.Error, match="which is not for everybody"):
        open_views.execute(f"FROM sdc_declare_public('records', role := '{role}')")
    open_views.execute("CREATE OR REPLACE VIEW records AS FROM open")
    open_views.execute(f"FROM sdc_declare_public('records', role := '{role}')").fetchall()
    open_views.execute(f"CREATE OR REPLACE VIEW records AS {view}")
    with pytest.raises(Refused, match="SDC060"):
        guard(open_views, role=role).sql("SELECT count(*) AS n FROM records")
    open_views.execute(f"FROM sdc_unprotect('records', role := '{role}')").fetchall()


def test_a_macro_of_another_schema_runs_in_place_of_nothing() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("CREATE TABLE open AS SELECT 'a' AS a; CREATE SCHEMA util; CREATE MACRO util.upper(x) AS 'wrong'")
        con.execute("FROM sdc_declare_public('open')").fetchall()
        assert guard(con).sql("SELECT upper(a) AS a FROM open").to_pylist() == [{"a": "A"}]


@pytest.mark.parametrize(
    "view",
    [
        "SELECT x, floor(random() * 2) AS r FROM ages",
        "SELECT x, drawn() AS r FROM ages",
        "SELECT x, uuid() AS r FROM ages",
        "SELECT x, x AS r FROM ages TABLESAMPLE 50%",
        "SELECT x, x AS r FROM ages USING SAMPLE 1 ROWS",
    ],
)
def test_a_public_view_whose_rows_are_drawn_each_time_is_refused(view: str) -> None:
    """That no two of its rows are in one group holds of those that were looked at, and the next ones count twice."""
    with duckdb.connect() as con:
        sdcduck.install(con, secret="the secret of the tests")
        con.execute("""CREATE TABLE ages AS FROM (VALUES (70), (80)) ages(x); CREATE VIEW drawn AS FROM ages;
            CREATE MACRO drawn() AS floor(random() * 2); CREATE TABLE people AS SELECT i AS id, i % 90 AS age FROM range(600) r(i);
            FROM sdc_protect('people', unit := 'id', dimensions := ['age'], method := 'threshold', min_units := 3)""")
        con.execute("FROM sdc_declare_public('drawn')").fetchall()
        asked = "SELECT t.r, count(*) AS n FROM people CROSS JOIN drawn t WHERE age < t.x GROUP BY t.r"
        con.execute(f"CREATE OR REPLACE VIEW drawn AS {view}")
        with pytest.raises(Refused, match="SDC060"):
            guard(con).sql(asked)
        with pytest.raises(duckdb.Error, match="not for everybody"):
            con.execute("FROM sdc_declare_public('drawn')")


def looked_up(con: duckdb.DuckDBPyConnection) -> None:
    """A view of records with other names; the lookup has a column that is called as the unit is there."""
    con.execute(
        """CREATE TABLE raw AS SELECT i AS pid, sdc_record_key(i) AS record_key, i % 3 AS k, i AS income FROM range(99) _(i);
        CREATE TABLE places AS SELECT i AS id, 'p' || i AS place FROM range(3) _(i);
        CREATE VIEW people AS SELECT pid AS id, record_key, income, place FROM raw JOIN places ON k = places.id;
        CREATE VIEW shown AS SELECT pid, income FROM raw; CREATE VIEW named AS SELECT place AS name FROM places"""
    )


PROTECT_VIEW = "FROM sdc_protect('people', unit := 'id', dimensions := ['place'], measures := ['income'], role := '{}')"


def test_the_records_behind_a_view_are_known_whatever_the_unit_is_called_there() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        looked_up(con)
        con.execute(PROTECT_VIEW.format("")).fetchall()
        for view in ("shown", "named"):
            with pytest.raises(duckdb.Error, match=f"'{view}' reads 'people', which is not for everybody"):
                con.execute(f"FROM sdc_declare_public('{view}')")
        con.execute("FROM sdc_declare_public('places')").fetchall()
        con.execute("FROM sdc_declare_public('named')").fetchall()
        assert guard(con).sql("FROM named").num_rows == 3
        con.execute("CREATE OR REPLACE VIEW named AS SELECT income::VARCHAR AS name FROM raw")
        with pytest.raises(Refused, match="SDC060"):
            guard(con).sql("FROM named")


def test_the_records_of_a_protected_view_are_not_public() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        looked_up(con)
        con.execute("FROM sdc_declare_public('raw')").fetchall()
        with pytest.raises(duckdb.Error, match="'people' has the records of 'raw', which is public"):
            con.execute(PROTECT_VIEW.format(""))
        con.execute(PROTECT_VIEW.format("research")).fetchall()  # for others than may read the table
        con.execute("FROM sdc_unprotect('raw')").fetchall()
        con.execute(PROTECT_VIEW.format("")).fetchall()
        with pytest.raises(duckdb.Error, match="'raw' has the records of 'people', which is protected"):
            con.execute("FROM sdc_declare_public('raw')")
        con.execute("FROM sdc_declare_public('places')").fetchall()


@pytest.mark.parametrize("role", ["", "guest"])
def test_what_is_protected_for_some_is_shown_to_no_others(role: str) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        looked_up(con)
        con.execute(PROTECT_VIEW.format("research")).fetchall()
        for view in ("SELECT income FROM people", "SELECT income FROM raw"):
            con.execute(f"CREATE OR REPLACE VIEW shown AS {view}")
            with pytest.raises(duckdb.Error, match="'shown' reads 'people', which is not for everybody"):
                con.execute(f"FROM sdc_declare_public('shown', role := '{role}')")
        con.execute("CREATE OR REPLACE VIEW shown AS FROM places")
        con.execute("FROM sdc_declare_public('places')").fetchall()
        con.execute(f"FROM sdc_declare_public('shown', role := '{role}')").fetchall()
        con.execute("CREATE OR REPLACE VIEW shown AS SELECT income AS id, 'x' AS place FROM people")
        with pytest.raises(Refused, match="SDC060"):
            guard(con, role=role).sql("FROM shown")


def test_a_list_of_numbers_is_no_measure(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("CREATE OR REPLACE VIEW lists AS SELECT *, [1.5::DECIMAL(9, 2)] AS parts FROM people")
    with pytest.raises(duckdb.Error, match="'parts' cannot be a measure"):
        people.execute(PROTECT.replace("people", "lists").format("record_key", "measures := ['parts']"))


@pytest.mark.parametrize("unit", ["id", "id::VARCHAR"])
def test_the_same_people_have_the_same_keys_in_a_population(unit: str) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            f"""CREATE TABLE persons AS SELECT i AS id, sdc_record_key(i) AS record_key, i % 3 AS region FROM range(99) _(i);
            CREATE TABLE stays AS SELECT {unit} AS id, (record_key + 12345) % 100_000_000 AS record_key, region AS ward
            FROM persons WHERE id > 9"""
        )
        protect = "FROM sdc_protect('{}', unit := 'id', dimensions := ['{}'], population := {})"
        con.execute(protect.format("persons", "region", "'people'")).fetchall()
        with pytest.raises(duckdb.Error, match="89 units have other record keys in 'persons', of the same population"):
            con.execute(protect.format("stays", "ward", "'people'"))
        con.execute(protect.format("stays", "ward", "'others'")).fetchall()
        con.execute("UPDATE stays SET record_key = (record_key + 99_987_655) % 100_000_000")
        con.execute(protect.format("stays", "ward", "'people'")).fetchall()
        con.execute("DROP TABLE persons")
        con.execute(protect.format("stays", "ward", "'people'")).fetchall()


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_a_declaration_is_stored_at_once(people: duckdb.DuckDBPyConnection, end: str) -> None:
    people.execute("CREATE OR REPLACE TABLE open_to_all AS SELECT 1 AS a")
    people.execute("BEGIN")
    people.execute("FROM sdc_declare_public('open_to_all')").fetchall()
    people.execute(end)
    assert guard(people).sql("FROM open_to_all").num_rows == 1
    people.execute("FROM sdc_unprotect('open_to_all')").fetchall()
    with pytest.raises(Refused, match="SDC020"):
        guard(people).sql("FROM open_to_all")


@pytest.mark.parametrize(
    "keys", ["amount * 16000 % 100_000_000", "(amount - 1000) * 11_111", "hash(amount) % 100_000_000"]
)
def test_keys_that_are_made_of_a_measure(keys: str) -> None:
    """Counts tell where keys lie, and so they would tell amounts."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            f"""CREATE TABLE people AS SELECT i AS id, i % 3 AS region, 1000 + (hash(i) % 9000)::BIGINT AS amount,
            ({keys})::BIGINT AS made, sdc_record_key(i) AS record_key, 7 AS constant, NULL::DOUBLE AS missing FROM range(900) _(i)"""
        )
        measures = "measures := ['constant', 'missing', 'amount']"
        with pytest.raises(duckdb.Error, match="'made' cannot hold record keys: it is made of 'amount'"):
            con.execute(PROTECT.format("made", measures))
        con.execute(PROTECT.format("record_key", measures)).fetchall()


def test_random_keys_are_taken_for_made_of_no_measure() -> None:
    """However skewed the measure, and of however many people."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        for size in (1, 2, 9, 40, 3000):
            con.execute(
                f"""CREATE OR REPLACE TABLE people AS SELECT i AS id, 0 AS region, sdc_record_key(i) AS record_key, i % 5 AS few,
                exp(i % 300)::DOUBLE AS skewed, CASE WHEN i = 1 THEN 'inf'::DOUBLE ELSE 0 END AS infinite,
                (i = 0)::INTEGER::DECIMAL(38, 2) AS one FROM range({size}) _(i)"""
            )
            con.execute(PROTECT.format("record_key", "measures := ['few', 'skewed', 'infinite', 'one']")).fetchall()


NO_NOISE = {
    "none": "(SELECT i + 1 AS pcv, k AS ckey, 0 AS pvalue FROM range(750) a(i), range(256) b(k))",
    "three": "(SELECT i + 1 AS pcv, k AS ckey, 3 AS pvalue FROM range(750) a(i), range(256) b(k))",
    "hardly any": "(FROM sdc_ptable(D := 1, V := 0.001))",
}


@pytest.mark.parametrize("source", NO_NOISE.values(), ids=NO_NOISE)
def test_a_ptable_without_noise(source: str) -> None:
    asked = "SELECT count(*) AS n FROM people"
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, i % 3 AS region FROM range(99) _(i)"
        )
        con.execute(f"FROM sdc_store_ptable('mine', '{source}')").fetchall()
        with pytest.raises(duckdb.Error, match="argument 'ptable': 'mine' makes no noise"):
            con.execute(PROTECT.format("record_key", "ptable := 'mine'"))
        con.execute("FROM sdc_store_ptable('mine', '(FROM sdc_rounding_ptable(5))')").fetchall()
        con.execute(PROTECT.format("record_key", "ptable := 'mine'")).fetchall()
        one = guard(con)
        assert one.sql(asked).to_pylist()[0]["n"] % 5 == 0
        con.execute(f"FROM sdc_store_ptable('mine', '{source}')").fetchall()
        for guarded in (one, guard(con)):
            with pytest.raises(Refused, match=r"SDC060: .*its p-table makes no noise"):
                guarded.sql(asked)


def test_a_method_is_called_as_its_module_is() -> None:
    assert {name: (made.name, made.__module__.rpartition(".")[2]) for name, made in methods.METHODS.items()} == {
        name: (name, name) for name in catalog.METHODS
    }


def test_what_is_counted_of_records_and_units(people: duckdb.DuckDBPyConnection) -> None:
    """Rows and units without keys, units of two keys, and columns that are called like ours; of no rows, nothing."""
    people.execute(
        """CREATE OR REPLACE TABLE odd AS FROM (VALUES
            ('a', 1, 0), ('a', 2, 0), ('b', 5, 0), ('b', 5, 0), ('c', NULL, 0), (NULL, 7, 0), (NULL, 8, 0), ('d', -1, 0), ('e', 100000000, 0)
        ) odd("low", "who", "rows")"""
    )
    counted = catalog.policy_facts(people, "odd", "low", "who")
    # Rows without a unit are together one that has two keys, too.
    assert counted == catalog.PolicyFacts(rows=9, units=5, no_unit=2, no_key=3, several_keys=2)
    assert catalog.policy_facts(people, "odd", "low", None) == catalog.PolicyFacts(9, 5, 2, 0, 0)
    assert catalog.policy_facts(people, "(FROM odd WHERE false)", "low", "who") == catalog.PolicyFacts(0, 0, 0, 0, 0)
