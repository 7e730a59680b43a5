"""Everything that is known of a release, and who approved it."""

from __future__ import annotations

from sdcduck.udfs.report import approvals, release

FAMILIES = (release.FAMILY, approvals.FAMILY)
