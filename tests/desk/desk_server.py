"""The desk of a register, for the tests: it runs in this process, and a browser of few words looks at it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from desk_browser import Browser

ODD = '<script>alert("a")</script> it\'s'
"""A name that means something to HTML, to SQL, and in an address."""


class running:
    """A desk in a thread of this process, closed with the block."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> Browser:
        from sdcduck.desk import serving

        told: dict[str, Any] = {}
        listening = threading.Event()

        def ready(opened: serving.Opened) -> None:
            told["opened"] = opened
            listening.set()

        def serve() -> None:
            try:
                serving.serve(self._file, port=0, ready=ready)
            except BaseException as problem:  # of this thread, for the test
                told["problem"] = problem
                raise
            finally:
                listening.set()

        self._thread = threading.Thread(target=serve)
        self._thread.start()
        listening.wait()
        if "problem" in told:
            raise told["problem"]
        self._opened = told["opened"]
        opened = Browser(self._opened.address, self._opened.register)
        opened.get(opened.token_path)
        return opened

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        self._thread.join()
