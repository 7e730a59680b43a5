"""ibis in front of the guard: expressions in Python, protected answers, and the `sdc_*` functions with types.

`connect` is for analysts: every expression is answered by the guard, of a file in this process or of a gateway. The
module `functions` and `cell_key_table` are for custodians, on an ordinary ibis connection.
"""

from __future__ import annotations

try:
    import ibis as _ibis  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"sdcduck.ibis needs the package '{missing.name}': pip install 'sdcduck[ibis]'", name=missing.name
    ) from None

from sdcduck.ibis import functions
from sdcduck.ibis.backend import Backend, connect
from sdcduck.ibis.cell_keys import CellKeyMetric, cell_key_count, cell_key_sum, cell_key_table
from sdcduck.ibis.custodian import CustodianBackend, from_connection

__all__ = [
    "Backend",
    "CellKeyMetric",
    "CustodianBackend",
    "cell_key_count",
    "cell_key_sum",
    "cell_key_table",
    "connect",
    "from_connection",
    "functions",
]
