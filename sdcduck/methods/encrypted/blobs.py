"""Keys, questions and answers as bytes: what is sent from one side to the other.

A blob says what it is, for which sizes of the scheme and of which pair of keys, and ends with a hash of all of it. The
hash shows what was cut or changed on its way; it is no signature, and whoever wants to can make another one. What is
read was written by somebody else: nothing in it is believed before it was looked at, and no message holds any of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sdcduck.errors import SDCError
from sdcduck.methods.encrypted.tfhe import (
    PAPER,
    SEED,
    SYSTEM,
    TOY,
    Draw,
    Words,
    evaluation_key,
    secret_bits,
    stream,
)

SCHEMES = {"paper": PAPER, "toy": TOY}
KEY, EVALUATION, QUESTION, ANSWER = "secret key", "evaluation key", "question", "answer"

_MAGIC = b"SDCHE"
_VERSION = 1
_KINDS = (KEY, EVALUATION, QUESTION, ANSWER)
_HEAD = struct.Struct("<5sBBB16sI")  # magic, version, kind, scheme, pair of keys, bytes of what is said of the rest
_HASH = 32
_CHUNK = 2**22 + SEED  # bytes of an evaluation key in a blob
_MOST_COLUMNS, _MOST_TAU = 1000, 10_000


@dataclass(frozen=True)
class Blob:
    """What a blob holds.

    Attributes:
        kind: `KEY`, `EVALUATION`, `QUESTION` or `ANSWER`.
        scheme: a name of `SCHEMES`.
        pair: of keys that it belongs to.
        about: what is said of the rest.
        body: the rest.
    """

    kind: str
    scheme: str
    pair: bytes
    about: dict[str, Any]
    body: bytes = field(repr=False)

    def written(self) -> bytes:
        """As bytes."""
        about = json.dumps(self.about, separators=(",", ":")).encode()
        place = list(SCHEMES).index(self.scheme)
        head = _HEAD.pack(_MAGIC, _VERSION, _KINDS.index(self.kind), place, self.pair, len(about))
        return sealed(head + about + self.body)

    def words(self, rows: int) -> Words:
        """The body as samples.

        Raises:
            SDCError: it is not as long as that.
        """
        shape = (rows, SCHEMES[self.scheme].n + 1)
        if len(self.body) != 4 * math.prod(shape):
            raise _unlike(self.kind)
        return np.frombuffer(self.body, "<u4").astype(np.uint32).reshape(shape)


def sealed(content: bytes) -> bytes:
    """With its hash behind it."""
    return content + hashlib.sha256(content).digest()


def _bytes_of(samples: Words) -> bytes:
    return samples.astype("<u4").tobytes()


def _a(kind: str) -> str:
    return f"{'an' if kind in (EVALUATION, ANSWER) else 'a'} {kind}"


def _unlike(kind: str) -> SDCError:
    return SDCError(f"{_a(kind)} does not hold what one of its kind does: it was not made by sdcduck")


def read(raw: bytes, kind: str, scheme: str | None = None, pair: bytes | None = None) -> Blob:
    """A blob of a kind, of certain sizes and a certain pair of keys where these are given.

    Raises:
        SDCError: it is another one, or damaged.
    """
    if len(raw) < _HEAD.size + _HASH or not raw.startswith(_MAGIC):
        raise SDCError(f"what should be {_a(kind)} of sdcduck is none, or only the beginning of one")
    _, version, place, sizes, owner, length = _HEAD.unpack_from(raw)
    if version != _VERSION:
        raise SDCError(f"{_a(kind)} is of version {version} of the format, and this sdcduck reads version {_VERSION}")
    if hashlib.sha256(raw[:-_HASH]).digest() != raw[-_HASH:]:
        raise SDCError(f"{_a(kind)} is damaged: it was cut or changed since it was made")
    if place >= len(_KINDS) or sizes >= len(SCHEMES):
        raise _unlike(kind)
    if _KINDS[place] != kind:
        raise SDCError(f"what should be {_a(kind)} is {_a(_KINDS[place])}")
    known = list(SCHEMES)[sizes]
    if scheme is not None and known != scheme:
        raise SDCError(f"{_a(kind)} is of the scheme '{known}', and the key of '{scheme}'")
    if pair is not None and owner != pair:
        raise SDCError(f"{_a(kind)} belongs to another pair of keys")
    rest = raw[_HEAD.size : -_HASH]
    try:
        about = json.loads(rest[:length])
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or length > len(rest):
        raise _unlike(kind)
    return Blob(kind, known, owner, about, rest[length:])


# --- keys ------------------------------------------------------------------------------------------------------------


def new_keys(scheme: str, seed: int | None) -> tuple[bytes, list[bytes]]:
    """A secret key, and an evaluation key in parts.

    Args:
        seed: None: from the system's source of random bytes. Whoever knows a seed has the keys.
    """
    sizes = SCHEMES[scheme]
    draw: Draw = SYSTEM if seed is None else stream(seed)
    pair, secret = draw(16), secret_bits(draw, sizes)
    public, body = evaluation_key(secret, draw, sizes)
    whole = public + body.astype("<u4").tobytes()
    count = -(-len(whole) // _CHUNK)
    parts = [
        Blob(EVALUATION, scheme, pair, {"chunk": i, "of": count}, whole[i * _CHUNK : (i + 1) * _CHUNK]).written()
        for i in range(count)
    ]
    return Blob(KEY, scheme, pair, {}, np.packbits(secret.astype(np.uint8)).tobytes()).written(), parts


@dataclass(frozen=True)
class Secret:
    """A secret key."""

    scheme: str
    pair: bytes
    bits: Words = field(repr=False)


def secret_of(raw: bytes) -> Secret:
    """A secret key from its bytes.

    Raises:
        SDCError: it is none.
    """
    blob = read(raw, KEY)
    if len(blob.body) * 8 != SCHEMES[blob.scheme].n:
        raise _unlike(KEY)
    return Secret(blob.scheme, blob.pair, np.unpackbits(np.frombuffer(blob.body, np.uint8)).astype(np.uint32))


@dataclass(frozen=True)
class Evaluation:
    """An evaluation key as it is sent: a seed of its public halves, and the others."""

    scheme: str
    pair: bytes
    seed: bytes
    body: Words


def evaluation_of(parts: Sequence[bytes]) -> Evaluation:
    """An evaluation key from its parts, in any order.

    Raises:
        SDCError: one is missing, there twice, of another key, or none at all.
    """
    if not parts:
        raise SDCError("there is no evaluation key: it is what sdc_he_knn_keygen makes with part = 'evaluation'")
    first = read(parts[0], EVALUATION)
    blobs = [first, *(read(raw, EVALUATION, first.scheme, first.pair) for raw in parts[1:])]
    count = first.about.get("of")
    places = [blob.about.get("chunk") for blob in blobs]
    if any(blob.about.get("of") != count or type(place) is not int for blob, place in zip(blobs, places, strict=True)):
        raise _unlike(EVALUATION)
    if type(count) is not int or sorted(places) != list(range(count)):  # type: ignore[type-var]
        raise SDCError("the evaluation key is not complete, or has rows twice: it has several rows, one for each chunk")
    whole = b"".join(blobs[places.index(place)].body for place in range(count))
    sizes = SCHEMES[first.scheme]
    shape = (sizes.n * 2 * sizes.digits, sizes.n)
    if len(whole) != SEED + 4 * math.prod(shape):
        raise _unlike(EVALUATION)
    body = np.frombuffer(whole, "<u4", offset=SEED).astype(np.uint32).reshape(shape)
    return Evaluation(first.scheme, first.pair, whole[:SEED], body)


# --- questions and answers -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What is public about a question.

    Attributes:
        columns: names of its numbers, in their order.
        bounds: of these, by which they were scaled.
        v: what differences of squared distances are divided by, twice.
        tau: the precision.
    """

    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    v: float
    tau: int


def _number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def question_blob(asked: Asked, samples: Words, secret: Secret) -> bytes:
    """A question."""
    about = {"columns": asked.columns, "bounds": asked.bounds, "v": asked.v, "tau": asked.tau}
    return Blob(QUESTION, secret.scheme, secret.pair, about, _bytes_of(samples)).written()


def question_of(raw: bytes, scheme: str, pair: bytes) -> tuple[Asked, Words]:
    """A question from its bytes.

    Raises:
        SDCError: it is none, or of another key.
    """
    blob = read(raw, QUESTION, scheme, pair)
    columns, bounds, v, tau = (blob.about.get(name) for name in ("columns", "bounds", "v", "tau"))
    if (
        not isinstance(columns, list) or not 1 <= len(columns) <= _MOST_COLUMNS
        or not all(isinstance(name, str) for name in columns)
        or not isinstance(bounds, list) or len(bounds) != len(columns)
        or not all(isinstance(one, list) and len(one) == 2 and all(map(_number, one)) for one in bounds)
        or not isinstance(v, float) or not _number(v) or not 1e-3 <= v <= 1e6
        or type(tau) is not int or not 1 <= tau <= _MOST_TAU
    ):  # fmt: skip
        raise _unlike(QUESTION)
    pairs = tuple((low, high) for low, high in bounds)
    return Asked(tuple(columns), pairs, v, tau), blob.words(len(columns))


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes:
        labels: of the classes, in their order.
        votes: how many neighbours voted, where the answer is what each class got; None: it is the class.
        samples: one for each class.
    """

    labels: tuple[str, ...]
    votes: int | None
    samples: Words


def answer_blob(answer: Answer, scheme: str, pair: bytes) -> bytes:
    """An answer."""
    about = {"labels": answer.labels, "votes": answer.votes}
    return Blob(ANSWER, scheme, pair, about, _bytes_of(answer.samples)).written()


def answer_of(raw: bytes, secret: Secret) -> Answer:
    """An answer from its bytes.

    Raises:
        SDCError: it is none, or of another key.
    """
    blob = read(raw, ANSWER, secret.scheme, secret.pair)
    labels, votes = blob.about.get("labels"), blob.about.get("votes")
    if (
        not isinstance(labels, list) or not labels or not all(isinstance(one, str) for one in labels)
        or not (votes is None or (type(votes) is int and 1 <= votes <= _MOST_TAU))
    ):  # fmt: skip
        raise _unlike(ANSWER)
    return Answer(tuple(labels), votes, blob.words(len(labels)))
