"""Protected numbers as formulas over calls, each of which stands once: planning one takes longer than adding it up.

SELECT _g0, CASE WHEN _f3_7 > 0 THEN _c1 END AS _a0, CASE WHEN _f3_7 > 0 THEN _c1 END / nullif(_f3_7, 0) AS _a1
FROM (SELECT *, _sdc_stepped_count(_f0_0, _f2_6, ..) AS _f3_7 FROM (SELECT *, _sdc_count_code(.., _f1_4) AS _f2_6
    FROM (SELECT *, .. AS _f1_4
        FROM (SELECT region AS _g0, count(..) AS _f0_0, .. AS _c1 FROM people GROUP BY region) _sdc_n) ..) ..) _sdc_n
WHERE _f3_7 > 0
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.refusals import Refused

NUMBERS = "_sdc_n"
"""The alias of the calls of a block."""

SETS = "_sets"
"""The column that says of which grouping set a row is."""


def unknown_name() -> str:
    """A name for a table that stands for a block: nobody can have written it into a query, not even in a string."""
    return f"_sdc_{secrets.token_hex(12)}"


class Steps:
    """Parts of the formulas of a block that are columns of their own: calls, and what is made of them step by step.

    Their SQL is text until all of it is known, so that nothing is read twice.

    >>> steps = Steps()
    >>> number = steps.call("count(*)")
    >>> steps.column(1, f"_sdc_count_slot('default', {number})")
    '"_sdc_n"."_f1_1"'
    """

    def __init__(self) -> None:
        self._names: dict[tuple[int, str], str] = {}
        self.counted: dict[str, None] = {}
        """The conditions for records whose number is published, or decides what is."""
        self.added: dict[str, None] = {}
        """What is added up, where a limit on the sequence of answers is about sums, too."""
        self.summed: dict[tuple[str, str, str], None] = {}
        """The same under noise, with the condition for the records that are added up, and what the noise goes by."""
        self.looked_at: dict[tuple[str, str], None] = {}
        """Values of which something is told that is no sum, with the condition for their records."""

    def call(self, sql: str) -> str:
        """A call over records: the SQL of the column that it becomes."""
        return self.column(0, sql)

    def column(self, step: int, sql: str) -> str:
        """The same of an expression over the columns of the steps before this one."""
        return f'"{NUMBERS}"."{self._names.setdefault((step, sql), f"_f{step}_{len(self._names)}")}"'

    def behind(self, formulas: Iterable[str]) -> list[dict[str, str]]:
        """The SQL of the columns that formulas are made of, by name, a dictionary for each step."""
        known = {name: (step, sql) for (step, sql), name in self._names.items()}
        found: list[dict[str, str]] = [{} for _ in range(1 + max((step for step, _ in self._names), default=0))]
        waiting = list(formulas)
        while waiting:
            for name in _COLUMN.findall(waiting.pop()):
                step, sql = known[name]
                if name not in found[step]:
                    found[step][name] = sql
                    waiting.append(sql)
        return found


class Total(NamedTuple):
    """A protected sum.

    Attributes:
        sql: the published number.
        spread: how far numbers on its grid lie apart at least; nothing where there is no grid.
        ends: what the values of the measure are taken to be between, where their mean is kept there, too.
    """

    sql: str
    spread: str = ""
    ends: tuple[float, float] | None = None

    def mean(self, known: str, steps: Steps) -> str:
        """The published sum over a published count, on the grid of that."""
        quotient = f"{self.sql} / nullif({known}, 0)"
        if self.ends is not None:
            low, high = self.ends
            return f"CASE WHEN {known} > 0 THEN greatest(least({quotient}, {high!r}), {low!r}) END"
        if not self.spread:
            return quotient
        step = steps.column(6, f"_sdc_grid_step({steps.column(5, f'{self.spread} / nullif({known}, 0)')})")
        return f"_sdc_on_grid({steps.column(8, quotient)}, {step})"


_COLUMN = re.compile(rf'"{NUMBERS}"\."(_f\d+_\d+)"')


class Sets(NamedTuple):
    """What the numbers of a block are about, where a policy limits what many of them tell together.

    Attributes:
        policy: of the records.
        records: what they are called in the block.
        key: the column that tells its units apart.
        counted: as `Steps` has them, and the following.
        added: what is added up.
        summed: the same, with conditions.
        looked_at: values of which something else is told.
    """

    policy: Policy
    records: str
    key: str
    counted: tuple[str, ...]
    added: tuple[str, ...]
    summed: tuple[tuple[str, str, str], ...]
    looked_at: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Noised:
    """A total over records that noise is added to before it is anybody's.

    Attributes:
        low: the least that one record adds to it, in steps, 0 or below.
        high: the most, 0 or above.
        step: what a step is worth.
        statistic: what it is, as `sdc_noise` calls it.
        of: the measure, as the custodian calls it.
        adds: whether that of two groups is the sum of those of each.
        positions: where it is none, but one of so many numbers that lie a step apart is chosen, how many; then ``low``
            and ``high`` are what one record adds to how well a number fits.
        first: the first of these numbers.
        once: whether a unit counts once in a group, however many rows it has there.
        single: whether the rows of each unit were brought together before, so that it has one.
    """

    low: int
    high: int
    step: float
    statistic: str
    of: str = ""
    adds: bool = True
    positions: int = 0
    first: float = 0.0
    once: bool = False
    single: bool = False


class Grouping(NamedTuple):
    """One grouping of records that noise is drawn for.

    Attributes:
        grouped: the SELECT of its keys and of the totals, over records.
        cells: the SELECT of all groups that there may be, over no record; None: all records are one group.
        keys: the columns of the groups.
        around: what is written before and after its numbers, to make those of the grouping sets that follow from it.
        adds_up: whether some of these are sums of its groups.
        selects: the column of the number of units, where groups appear by that; empty: all of ``cells`` do.
        beside: that column, where it is none of the totals that were asked for.
    """

    grouped: exp.Select
    cells: exp.Select | None
    keys: tuple[str, ...]
    around: tuple[str, str] = ("", "")
    adds_up: bool = False
    selects: str = ""
    beside: tuple[tuple[str, Noised], ...] = ()


class Drawn(NamedTuple):
    """The totals of a block that noise is drawn for.

    Attributes:
        policy: the name of the table.
        groupings: of the records; what stands for the block are the numbers of all of them.
        totals: the columns of the totals.
        tables: the names of those whose records are looked at.
        contributions: how many rows a unit has at most.
    """

    policy: str
    groupings: tuple[Grouping, ...]
    totals: dict[str, Noised]
    tables: tuple[str, ...]
    contributions: int


@dataclass(frozen=True)
class Numbered:
    """The group keys and the numbers of a block.

    What is made of the calls step by step is text from the beginning to the end: there is nothing of the analyst in it,
    so that nobody has to read it twice.

    Attributes:
        columns: their names.
        grouped: the SELECT of the group keys and the calls over records.
        formulas: what is made of these, each the SQL of an expression.
        around: what is written before and after the text of ``grouped``.
        order: what is written behind that, to put the groups in the order of their keys; empty: they need none.
        sets: what each number counts, where a policy limits the sequence of answers.
        drawn: what noise is drawn for, where that is not done in SQL.
    """

    columns: tuple[str, ...]
    grouped: exp.Select
    formulas: tuple[str, ...]
    around: tuple[str, str]
    order: str
    sets: Sets | None = None
    drawn: Drawn | None = None


def chosen(condition: str, value: str) -> str:
    """A value where a condition holds, and NULL elsewhere.

    >>> chosen("true", "income"), chosen("age > 60", "income")
    ('income', 'CASE WHEN age > 60 THEN income END')
    """
    return value if condition == "true" else f"CASE WHEN {condition} THEN {value} END"


def both(condition: str, other: str) -> str:
    """Two conditions at once.

    >>> both("true", "income > 0"), both("age > 60 OR age < 20", "income > 0")
    ('income > 0', '(age > 60 OR age < 20) AND income > 0')
    """
    return other if condition == "true" else f"({condition}) AND {other}"


def zero_where_none(value: str, some: str, min_units: int) -> str:
    """NULL as 0, where it can only mean that nobody was published: not where groups of few are hidden.

    >>> zero_where_none("total", "everybody", 1), zero_where_none("total", "everybody", 3)
    ('CASE WHEN everybody > 0 THEN coalesce(total, 0) END', 'total')
    """
    return value if min_units > 1 else f"CASE WHEN {some} > 0 THEN coalesce({value}, 0) END"


def with_numbers(
    grouped: exp.Select,
    formulas: Mapping[str, str],
    kept: str,
    steps: Steps,
    plain: Collection[str] = (),
    *,
    total: bool = False,
) -> Numbered:
    """The group keys and the numbers of a block.

    Args:
        grouped: a SELECT of the group keys, all of them with a name, which gets the calls.
        formulas: SQL of the numbers, and their names.
        kept: SQL of the condition for a group to appear.
        steps: the parts that the formulas and the condition are made of.
        plain: keys of which equal values are the same value; of the others what is shown is made one, for it would be
            that of the first record otherwise: -0.0 or 0.0.
        total: one of the grouping sets is that of all records. It has a row as there is one without GROUP BY,
            whatever is published in it.
    """
    keys = [item.alias for item in grouped.expressions]
    told_apart = _told_apart(grouped, len(keys)) if keys else []
    called, *made_of = (dict(step) for step in steps.behind([*formulas, kept]))
    calls: dict[exp.Expr, str] = {}  # changed in place later on, so that it is good for no more questions
    texts = [*formulas, kept, *(sql for step in made_of for sql in step.values())]
    lifted = dict(zip(texts, _of_calls(texts, calls), strict=True))
    for name, call in zip(called, _parsed(list(called.values())), strict=True):
        grouped.append("expressions", exp.alias_(call, name, quoted=True, copy=False))
    for call, name in calls.items():
        grouped.append("expressions", exp.alias_(call, name, quoted=True, copy=False))
    shown = [
        f'"{NUMBERS}"."{key}"' if key in plain else f'_sdc_group_key("{NUMBERS}"."{key}") AS "{key}"' for key in keys
    ]
    shown += [f'{lifted[sql]} AS "{name}"' for sql, name in formulas.items()]
    before, after = f"SELECT {', '.join(shown)} FROM (", f') AS "{NUMBERS}"'
    for step in filter(None, reversed(made_of)):
        columns = [f'{lifted[sql]} AS "{name}"' for name, sql in step.items()]
        before += f"SELECT *, {', '.join(columns)} FROM ("
        after = f') AS "{NUMBERS}"{after}'
    if kept != "true":
        whole = f' OR "{NUMBERS}"."{SETS}" = {2 ** len(keys) - 1}' if total and told_apart else ""
        after += f" WHERE {lifted[kept]}{whole}"
    # DuckDB would give the groups in the order of their first records, and that may be the order of incomes.
    ordered = ", ".join(f'"{NUMBERS}"."{key}"' for key in [*keys, *told_apart])
    order = f" ORDER BY {ordered}" if keys else ""
    return Numbered((*keys, *formulas.values()), grouped, tuple(lifted.values()), (before, after), order)


def _told_apart(grouped: exp.Select, keys: int) -> list[str]:
    """The name of a further column, which tells rows of different grouping sets apart: they may have the same keys."""
    group = grouped.args.get("group")
    if group is None:
        return []
    sets: exp.Expr | None = next((item for item in group.find_all(exp.Column) if item.name == SETS), None)
    if sets is not None:
        sets = exp.Coalesce(this=sets.copy(), expressions=[exp.Literal.number(2**keys - 1)])
    elif group.find(exp.Cube, exp.Rollup, exp.GroupingSets) is not None:
        sets = exp.Grouping(expressions=[item.unalias().copy() for item in grouped.expressions[:keys]])
    if sets is None:
        return []
    grouped.append("expressions", exp.alias_(sets.copy(), SETS, quoted=True))
    return [SETS]


def is_plain(formula: str) -> bool:
    """Whether a formula holds columns of calls, functions of these and numbers, and nothing that an analyst wrote.

    >>> is_plain('CASE WHEN "_sdc_n"."_f1_1" > 0 THEN _sdc_clipped("_sdc_n"."_f0_0", 8) END')
    True
    >>> is_plain('count(*)'), is_plain('"_sdc_n"."_f1_1" + age')
    (False, False)
    """
    return _PLAIN.fullmatch(formula) is not None


def _of_calls(formulas: list[str], calls: dict[exp.Expr, str]) -> list[str]:
    """Formulas over the columns of calls. Calls that stand in them become columns and are added to those found."""
    others = [formula for formula in formulas if not is_plain(formula)]
    lifted = dict(zip(others, (_lifted(formula, calls) for formula in _parsed(others)), strict=True))
    if any(column.table != NUMBERS for part in lifted.values() for column in part.find_all(exp.Column)):
        raise Refused("SDC005", "a number that depends on single records")
    written = {formula: part.sql("duckdb") for formula, part in lifted.items()}
    if _parsed(list(written.values())) != list(lifted.values()):
        raise Refused("SDC006")
    return [written.get(formula, formula) for formula in formulas]


def _parsed(texts: list[str]) -> list[exp.Expr]:
    return list(parse_one(f"SELECT {', '.join(texts)}", read="duckdb").expressions) if texts else []


def _lifted(node: exp.Expr, calls: dict[exp.Expr, str]) -> exp.Expr:
    """The expression, changed in place: calls, the outermost ones, become columns and are added to those found."""

    def lifted(part: exp.Expr) -> exp.Expr:
        if not _is_call(part):
            return part
        return exp.column(calls.setdefault(part, f"_c{len(calls)}"), NUMBERS, quoted=True)

    return node.transform(lifted, copy=False)


OF_NUMBERS = frozenset(
    [
        "typeof", "_sdc_clipped", "_sdc_ptable_most", "_sdc_count_key", "_sdc_count_slot", "_sdc_sum_key",
        "_sdc_sum_rung", "_sdc_count_code", "_sdc_sum_code", "_sdc_sum_upper", "_sdc_stepped_count", "_sdc_stepped_sum",
        "_sdc_sum_size", "_sdc_sum_moved", "_sdc_randomly_rounded", "_sdc_grid_key", "_sdc_grid_share",
        "_sdc_noise_spread", "_sdc_grid_step", "_sdc_on_grid", "_sdc_stepped_rows",
        "_sdc_stepped_rows_of_kinds",
    ]
)  # fmt: skip
"""Functions of what was called before."""

_PLAIN = re.compile(
    rf"""(?: {_COLUMN.pattern}
    | \b (?: CASE | WHEN | THEN | END | AND | TRUE | nullif | coalesce | sqrt | {"|".join(OF_NUMBERS)} ) \b
    | '(?:[^'\\]|'')*+'
    | \b \d+ (?:\.\d+)? \b
    | -(?!-) | /(?!\*) | [+*<>=(),\s] )*""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_call(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name not in OF_NUMBERS
    return isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup))
