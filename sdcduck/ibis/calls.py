"""Calls of DuckDB's functions as ibis expressions, made from signatures without a body (`sdcduck.ibis.functions`)."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import ibis
import ibis.expr.types as ir

from sdcduck.functions.reference import documentation

_P = ParamSpec("_P")
_R = TypeVar("_R")

Column: TypeAlias = ir.Column | ibis.Deferred
Condition: TypeAlias = ir.BooleanValue | ibis.Deferred | bool
Value: TypeAlias = ir.Value | ibis.Deferred | str | float | datetime.date | Sequence[str] | Sequence[float] | None


def aggregate(result: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A function over the rows of a group, with a result of this type."""
    return lambda declared: _call(ibis.udf.agg, declared, result)


def scalar(result: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A function of single values."""
    return lambda declared: _call(ibis.udf.scalar, declared, result)


def _call(kind: Any, declared: Callable[_P, _R], result: str) -> Callable[_P, _R]:
    signature = inspect.signature(declared)
    required = sum(one.default is inspect.Parameter.empty for one in signature.parameters.values())

    @wraps(declared)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        bound = signature.bind(*args, **kwargs)
        # By place: ibis has no names for arguments. All of them, or none that has a default: macros with two forms take
        # the shorter way then, and between these they could not tell which is meant.
        if len(bound.arguments) > required:
            bound.apply_defaults()
        given = [list(one) if isinstance(one, tuple) else one for one in bound.arguments.values()]
        made: _R = _node(kind, declared.__name__, result, len(given))(*given)
        return made

    told = documentation(declared.__name__, str(declared.__doc__))
    call.__doc__ = told.replace("\n    filter: ", "\n    where: ").replace("filter :=", "where =")
    return call


@cache
def _node(kind: Any, name: str, result: str, arguments: int) -> Any:
    """What makes a call with so many arguments, of any types."""

    def called() -> None: ...

    places = [inspect.Parameter(f"a{n}", inspect.Parameter.POSITIONAL_ONLY) for n in range(arguments)]
    called.__signature__ = inspect.Signature(places)  # type: ignore[attr-defined]
    return kind.builtin(called, name=name, signature=((None,) * arguments, result))
