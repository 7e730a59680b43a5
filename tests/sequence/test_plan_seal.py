"""``sdc_plan_seal`` and ``sdc_plan_certify``: the vector of the specification through SQL, several signatures, bad input."""

from __future__ import annotations

import duckdb
import pytest
from test_plan_chain import PRIVATE, PUBLIC, SIGNATURE, STATEMENTS, TRACES

import sdcduck
from sdcduck.methods.sequence import plans
from sdcduck.methods.sequence.plans import Binding

SALTS = [bytes([step]) * 16 for step in (1, 2, 3)]
BINDING = {"data": "household survey", "release": "2026-1", "expires": "2026-12-31"}


@pytest.fixture(scope="module")
def con():  # type: ignore[no-untyped-def]
    with sdcduck.connect() as connection:
        yield connection


def seal(con: duckdb.DuckDBPyConnection, statements: object = STATEMENTS, key: object = PRIVATE, **more: object):  # type: ignore[no-untyped-def]
    given = {"statements": statements, "private_key": key, **more}
    arguments = ", ".join(f"{name} := ${name}" for name in given)
    return con.execute(f"FROM sdc_plan_seal({arguments}) ORDER BY step", given).fetchall()


@pytest.mark.parametrize("key", [PRIVATE, PRIVATE.hex(), PRIVATE.hex().upper()])
@pytest.mark.parametrize("salts", [SALTS, [salt.hex() for salt in SALTS]])
def test_vector_of_the_specification(con: duckdb.DuckDBPyConnection, key: object, salts: object) -> None:
    rows = seal(con, key=key, salts=salts)
    assert [row[1].hex() for row in rows] == TRACES
    assert [row[0] for row in rows] == [0, 1, 2, 3]
    assert [row[4] for row in rows] == [None, *STATEMENTS]
    assert (rows[0][2].hex(), rows[0][3].hex()) == (SIGNATURE, PUBLIC)
    assert {row[2:4] for row in rows[1:]} == {(None, None)}


def test_salts_are_random(con: duckdb.DuckDBPyConnection) -> None:
    one, other = (seal(con) for _ in range(2))
    assert not {row[1] for row in one} & {row[1] for row in other}
    for rows in (one, other):
        traces = [row[1] for row in rows]
        assert plans.first_broken(traces, STATEMENTS) is None
        assert plans.is_signed(bytes.fromhex(PUBLIC), rows[0][2], traces[0])


def test_one_question_need_not_be_a_list(con: duckdb.DuckDBPyConnection) -> None:
    rows = seal(con, "SELECT 'it''s', \"a\\b\"\n")
    assert plans.first_broken([row[1] for row in rows], ["SELECT 'it''s', \"a\\b\"\n"]) is None


def test_binding_is_signed_too(con: duckdb.DuckDBPyConnection) -> None:
    head, signature = seal(con, binding=BINDING)[0][1:3]
    bound = Binding("household survey", "2026-1", "", 3, 1798675200)
    assert plans.is_signed(bytes.fromhex(PUBLIC), signature, plans.message(head, bound))
    for other in (None, Binding("household survey", "2026-2", "", 3, 1798675200)):
        assert not plans.is_signed(bytes.fromhex(PUBLIC), signature, plans.message(head, other))


@pytest.mark.parametrize("bound", [None, BINDING])
def test_authority_adds_its_signature(con: duckdb.DuckDBPyConnection, bound: object) -> None:
    rows = seal(con, binding=bound)
    traces, key = [row[1] for row in rows], bytes(range(32, 64))
    asked = "FROM sdc_plan_certify($traces, $statements, $key, binding := $binding)"
    given = {"traces": traces, "statements": STATEMENTS, "key": key, "binding": bound}
    [(steps, signature, public)] = con.execute(asked, given).fetchall()
    assert steps == 3
    assert public == plans.public_key(key)
    signed = plans.message(traces[0], Binding("household survey", "2026-1", "", 3, 1798675200) if bound else None)
    assert plans.is_signed(public, signature, signed)
    given["statements"] = [STATEMENTS[0], STATEMENTS[1] + " LIMIT 1", STATEMENTS[2]]
    with pytest.raises(duckdb.Error, match="step 2 does not open as it should"):
        con.execute(asked, given)
    given["statements"] = STATEMENTS[:2]
    with pytest.raises(duckdb.Error, match="one more trace than there are questions"):
        con.execute(asked, given)
    given["traces"] = traces[:3]
    with pytest.raises(duckdb.Error, match="step 2 does not open as it should"):  # it does not end there
        con.execute(asked, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"statements": []}, "argument 'statements' must list the questions of the plan"),
        ({"statements": None}, "argument 'statements' must list the questions of the plan"),
        ({"statements": ["SELECT 1", None]}, "no NULL and no empty text"),
        ({"statements": ["SELECT 1", " "]}, "no NULL and no empty text"),
        ({"key": b"short"}, "argument 'private_key' must be of 32 bytes: a BLOB, or a text of 64 digits of hex"),
        ({"key": None}, "argument 'private_key' must be of 32 bytes"),
        ({"key": "x" * 64}, "argument 'private_key' must be of 32 bytes"),
        ({"salts": SALTS[:2]}, "argument 'salts' must have 16 bytes for each question"),
        ({"salts": [b"", *SALTS[1:]]}, "argument 'salts' must be of 16 bytes"),
        ({"binding": {"dats": "x"}}, "did you mean 'data'"),
        ({"binding": {"data": 3}}, "texts as 'data', 'release' and 'policy'"),
        ({"binding": {"expires": "soon"}}, "a date or time as 'expires'"),
        ({"binding": "survey"}, "argument 'binding' must be a struct such as"),
    ],
)
def test_bad_input_is_told_and_no_key_is_shown(
    lasting: duckdb.DuckDBPyConnection, given: dict[str, object], message: str
) -> None:
    with pytest.raises(duckdb.Error, match=message) as refused:
        seal(lasting, **given)
    assert PRIVATE.hex() not in str(refused.value)
    assert "short" not in str(refused.value)
