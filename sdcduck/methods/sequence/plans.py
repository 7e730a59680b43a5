"""Plans: an analyst binds herself to a list of questions before she sees an answer, and opens it one by one.

Domingo-Ferrer (2022), "Tit-for-tat disclosure of a binding sequence of user analyses in safe data access centers": a
chain of hashes that is computed backwards, and signatures on its head. With blocks I_1 .. I_n as long as the hash H

    T_n = H(I_n),   T_(j-1) = H(T_j) xor I_j,   and back   I_j = H(T_j) xor T_(j-1)          (equations 1 and 2)

T_0 is signed and handed over first; whoever has T_(j-1) reads block j once T_j is told, and not before. At the end, and
only there, H(I_n) = T_n.

The paper leaves open what a block looks like. Here it has 64 bytes: SHA-256 of the text, the number of the step, 16
random bytes and a fixed end. Without the random ones, which the paper has not, whoever holds a trace could try what the
next question is.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

LENGTH = 64
"""Bytes of a block, and of a trace."""
SALT, KEY, SIGNATURE = 16, 32, 64
"""Bytes of what is random in a block, of an Ed25519 key, public or private, and of a signature."""
_TEXT = 32
_END = b"SDCDUCK1"
_BOUND = b"sdcduck plan 1"

Hash = Callable[[bytes], bytes]


def sha512(data: bytes) -> bytes:
    """The hash of the chain."""
    return hashlib.sha512(data).digest()


def hash_of_text(statement: str) -> bytes:
    """The hash of a question."""
    return hashlib.sha256(statement.encode()).digest()


def block(statement: str, step: int, salt: bytes) -> bytes:
    """The block of a question.

    >>> block("SELECT 1", 3, bytes(16)).hex()[64:]
    '0000000000000003000000000000000000000000000000005344434455434b31'
    """
    if len(salt) != SALT:
        raise ValueError(f"what is random in a block has {SALT} bytes")
    return hash_of_text(statement) + struct.pack(">Q", step) + salt + _END


def is_block(data: bytes, step: int) -> bool:
    """Whether bytes are the block of a step; of others than were sealed one in 2^128 is."""
    return len(data) == LENGTH and data.endswith(_END) and data[_TEXT : _TEXT + 8] == struct.pack(">Q", step)


def hash_in(data: bytes) -> bytes:
    """The hash of the question that a block is of."""
    return data[:_TEXT]


def xor(one: bytes, other: bytes) -> bytes:
    """Bit by bit, of as many bytes each."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def traces(blocks: Sequence[bytes], hash: Hash = sha512) -> list[bytes]:
    """T_0 to T_n.

    >>> toy = lambda x: bytes([(5 * x[0] ** 2 + 17 * x[0] + 43) // 3 % 256])
    >>> [trace[0] for trace in traces([b"\\x1a", b"\\x2b", b"\\x3c"], toy)]
    [146, 201, 236, 210]
    """
    if not blocks:
        raise ValueError("a plan has a step at least")
    found = [hash(blocks[-1])]
    for one in reversed(blocks):
        found.append(xor(hash(found[-1]), one))
    return found[::-1]


def opened(before: bytes, trace: bytes, hash: Hash = sha512) -> bytes:
    """The block that a trace opens, after the one before it."""
    return xor(hash(trace), before)


def is_last(data: bytes, trace: bytes, hash: Hash = sha512) -> bool:
    """Whether a plan ends with a block that a trace has opened."""
    return hash(data) == trace


@dataclass(frozen=True)
class Binding:
    """What a plan is for: signed with it, it is opened by one custodian, for one release of the data, and nowhere else.

    Attributes:
        data: which data set, as its custodian calls it.
        release: of these data.
        policy: under which they are asked.
        steps: of the plan.
        expires: seconds since 1970 after which no step is opened; None: never.
    """

    data: str = ""
    release: str = ""
    policy: str = ""
    steps: int = 0
    expires: int | None = None


def message(head: bytes, binding: Binding | None = None) -> bytes:
    """What is signed: T_0 alone, as in the paper, or with what the plan is for.

    Each text is behind its length, so that no two bindings have one message.

    >>> message(b"head", Binding("survey", "2026", "", 3)).hex()
    '686561647364636475636b20706c616e203100000006737572766579000000043230323600000000000000000000000300'
    """
    if binding is None:
        return head
    texts = [text.encode() for text in (binding.data, binding.release, binding.policy)]
    parts = [struct.pack(">I", len(text)) + text for text in texts]
    expires = b"\0" if binding.expires is None else b"\1" + struct.pack(">q", binding.expires)
    return b"".join([head, _BOUND, *parts, struct.pack(">Q", binding.steps), expires])


def public_key(private: bytes) -> bytes:
    """The public half of an Ed25519 key.

    >>> public_key(bytes(range(32))).hex()
    '03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8'
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def sign(private: bytes, signed: bytes) -> bytes:
    """An Ed25519 signature; the same of the same."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private).sign(signed)


def is_signed(public: bytes, signature: bytes, signed: bytes) -> bool:
    """Whether a signature is that of a key on a message; a key that is none has signed nothing."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, signed)
    except (InvalidSignature, ValueError):
        return False
    return True


def first_broken(all_traces: Sequence[bytes], statements: Iterable[str]) -> int | None:
    """The step at which a whole plan does not open as these questions; None: it is whole.

    For whoever certifies a plan, and for the analyst herself: a custodian sees a step at a time.
    """
    texts = list(statements)
    if not texts or len(all_traces) != len(texts) + 1 or any(len(trace) != LENGTH for trace in all_traces):
        return 0
    for step, text in enumerate(texts, 1):
        found = opened(all_traces[step - 1], all_traces[step])
        whole = is_block(found, step) and hash_in(found) == hash_of_text(text)
        if not whole or is_last(found, all_traces[step]) != (step == len(texts)):
            return step
    return None
