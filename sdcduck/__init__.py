"""sdcduck: statistical disclosure control as SQL inside DuckDB.

>>> import sdcduck
>>> con = sdcduck.connect()
>>> con.execute("SELECT count(*) > 0 FROM sdc_functions()").fetchall()
[(True,)]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sdcduck.errors import SDCError
from sdcduck.guard import guard
from sdcduck.report import assess, report

if TYPE_CHECKING:
    from sdcduck import pictures as pictures
    from sdcduck.functions.install import connect, install, new_secret, set_secret, uninstall

__all__ = ["SDCError", "assess", "connect", "guard", "install", "new_secret", "report", "set_secret", "uninstall"]


def __getattr__(name: str) -> Any:
    """What is loaded on first use.

    The session comes with every method and the compiler behind them, which a gateway that only answers questions does
    without: 110 MB and half a second. So do ``sdcduck.pictures``, and ``sdcduck.ibis``, which is an extra.
    """
    if name in ("ibis", "pictures"):
        return import_module(f"sdcduck.{name}")
    if name in __all__:
        found = getattr(import_module("sdcduck.functions.install"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'sdcduck' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
