"""Policies of the guard, its log and its users."""

from __future__ import annotations

from sdcduck.udfs.guard import audit_log, policies, users

FAMILIES = (policies.FAMILY, audit_log.FAMILY, users.FAMILY)
