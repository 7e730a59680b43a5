"""Record keys: what they are made of, that the secret stays secret, and the statement that stores them with a table."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import itertools
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

import sdcduck

SECRET = "correct horse battery staple"
OTHER = "an entirely different secret"


@pytest.fixture(autouse=True)
def _no_secret_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SDCDUCK_SECRET", raising=False)
    monkeypatch.delenv("SDCDUCK_SECRET_FILE", raising=False)


@contextlib.contextmanager
def with_people() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=SECRET) as con:
        con.execute("CREATE TABLE people AS SELECT range AS id, 'r' || range % 3 AS region FROM range(1, 101)")
        yield con


@pytest.fixture
def keyed() -> Iterator[duckdb.DuckDBPyConnection]:
    with with_people() as con:
        yield con


@pytest.fixture(scope="module")
def same() -> Iterator[duckdb.DuckDBPyConnection]:
    """For tests that change nothing."""
    with with_people() as con:
        yield con


def key_of(unit: object, digits: int = 8, secret: str = SECRET) -> int:
    """HMAC-SHA-256 of the unit's text under the secret, as a big-endian integer, modulo 10^digits."""
    return int(hmac.new(secret.encode(), str(unit).encode(), hashlib.sha256).hexdigest(), 16) % 10**digits


def one(con: duckdb.DuckDBPyConnection, sql: str) -> object:
    ((value,),) = con.execute(sql).fetchall()
    return value


def error(con: duckdb.DuckDBPyConnection, sql: str) -> str:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(sql).fetchall()
    text = str(caught.value)
    for no in ("Traceback", "Python exception", "internal error", SECRET, OTHER):
        assert no not in text
    return text.splitlines()[0]


# --- What a key is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", range(5, 19))
def test_a_key_is_the_hmac_of_the_units_text_modulo_a_power_of_ten(
    same: duckdb.DuckDBPyConnection, digits: int
) -> None:
    rows = same.execute(f"SELECT id, sdc_record_key(id, digits := {digits}) FROM people ORDER BY id").fetchall()
    assert rows == [(unit, key_of(unit, digits)) for unit in range(1, 101)]
    # A key of fewer digits is the end of one of more.
    assert all(key % 10**5 == key_of(unit, 5) for unit, key in rows)


def test_eight_digits_and_bigint_unless_said_otherwise(same: duckdb.DuckDBPyConnection) -> None:
    assert same.execute("SELECT sdc_record_key(7), typeof(sdc_record_key(7))").fetchall() == [(key_of(7), "BIGINT")]


def test_the_text_of_the_identifier_counts(keyed: duckdb.DuckDBPyConnection) -> None:
    for same in ("42", "42::TINYINT", "42::HUGEINT", "42::UBIGINT", "'42'", "'42'::VARCHAR", "42::DECIMAL(4, 0)"):
        assert one(keyed, f"SELECT sdc_record_key({same})") == key_of("42"), same
    for text in ("042", " 42", "42.0", "Müller, Jürgen", "日本", "", "o'clock", "x" * 10_000):
        quoted = text.replace("'", "''")
        assert one(keyed, f"SELECT sdc_record_key('{quoted}')") == key_of(text)
    assert one(keyed, "SELECT sdc_record_key(42.0::DOUBLE)") == key_of("42.0")
    assert one(keyed, "SELECT sdc_record_key(DATE '2024-02-29')") == key_of("2024-02-29")
    assert one(keyed, "SELECT sdc_record_key(true)") == key_of("true")
    unit = "6f7c1c54-1ad2-4b2f-9a3c-0e6a4b1f0a11"
    assert one(keyed, f"SELECT sdc_record_key('{unit}'::UUID)") == key_of(unit)


def test_digits_may_differ_from_row_to_row(same: duckdb.DuckDBPyConnection) -> None:
    rows = same.execute("SELECT digits, sdc_record_key(1, digits := digits) FROM range(5, 19) t(digits)").fetchall()
    assert rows == [(digits, key_of(1, digits)) for digits in range(5, 19)]


@pytest.mark.parametrize("digits", ["4", "19", "0", "-1", "NULL"])
def test_other_numbers_of_digits_are_refused(same: duckdb.DuckDBPyConnection, digits: str) -> None:
    assert error(same, f"SELECT sdc_record_key(id, digits := {digits}) FROM people").endswith(
        "sdc_record_key: digits must be between 5 and 18"
    )


def test_a_null_unit_has_no_key(same: duckdb.DuckDBPyConnection) -> None:
    rows = same.execute("SELECT sdc_record_key(u) FROM (VALUES (NULL), ('a'), (NULL)) t(u)").fetchall()
    assert rows == [(None,), (key_of("a"),), (None,)]
    assert one(same, "SELECT sdc_record_key(NULL)") is None


def test_the_same_secret_gives_the_same_keys_and_another_one_others(keyed: duckdb.DuckDBPyConnection) -> None:
    keys = "SELECT sdc_record_key(id) FROM range(1000) t(id) ORDER BY id"
    with sdcduck.connect(secret=SECRET.encode()) as again, sdcduck.connect(secret=OTHER) as other:
        assert again.execute(keys).fetchall() == keyed.execute(keys).fetchall()
        changed = [a != b for a, b in zip(other.execute(keys).fetchall(), keyed.execute(keys).fetchall(), strict=True)]
    assert all(changed)


@pytest.mark.parametrize("digits", [5, 8, 9, 18])
def test_keys_are_uniform_and_neighbours_have_nothing_in_common(same: duckdb.DuckDBPyConnection, digits: int) -> None:
    """Fixed units and a fixed secret: the same statistics in every run."""
    from scipy.stats import chisquare  # large: the product does without

    keys = same.execute(
        f"SELECT sdc_record_key(id, digits := {digits}) AS k FROM range(40000) t(id) ORDER BY id"
    ).fetchnumpy()["k"]
    first = keys * 100 // 10**digits if digits < 17 else keys // 10 ** (digits - 2)
    assert first.min() >= 0
    assert first.max() <= 99
    assert chisquare(np.bincount(first, minlength=100)).pvalue > 0.001
    assert chisquare(np.bincount(keys % 100, minlength=100)).pvalue > 0.001
    pairs = (first[:-1] // 10) * 10 + first[1:] // 10
    assert chisquare(np.bincount(pairs, minlength=100)).pvalue > 0.001


# --- Where the secret comes from -------------------------------------------------------------------------------------


def test_a_secret_given_goes_before_the_environment_and_this_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key() -> object:
        with sdcduck.connect(tmp_path / "a.duckdb") as con:
            return one(con, "SELECT sdc_record_key(1)")

    stored, from_file, from_environment, given = (
        f"the {name} secret of some length" for name in ("stored", "file", "environment", "given")
    )
    with sdcduck.connect(tmp_path / "a.duckdb") as con:
        sdcduck.set_secret(con, stored, store=True)
    assert key() == key_of(1, secret=stored)
    (tmp_path / "secret").write_text(from_file + "\n")
    monkeypatch.setenv("SDCDUCK_SECRET_FILE", str(tmp_path / "secret"))
    assert key() == key_of(1, secret=from_file)
    monkeypatch.setenv("SDCDUCK_SECRET", from_environment)
    assert key() == key_of(1, secret=from_environment)
    with sdcduck.connect(tmp_path / "a.duckdb", secret=given) as con:
        assert one(con, "SELECT sdc_record_key(1)") == key_of(1, secret=given)
        sdcduck.set_secret(con, OTHER)
        assert one(con, "SELECT sdc_record_key(1)") == key_of(1, secret=OTHER)
        sdcduck.install(con, secret=given)
        assert one(con, "SELECT sdc_record_key(1)") == key_of(1, secret=given)


def test_without_a_secret_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE people AS SELECT range AS id FROM range(10)")

        def both_say(message: str) -> None:
            assert error(con, "SELECT sdc_record_key(1)").endswith(f"sdc_record_key: {message}")
            assert error(con, "SELECT sdc_record_key(id) FROM people").endswith(f"sdc_record_key: {message}")
            assert error(con, "FROM sdc_add_record_key('people', unit := 'id')").endswith(
                f"sdc_add_record_key: {message}"
            )
            assert con.execute("DESCRIBE people").fetchall() == [("id", "BIGINT", "YES", None, None, None)]

        both_say(
            "there is no secret to make record keys from: give one with sdcduck.connect(.., secret=..), "
            "sdcduck.set_secret(con, ..) or the environment variable SDCDUCK_SECRET; sdcduck.new_secret() makes one"
        )
        monkeypatch.setenv("SDCDUCK_SECRET", "tooshort")
        both_say("the secret needs at least 16 bytes; sdcduck.new_secret() makes one")
        monkeypatch.delenv("SDCDUCK_SECRET")
        monkeypatch.setenv("SDCDUCK_SECRET_FILE", str(tmp_path / "nowhere"))
        both_say("SDCDUCK_SECRET_FILE names a file that cannot be read: No such file or directory")
        monkeypatch.setenv("SDCDUCK_SECRET_FILE", str(tmp_path))
        both_say("SDCDUCK_SECRET_FILE names a file that cannot be read: Is a directory")
        # Counting needs no secret.
        assert one(con, "SELECT sdc_count(id) FROM people WHERE false") == 0


def test_a_short_secret_is_refused_everywhere_and_no_file_made(tmp_path: Path) -> None:
    for secret in ("", "fifteen letters", b"\x00" * 15):
        with pytest.raises(sdcduck.SDCError, match="at least 16 bytes"):
            sdcduck.connect(tmp_path / "a.duckdb", secret=secret)
        with sdcduck.connect() as con, pytest.raises(sdcduck.SDCError, match="at least 16 bytes"):
            sdcduck.set_secret(con, secret)
    assert not (tmp_path / "a.duckdb").exists()
    with duckdb.connect() as con, pytest.raises(sdcduck.SDCError, match="sdcduck is not installed on this connection"):
        sdcduck.set_secret(con, SECRET)


def test_a_secret_of_bytes_that_are_no_text_works_but_cannot_be_stored() -> None:
    raw = bytes(range(240, 256)) * 2
    with sdcduck.connect(secret=raw) as con:
        expected = int.from_bytes(hmac.digest(raw, b"1", "sha256"), "big") % 10**8
        assert one(con, "SELECT sdc_record_key(1)") == expected
        with pytest.raises(sdcduck.SDCError, match="only a secret that is text"):
            sdcduck.set_secret(con, raw, store=True)
        assert con.execute("SELECT count(*) FROM sdc.settings WHERE name = 'secret'").fetchall() == [(0,)]


def test_new_secrets_are_long_and_all_different() -> None:
    secrets = {sdcduck.new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert all(len(bytes.fromhex(secret)) == 32 for secret in secrets)


# --- Where the secret is not -----------------------------------------------------------------------------------------


def everything_to_be_seen(con: duckdb.DuckDBPyConnection) -> str:
    """What anybody with the connection can look at without reading the process's memory."""
    queries = [
        "SELECT t::VARCHAR FROM duckdb_functions() t", "SELECT t::VARCHAR FROM duckdb_settings() t",
        "SELECT t::VARCHAR FROM duckdb_tables() t", "SELECT t::VARCHAR FROM duckdb_views() t",
        "SELECT t::VARCHAR FROM duckdb_databases() t", "SELECT t::VARCHAR FROM duckdb_secrets() t",
        "SELECT t::VARCHAR FROM duckdb_variables() t", "SELECT t::VARCHAR FROM duckdb_logs() t",
        "SELECT t::VARCHAR FROM sdc.settings t", "SELECT t::VARCHAR FROM sdc_functions() t",
        "EXPLAIN SELECT id, sdc_record_key(id) FROM people", "EXPLAIN ANALYZE SELECT id, sdc_record_key(id) FROM people",
        "EXPLAIN SELECT sdc_record_key(1)", "EXPLAIN FROM sdc_add_record_key('people', unit := 'id', record_key := 'again')",
        "EXPLAIN ANALYZE FROM sdc_add_record_key('people', unit := 'id', record_key := 'once_more')",
    ]  # fmt: skip
    return "\n".join(str(con.execute(query).fetchall()) for query in queries)


def hidden_in(secret: str, content: bytes | str) -> bool:
    text = content if isinstance(content, bytes) else content.encode()
    forms = (secret.encode(), secret.encode().hex().encode(), secret.encode()[::-1], secret.encode("utf-16-le"))
    return any(form in text for form in forms)


def test_the_secret_is_nowhere_to_be_seen(tmp_path: Path) -> None:
    """Not in the file, nor in its log, plans, settings, functions or messages."""
    file = tmp_path / "people.duckdb"
    with sdcduck.connect(file, secret=SECRET) as con:
        con.execute("CALL enable_logging()")
        con.execute("SET checkpoint_threshold = '1GB'")
        con.execute("CREATE TABLE people AS SELECT range AS id FROM range(1000)")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("PREPARE p AS SELECT sdc_record_key($1)")
        con.execute("EXECUTE p(1)").fetchall()
        assert not hidden_in(SECRET, everything_to_be_seen(con))
        assert error(con, "SELECT sdc_record_key(1, digits := 99)")
        assert error(con, "FROM sdc_add_record_key('people', unit := 'id')")
        assert error(con, "SELECT _sdc_hmac_keys(1)")
        wal = Path(f"{file}.wal")
        assert b"once_more" in wal.read_bytes()
        assert not hidden_in(SECRET, wal.read_bytes())
    assert b"record_key" in file.read_bytes()
    assert not hidden_in(SECRET, file.read_bytes())
    assert not [other for other in tmp_path.rglob("*") if other.is_file() and hidden_in(SECRET, other.read_bytes())]


def test_the_secret_is_in_the_file_only_if_the_custodian_chooses_so(tmp_path: Path) -> None:
    file = tmp_path / "people.duckdb"
    with sdcduck.connect(file) as con:
        sdcduck.set_secret(con, SECRET)
        con.execute("SELECT sdc_record_key(1)").fetchall()
    assert not hidden_in(SECRET, file.read_bytes())
    with sdcduck.connect(file) as con:
        assert "there is no secret" in error(con, "SELECT sdc_record_key(1)")
        sdcduck.set_secret(con, SECRET, store=True)
    assert hidden_in(SECRET, file.read_bytes())
    with sdcduck.connect(file, read_only=True) as con:
        assert one(con, "SELECT sdc_record_key(1)") == key_of(1)
    with duckdb.connect(str(file)) as con:
        assert con.execute("SELECT value FROM sdc.settings WHERE name = 'secret'").fetchall() == [(SECRET,)]


# --- Keys that are stored with a table -------------------------------------------------------------------------------


def test_a_key_column_in_one_statement(keyed: duckdb.DuckDBPyConnection) -> None:
    result = keyed.execute("FROM sdc_add_record_key('people', unit := 'id')")
    assert [column[0] for column in result.description or []] == ["record_key", "rows", "units", "shared_keys"]
    assert result.fetchall() == [("record_key", 100, 100, 0)]
    assert keyed.execute("DESCRIBE people").fetchall()[-1][:2] == ("record_key", "INTEGER")
    assert keyed.execute("SELECT id, record_key FROM people ORDER BY id").fetchall() == [
        (unit, key_of(unit)) for unit in range(1, 101)
    ]


@pytest.mark.parametrize(("digits", "sql_type"), [(5, "INTEGER"), (9, "INTEGER"), (10, "BIGINT"), (18, "BIGINT")])
def test_the_narrowest_type_holds_the_keys(keyed: duckdb.DuckDBPyConnection, digits: int, sql_type: str) -> None:
    keyed.execute(f"FROM sdc_add_record_key('people', unit := 'id', record_key := 'k', digits := {digits})").fetchall()
    assert keyed.execute("DESCRIBE people").fetchall()[-1][:2] == ("k", sql_type)
    assert keyed.execute("SELECT k FROM people ORDER BY id").fetchall() == [(key_of(u, digits),) for u in range(1, 101)]


@pytest.mark.parametrize(
    ("before", "in_sql", "name"),
    [
        ("CREATE SCHEMA registers", "registers.people", "registers.people"),
        ('CREATE SCHEMA "the registers"', '"the registers"."people of 2024"', '"the registers"."people of 2024"'),
        ("ATTACH ':memory:' AS elsewhere", "elsewhere.main.people", "elsewhere.main.people"),
        ("", '"select"', "select"),
        ("", '"select"', '"select"'),
        ("", '"a ""quoted"" one"', 'a "quoted" one'),
        ("", '"with.dot; and more"', "with.dot; and more"),
        ("", "Größe", "größe"),
    ],
)  # fmt: skip
def test_tables_in_schemas_and_under_any_name(
    con: duckdb.DuckDBPyConnection, before: str, in_sql: str, name: str
) -> None:
    sdcduck.set_secret(con, SECRET)
    con.execute(f'{before}; CREATE TABLE {in_sql} AS SELECT range AS "the ""unit""", 7 AS "order" FROM range(50)')
    answer = con.execute(
        f"FROM sdc_add_record_key('{name}', unit := 'The \"Unit\"', record_key := 'the \"key\" of it')"
    )
    assert answer.fetchall() == [('the "key" of it', 50, 50, 0)]
    assert con.execute(f'SELECT "the ""unit""", "order", "the ""key"" of it" FROM {in_sql} ORDER BY 1').fetchall() == [
        (unit, 7, key_of(unit)) for unit in range(50)
    ]
    check = con.execute(
        f"SELECT rows, units FROM sdc_check_keys('{name}', record_key := 'THE \"KEY\" OF IT', unit := 'the \"unit\"')"
    )
    assert check.fetchall() == [(50, 50)]


def test_several_rows_a_unit_carry_its_key_and_count_once(keyed: duckdb.DuckDBPyConnection) -> None:
    keyed.execute("CREATE TABLE visits AS SELECT people.*, visit FROM people, range(5) t(visit) WHERE visit <= id % 5")
    keyed.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    assert keyed.execute("FROM sdc_add_record_key('visits', unit := 'id')").fetchall() == [("record_key", 300, 100, 0)]
    assert (
        one(keyed, "SELECT count(*) FROM visits JOIN people USING (id) WHERE visits.record_key <> people.record_key")
        == 0
    )
    query = "SELECT region, {} AS n FROM {} GROUP BY CUBE (region) ORDER BY region"
    people = keyed.execute(query.format("sdc_count(record_key)", "people")).fetchall()
    assert keyed.execute(query.format("sdc_count_units(id, record_key)", "visits")).fetchall() == people
    assert keyed.execute(query.format("sdc_count(record_key)", "visits")).fetchall() != people
    # Whichever rows of a unit fall into the cell.
    for some in ("visit = 0", "visit <= 2 OR id < 50", "visit = id % 5"):
        assert (
            keyed.execute(query.format(f"sdc_count_units(id, record_key, filter := {some})", "visits")).fetchall()
            == people
        )


def test_units_that_share_a_key_are_reported_and_still_two(keyed: duckdb.DuckDBPyConnection) -> None:
    keyed.execute("CREATE TABLE crowd AS SELECT range AS id FROM range(20000)")
    shared = 20000 - len({key_of(unit, 5) for unit in range(20000)})
    answer = keyed.execute("FROM sdc_add_record_key('crowd', unit := 'id', digits := 5)").fetchall()
    assert answer == [("record_key", 20000, 20000, shared)]
    assert shared > 1000
    assert one(keyed, "SELECT sdc_count(record_key, digits := 5) FROM crowd") == one(
        keyed, "SELECT sdc_count_units(id, record_key, digits := 5) FROM (FROM crowd UNION ALL FROM crowd)"
    )


def test_a_null_unit_is_reported_and_nothing_written(keyed: duckdb.DuckDBPyConnection) -> None:
    keyed.execute("INSERT INTO people VALUES (NULL, 'r1'), (NULL, 'r2')")
    before = keyed.execute("FROM people ORDER BY ALL").fetchall()
    text = error(keyed, "FROM sdc_add_record_key('people', unit := 'id')")
    assert text.endswith("column \"id\" of 'people' is NULL in 2 rows: a record without a unit has no key")
    assert keyed.execute("FROM people ORDER BY ALL").fetchall() == before
    assert one(keyed, "SELECT count(*) FROM sdc.settings WHERE name = 'secret_fingerprint'") == 0


def test_keys_that_are_missing_are_filled_and_the_others_stay(keyed: duckdb.DuckDBPyConnection) -> None:
    keyed.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    before = keyed.execute("SELECT id, record_key FROM people ORDER BY ALL").fetchall()
    keyed.execute("INSERT INTO people BY NAME SELECT 1000 + range AS id FROM range(3)")
    keyed.execute("INSERT INTO people BY NAME SELECT id FROM people LIMIT 1")  # one more record of a unit
    answer = keyed.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    assert answer == [("record_key", 104, 103, 0)]
    after = keyed.execute("SELECT id, record_key FROM people ORDER BY ALL").fetchall()
    assert set(before) <= set(after)
    assert one(keyed, "SELECT count(*) FROM people WHERE record_key IS DISTINCT FROM sdc_record_key(id)") == 0
    assert "already; drop it" in error(keyed, "FROM sdc_add_record_key('people', unit := 'id')")


def test_keys_are_not_filled_beside_others(keyed: duckdb.DuckDBPyConnection) -> None:
    """A unit has one key: those that are there are of another secret, or of another length."""
    keyed.execute("ALTER TABLE people ADD COLUMN record_key INTEGER")
    keyed.execute("UPDATE people SET record_key = 5 WHERE id = (SELECT min(id) FROM people)")
    text = error(keyed, "FROM sdc_add_record_key('people', unit := 'id')")
    assert 'has keys in "record_key" that are not those of this secret' in text
    assert one(keyed, "SELECT count(record_key) FROM people") == 1


def test_a_column_that_is_there_stays_as_it_is(keyed: duckdb.DuckDBPyConnection) -> None:
    keyed.execute("ALTER TABLE people ADD COLUMN Record_Key INTEGER DEFAULT 5")
    text = error(keyed, "FROM sdc_add_record_key('people', unit := 'id')")
    assert text.endswith("'people' has a column 'record_key' already; drop it, or name another with record_key := ..")
    assert keyed.execute("SELECT DISTINCT record_key FROM people").fetchall() == [(5,)]
    assert keyed.execute("FROM sdc_add_record_key('people', unit := 'id', record_key := 'second')").fetchall() == [
        ("second", 100, 100, 0)
    ]


def test_a_view_has_no_column_to_add(keyed: duckdb.DuckDBPyConnection) -> None:
    keyed.execute("CREATE VIEW viewed AS FROM people")
    assert error(keyed, "FROM sdc_add_record_key('viewed', unit := 'id')").endswith(
        "'viewed' is no table that a column can be added to"
    )
    assert "a query has no column to add to" in error(keyed, "FROM sdc_add_record_key('(FROM people)', unit := 'id')")
    assert [row[0] for row in keyed.execute("DESCRIBE viewed").fetchall()] == ["id", "region"]


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        ("peopel", "people"),
        ("PEPLE", "people"),
        ("visitors", "registers.visitors"),
        ("registers.visitor", "registers.visitors"),
    ],
)
def test_the_nearest_table_is_suggested(keyed: duckdb.DuckDBPyConnection, asked: str, suggested: str) -> None:
    keyed.execute("CREATE SCHEMA registers; CREATE TABLE registers.visitors AS SELECT 1 AS id")
    for function in ("sdc_add_record_key", "sdc_check_keys"):
        assert error(keyed, f"FROM {function}('{asked}', unit := 'id')").endswith(
            f"{function}: unknown table '{asked}'; did you mean '{suggested}'? (temporary tables, names of WITH, data frames and what is not committed are not visible here)"
        )
    assert "unknown column 'idd' in 'people'; did you mean 'id'?" in error(
        keyed, "FROM sdc_add_record_key('people', unit := 'idd')"
    )


def test_keys_of_one_database_have_one_secret(tmp_path: Path) -> None:
    file = tmp_path / "people.duckdb"
    with sdcduck.connect(file, secret=SECRET) as con:
        con.execute(
            "CREATE TABLE a AS SELECT range AS id FROM range(9); CREATE TABLE b AS FROM a; CREATE TABLE c AS FROM a"
        )
        con.execute("FROM sdc_add_record_key('a', unit := 'id')").fetchall()
    with sdcduck.connect(file, secret=OTHER) as con:
        assert error(con, "FROM sdc_add_record_key('b', unit := 'id')").endswith(
            "this is not the secret that the keys of this database were made with"
        )
    with sdcduck.connect(file, secret=SECRET) as con:
        con.execute("FROM sdc_add_record_key('b', unit := 'id')").fetchall()
        assert one(con, "SELECT bool_and(a.record_key = b.record_key) FROM a JOIN b USING (id)") is True


def test_a_write_that_fails_leaves_nothing_behind(keyed: duckdb.DuckDBPyConnection) -> None:
    writer = keyed.cursor()
    writer.begin()
    writer.execute("ALTER TABLE people ADD COLUMN age INTEGER")
    assert "sdc_add_record_key: " in error(keyed, "FROM sdc_add_record_key('people', unit := 'id')")
    writer.commit()
    assert [row[0] for row in keyed.execute("DESCRIBE people").fetchall()] == ["id", "region", "age"]
    assert keyed.execute("SELECT count(*) FROM sdc.settings WHERE name = 'secret_fingerprint'").fetchall() == [(0,)]
    assert keyed.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall() == [("record_key", 100, 100, 0)]


def test_a_table_that_somebody_else_is_changing_is_whole_afterwards(keyed: duckdb.DuckDBPyConnection) -> None:
    writer = keyed.cursor()
    writer.begin()
    writer.execute("UPDATE people SET id = id + 1000")
    keyed.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    with pytest.raises(duckdb.TransactionException, match="another transaction has altered this table"):
        writer.commit()
    assert keyed.execute("SELECT id, record_key FROM people ORDER BY id").fetchall() == [
        (unit, key_of(unit)) for unit in range(1, 101)
    ]


# --- Checking keys ---------------------------------------------------------------------------------------------------


def test_everything_that_may_be_wrong_with_keys_is_counted(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        """CREATE TABLE visits AS SELECT * FROM (VALUES
            (1, 10000000), (1, 10000000), (1, 10000000),  -- a unit with three rows
            (2, 20000000), (2, 30000000),                 -- one with two keys
            (3, NULL), (3, 40000000),                     -- a missing key
            (4, 100000000), (5, -1),                      -- keys out of range
            (NULL, 50000000), (NULL, NULL),               -- no unit
            (6, 99999999)
        ) t(person, record_key)"""
    )
    result = con.execute("FROM sdc_check_keys('visits', unit := 'person')")
    names = [column[0] for column in result.description or []]
    assert dict(zip(names, result.fetchall()[0], strict=True)) == {
        "rows": 12, "null_keys": 2, "keys_out_of_range": 2, "null_units": 2, "units": 6, "units_with_several_rows": 3,
        "units_with_several_keys": 1, "mean_key": round((3 * 0.1 + 0.2 + 0.3 + 0.4 + 1 - 1e-8 + 0.5 + 0.99999999) / 10, 6),
    }  # fmt: skip
    # Without a unit only the keys are looked at; with nine digits another one is in range.
    assert con.execute("FROM sdc_check_keys('visits', digits := 9)").fetchall()[0][:7] == (
        12,
        2,
        1,
        None,
        None,
        None,
        None,
    )
    assert con.execute("FROM sdc_check_keys('(FROM visits WHERE false)', unit := 'person')").fetchall() == [
        (0, 0, 0, 0, 0, 0, 0, None)
    ]


def test_good_keys_pass(keyed: duckdb.DuckDBPyConnection) -> None:
    keyed.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    (row,) = keyed.execute("FROM sdc_check_keys('people', unit := 'id')").fetchall()
    assert row[:7] == (100, 0, 0, 0, 100, 0, 0)
    assert 0.35 < row[7] < 0.65


def test_a_machine_that_stands_still_adds_the_key_once(
    keyed: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two questions of the statement a minute passes, as where memory is swapped out."""
    clock = itertools.count(0.0, 60.0)
    monkeypatch.setattr("sdcduck.functions.jobs.monotonic", lambda: next(clock))
    assert keyed.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall() == [("record_key", 100, 100, 0)]
    assert one(keyed, "SELECT count(record_key) FROM people") == 100


def test_long_keys_do_not_fit_into_a_short_column(keyed: duckdb.DuckDBPyConnection) -> None:
    keyed.execute("ALTER TABLE people ADD COLUMN record_key INTEGER")
    with pytest.raises(duckdb.Error, match="'record_key' of 'people' is INTEGER: keys of 10 digits or more are BIGINT"):
        keyed.execute("FROM sdc_add_record_key('people', unit := 'id', digits := 12)").fetchall()
    assert keyed.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall() == [("record_key", 100, 100, 0)]
