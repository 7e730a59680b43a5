"""The guard: analysts write ordinary SQL and get protected numbers only."""

from __future__ import annotations

from sdcduck.catalog.audit_log import AuditLog
from sdcduck.catalog.audit_reading import verify_log
from sdcduck.guard.guard import Guard
from sdcduck.guard.opening import open_guard
from sdcduck.guard.refusals import REASONS, Refused
from sdcduck.guard.rewritten import Explanation, Origin

guard = open_guard

__all__ = [
    "REASONS", "AuditLog", "Explanation", "Guard", "Origin", "Refused", "guard", "open_guard", "verify_log",
]  # fmt: skip
