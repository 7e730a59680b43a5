"""The audit log: one line for every question, each chained to the one before by a hash.

A line that was changed, removed or put in later breaks the chain. Who can write the whole file can write a new chain:
keep a copy of the last hash elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sdcduck.errors import SDCError

_START = "0" * 64


class AuditLog:
    """An append-only file of JSON lines.

    Raises:
        SDCError: the file cannot be written, or its chain is broken.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.touch(mode=0o600, exist_ok=True)
        except OSError as problem:
            raise SDCError(f"the audit log cannot be written: {problem.strerror}") from None
        self._number, self._last = verify_log(self.path)

    def write(self, **entry: Any) -> None:
        """Append a line, on disk before it returns.

        Raises:
            OSError: it could not be written; then the question must not be answered.
        """
        with self._lock:
            line = {
                "number": self._number + 1,
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                **entry,
                "previous": self._last,
            }
            line["hash"] = _hash(line)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self._number, self._last = line["number"], line["hash"]


def verify_log(path: str | Path) -> tuple[int, str]:
    """The number of lines of a log and its last hash.

    Raises:
        SDCError: the chain is broken, with the line where it breaks.
    """
    number, last = 0, _START
    with Path(path).open(encoding="utf-8") as file:
        for text in file:
            number += 1
            try:
                line = json.loads(text)
                good = line["previous"] == last and line["number"] == number and line["hash"] == _hash(line)
            except (ValueError, KeyError, TypeError):
                good = False
            if not good:
                raise SDCError(f"the audit log was changed: line {number} does not follow from the lines before it")
            last = line["hash"]
    return number, last


def _hash(line: dict[str, Any]) -> str:
    kept = {key: value for key, value in line.items() if key != "hash"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
