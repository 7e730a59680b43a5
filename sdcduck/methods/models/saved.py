"""A model that was saved with skops, as what stands in the file: nothing of it is imported, made or run.

Such a file is a ZIP archive of `schema.json`, which says of each object its class and what it holds, and of arrays. To
load it is to make objects of classes that it names; to look at it needs JSON and arrays of plain numbers.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.errors import SDCError

_MOST_BYTES, _MOST_SCHEMA, _MOST_FILES = 1 << 31, 1 << 28, 100_000
_SCHEMA = "schema.json"
_NO_MODEL = "the file is no model saved with skops"
_PLAIN = frozenset(["JsonNode", "TypeNode"])
_HOLDING = frozenset(["DictNode", "ListNode", "TupleNode", "TreeNode", "ObjectNode", "NdArrayNode", "RandomStateNode"])


@dataclass(frozen=True)
class Node:
    """Something in the file.

    Attributes:
        kind: the class of what was saved.
        module: where that is.
        loader: how skops would make it.
        part: how it is reached, such as `steps.1.coef_`.
        held: what it holds, by name or place.
        text: of a number, a text or nothing, its JSON.
        file: of an array, its file.
    """

    kind: str
    module: str
    loader: str
    part: str
    held: dict[str, Node] = field(default_factory=dict)
    text: str = ""
    file: str = ""

    @property
    def is_plain(self) -> bool:
        """A number, a text or nothing, or the name of a type."""
        return self.loader in _PLAIN

    @property
    def is_setting(self) -> bool:
        """Plain, or where a generator of random numbers stands."""
        return self.is_plain or self.loader == "RandomStateNode"

    @property
    def is_object(self) -> bool:
        """Something of a class of its own."""
        return self.loader not in _PLAIN | (_HOLDING - {"ObjectNode"})

    def all_held(self) -> Iterator[Node]:
        """It, and all that it holds."""
        left = [self]
        while left:
            one = left.pop()
            yield one
            left.extend(reversed(one.held.values()))


class Saved:
    """A file with a model."""

    def __init__(self, content: bytes) -> None:
        """Raises:
        SDCError: it holds something else, or too much.
        """
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
            infos = self._archive.infolist()
            sizes = {info.filename: info.file_size for info in infos}
            if len(infos) > _MOST_FILES or sum(info.file_size for info in infos) > _MOST_BYTES:
                raise SDCError(f"the file unpacks to more than {_MOST_BYTES >> 30} GiB, or to too many files")
            if _SCHEMA not in sizes or sizes[_SCHEMA] > _MOST_SCHEMA or len(sizes) < len(infos):
                raise SDCError(_NO_MODEL)
            self.model = _node(json.loads(self._archive.read(_SCHEMA)), "")
        except (
            zipfile.BadZipFile,
            ValueError,
            KeyError,
            TypeError,
            RecursionError,
            NotImplementedError,
            RuntimeError,
            OSError,
        ) as problem:
            if isinstance(problem, SDCError):
                raise
            raise SDCError(_NO_MODEL) from None
        used = {node.file for node in self.model.all_held() if node.file}
        self.unused = sorted(sizes.keys() - used - {_SCHEMA})

    def array(self, node: Node | None) -> NDArray[Any] | None:
        """An array of numbers or texts; None: it is none, or cannot be read without making objects."""
        if node is None or not node.file:
            return None
        try:
            found = np.load(io.BytesIO(self._archive.read(node.file)), allow_pickle=False)
        except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile, RuntimeError):
            return None
        return found if isinstance(found, np.ndarray) else None


def _node(given: dict[str, Any], part: str) -> Node:
    loader = str(given["__loader__"])
    content = given.get("content")
    if loader in _PLAIN:
        return Node(str(given["__class__"]), str(given["__module__"]), loader, part, text=str(content))
    parts: dict[str, Any] = {}
    if isinstance(content, dict) and "__loader__" in content:
        # What an object holds is a dictionary mostly, and the object and this are one.
        inner = content.get("content")
        parts = inner if isinstance(inner, dict) and content["__loader__"] == "DictNode" else {"0": content}
    elif isinstance(content, dict):
        parts = content
    elif isinstance(content, list):
        parts = {str(place): one for place, one in enumerate(content)}
    # How an object is made anew: what that takes is in the file, too.
    made = given.get("__reduce__")
    if isinstance(made, dict) and isinstance(made.get("args"), dict):
        parts = {**parts, "__reduce__": made["args"]}
    held = {str(name): _node(one, f"{part}.{name}".lstrip(".")) for name, one in parts.items() if isinstance(one, dict)}
    return Node(
        str(given["__class__"]), str(given["__module__"]), loader, part, held, file=str(given.get("file") or "")
    )  # fmt: skip
