"""The encrypted vote: planners of ``sdc_he_knn_keygen``, ``_encrypt``, ``_predict`` and ``_decrypt``.

Keys, questions and answers come and go as tables. Bytes as arguments of a call would be hashed, and seen where a
statement is logged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import checkpoint, reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.encrypted import blobs
from sdcduck.methods.encrypted.encrypted_vote import (
    Circuit,
    decrypted_class,
    decrypted_votes,
    encrypted_class,
    encrypted_votes,
    signs_needed,
)
from sdcduck.methods.encrypted.fixed_point import ROOM, Records, encoded, safe_scale, scaled, smallest_scale
from sdcduck.methods.encrypted.tfhe import SYSTEM, Words, encrypt, rotation
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, number, whole, wrong
from sdcduck.udfs.dp.bounded import pairs_of
from sdcduck.udfs.encrypted.rows import BOUNDS, MOST_COLUMNS, Known, numbers_of, numbers_sql
from sdcduck.udfs.encrypted.simulation import MOST_TAU
from sdcduck.udfs.models.features import threads_of
from sdcduck.udfs.source import Source, refuse_taken, source

_MOST_ROWS = 200
_MOST_BYTES = 2**30
_WARNINGS = {
    "paper": "a reference that nobody has audited; 110 bits of security by the paper, 128 are usual",
    "toy": "no protection: the sizes are for tests and examples",
}
_SEEDED = "no protection: whoever knows the seed knows the secret key"
_CHANGED = "the rows of '{}' changed while they were read: store them in a table first"
_MADE = {"id": "VARCHAR", "question": "BLOB"}
_ANSWERED = {"digest": "VARCHAR", "answer": "BLOB"}
_TOLD = {"digest": "VARCHAR", "label": "VARCHAR", "labels": "VARCHAR[]", "votes": "BIGINT[]"}


def plan_he_knn_keygen(session: Session, parameters: str | None, seed: int | None) -> Rows:
    """``sdc_he_knn_keygen``: a new pair of keys."""
    scheme = choice(parameters, "parameters", tuple(blobs.SCHEMES))
    start = None if seed is None else whole(seed, "seed", least=0)

    def make() -> pa.Table:
        secret, parts = blobs.new_keys(scheme, start)
        count = 1 + len(parts)
        said = _WARNINGS[scheme] if start is None or scheme == "toy" else _SEEDED
        return pa.table(
            {
                "part": ["secret", *["evaluation"] * len(parts)], "scheme": [scheme] * count,
                "chunk": [1, *range(1, count)], "key": pa.array([secret, *parts], pa.binary()),
                "warning": [said] * count,
            }
        )  # fmt: skip

    return Rows(make)


# --- who asks --------------------------------------------------------------------------------------------------------


def _blobs_in(relation: Source, column: str, argument: str) -> str:
    """The column of a relation that holds blobs."""
    known = relation.column(column, argument)
    if relation.type_of(column) != "BLOB":
        raise SDCError(f"column '{column}' of argument '{argument}' must be a BLOB, as it was made")
    return known


def _keys(session: Session, text: str | None, argument: str) -> Source:
    relation = source(session.cursor(), text, argument)
    relation.column("part", argument)
    _blobs_in(relation, "key", argument)
    return relation


def _secret(cursor: duckdb.DuckDBPyConnection, keys: Source) -> blobs.Secret:
    found = cursor.execute(f"SELECT key FROM {keys.sql} WHERE part::VARCHAR = 'secret' LIMIT 2").fetchall()
    if not found:
        raise SDCError("argument 'keys' holds no secret key: it is the row of sdc_he_knn_keygen with part = 'secret'")
    if len(found) > 1:
        raise SDCError("argument 'keys' holds several secret keys: choose one of them in a query")
    return blobs.secret_of(_given(found[0][0], "key"))


def _given(value: bytes | None, column: str) -> bytes:
    if value is None:
        raise SDCError(f"column '{column}' holds NULL: leave such rows out in a query")
    return bytes(value)


def plan_he_knn_encrypt(
    session: Session, text: str | None, keys: str | None, key: str | None, columns: list[str] | None,
    bounds: str | None, tau: int | None, v: float | None,
) -> Rows:  # fmt: skip
    """``sdc_he_knn_encrypt``: questions that nobody can read without the secret key."""
    relation = source(session.cursor(), text, "questions")
    relation.check_names(tuple(relation.columns))
    owned = _keys(session, keys, "keys")
    relation.column(key, "id")
    (known,) = relation.named([key], "id")
    refuse_taken([known], ("question",))
    names = relation.named(columns, "columns") or tuple(name for name in relation.columns if name != known)
    if not 1 <= len(names) <= MOST_COLUMNS:
        raise wrong("columns", f"name from 1 to {MOST_COLUMNS} columns of numbers")
    for name in names:
        relation.number(name, "columns")
    pairs = _public(pairs_of(names, bounds, "bounds", BOUNDS), names)
    precision = whole(tau, "tau", least=1, most=MOST_TAU)
    scale = safe_scale(len(names)) if v is None else number(v, "v", least=1e-3)
    if scale > 1e6:
        raise wrong("v", "be a number of at most 1000000")

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            secret = _secret(cursor, owned)
            table = cursor.sql(
                f"SELECT {identifier(known)}::VARCHAR AS id, {numbers_sql(names)} FROM {relation.sql} ORDER BY ALL"
            ).to_arrow_table()
        ids = table["id"].to_pylist()
        if None in ids or len(set(ids)) < len(ids):
            raise SDCError(f"column '{known}' must tell questions apart: it holds NULL, or a value twice")
        sizes = blobs.SCHEMES[secret.scheme]
        if len(ids) * len(names) * (sizes.n + 1) * 4 > _MOST_BYTES:
            raise SDCError("the encrypted questions would be larger than a GiB: encrypt fewer of them at a time")
        low, high = np.array(pairs).T
        numbers = encoded(scaled(numbers_of(table, names, "questions"), low, high), scale * precision)
        asked = blobs.Asked(tuple(map(folded, names)), pairs, scale, precision)
        check, made = checkpoint(), []
        for question in numbers:
            made.append(blobs.question_blob(asked, encrypt(question, secret.bits, SYSTEM, sizes), secret))
            check()
        return pa.table({"id": pa.array(ids, pa.string()), "question": pa.array(made, pa.binary())})

    kind = relation.type_of(known)
    return Rows(make, f"SELECT id::{kind} AS {identifier(known)}, question FROM {{rows}}")


def _public(pairs: dict[str, tuple[float, float]], names: Sequence[str]) -> tuple[tuple[float, float], ...]:
    """Public ends of all columns."""
    for name in names:
        if name not in pairs:
            raise SDCError(f"argument 'bounds' must have public ends of column '{name}', too: both sides scale by them")
        low, high = pairs[name]
        if not 0 < high - low < float("inf"):
            raise wrong("bounds", f"have the smaller number first, for column '{name}'")
    return tuple(pairs[name] for name in names)


def plan_he_knn_decrypt(session: Session, text: str | None, keys: str | None) -> Rows:
    """``sdc_he_knn_decrypt``: what the answers are."""
    relation = source(session.cursor(), text, "answers")
    owned = _keys(session, keys, "keys")
    column = _blobs_in(relation, "answer", "answers")
    refuse_taken(relation.columns, tuple(_TOLD))

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            secret = _secret(cursor, owned)
            given = _distinct(cursor, relation, column, "answer")
        check, rows = checkpoint(), []
        for raw in given:
            rows.append(_told(raw, secret))
            check()
        return pa.Table.from_pylist(
            rows,
            pa.schema([("digest", pa.string()), ("label", pa.string()), ("labels", pa.list_(pa.string())),
                       ("votes", pa.list_(pa.int64()))]),
        )  # fmt: skip

    return Rows(make, _beside(relation, column, ("label", "labels", "votes"), "answers"))


def _told(raw: bytes, secret: blobs.Secret) -> dict[str, object]:
    answer = blobs.answer_of(raw, secret)
    votes = None
    if answer.votes is None:
        place = decrypted_class(answer.samples, secret.bits)
    else:
        found = decrypted_votes(answer.samples, secret.bits, answer.votes)
        right = found.min() >= 0 and found.sum() == answer.votes
        place = int(found.argmax()) if right else None
        votes = found.tolist() if right else None
    label = None if place is None else answer.labels[place]
    return {"digest": _digest(raw), "label": label, "labels": list(answer.labels), "votes": votes}


def _distinct(cursor: duckdb.DuckDBPyConnection, relation: Source, column: str, name: str) -> list[bytes]:
    rows = cursor.execute(f"SELECT DISTINCT {column} FROM {relation.sql} ORDER BY 1").fetchall()
    return [_given(row[0], name) for row in rows]


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _beside(relation: Source, column: str, shown: Sequence[str], argument: str) -> str:
    """SQL of a relation with what was made of its blobs in their place."""
    changed = f"error({literal(_CHANGED.format(argument))})"
    columns = ", ".join(f"CASE WHEN m.digest IS NULL THEN {changed} ELSE m.{name} END AS {name}" for name in shown)
    return (
        f"SELECT q.* EXCLUDE ({column}), {columns} FROM {relation.sql} q "
        f"LEFT JOIN {{rows}} m ON sha256(q.{column}) = m.digest"
    )


# --- who answers -----------------------------------------------------------------------------------------------------


def plan_he_knn_predict(
    session: Session, text: str | None, questions: str | None, keys: str | None, label: str | None,
    columns: list[str] | None, k: int | None, bounds: str | None, key: str | None, result: str | None,
) -> Rows:  # fmt: skip
    """``sdc_he_knn_predict``: an encrypted answer to each encrypted question."""
    asked = source(session.cursor(), questions, "questions")
    column = _blobs_in(asked, "question", "questions")
    refuse_taken(asked.columns, tuple(_ANSWERED))
    public = _keys(session, keys, "keys")
    known = Known.read(session, text, label, columns, bounds, key)
    pairs = dict(zip(map(folded, known.names), _public(known.bounds, known.names), strict=True))
    near = whole(k, "k", least=1, most=_MOST_ROWS)
    votes = choice(result, "result", ("class", "votes")) == "votes"

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            evaluation = _evaluation(cursor, public)
            given = _distinct(cursor, asked, column, "question")
            rows = known.rows(cursor, "reference rows")
            threads = threads_of(cursor)
        if near > len(rows.values):
            raise SDCError(f"there are fewer than k = {near} reference rows: make 'k' smaller")
        if len(rows.values) > _MOST_ROWS:
            raise SDCError(
                f"there are more than {_MOST_ROWS} reference rows, and an encrypted vote compares all pairs: make "
                "a few that stand for them by sdc_prototypes"
            )
        points = rows.scaled(rows.values)
        least = smallest_scale(points, ROOM)
        read = [blobs.question_of(raw, evaluation.scheme, evaluation.pair) for raw in given]
        for question, _ in read:
            _check_question(question, pairs, least)
        places = {name: place for place, name in enumerate(pairs)}

        def records(question: blobs.Asked) -> Records:
            order = [places[name] for name in question.columns]
            return Records(points[:, order], rows.classes, len(rows.labels), question.v, question.tau)

        found = _answers([(records(question), samples) for question, samples in read], evaluation, near, votes, threads)
        answers = [
            blobs.answer_blob(
                blobs.Answer(tuple(rows.labels), near if votes else None, one), evaluation.scheme, evaluation.pair
            )
            for one in found
        ]
        digests = pa.array(map(_digest, given), pa.string())
        return pa.table({"digest": digests, "answer": pa.array(answers, pa.binary())})

    return Rows(make, _beside(asked, column, ("answer",), "questions"))


class _Done:
    """Shows how many signs are done."""

    def __init__(self, show: Callable[[int, int], None]) -> None:
        self._show, self._signs, self.total = show, 0, 1

    def __call__(self, signs: int) -> None:
        self._signs += signs
        self._show(min(self._signs, self.total), self.total)


def _answers(
    asked: Sequence[tuple[Records, Words]], evaluation: blobs.Evaluation, k: int, votes: bool, threads: int
) -> list[Words]:
    """The samples of each answer."""
    if not asked:
        return []
    done = _Done(shown_checkpoint())
    sizes = blobs.SCHEMES[evaluation.scheme]
    circuit = Circuit(rotation(evaluation.seed, evaluation.body, sizes), threads, done)
    done.total = len(asked) * signs_needed(circuit, asked[0][0], k)
    made = []
    for records, samples in asked:
        found = encrypted_votes(circuit, records, samples, k)
        made.append(found if votes else encrypted_class(circuit, found, k))
    return made


def _evaluation(cursor: duckdb.DuckDBPyConnection, keys: Source) -> blobs.Evaluation:
    others = cursor.execute(f"SELECT 1 FROM {keys.sql} WHERE part IS DISTINCT FROM 'evaluation' LIMIT 1").fetchall()
    if others:
        raise SDCError(
            "argument 'keys' holds more than an evaluation key. A secret key is for nobody but who asks: give the rows "
            "with part = 'evaluation' alone"
        )
    found = cursor.execute(f"SELECT key FROM {keys.sql}").fetchall()
    return blobs.evaluation_of([_given(row[0], "key") for row in found])


def _check_question(asked: blobs.Asked, pairs: dict[str, tuple[float, float]], least: float) -> None:
    """That a question is about the columns of the reference rows, and encrypted for them.

    Raises:
        SDCError: it is not; what somebody wrote into it is not in the message.
    """
    if sorted(asked.columns) != sorted(pairs):
        raise SDCError("a question has other columns of numbers than the reference rows: name those in 'columns'")
    if any(pairs[name] != ends for name, ends in zip(asked.columns, asked.bounds, strict=True)):
        raise SDCError("a question was encrypted with other 'bounds' than those of the reference rows")
    if asked.v < least * (1 - 1e-9):
        raise SDCError(
            f"a question was encrypted with too small a 'v': it must be at least {np.ceil(least * 1000) / 1000:g} for "
            "these reference rows, and is safe where it is left out"
        )


PLANNERS = (
    planner(plan_he_knn_keygen),
    planner(plan_he_knn_encrypt, _MADE),
    planner(plan_he_knn_predict, _ANSWERED),
    planner(plan_he_knn_decrypt, _TOLD),
)
