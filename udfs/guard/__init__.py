"""Policies of the guard, its log and its users."""

from __future__ import annotations

from sdcduck.functions.registry import Family
from sdcduck.udfs.guard import audit_log, policies, rehearsal, users

FAMILIES = (policies.FAMILY, Family("noise", stored=("noise.sql",)), audit_log.FAMILY, rehearsal.FAMILY, users.FAMILY)
