"""Chromium without a window, driven as a person would: keys are pressed, and what the page shows is read.

It speaks the protocol of the developer tools through two pipes, a message after the other with a zero between them.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Tab": 9, "Enter": 13}
_PATIENCE = 120.0


class Window:
    """A page of it."""

    def __init__(self, sent: int, received: int) -> None:
        self._sent, self._received = sent, received
        self._numbers, self._left = itertools.count(1), b""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def open(self, address: str) -> None:
        """Go to an address, and wait until the page is complete."""
        self._ask("Page.navigate", url=address)
        self.until("document.readyState == 'complete' && location.protocol == 'http:'")

    def narrow(self, width: int) -> None:
        """Be a telephone."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=True)

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        for kind in ("rawKeyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key])

    def read(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self._ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until it holds; a page that comes may answer nothing for a moment."""
        ended = time.monotonic() + _PATIENCE
        while self.read(f"Boolean({condition})") is not True:
            assert time.monotonic() < ended, f"never: {condition}"
            time.sleep(0.05)

    def names(self) -> list[tuple[str, str]]:
        """The role and the name of all that a reader of screens can reach by keys."""
        nodes = self._ask("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if any(one["name"] == "focusable" for one in node.get("properties", []))
        ]

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._sent, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                # A page that goes away while it is asked says so, and is asked again.
                return dict(answer.get("result") or {"result": {}})

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            read = os.read(self._received, 1 << 16)
            assert read, "Chromium has ended"
            self._left += read
        message, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextmanager
def window(command: Sequence[str]) -> Iterator[Window]:
    """A Chromium of such a command, ended afterwards."""
    (from_us, to_it), (from_it, to_us) = os.pipe(), os.pipe()
    run = ["bash", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "bash", *command, "--remote-debugging-pipe"]
    with subprocess.Popen(run, pass_fds=(from_us, to_us), stderr=subprocess.DEVNULL) as process:
        os.close(from_us)
        os.close(to_us)
        try:
            yield Window(to_it, from_it)
        finally:
            os.close(to_it)
            os.close(from_it)
            process.terminate()
            process.wait()
