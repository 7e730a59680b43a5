"""Where `sdcduck.methods.masking.partitions` looks for what all linear programs share."""

from __future__ import annotations

from sdcduck.methods.linear_programs import Unsolved, quiet_highs

__all__ = ["Unsolved", "quiet_highs"]
