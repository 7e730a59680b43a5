"""Letters that Python takes for one and DuckDB does not: Python folds all of Unicode, DuckDB ASCII alone.

Where a query gives its own rows a name that only one of the two takes for that of a table, one of them judges these
rows and the other shows the table. The letters are those whose lower case is another letter: the Kelvin sign, the
Angstrom sign, capitals with accents, in Greek and Cyrillic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from served_gateway import PASSWORD, Served, start

import sdcduck
from sdcduck.guard import Refused, guard
from sdcduck.quoting import folded

SECRET = "the secret of the tests"
METHODS = {
    "cell_key": "method := 'cell_key'",
    "suppression": "method := 'suppression', publication := 'cells'",
    "threshold": "method := 'threshold', min_units := 3",
    "rounding": "method := 'rounding', base := 5",
}
KELVIN, ANGSTROM = "\u212a", "\u212b"
HIDDEN = 982451653  # the income of one of the records, and what a table holds that no policy names
TABLES = ("kunden", "årsdata", "ämter", "друзья", "ωmega", "straße")
"""Protected tables, each with a twin below."""
TWINS = (f"{KELVIN}unden", f"{ANGSTROM}rsdata", "Ämter", "Друзья", "\u2126mega", "STRASSE")
"""What Python takes for the same name, but for the last, which it does not in lower case."""
NOBODYS = ("bank_accounts", "Ärzte", "kunden_neu")
"""Tables that no policy names."""


PRIVATE = {
    "dp": "method := 'dp', epsilon := 1000, delta := 1e-9, per_question := 1, bounds := {'income': [0, 1e9]}, "
    "domains := {'region': ['N', 'S', 'E']}",
}
"""It is in a file of its own: a table whose answers are counted has no second policy."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table a method and letter; a role for each method."""
    return made(tmp_path_factory.mktemp("letters") / "letters.duckdb", METHODS)


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same under differential privacy."""
    pytest.importorskip("opendp")
    return made(tmp_path_factory.mktemp("private") / "letters.duckdb", PRIVATE)


def made(path: Path, methods: dict[str, str]) -> Path:
    """The tables under some methods."""
    with sdcduck.connect(path, secret=SECRET) as con:
        for place, table in enumerate(TABLES):  # other people in each: a copy is refused where questions are charged
            con.execute(
                f"""CREATE TABLE "{table}" AS SELECT 900000000001 + {100 * place} + i AS id, ['N', 'S'][1 + i % 2] AS region,
                32452843 + i * 1299721 AS income, sdc_record_key(i) AS record_key FROM range(40) _(i)"""
            )
            con.execute(f"""INSERT INTO "{table}" VALUES (911111111111, 'E', {HIDDEN}, 5)""")
        for table in NOBODYS:
            con.execute(f"""CREATE TABLE "{table}" AS SELECT {HIDDEN} AS income, {HIDDEN} AS id, 'N' AS region""")
        con.execute(
            """FROM sdc_publish('cells', 'SELECT region, count(*) AS n, sum(income) AS income FROM kunden
            GROUP BY CUBE(region)', max_count := 2)"""
        ).fetchall()
        for method, how in methods.items():
            for table in TABLES if method != "suppression" else ("kunden",):
                con.execute(
                    f"""FROM sdc_protect('{table}', unit := 'id', dimensions := ['region'], measures := ['income'],
                    {how}, role := '{method}')"""
                ).fetchall()
            con.execute(f"FROM sdc_create_user('{method}', '{PASSWORD}', role := '{method}')").fetchall()
    return path


def attacks(table: str, twin: str) -> list[str]:
    """Queries whose own rows have the name of a table for one of the two that read it."""
    made = "(SELECT 1 AS income, 2 AS id, 'x' AS region)"
    return [
        f'WITH "{twin}" AS {made} SELECT sum(income), max(income), list(id) FROM "{table}"',
        f'WITH "{twin}" AS {made} SELECT * FROM "{table}"',
        f'WITH "{table}" AS {made} SELECT income, id FROM "{twin}"',
        f'WITH a AS (WITH "{twin}" AS {made} SELECT * FROM "{table}") SELECT max(income) FROM a',
        f'WITH "{twin}" AS {made} SELECT (SELECT max(income) FROM "{table}")',
        f'WITH "{twin}" AS {made} SELECT * FROM {made} t WHERE income < (SELECT max(income) FROM "{table}")',
        f'SELECT * FROM {made} AS "{twin}" JOIN "{table}" ON true',
        f'SELECT "{twin}".income FROM {made} AS "{twin}", "{table}"',
        f'SELECT "{table}".income FROM {made} AS "{twin}", "{table}"',
        f'WITH "{twin}" AS {made} SELECT "{table}".income FROM "{table}"',
        f'WITH "{twin}" AS {made} SELECT max("{twin}".income) FROM "{table}" AS "{twin}"',
        f'WITH "{twin}" AS {made} FROM "{table}" SELECT max(COLUMNS(*))',
        f'WITH "{twin}" AS {made} PIVOT "{table}" ON region USING max(income)',
        f'WITH "{twin}" AS {made} SELECT * FROM "{twin}"',
    ]


def all_attacks() -> list[str]:
    pairs = [
        *zip(TABLES, TWINS, strict=True),
        ("bank_accounts", f"ban{KELVIN}_accounts"),
        ("Ärzte", "ärzte"),
        ("kunden_neu", f"{KELVIN}unden_neu"),
        ("duckdb_tables", f"duc{KELVIN}db_tables"),
        ("pg_class", "p\u0261_class"),
    ]
    return [attack for pair in pairs for attack in attacks(*pair)]


def shown(rows: object) -> bool:
    """Whether what nobody may see is in an answer."""
    text = str(rows)
    return any(sign in text for sign in (str(HIDDEN), "9000000000", "911111111111", "32452843", "CREATE TABLE"))


def nothing_comes_out(ask: Callable[[str], object], refused: type[Exception] | tuple[type[Exception], ...]) -> int:
    """Ask everything; how many were answered."""
    answered = 0
    for query in all_attacks():
        try:
            rows = ask(query)
        except refused as problem:
            assert not shown(problem), query
            continue
        assert not shown(rows), query
        answered += 1
    return answered


@pytest.mark.parametrize("method", METHODS)
def test_no_method_shows_a_table_for_rows_of_a_similar_name(file: Path, method: str) -> None:
    with closing(guard(file, role=method)) as guarded:
        # Those are answered that ask for the rows of the query itself.
        assert nothing_comes_out(lambda query: guarded.sql(query).to_pylist(), Refused) > 0


def test_nor_does_differential_privacy(private: Path) -> None:
    """Every table is asked about beside that, each with a ledger of its own."""
    with closing(guard(private, role="dp")) as guarded:
        assert nothing_comes_out(lambda query: guarded.sql(query).to_pylist(), Refused) > 0
        for table in TABLES:
            assert guarded.sql(f'SELECT region, count(*) AS n FROM "{table}" GROUP BY region').num_rows == 4
        assert {row["questions"] for row in guarded.sql("SHOW sdc_budget").to_pylist()} == {1}


def test_nor_does_the_guard_of_a_connection(file: Path) -> None:
    with sdcduck.connect(file, secret=SECRET) as con:
        guarded = guard(con, role="cell_key")
        nothing_comes_out(lambda query: guarded.sql(query).to_pylist(), Refused)


@pytest.fixture(scope="module")
def served(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = start(file, tmp_path_factory.mktemp("served"), "--flight-port", "0")
    yield running
    running.stop()


@pytest.mark.parametrize("method", METHODS)
def test_the_gateway_shows_none(served: Served, method: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    login = {**served.options, "user": method, "dbname": "letters", "autocommit": True}
    with psycopg.connect(**login) as con:
        assert nothing_comes_out(lambda query: con.execute(query).fetchall(), psycopg.Error) > 0


def test_flight_shows_none(served: Served) -> None:
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    login = {"username": "cell_key", "password": PASSWORD}

    def ask(query: str) -> object:
        with con.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    with adbc.connect(f"grpc://127.0.0.1:{served.flight}", db_kwargs=login) as con:
        assert nothing_comes_out(ask, adbc.Error) > 0


@pytest.mark.parametrize("table", TABLES)
def test_tables_of_all_letters_are_asked_about(file: Path, table: str) -> None:
    with closing(guard(file, role="rounding")) as guarded:
        asked = f'SELECT region, count(*) AS n FROM "{table}" GROUP BY region ORDER BY region'
        assert guarded.sql(asked).to_pylist() == [{"region": "N", "n": 20}, {"region": "S", "n": 20}]
        # In ASCII letters any case will do, as in DuckDB, and in no others.
        upper = "".join(letter.upper() if letter.isascii() else letter for letter in table)
        assert guarded.sql(asked.replace(table, upper)).num_rows == 2
        with pytest.raises(Refused, match="SDC020"):
            guarded.sql(asked.replace(table, table.upper() if table != "kunden" else TWINS[0]))


def test_columns_that_differ_in_letters_are_two(tmp_path: Path) -> None:
    """Each is what the policy says of it, and each column of an answer has its own numbers."""
    with sdcduck.connect(secret=SECRET) as con:
        con.execute(
            """CREATE TABLE people AS SELECT i AS id, 1 AS d, sdc_record_key(i) AS record_key, 'n' || i % 2 AS "ort",
            900000000001 + i AS "größe", 5 AS "GRÖSSE", 'x' || i % 4 AS "Ä", i % 3 AS "ä" FROM range(90) _(i)"""
        )
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['ä', 'ort'])").fetchall()
        guarded = guard(con)
        assert set(guarded.sql('SELECT "ä", count(*) FROM people GROUP BY 1').column(0).to_pylist()) == {0, 1, 2}
        for hidden in ('"Ä"', '"größe"', '"GRÖßE"', '"grÖße"'):
            with pytest.raises(Refused, match="SDC030"):
                guarded.sql(f"SELECT {hidden}, count(*) FROM people GROUP BY 1")
        answer = guarded.sql(
            'SELECT count(*) AS "Ö", count(DISTINCT id) + 1000 AS "ö", 7 AS "K", 8 AS "\u212a" FROM people'
        )
        assert answer.column_names == ["Ö", "ö", "K", "\u212a"]
        assert answer.column(1)[0].as_py() >= 1000 > answer.column(0)[0].as_py()
        inner = guarded.sql('SELECT q."ö" FROM (SELECT 1 AS "Ö", 2 AS "ö", count(*) AS n FROM people) AS q')
        assert inner.to_pylist() == [{"ö": 2}]
        with_both = 'WITH "Ü" AS (SELECT 1 AS a), "ü" AS (SELECT 2 AS a) SELECT "Ü".a AS b, "ü".a AS c FROM "Ü", "ü"'
        assert guarded.sql(with_both).to_pylist() == [{"b": 1, "c": 2}]


def test_a_policy_is_replaced_by_one_of_the_same_table_only() -> None:
    """As Python folds names, to protect one table took the policy of another away."""
    with sdcduck.connect(secret=SECRET) as con:
        for table in ("kunden", f"{KELVIN}unden", "Ämter", "ämter"):
            con.execute(
                f'CREATE TABLE "{table}" AS SELECT i AS id, 1 AS d, sdc_record_key(i) AS record_key FROM range(9) _(i)'
            )
            con.execute(f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['d'])").fetchall()
        assert con.execute("SELECT count(*) FROM sdc_policies()").fetchall() == [(4,)]
        con.execute("FROM sdc_protect('KUNDEN', unit := 'id', dimensions := ['d'])").fetchall()
        con.execute("FROM sdc_unprotect('ämter')").fetchall()
        named = con.execute("SELECT name FROM sdc_policies() ORDER BY name").fetchall()
        assert sorted(named) == sorted([("KUNDEN",), (f"{KELVIN}unden",), ("Ämter",)])


def test_every_name_that_leaves_the_guard_is_its_own() -> None:
    with sdcduck.connect(secret=SECRET) as con:
        con.execute("CREATE TABLE kunden AS SELECT i AS id, 1 AS d, sdc_record_key(i) AS record_key FROM range(9) _(i)")
        con.execute("CREATE TABLE orte AS SELECT 1 AS k")
        con.execute("FROM sdc_protect('kunden', unit := 'id', dimensions := ['d'])").fetchall()
        con.execute("FROM sdc_declare_public('orte')").fetchall()
        query = """WITH mine AS (SELECT count(*) AS n FROM Kunden), other AS (WITH mine AS (FROM orte) FROM mine)
            SELECT mine.n, (SELECT max(k) FROM orte) AS k FROM mine, other, ORTE AS o WHERE o.k IN (SELECT k FROM other)"""
        sql = guard(con).rewrite(query)
        (tree,) = con.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()[0]
        names = {
            (row["catalog_name"], row["schema_name"], row["table_name"])
            for row in _tables(tree)
        }  # fmt: skip
        assert {("memory", "main", "kunden"), ("memory", "main", "orte")} < names
        assert all(name[2].startswith("_sdc_with_") for name in names if name[0] != "memory"), names


def _tables(tree: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    json.loads(
        tree, object_hook=lambda item: (found.append(item) if item.get("type") == "BASE_TABLE" else None, item)[1]
    )
    return found


def test_another_schema_or_database_does_not_take_the_place_of_the_declared_one(tmp_path: Path) -> None:
    """A temporary table, or one of another schema on the path, has the name of a protected one."""
    with sdcduck.connect(secret=SECRET) as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS id, 1 AS d, sdc_record_key(i) AS record_key FROM range(50) _(i)"
        )
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['d'])").fetchall()
        before = guard(con).sql("SELECT count(*) AS n FROM people").to_pylist()
        con.execute("CREATE TEMP TABLE people AS SELECT 1 AS id, 2 AS d, 7 AS record_key")
        con.execute("CREATE SCHEMA other; CREATE TABLE other.people AS SELECT 1 AS id, 2 AS d, 7 AS record_key")
        con.execute("SET search_path = 'other,main'")
        try:
            assert guard(con).sql("SELECT count(*) AS n FROM people").to_pylist() == before
        except Refused as refused:
            assert refused.code == "SDC060"


def test_duckdb_folds_as_this_does() -> None:
    """DuckDB decides what a name is: of every letter that has a lower case."""
    letters = [
        chr(number) for number in range(0x20, 0x3000) if chr(number) != chr(number).lower() and chr(number) != '"'
    ]
    assert KELVIN in letters
    with duckdb.connect() as con:
        con.execute("BEGIN")  # or each table is written by itself
        for letter in letters:
            for name in {letter, letter.lower()}:
                con.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT 1')
        tables = {name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert len(tables) == len({folded(name) for letter in letters for name in (letter, letter.lower())})
