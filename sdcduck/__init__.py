"""sdcduck: statistical disclosure control as SQL inside DuckDB.

>>> import sdcduck
>>> con = sdcduck.connect()
>>> con.execute("SELECT count(*) > 0 FROM sdc_functions()").fetchall()
[(True,)]
"""

from importlib import import_module
from typing import Any

from sdcduck.errors import SDCError
from sdcduck.guard import guard
from sdcduck.report import report
from sdcduck.session import connect, install, new_secret, set_secret, uninstall

__all__ = ["SDCError", "connect", "guard", "install", "new_secret", "report", "set_secret", "uninstall"]


def __getattr__(name: str) -> Any:
    """Modules on first use: ``sdcduck.pictures``, and ``sdcduck.ibis``, which is an extra and takes its time."""
    if name in ("ibis", "pictures"):
        return import_module(f"sdcduck.{name}")
    raise AttributeError(f"module 'sdcduck' has no attribute '{name}'")
