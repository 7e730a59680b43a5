"""What happens at the doors, told on standard error: one line of JSON each, never with data or passwords."""

from __future__ import annotations

import json
import logging

_LOG = logging.getLogger("sdcduck.gateway")


def note(event: str, **details: object) -> None:
    """One line: what happened."""
    _LOG.info("%s", json.dumps({"event": event, **details}))
