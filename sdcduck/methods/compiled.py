"""Kernels: numba compiles them at their first call, and only then is numba itself there.

To import it takes longer than to connect to a database, and most programs that ask a question or make a table run
no kernel.

Numba compiles a kernel anew, for seconds, for each kind of argument: an array that may not be written to or has gaps is
of another kind than one that may and has none, an int32 than an int64, and a constant in a call than a number. So each
argument is of one kind in all calls: copies instead of broadcast arrays, ``np.int64(0)`` for a constant.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, cast

from sdcduck.methods.numerics import there

P = ParamSpec("P")
T = TypeVar("T")
_one_at_a_time = threading.RLock()


class Kernel:
    """Stands for a function until that is called, or compiled into another one; then for what numba made of it.

    Numba looks up what a function calls among the names of its module when it compiles it. So all kernels that the
    module knows are made before, with those that theirs know, and take their places there.
    """

    def __init__(self, function: Callable[..., Any], made: Callable[[Callable[..., Any]], Any]) -> None:
        update_wrapper(self, function)
        self._function, self._make = function, made
        self._made: Any = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return (self._made or self._made_with_others())(*arguments, **named)

    def _made_with_others(self) -> Any:
        """What numba makes of the function, once all that it may call is made, too, and stands among the names."""
        with _one_at_a_time:
            if self._made is None:
                known, more = {self}, [self]
                while more:
                    names = more.pop()._function.__globals__
                    others = {value for value in names.values() if isinstance(value, Kernel)} - known
                    known |= others
                    more += others
                made = {kernel: kernel._made or kernel._make(kernel._function) for kernel in known}
                for kernel in known:
                    names = kernel._function.__globals__
                    names.update({name: made[value] for name, value in names.items() if isinstance(value, Kernel)})
                for kernel in known:  # at last, as other threads call what is made
                    kernel._made = made[kernel]
            return self._made


class _Decorator(Protocol):
    """What keeps the types of what it decorates."""

    def __call__(self, function: Callable[P, T], /) -> Callable[P, T]: ...


def njit(
    *, cache: bool, nogil: bool = False, inline: Literal["never", "always"] = "never",
    error_model: Literal["python", "numpy"] = "python",
) -> _Decorator:  # fmt: skip
    """Compiled without objects of Python, at the first call.

    Args:
        cache: what was compiled is kept beside the module, for the next process.
        nogil: other threads run meanwhile.
        inline: "always" puts the function into those that call it before these are compiled.
        error_model: "numpy" divides by zero without an error.

    >>> @njit(cache=False)
    ... def twice(n: int) -> int:
    ...     return 2 * n
    >>> twice(21)
    42
    """

    def made(function: Callable[..., Any]) -> Any:
        return there("numba").njit(cache=cache, nogil=nogil, inline=inline, error_model=error_model)(function)

    def kernel(function: Callable[P, T], /) -> Callable[P, T]:
        return cast(Callable[P, T], Kernel(function, made))

    return kernel


def intrinsic(function: Callable[Concatenate[Any, P], T]) -> Callable[P, T]:
    """An instruction of the processor, for kernels; its first argument is numba's own, and it is given the others."""

    def made(function: Callable[..., Any]) -> Any:
        numba = there("numba")
        return numba.extending.intrinsic(function)

    return cast(Callable[P, T], Kernel(function, made))
