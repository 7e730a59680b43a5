"""Everything that is known of a release."""

from __future__ import annotations

from sdcduck.udfs.report import release

FAMILIES = (release.FAMILY,)
