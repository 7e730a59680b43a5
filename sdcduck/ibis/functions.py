"""The `sdc_*` SQL functions with types, for expressions on an ordinary ibis connection that sdcduck is installed on.

    people.group_by("region").agg(n=sdc_count(people.record_key), income=sdc_sum(people.income, people.record_key))

Arguments, defaults and results are those of SQL (`sdcduck functions sdc_sum`); the argument `filter` is `where` here,
as everywhere in ibis. What DuckDB does with a bad argument it does here: an error when the expression runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import ibis
import ibis.expr.types as ir

Share = Sequence[float]

_TOP: tuple[float, ...] = (1.0,)


def sdc_count(
    record_key: ir.Column, *, ptable: str = "default", where: Any = True, digits: int = 8
) -> ir.IntegerScalar:
    """The number of records of a cell, with noise."""
    arguments = {"record_key": record_key, "ptable": ptable, "filter": where, "digits": digits}
    return _aggregate("sdc_count", "int64", arguments)


def sdc_count_units(
    unit: ir.Column, record_key: ir.Column, *, ptable: str = "default", where: Any = True, digits: int = 8
) -> ir.IntegerScalar:
    """The number of different units of a cell, with noise."""
    arguments = {"unit": unit, "record_key": record_key, "ptable": ptable, "filter": where, "digits": digits}
    return _aggregate("sdc_count_units", "int64", arguments)


def sdc_weighted_count(
    weight: ir.Column,
    record_key: ir.Column,
    *,
    ptable: str = "default",
    where: Any = True,
    digits: int = 8,
    decimals: int = 4,
) -> ir.FloatingScalar:
    """The sum of the weights of a cell, with the noise of its number of records."""
    arguments = {
        "weight": weight, "record_key": record_key, "ptable": ptable, "filter": where, "digits": digits,
        "decimals": decimals,
    }  # fmt: skip
    return _aggregate("sdc_weighted_count", "float64", arguments)


def sdc_cell_key(record_key: ir.Column, *, where: Any = True, digits: int = 8) -> ir.IntegerScalar:
    """The key of a cell. Confidential: whoever knows it knows the noise."""
    return _aggregate("sdc_cell_key", "int64", {"record_key": record_key, "filter": where, "digits": digits})


def sdc_sum(
    y: ir.Column,
    record_key: ir.Column,
    *,
    epsilon: Share = _TOP,
    ptable: str = "default_magnitude",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    small_cells: str | None = None,
    mu_c: float = 0,
    sensitive: Any = False,
    magnifier: str = "top",
    same_key: bool = True,
    zero_keys: bool = False,
    where: Any = True,
    digits: int = 8,
    decimals: int = 4,
    compat: bool = False,
) -> ir.FloatingScalar:
    """The sum of a measure over a cell, with noise in proportion to its largest contributions."""
    arguments = {
        "y": y, "record_key": record_key, "epsilon": epsilon, "ptable": ptable, "p_large": p_large,
        "p_small": p_small, "fp": fp, "q": q, "small_cells": small_cells, "mu_c": mu_c, "sensitive": sensitive,
        "magnifier": magnifier, "same_key": same_key, "zero_keys": zero_keys, "filter": where, "digits": digits,
        "decimals": decimals, "compat": compat,
    }  # fmt: skip
    return _aggregate("sdc_sum", "float64", arguments)


def sdc_weighted_sum(
    y: ir.Column,
    weight: ir.Column,
    record_key: ir.Column,
    *,
    ptable: str = "default_magnitude",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    epsilon: Share = _TOP,
    small_cells: str | None = None,
    mu_c: float = 0,
    sensitive: Any = False,
    magnifier: str = "top",
    same_key: bool = True,
    zero_keys: bool = False,
    where: Any = True,
    digits: int = 8,
    decimals: int = 4,
    compat: bool = False,
) -> ir.FloatingScalar:
    """The weighted sum of a measure over a cell, with noise."""
    arguments = {
        "y": y, "weight": weight, "record_key": record_key, "ptable": ptable, "p_large": p_large,
        "p_small": p_small, "fp": fp, "q": q, "epsilon": epsilon, "small_cells": small_cells, "mu_c": mu_c,
        "sensitive": sensitive, "magnifier": magnifier, "same_key": same_key, "zero_keys": zero_keys, "filter": where,
        "digits": digits, "decimals": decimals, "compat": compat,
    }  # fmt: skip
    return _aggregate("sdc_weighted_sum", "float64", arguments)


def sdc_mean(
    y: ir.Column,
    record_key: ir.Column,
    *,
    epsilon: Share = _TOP,
    ptable: str = "default_magnitude",
    count_ptable: str = "default",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    small_cells: str | None = None,
    where: Any = True,
    digits: int = 8,
    decimals: int = 4,
) -> ir.FloatingScalar:
    """The mean of a measure over a cell: a sum with noise over a count with noise."""
    arguments = {
        "y": y, "record_key": record_key, "epsilon": epsilon, "ptable": ptable, "count_ptable": count_ptable,
        "p_large": p_large, "p_small": p_small, "fp": fp, "q": q, "small_cells": small_cells, "filter": where,
        "digits": digits, "decimals": decimals,
    }  # fmt: skip
    return _aggregate("sdc_mean", "float64", arguments)


def sdc_mean_sum(
    y: ir.Column,
    record_key: ir.Column,
    *,
    epsilon: Share = _TOP,
    ptable: str = "default_magnitude",
    count_ptable: str = "default",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    small_cells: str | None = None,
    where: Any = True,
    digits: int = 8,
    decimals: int = 4,
) -> ir.FloatingScalar:
    """The sum of a measure that goes with the published mean and count."""
    arguments = {
        "y": y, "record_key": record_key, "epsilon": epsilon, "ptable": ptable, "count_ptable": count_ptable,
        "p_large": p_large, "p_small": p_small, "fp": fp, "q": q, "small_cells": small_cells, "filter": where,
        "digits": digits, "decimals": decimals,
    }  # fmt: skip
    return _aggregate("sdc_mean_sum", "float64", arguments)


def sdc_variance(
    y: ir.Column,
    record_key: ir.Column,
    *,
    ptable: str = "default_magnitude",
    count_ptable: str = "default",
    p_large: float = 0.1,
    where: Any = True,
    digits: int = 8,
    decimals: int = 4,
) -> ir.FloatingScalar:
    """The variance of a measure over a cell, with noise."""
    arguments = {
        "y": y, "record_key": record_key, "ptable": ptable, "count_ptable": count_ptable, "p_large": p_large,
        "filter": where, "digits": digits, "decimals": decimals,
    }  # fmt: skip
    return _aggregate("sdc_variance", "float64", arguments)


def sdc_quantile(
    y: ir.Column,
    record_key: ir.Column,
    q: float,
    *,
    ptable: str = "default",
    significant: int = 2,
    least_beyond: int = 5,
    where: Any = True,
    digits: int = 8,
) -> ir.FloatingScalar:
    """A quantile of a measure over a cell, from counts with noise."""
    arguments = {
        "y": y, "record_key": record_key, "q": q, "ptable": ptable, "significant": significant,
        "least_beyond": least_beyond, "filter": where, "digits": digits,
    }  # fmt: skip
    return _aggregate("sdc_quantile", "float64", arguments)


def sdc_is_open(stencil: ir.Column, *, where: Any = True) -> ir.BooleanScalar:
    """Whether the sum over these inner cells follows from what a publication has published already."""
    return _aggregate("sdc_is_open", "boolean", {"stencil": stencil, "filter": where})


def sdc_open_count(n: ir.Column, stencil: ir.Column, *, where: Any = True) -> ir.IntegerScalar:
    """The number of records of inner cells where it may be shown, NULL where it may not."""
    return _aggregate("sdc_open_count", "int64", {"n": n, "stencil": stencil, "filter": where})


def sdc_open_sum(y: ir.Column, stencil: ir.Column, *, where: Any = True) -> ir.FloatingScalar:
    """The sum of a measure over inner cells where it may be shown, NULL where it may not."""
    return _aggregate("sdc_open_sum", "float64", {"y": y, "stencil": stencil, "filter": where})


def sdc_ckm_count(n: ir.Value, key_sum: ir.Value, *, ptable: str = "default", digits: int = 8) -> ir.IntegerValue:
    """The count of a cell with noise, from its count and the sum of its record keys."""
    return _scalar("sdc_ckm_count", "int64", {"n": n, "key_sum": key_sum, "ptable": ptable, "digits": digits})


def sdc_ckm_sum(
    x: ir.Value,
    contributions: ir.Value,
    key_sum: ir.Value,
    *,
    ptable: str = "default_magnitude",
    p_large: float = 0.1,
    p_small: float | None = None,
    fp: float | None = None,
    q: float = 3,
    epsilon: Share = _TOP,
    small_cells: str | None = None,
    mu_c: float = 0,
    sensitive: Any = False,
    is_odd: Any = False,
    same_key: bool = True,
    digits: int = 8,
    compat: bool = False,
) -> ir.FloatingValue:
    """The sum of a cell with noise, from its sum, its largest contributions and the sum of its record keys."""
    arguments = {
        "x": x, "contributions": contributions, "key_sum": key_sum, "ptable": ptable, "p_large": p_large,
        "p_small": p_small, "fp": fp, "q": q, "epsilon": epsilon, "small_cells": small_cells, "mu_c": mu_c,
        "sensitive": sensitive, "is_odd": is_odd, "same_key": same_key, "digits": digits, "compat": compat,
    }  # fmt: skip
    return _scalar("sdc_ckm_sum", "float64", arguments)


def sdc_digits_of_noise(
    x: ir.Value, t: ir.Value, key_sum: ir.Value, *, ptable: str = "default_magnitude", p_large: float = 0.1
) -> ir.FloatingValue:
    """A perturbed sum, mean or variance, rounded to the digits that its noise leaves of it."""
    arguments = {"x": x, "t": t, "key_sum": key_sum, "ptable": ptable, "p_large": p_large}
    return _scalar("sdc_digits_of_noise", "float64", arguments)


def sdc_mbs(x_hat: ir.Value, n: ir.Value, n_hat: ir.Value) -> ir.FloatingValue:
    """A published sum that goes with a published count."""
    return _scalar("sdc_mbs", "float64", {"x_hat": x_hat, "n": n, "n_hat": n_hat})


def sdc_record_key(unit_id: ir.Value, *, digits: int = 8) -> ir.IntegerValue:
    """The record key of a unit, made with the secret of the connection."""
    return _scalar("sdc_record_key", "int64", {"unit_id": unit_id, "digits": digits})


_OVERLOADED = {"sdc_sum": 2, "sdc_mean": 2, "sdc_mean_sum": 2}
"""Functions that take a shorter way where nothing but so many arguments is given."""


def _aggregate(name: str, result: str, arguments: Mapping[str, Any]) -> Any:
    values = _values(arguments)
    short = _OVERLOADED.get(name)
    if short is not None and _is_plain(name, arguments, short):
        values = values[:short]
    return _node(name, result, len(values), True)(*values)


def _scalar(name: str, result: str, arguments: Mapping[str, Any]) -> Any:
    values = _values(arguments)
    return _node(name, result, len(values), False)(*values)


def _is_plain(name: str, arguments: Mapping[str, Any], short: int) -> bool:
    defaults = {
        ("filter" if key == "where" else key): parameter.default
        for key, parameter in inspect.signature(globals()[name]).parameters.items()
    }
    optional = list(arguments.items())[short:]
    return all(isinstance(value, type(defaults[key])) and value == defaults[key] for key, value in optional)


def _values(arguments: Mapping[str, Any]) -> list[Any]:
    """By place: DuckDB takes arguments with defaults by place, too, and ibis has no names for them."""
    return [list(value) if isinstance(value, tuple) else value for value in arguments.values()]


@cache
def _node(name: str, result: str, arguments: int, aggregate: bool) -> Any:
    """What makes a call of a function that DuckDB has, of any types."""

    def called() -> None: ...

    places = [inspect.Parameter(f"a{n}", inspect.Parameter.POSITIONAL_ONLY) for n in range(arguments)]
    called.__name__ = name
    called.__signature__ = inspect.Signature(places)  # type: ignore[attr-defined]
    kind = ibis.udf.agg if aggregate else ibis.udf.scalar
    return kind.builtin(called, name=name, signature=((None,) * arguments, result))


__all__ = [
    "sdc_cell_key",
    "sdc_ckm_count",
    "sdc_ckm_sum",
    "sdc_count",
    "sdc_count_units",
    "sdc_digits_of_noise",
    "sdc_is_open",
    "sdc_mbs",
    "sdc_mean",
    "sdc_mean_sum",
    "sdc_open_count",
    "sdc_open_sum",
    "sdc_quantile",
    "sdc_record_key",
    "sdc_sum",
    "sdc_variance",
    "sdc_weighted_count",
    "sdc_weighted_sum",
]
