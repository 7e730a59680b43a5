"""Arrays as bytes that the next version can read: a head in JSON, the arrays, and a digest that shows damage."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"SDCSEQ01"


def pack(kind: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Bytes of some arrays, little-endian, and of what JSON can hold.

    >>> facts, arrays = unpack("example", pack("example", {"n": 2}, {"x": np.array([1.5, 2.5])}))
    >>> facts, arrays["x"].tolist()
    ({'n': 2}, [1.5, 2.5])
    """
    lean = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    shapes = [[name, array.dtype.str, list(array.shape)] for name, array in lean.items()]
    head = json.dumps({"kind": kind, "facts": dict(facts), "arrays": shapes}, sort_keys=True).encode()
    body = b"".join([_MAGIC, struct.pack("<Q", len(head)), head, *(array.tobytes() for array in lean.values())])
    return body + sha256(body).digest()


def unpack(kind: str, data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `pack` was given.

    Raises:
        ValueError: the bytes are damaged, cut short, or something else.
    """
    if len(data) < 48 or data[:8] != _MAGIC or sha256(data[:-32]).digest() != data[-32:]:
        raise ValueError("what was kept of a sequence is damaged, or was written by another version")
    (length,) = struct.unpack("<Q", data[8:16])
    head = json.loads(data[16 : 16 + length])
    if head["kind"] != kind:
        raise ValueError(f"this is a {head['kind']} and no {kind}")
    found, place = {}, 16 + length
    for name, dtype, shape in head["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(data, np.dtype(dtype), count, place).reshape(shape)
        found[name] = array.astype(array.dtype.newbyteorder("="))
        place += array.nbytes
    return head["facts"], found
