"""The encrypted vote by SQL: keys, questions and answers as tables, on two sides that share no secret.

With the sizes of a toy, which are quick; `test_encrypted_vote.py` has those of the paper.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from sklearn.datasets import load_iris

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.methods.encrypted import blobs
from sdcduck.methods.encrypted.encrypted_vote import Circuit, encrypted_class, encrypted_votes, signs_needed
from sdcduck.methods.encrypted.fixed_point import Records
from sdcduck.methods.encrypted.tfhe import encrypt, rotation, secret_bits, stream

Connection = duckdb.DuckDBPyConnection
BOUNDS = {"a": [4, 8], "b": [2, 5], "c": [1, 7], "d": [0, 3]}
NAMES = "['a', 'b', 'c', 'd']"
LINE = "(VALUES (0.1, 'A'), (0.2, 'A'), (0.6, 'B'), (0.9, 'B')) line(x, kind)"


def copy(rows: str, name: str, one: Connection, other: Connection) -> None:
    """From one side to the other."""
    other.register("sent", one.sql(rows).to_arrow_table())
    other.execute(f"CREATE OR REPLACE TABLE {name} AS FROM sent")
    other.unregister("sent")


@pytest.fixture(scope="module")
def client() -> Iterator[Connection]:
    """Who asks, with two pairs of keys."""
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE keys AS FROM sdc_he_knn_keygen(parameters := 'toy', seed := 7)")
        con.execute("CREATE TABLE evaluation AS FROM keys WHERE part = 'evaluation'")
        con.execute("CREATE TABLE others AS FROM sdc_he_knn_keygen(parameters := 'toy', seed := 8)")
        x, y = load_iris(return_X_y=True)
        con.register("iris_", {name: x[:, j] for j, name in enumerate("abcd")} | {"kind": y, "i": np.arange(len(x))})
        con.execute("CREATE TABLE iris AS SELECT *, 'no. ' || i AS name FROM iris_")
        con.execute(f"CREATE TABLE line AS FROM {LINE}")
        con.execute("CREATE TABLE asked AS FROM sdc_he_knn_encrypt('(SELECT 1 AS n, 0.3 AS x)', 'keys', 'n', bounds := {'x': [0, 1]}, v := 4)")  # fmt: skip
        yield con


@pytest.fixture(scope="module")
def custodian(client: Connection) -> Iterator[Connection]:
    """Who answers, with the evaluation key alone."""
    with sdcduck.connect() as con:
        copy("FROM evaluation", "evaluation", client, con)
        copy(f"FROM sdc_prototypes('(FROM iris WHERE i % 5 > 0)', 'kind', {NAMES}, n := 6)", "refs", client, con)
        con.execute(f"CREATE TABLE line AS FROM {LINE}")
        yield con


# --- encrypted equals clear ------------------------------------------------------------------------------------------


def test_two_sides_that_share_no_secret_get_the_answers_of_the_vote_in_clear(
    client: Connection, custodian: Connection
) -> None:
    asked = "(SELECT a, b, c, d, name, i, kind FROM iris WHERE i % 5 = 0 AND i % 2 = 0)"
    client.execute(
        f"CREATE OR REPLACE TABLE mine AS FROM sdc_he_knn_encrypt('{asked}', 'keys', 'name', {NAMES}, {BOUNDS})"
    )
    assert client.execute("DESCRIBE mine").fetchall()[0][:2] == ("name", "VARCHAR")
    copy("SELECT name, 3 AS batch, question FROM mine", "questions", client, custodian)
    custodian.execute(f"CREATE TABLE answers AS FROM sdc_he_knn_predict('refs', 'questions', 'evaluation', 'kind', {NAMES}, bounds := {BOUNDS}, id := 'prototype')")  # fmt: skip
    described = [row[:2] for row in custodian.execute("DESCRIBE answers").fetchall()]
    assert described == [("name", "VARCHAR"), ("batch", "INTEGER"), ("answer", "BLOB")]
    copy("FROM answers", "answers", custodian, client)
    told = dict(client.execute("SELECT name, label FROM sdc_he_knn_decrypt('answers', 'keys')").fetchall())
    copy("FROM refs", "refs", custodian, client)
    clear = client.execute(
        f"SELECT name, predicted::VARCHAR, gap FROM sdc_he_knn_simulate('refs', '{asked}', 'kind', {NAMES}, v := sqrt(128 / 15), bounds := {BOUNDS}, id := 'prototype')"
    ).fetchall()
    assert len(clear) == len(told) == 15
    sure = [(name, label) for name, label, gap in clear if gap > 5]
    assert len(sure) >= 12
    assert all(told[name] == label for name, label in sure)
    assert client.execute("SELECT avg((t.label = kind::VARCHAR)::INT) FROM iris JOIN sdc_he_knn_decrypt('answers', 'keys') t USING (name)").fetchall()[0][0] > 0.85  # fmt: skip


def test_the_worked_example_with_its_votes(client: Connection) -> None:
    predict = "sdc_he_knn_predict('line', 'asked', 'evaluation', 'kind', k := 3, bounds := {'x': [0, 1]}, result := "
    client.execute(f"CREATE OR REPLACE TABLE answered AS FROM {predict}'votes')")
    assert client.execute("FROM sdc_he_knn_decrypt('answered', 'keys')").fetchall() == [(1, "A", ["A", "B"], [2, 1])]
    client.execute(f"CREATE OR REPLACE TABLE answered AS FROM {predict}'class')")
    assert client.execute("FROM sdc_he_knn_decrypt('answered', 'keys')").fetchall() == [(1, "A", ["A", "B"], None)]


def test_one_row_one_class_and_questions_that_are_there_twice_or_not_at_all(client: Connection) -> None:
    one = "sdc_he_knn_predict('(FROM line LIMIT 1)', '{}', 'evaluation', 'kind', k := 1, bounds := {{'x': [0, 1]}})"
    client.execute(f"CREATE OR REPLACE TABLE answered AS FROM {one.format('(FROM asked UNION ALL FROM asked)')}")
    assert client.execute("SELECT n, label FROM sdc_he_knn_decrypt('answered', 'keys')").fetchall() == [(1, "A")] * 2
    none = "(FROM asked WHERE n > 1)"
    assert client.execute(f"FROM {one.format(none)}").fetchall() == []
    assert client.execute("FROM sdc_he_knn_decrypt('(FROM answered WHERE n > 1)', 'keys')").fetchall() == []
    assert client.execute("FROM sdc_he_knn_encrypt('(SELECT 1 AS n, 1 AS x WHERE n > 1)', 'keys', 'n', bounds := {'x': [0, 1]})").fetchall() == []  # fmt: skip


def test_ids_keep_their_types_and_what_lies_outside_of_bounds_is_their_end(client: Connection) -> None:
    asked = "(SELECT DATE '2026-01-01' + i AS day, x FROM (VALUES (0, -9), (1, 9)) r(i, x))"
    client.execute(f"CREATE OR REPLACE TABLE days AS FROM sdc_he_knn_encrypt('{asked.replace(chr(39), chr(39) * 2)}', 'keys', 'day', bounds := {{'X': [0, 1]}})")  # fmt: skip
    assert client.execute("DESCRIBE days").fetchall()[0][:2] == ("day", "DATE")
    client.execute("CREATE OR REPLACE TABLE answered AS FROM sdc_he_knn_predict('line', 'days', 'evaluation', 'kind', ['X'], k := 1, bounds := {'x': [0, 1]})")  # fmt: skip
    told = client.execute("SELECT label FROM sdc_he_knn_decrypt('answered', 'keys') ORDER BY day").fetchall()
    assert told == [("A",), ("B",)]


def test_it_is_known_how_many_signs_there_will_be() -> None:
    sizes, draw, seen = blobs.SCHEMES["toy"], stream(3), [0]

    def count(signs: int) -> None:
        seen[0] += signs

    secret, evaluation = blobs.new_keys("toy", 5)
    key = blobs.evaluation_of(evaluation)
    circuit = Circuit(rotation(key.seed, key.body, sizes), 1, count)
    for classes in ([0, 0, 1, 2], [0, 0, 0, 0]):
        records = Records(np.array([[0.1], [0.2], [0.6], [0.9]]), np.array(classes), max(classes) + 1, 4.0, 1000)
        seen[0] = 0
        question = encrypt(records.encoded(np.array([[0.3]]))[0], blobs.secret_of(secret).bits, draw, sizes)
        encrypted_class(circuit, encrypted_votes(circuit, records, question, 2), 2)
        assert seen[0] == signs_needed(circuit, records, 2)


# --- keys ------------------------------------------------------------------------------------------------------------


def test_keys_differ_but_for_a_seed_which_is_said_to_protect_nothing(client: Connection) -> None:
    keys = "SELECT part, scheme, chunk, key, warning FROM sdc_he_knn_keygen('toy', seed := {})"
    seeded, again, new, newer = (client.execute(keys.format(seed)).fetchall() for seed in (7, 7, "NULL", "NULL"))
    assert seeded == again == client.execute("FROM keys").fetchall()
    for one, other in zip(new, newer, strict=True):
        assert one[3] != other[3]
    assert [row[:3] for row in new] == [("secret", "toy", 1), ("evaluation", "toy", 1)]
    assert all("no protection" in row[4] for row in [*seeded, *new])
    # Half of the bits of a secret key are 1, of a toy's a few: nobody takes one for the other.
    assert [int(secret_bits(stream(1), sizes).sum()) for sizes in blobs.SCHEMES.values()] == [
        pytest.approx(512, abs=64),
        7,
    ]


def test_keys_with_a_seed_say_so_and_true_ones_what_they_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(blobs.SCHEMES, "paper", blobs.TOY)
    with sdcduck.connect() as con:
        warnings = [
            con.execute(f"SELECT DISTINCT warning FROM sdc_he_knn_keygen({seed})").fetchall()[0][0]
            for seed in ("", "seed := 1")
        ]
    assert "nobody has audited" in warnings[0]
    assert "no protection: whoever knows the seed" in warnings[1]


def test_the_same_question_has_another_ciphertext_each_time(client: Connection) -> None:
    asked = "FROM sdc_he_knn_encrypt('(SELECT 1 AS n, 0.3 AS x UNION ALL SELECT 2, 0.3)', 'keys', 'n', bounds := {'x': [0, 1]})"
    found = [row[1][-600:-32] for _ in range(2) for row in client.execute(asked).fetchall()]
    assert len(set(found)) == 4


def test_a_key_in_several_rows_may_come_in_any_order_and_must_be_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "_CHUNK", 150_000)
    _, parts = blobs.new_keys("toy", 1)
    _, others = blobs.new_keys("toy", 2)
    assert len(parts) == 3
    whole = blobs.evaluation_of(parts)
    assert (blobs.evaluation_of(parts[::-1]).body == whole.body).all()
    for wrong, message in (
        (parts[:2], "not complete"), ([*parts, parts[0]], "has rows twice"), ([], "there is no evaluation key"),
        ([*parts[:2], others[2]], "another pair of keys"),
    ):  # fmt: skip
        with pytest.raises(SDCError, match=message):
            blobs.evaluation_of(wrong)


# --- what somebody else wrote ----------------------------------------------------------------------------------------


def made() -> tuple[bytes, bytes, blobs.Secret]:
    """A secret key and a question."""
    raw, _ = blobs.new_keys("toy", 1)
    secret = blobs.secret_of(raw)
    samples = encrypt(np.array([1, 2]), secret.bits, stream(2), blobs.TOY)
    return (
        raw,
        blobs.question_blob(blobs.Asked(("x", "y"), ((0.0, 1.0), (0.0, 2.0)), 3.0, 1000), samples, secret),
        secret,
    )


def test_no_bit_can_be_changed_and_no_byte_be_missing() -> None:
    key, question, secret = made()
    assert blobs.question_of(question, "toy", secret.pair)[0].columns == ("x", "y")
    for place in range(len(key)):
        wrong = bytearray(key)
        wrong[place] ^= 1
        for raw in (bytes(wrong), key[:place], key[place + 1 :]):
            with pytest.raises(SDCError, match=r"is damaged|should be|is of version"):
                blobs.secret_of(raw)
    assert "bits" not in repr(secret)
    assert "body" not in repr(blobs.read(key, blobs.KEY))


@pytest.mark.parametrize(
    "about",
    [
        {"columns": ["x"]}, {"columns": "xy"}, {"columns": [1, 2]}, {"columns": []}, {"bounds": [[0.0, 1.0]]},
        {"bounds": [[0.0, 1.0], [0.0]]}, {"bounds": [[0.0, 1.0], [0.0, float("nan")]]}, {"bounds": [[0.0, 1.0], ["0", 1.0]]},
        {"v": 0.0}, {"v": float("inf")}, {"v": 10**400}, {"v": None}, {"v": True}, {"tau": 0}, {"tau": 1e3}, {"tau": 10**9},
        {"tau": True}, {"columns": ["x", "y", "z"], "bounds": [[0.0, 1.0]] * 3},
    ],
)  # fmt: skip
def test_nothing_that_a_question_says_of_itself_is_believed(about: dict[str, object]) -> None:
    _, question, secret = made()
    blob = blobs.read(question, blobs.QUESTION)
    forged = blobs.Blob(blob.kind, blob.scheme, blob.pair, {**blob.about, **about}, blob.body).written()
    with pytest.raises(SDCError, match="a question does not hold what one of its kind does"):
        blobs.question_of(forged, "toy", secret.pair)


def test_headers_that_somebody_forged_are_refused() -> None:
    _, question, secret = made()
    for place, value, message in (
        (5, 2, "is of version 2 of the format"), (6, 9, "does not hold"), (7, 9, "does not hold"),
        (6, 3, "what should be a question is an answer"), (7, 0, "is of the scheme 'paper', and the key of 'toy'"),
        (24, 255, "does not hold"), (27, 255, "does not hold"), (30, 255, "does not hold"),
    ):  # fmt: skip
        wrong = bytearray(question[:-32])
        wrong[place] = value
        with pytest.raises(SDCError, match=message):
            blobs.question_of(blobs.sealed(bytes(wrong)), "toy", secret.pair)
    deep = b"[" * 200_000
    head = bytearray(question[:28])
    head[24:28] = len(deep).to_bytes(4, "little")
    with pytest.raises(SDCError, match="does not hold"):
        blobs.question_of(blobs.sealed(bytes(head) + deep), "toy", secret.pair)


@pytest.mark.parametrize("about", [{"labels": []}, {"labels": ["a"]}, {"labels": [1, 2]}, {"votes": 0}, {"votes": "3"}])
def test_nor_what_an_answer_says(about: dict[str, object]) -> None:
    _, _, secret = made()
    samples = encrypt(np.array([2**29, -(2**29)]), secret.bits, stream(2), blobs.TOY)
    answer = blobs.answer_blob(blobs.Answer(("a", "b"), None, samples), "toy", secret.pair)
    assert blobs.answer_of(answer, secret).labels == ("a", "b")
    blob = blobs.read(answer, blobs.ANSWER)
    forged = blobs.Blob(blob.kind, blob.scheme, blob.pair, {**blob.about, **about}, blob.body).written()
    with pytest.raises(SDCError, match="an answer does not hold"):
        blobs.answer_of(forged, secret)


# --- bad input -------------------------------------------------------------------------------------------------------

_X = "bounds := {'x': [0, 1]}"
_PREDICT = "sdc_he_knn_predict('line', 'asked', 'evaluation', 'kind'"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_he_knn_keygen('toys')", "did you mean 'toy'"),
        ("sdc_he_knn_keygen(NULL)", "argument 'parameters' must be 'paper' or 'toy'"),
        ("sdc_he_knn_keygen(seed := -1)", "argument 'seed' must be a whole number of at least 0"),
        (f"sdc_he_knn_encrypt('line', 'evaluation', 'kind', {_X})", "argument 'keys' holds no secret key"),
        (f"sdc_he_knn_encrypt('(FROM line LIMIT 1)', '(FROM keys UNION ALL FROM others)', 'kind', {_X})", "several secret keys"),
        (f"sdc_he_knn_encrypt('line', '(SELECT ''secret'' AS part, key FROM evaluation)', 'kind', {_X})", "what should be a secret key is an evaluation key"),
        (f"sdc_he_knn_encrypt('line', '(SELECT part, NULL::BLOB AS key FROM keys)', 'kind', {_X})", "column 'key' holds NULL"),
        (f"sdc_he_knn_encrypt('line', '(SELECT part, hex(key) AS key FROM keys)', 'kind', {_X})", "must be a BLOB"),
        (f"sdc_he_knn_encrypt('line', 'line', 'kind', {_X})", "unknown column 'part'"),
        (f"sdc_he_knn_encrypt('line', 'keys', {_X})", "argument 'id' must name a column"),
        (f"sdc_he_knn_encrypt('line', 'keys', 'kind', {_X})", "column 'kind' must tell questions apart"),
        (f"sdc_he_knn_encrypt('(SELECT NULL AS n, 1 AS x)', 'keys', 'n', {_X})", "column 'n' must tell questions apart"),
        ("sdc_he_knn_encrypt('line', 'keys', 'kind')", "must have public ends of column 'x'"),
        ("sdc_he_knn_encrypt('line', 'keys', 'kind', bounds := {'x': [1, 1]})", "smaller number first"),
        ("sdc_he_knn_encrypt('line', 'keys', 'kind', bounds := {'x': [0, 1], 'y': [0, 1]})", "unknown column 'y'"),
        (f"sdc_he_knn_encrypt('line', 'keys', 'x', {_X})", "must name a column of numbers"),
        (f"sdc_he_knn_encrypt('(SELECT 1 AS n)', 'keys', 'n', {_X})", "argument 'columns' must name"),
        (f"sdc_he_knn_encrypt('(SELECT 1 AS n, NULL::INT AS x)', 'keys', 'n', {_X})", "leave such questions out"),
        (f"sdc_he_knn_encrypt('(SELECT 1 AS n, ''nan''::DOUBLE AS x)', 'keys', 'n', {_X})", "leave such questions out"),
        (f"sdc_he_knn_encrypt('(SELECT 1 AS question, 1 AS x)', 'keys', 'question', {_X})", "is also one of the result"),
        (f"sdc_he_knn_encrypt('line', 'keys', 'kind', {_X}, tau := 0)", "argument 'tau'"),
        (f"sdc_he_knn_encrypt('line', 'keys', 'kind', {_X}, v := 0)", "argument 'v' must be a number of at least 0.001"),
        (f"sdc_he_knn_encrypt('line', 'keys', 'kind', {_X}, v := 1e9)", "argument 'v' must be a number of at most"),
        (f"sdc_he_knn_predict('line', 'asked', 'keys', 'kind', {_X})", "A secret key is for nobody but who asks"),
        (f"sdc_he_knn_predict('line', 'asked', '(SELECT ''evaluation'' AS part, key FROM keys)', 'kind', {_X})", "is a secret key"),
        (f"sdc_he_knn_predict('line', 'asked', '(FROM evaluation LIMIT 0)', 'kind', {_X})", "there is no evaluation key"),
        (f"sdc_he_knn_predict('line', 'asked', '(FROM others WHERE part = ''evaluation'')', 'kind', {_X})", "a question belongs to another pair of keys"),
        (f"sdc_he_knn_predict('line', '(SELECT key AS question FROM evaluation)', 'evaluation', 'kind', {_X})", "what should be a question is an evaluation key"),
        (f"sdc_he_knn_predict('line', '(SELECT NULL::BLOB AS question)', 'evaluation', 'kind', {_X})", "column 'question' holds NULL"),
        (f"sdc_he_knn_predict('line', '(SELECT ''x''::BLOB AS question)', 'evaluation', 'kind', {_X})", "what should be a question of sdcduck is none"),
        (f"sdc_he_knn_predict('line', '(SELECT *, 1 AS answer FROM asked)', 'evaluation', 'kind', {_X})", "is also one of the result"),
        (f"sdc_he_knn_predict('line', 'line', 'evaluation', 'kind', {_X})", "unknown column 'question'"),
        (f"{_PREDICT})", "must have public ends of column 'x'"),
        (f"{_PREDICT}, bounds := {{'x': [0, 2]}})", "a question was encrypted with other 'bounds'"),
        ("sdc_he_knn_predict('(SELECT x AS y, kind FROM line)', 'asked', 'evaluation', 'kind', bounds := {'y': [0, 1]})", "a question has other columns"),
        (f"{_PREDICT}, {_X}, k := 5)", "fewer than k = 5 reference rows"),
        (f"{_PREDICT}, {_X}, k := 0)", "argument 'k' must be a whole number from 1"),
        (f"{_PREDICT}, {_X}, result := 'vote')", "did you mean 'votes'"),
        (f"sdc_he_knn_predict('(SELECT i / 300 AS x, i % 2 AS kind FROM range(201) r(i))', 'asked', 'evaluation', 'kind', {_X})", "more than 200 reference rows"),
        (f"sdc_he_knn_predict('(FROM line WHERE x > 9)', 'asked', 'evaluation', 'kind', {_X})", "there are no reference rows"),
        (f"sdc_he_knn_predict('line', '(FROM sdc_he_knn_encrypt(''(SELECT 1 AS n, 0.3 AS x)'', ''keys'', ''n'', bounds := {{''x'': [0, 1]}}))', 'evaluation', 'kind', {_X})", "the rows of 'questions' changed while they were read"),
        ("sdc_he_knn_decrypt('(SELECT question AS answer FROM asked)', 'keys')", "what should be an answer is a question"),
        ("sdc_he_knn_decrypt('(SELECT ''''::BLOB AS answer)', 'keys')", "what should be an answer of sdcduck is none"),
        ("sdc_he_knn_decrypt('line', 'keys')", "unknown column 'answer'"),
        ("sdc_he_knn_decrypt('asked', NULL)", "argument 'keys' must name a table"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_said_at_once(client: Connection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as raised:
        client.execute(f"FROM {call}").fetchall()
    assert message in str(raised.value)
    secret = client.execute("SELECT hex(key) FROM keys WHERE part = 'secret'").fetchall()[0][0]
    assert secret[56:72] not in str(raised.value).upper()


def test_answers_of_another_key_and_damaged_ones_and_too_small_a_v(client: Connection) -> None:
    client.execute(f"CREATE OR REPLACE TABLE answered AS FROM {_PREDICT}, {_X})")
    for call, message in (
        ("sdc_he_knn_decrypt('answered', 'others')", "an answer belongs to another pair of keys"),
        (
            "sdc_he_knn_decrypt('(SELECT from_hex(hex(answer)[:-3]) AS answer FROM answered)', 'keys')",
            "an answer is damaged",
        ),
        ("sdc_he_knn_decrypt('answered', 'evaluation')", "argument 'keys' holds no secret key"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            client.execute(f"FROM {call}").fetchall()
    client.execute(f"CREATE OR REPLACE TABLE narrow AS FROM sdc_he_knn_encrypt('(SELECT 1 AS n, 0.3 AS x)', 'keys', 'n', {_X}, v := 1)")  # fmt: skip
    with pytest.raises(duckdb.Error, match=r"it must be at least 1\.307 for these reference rows"):
        client.execute(f"FROM sdc_he_knn_predict('line', 'narrow', 'evaluation', 'kind', {_X})").fetchall()


def test_a_question_of_the_paper_s_sizes_and_the_key_of_a_toy(client: Connection) -> None:
    secret = blobs.Secret("paper", bytes(16), np.zeros(1024, np.uint32))
    asked = blobs.question_blob(blobs.Asked(("x",), ((0.0, 1.0),), 4.0, 1000), np.zeros((1, 1025), np.uint32), secret)
    client.execute("CREATE OR REPLACE TABLE large AS SELECT ?::BLOB AS question", [asked])
    with pytest.raises(duckdb.Error, match="a question is of the scheme 'paper', and the key of 'toy'"):
        client.execute(f"FROM sdc_he_knn_predict('line', 'large', 'evaluation', 'kind', {_X})").fetchall()
    assert len(asked) < 4400
    assert json.loads(asked[28:][: int.from_bytes(asked[24:28], "little")])["columns"] == ["x"]
