"""A refusal of the guard that came through a gateway as text."""

from __future__ import annotations

import re

from sdcduck.guard import REASONS, Refused

_CODE = re.compile(r"(SDC\d{3}): ")


def refusal(text: str) -> Refused | None:
    """What a gateway said, as the guard would have raised it; None: it was something else.

    >>> refusal("ERROR:  SDC020: an unknown table ('peple'). Ask the custodian which tables are open.").detail
    "'peple'"
    """
    found = _CODE.search(text)
    if found is None or found[1] not in REASONS:
        return None
    reason, advice = REASONS[found[1]]
    said = text[found.end() :]
    detail = said[len(reason) :].split(f". {advice}")[0].strip() if said.startswith(reason) else ""
    return Refused(found[1], detail[1:-1] if detail.startswith("(") else "")
