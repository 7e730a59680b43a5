"""Pictures for those who choose a method: measures before a draw, a map of risk and utility, original beside synthetic.

Each takes a connection and sources (a table or view, or a query in parentheses) and returns a `Picture`: a notebook
shows it, ``picture.save("file.svg")`` writes it. Nothing else is needed, neither a browser nor a network. Those of
records show what the original looks like: they are for the office, not for the public.
"""

from __future__ import annotations

from sdcduck.pictures.curves import risk_utility, tau_curves
from sdcduck.pictures.records import associations, marginals
from sdcduck.pictures.releases import accuracy_map, closest_records
from sdcduck.pictures.svg import Picture

__all__ = ["Picture", "accuracy_map", "associations", "closest_records", "marginals", "risk_utility", "tau_curves"]
