"""What an argument must be, said once: planners check what they are given with these, and all messages are alike.

Each takes what was given, which is None for NULL, and the name of the argument. It answers with a value that can be
used, or raises the error that says what would be accepted. What may be left out is asked for only where it is given.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from sdcduck.errors import SDCError, unknown
from sdcduck.quoting import folded

T = TypeVar("T")


def wrong(name: str, what: str, why: str = "") -> SDCError:
    """The error for an argument.

    Args:
        what: it must be.
        why: said behind a colon.
    """
    return SDCError(f"argument '{name}' must {what}{why and f': {why}'}")


def needed(value: T | None, name: str, what: str) -> T:
    """What must be given, and not be empty.

    >>> needed([], "keys", "name the columns of a cell")
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'keys' must name the columns of a cell
    """
    if not value or (isinstance(value, str) and not value.strip()):
        raise wrong(name, what)
    return value


def without_spaces(value: str | None, name: str) -> str:
    """A name that something is stored under, where a text with spaces would be a query.

    >>> without_spaces("my house", "name")
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'name' must be a name without spaces
    """
    what = "be a name without spaces"
    if any(character.isspace() for character in needed(value, name, what)):
        raise wrong(name, what)
    return str(value)


def person(name: str | None, argument: str) -> str:
    """Who it is. Letters of other alphabets look like those of ours, and would make two people of one.

    Raises:
        SDCError: nobody, or a name that may look like another one.
    """
    who = re.sub(" +", " ", (name or "")).strip()
    needed(who, argument, "name a person")
    if not (who.isascii() and who.isprintable()):
        plain = "plain letters, a to z, digits and signs of ASCII, so that no two names look the same"
        raise wrong(argument, f"name a person in {plain}", "write Mueller or Muller for Müller")
    return who


def whole(value: int | None, name: str, *, least: int, most: int | None = None, why: str = "") -> int:
    """A whole number. What is none, such as 2.5, the registry has refused.

    >>> whole(0, "k", least=1)
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'k' must be a whole number of at least 1
    >>> whole(19, "digits", least=5, most=18)
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'digits' must be a whole number from 5 to 18
    """
    if value is None or value < least or (most is not None and value > most):
        raise wrong(
            name, f"be a whole number {f'of at least {least}' if most is None else f'from {least} to {most}'}", why
        )
    return int(value)


def number(value: Any, name: str, *, least: float | None = None, above: float | None = None, why: str = "") -> float:
    """A finite number, at least ``least`` or more than ``above``.

    >>> number(float("nan"), "sd", least=0)
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'sd' must be a number of at least 0
    """
    if not is_finite(value) or (least is not None and value < least) or (above is not None and value <= above):
        bound = f" of at least {least:g}" if least is not None else f" above {above:g}" if above is not None else ""
        raise wrong(name, f"be a number{bound}", why)
    return float(value)


def is_finite(value: Any) -> bool:
    """Whether a value of a list or struct is a number that can be used; true is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_SHARES = {
    (True, True): "lie between 0 and 1", (True, False): "be at least 0 and below 1",
    (False, True): "be above 0 and at most 1", (False, False): "be above 0 and below 1",
}  # fmt: skip


def share(value: float | None, name: str, *, zero: bool = True, one: bool = True, why: str = "") -> float:
    """A share of 1; the ends count unless told otherwise. Who gives per cent is told so.

    >>> share(95, "confidence", zero=False, one=False)
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'confidence' must be above 0 and below 1; 95 per cent is 0.95
    """
    if value is None or not 0 <= value <= 1 or (value == 0 and not zero) or (value == 1 and not one):
        per_cent = f"; {value:g} per cent is {value / 100:g}" if value is not None and 1 < value <= 100 else ""
        raise SDCError(f"{wrong(name, _SHARES[zero, one], why)}{per_cent}")
    return float(value)


def each_share(values: Iterable[float | None], name: str, *, zero: bool = True, one: bool = True) -> tuple[float, ...]:
    """A list of shares; the ends count unless told otherwise.

    >>> each_share([0.5, 2], "fractions", zero=False, one=False)
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'fractions' must hold numbers between 0 and 1
    """
    found = tuple(values)
    if any(
        value is None or not 0 <= value <= 1 or (value in (0, 1) and not (one if value else zero)) for value in found
    ):
        raise wrong(name, "hold numbers from 0 to 1" if zero and one else "hold numbers between 0 and 1")
    return tuple(float(value) for value in found if value is not None)


def choice(value: str | None, name: str, known: Iterable[str], *, each: bool = False) -> str:
    """One of a few words; or each of the argument's.

    >>> choice("exakt", "method", ("exact", "approximate"))
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'method' must be 'exact' or 'approximate'; did you mean 'exact'?
    """
    words = tuple(known)
    if value is None or value not in words:
        near = difflib.get_close_matches(folded(value or ""), words, n=1)
        verb = "hold" if each else "be"
        meant = f"; did you mean '{near[0]}'?" if near else ""
        raise SDCError(f"{wrong(name, f'{verb} {listed(words)}')}{meant}")
    return value


def listed(words: Sequence[object]) -> str:
    """Words as a message lists them.

    >>> listed(("a", "b", "c"))
    "'a', 'b' or 'c'"
    """
    *others, last = (f"'{word}'" for word in words)
    return f"{', '.join(others)} or {last}" if others else last


def truth(value: bool | None, name: str) -> bool:
    """True or false, and not NULL."""
    if value is None:
        raise wrong(name, "be true or false")
    return value


def among(names: Iterable[str | None] | None, name: str, known: Sequence[str], what: str) -> tuple[int, ...]:
    """The places of columns in a list of those that the statement is about; any case will do.

    Args:
        what: they are, e.g. "the keys".

    >>> among(["Sax"], "by", ["age", "sex"], "the keys")
    Traceback (most recent call last):
    sdcduck.errors.SDCError: unknown column 'Sax' in the keys (argument 'by'); did you mean 'sex'?
    """
    places = {folded(one): place for place, one in enumerate(known)}
    for one in names or ():
        if one is None:
            raise SDCError(f"argument '{name}' holds a NULL")
        if folded(one) not in places:
            raise unknown("column", one, known, where=f"{what} (argument '{name}')")
    return tuple(places[folded(str(one))] for one in names or ())


def struct(text: str | None, name: str, example: str) -> dict[str, Any]:
    """A struct, from its JSON text; NULL is an empty one."""
    given = json.loads(text or "null")
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise wrong(name, f"be a struct such as {example}")
    return given
