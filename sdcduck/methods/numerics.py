"""What solves and compiles: SciPy, HiGHS and numba, or what stands for them in an installation without.

They are half of what is installed, and a gateway whose policies are cell keys, thresholds or rounding calls none of
them (docs/operations.md).
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sdcduck.errors import SDCError

LEFT_OUT = ("highspy", "numba", "scipy")
"""What such an installation goes without."""


class Absent(ModuleType):
    """Stands for a package that is not there: whatever is asked of it says so.

    >>> Absent("scipy").sparse
    Traceback (most recent call last):
    sdcduck.errors.SDCError: this needs the package 'scipy', which is not installed here: pip install scipy
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise absent(self.__name__)


def absent(package: str) -> SDCError:
    """What somebody is told who needs a package that was left out."""
    return SDCError(f"this needs the package '{package}', which is not installed here: pip install {package}")


def there(package: str) -> Any:
    """A package, or what stands for it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as problem:
        if problem.name != package:
            raise
        return Absent(package)


if TYPE_CHECKING:
    import highspy as highspy
    import scipy as scipy


def __getattr__(name: str) -> Any:
    """One of them when a module asks for it, so that no other is loaded."""
    if name in LEFT_OUT:
        return there(name)
    raise AttributeError(name)
