"""Perturbation of table cells by noise drawn with a cell key (Cell Key Method)."""

from sdcduck.methods.perturbation.ptable import (
    CountParameters,
    MagnitudeParameters,
    Modification,
    PTable,
    PTableCheck,
    PTableError,
    check_ptable,
    count_ptable,
    magnitude_ptable,
    modify_ptable,
)

__all__ = [
    "CountParameters",
    "MagnitudeParameters",
    "Modification",
    "PTable",
    "PTableCheck",
    "PTableError",
    "check_ptable",
    "count_ptable",
    "magnitude_ptable",
    "modify_ptable",
]
