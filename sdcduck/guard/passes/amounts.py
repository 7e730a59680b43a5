"""How long a series, a repeated or a padded text is: constants say it before, all else is looked at when it runs.

The whole of a list or text is made at once, and DuckDB does not hear in the middle of it that it is stopped. So an
amount that is no constant fails where it is too large::

    SELECT repeat('*', n) FROM (SELECT count(*) AS n FROM people)

    SELECT repeat('*', CASE WHEN CAST(CASE WHEN n > 1000 THEN 'sdcduck: ..' ELSE 'true' END AS BOOLEAN) THEN n END) ..

Single records have constants only (`refuse_uncaught`): the failure would tell of one.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sdcduck.guard.expressions import whole_number
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.refusals import Refused
from sdcduck.guard.running import TOO_MANY

MOST_TIMES = 1000
"""How often a text is repeated, and to how many characters it is padded, where that is no constant."""

_FIELD = re.compile(r"\{[^{}]*\}|%[^a-zA-Z%]*[a-zA-Z]")
_PLAIN_FIELDS = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
_NUMBER = re.compile(r"\d+")
_LONGEST_NUMBER = 400
"""Characters of a number that is written out in full, as 1e308 is."""


def check_amounts(draft: Draft) -> None:
    """Have texts that are repeated or padded look at how often.

    >>> after(check_amounts, "SELECT lpad(area, 9, '.'), repeat('*', length(area)) FROM regions")
    SELECT LPAD(area, 9, '.'), REPEAT('*', CASE WHEN CAST(CASE WHEN LENGTH(area) > 1000 THEN 'sdcduck: a series, or a
    text that is repeated, padded or grows, that is too long: 1000' ELSE 'true' END AS BOOLEAN) THEN LENGTH(area) END)
    FROM regions
    """
    for text in list(draft.tree.find_all(exp.Repeat, exp.Pad)):
        place = "times" if isinstance(text, exp.Repeat) else "expression"
        amount = text.args[place]
        if whole_number(amount) is None:
            text.set(place, looked_at(amount, amount.copy(), MOST_TIMES))


def looked_at(amount: exp.Expr, size: exp.Expr, most: int) -> exp.Case:
    """An amount that fails where the size that it makes is more than so much."""
    long = exp.GT(
        this=exp.Paren(this=size) if isinstance(size, exp.Binary) else size, expression=exp.Literal.number(most)
    )
    told = exp.Case(
        ifs=[exp.If(this=long, true=exp.Literal.string(f"{TOO_MANY}: {most}"))], default=exp.Literal.string("true")
    )
    return exp.Case(ifs=[exp.If(this=exp.cast(told, exp.DataType.Type.BOOLEAN, copy=False), true=amount.copy())])


def length_of_format(template: exp.Expr | None, values: float, *, of_percents: bool) -> float:
    """How many bytes format(..) or printf(..) make, at most: each field may show the longest value, and pad it.

    >>> length_of_format(exp.Literal.string("{:>10}: {}"), 50, of_percents=False)
    920.0
    >>> length_of_format(exp.Literal.string("%05d %%"), 50, of_percents=True)
    462.0

    Args:
        values: bytes of all values together.
        of_percents: it is a template of printf.

    Raises:
        Refused: the template is no constant, or takes a width from a value.
    """
    if not isinstance(template, exp.Literal) or not template.is_string:
        raise Refused("SDC010", "a template that is no constant: write it as a text, format('{}: {}', a, b)")
    fields = _FIELD.findall(template.this)
    if any("*" in field for field in fields) or (not of_percents and "{" in _PLAIN_FIELDS.sub("", template.this)):
        raise Refused("SDC010", "a template with a width that is a value: write the number, as in {:>10}")
    widths = sum(map(int, _NUMBER.findall(template.this)))
    return float(len(template.this.encode()) + widths + len(fields) * (values + _LONGEST_NUMBER))
