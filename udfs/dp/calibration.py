"""How much noise a release needs: what is behind ``sdc_dp_sigma`` in ``sql/dp_tables.sql``."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from sdcduck.functions.registry import Scalar, Session
from sdcduck.methods.dp.calibration import gaussian_sigma

_sigma = cache(gaussian_sigma)


def sigmas(session: Session, *columns: pa.ChunkedArray) -> pa.Array:
    """``_sdc_dp_sigma``: the sigma of each row; its arguments are checked by the macro."""
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([None if None in row else _sigma(*row) for row in rows], pa.float64())


SCALARS = (Scalar("_sdc_dp_sigma", ("DOUBLE", "DOUBLE", "DOUBLE", "VARCHAR"), "DOUBLE", sigmas),)
