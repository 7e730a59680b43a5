"""Disclosure risk of records, releases and outputs."""

from __future__ import annotations

from sdcduck.udfs.risk import (
    attacks,
    classes,
    diversity,
    output_checks,
    recon_links,
    reconstruction,
    special_uniques,
    synthetic_risk,
)

FAMILIES = (
    classes.FAMILY,
    diversity.FAMILY,
    special_uniques.FAMILY,
    output_checks.FAMILY,
    reconstruction.FAMILY,
    recon_links.FAMILY,
    synthetic_risk.FAMILY,
    attacks.FAMILY,
)
