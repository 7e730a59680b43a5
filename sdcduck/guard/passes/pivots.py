"""PIVOT and UNPIVOT as plain SELECT, before anything else looks at a query.

What they become is judged like any other query, so that they may stand over records too. The values of a PIVOT are
written out here: `sdcduck.guard.passes.pivot_values` asks for those that are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count, product

from sqlglot import exp

from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.normalize import without_brackets
from sdcduck.guard.passes.output_names import default_name, number_repeated, output_names
from sdcduck.guard.passes.parse import check_size
from sdcduck.guard.passes.pivot_values import MOST_COLUMNS
from sdcduck.guard.refusals import Refused, refuse_own_name
from sdcduck.quoting import folded

_PIVOT = frozenset(["this", "expressions", "fields", "using", "group", "alias", "with_"])
_UNPIVOT = frozenset(["this", "expressions", "fields", "into", "include_nulls", "alias", "with_"])
_NamesOf = Callable[[exp.Expr], list[str] | None]
"""The columns of a relation; None: they are not known yet."""

_SAID = frozenset(
    ["unpivot", "columns", "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming",
     "value_columns_first", "default_on_null"]
)  # fmt: skip
"""What sqlglot notes beside that."""


def without_pivots(tree: exp.Expr, columns: Mapping[str, Sequence[str]]) -> exp.Expr:
    """The tree with every PIVOT and UNPIVOT written as a SELECT.

    >>> from sqlglot import parse_one
    >>> query = "PIVOT t ON sex IN ('f', 'm') USING sum(n) GROUP BY region"
    >>> print(without_pivots(parse_one(query, "duckdb"), {}).sql("duckdb"))
    SELECT region, SUM(n) FILTER(WHERE CAST(sex AS TEXT) = 'f') AS "f",
    SUM(n) FILTER(WHERE CAST(sex AS TEXT) = 'm') AS "m" FROM t GROUP BY region

    >>> print(without_pivots(parse_one("FROM t UNPIVOT (v FOR k IN (a, b))", "duckdb"), {}).sql("duckdb"))
    SELECT * FROM (WITH "_sdc_unpivoted0" AS (SELECT * FROM t) SELECT * EXCLUDE ("a", "b"), 'a' AS "k", "a" AS "v" FROM
    "_sdc_unpivoted0" WHERE NOT "a" IS NULL UNION ALL SELECT * EXCLUDE ("a", "b"), 'b' AS "k", "b" AS "v" FROM
    "_sdc_unpivoted0" WHERE NOT "b" IS NULL)

    Args:
        columns: of the relations that whoever asks sees, by folded name.

    Raises:
        Refused: a form of PIVOT or UNPIVOT that has no such SELECT.
    """

    def of(source: exp.Expr) -> list[str] | None:
        return _columns_of(source, tree, columns)

    number = count()
    for pivot in sorted(tree.find_all(exp.Pivot), key=lambda found: -found.depth):
        unpivot = bool(pivot.args.get("unpivot"))
        for part, value in pivot.args.items():
            if value and part not in (_UNPIVOT if unpivot else _PIVOT) | _SAID:
                raise Refused("SDC011", "an unusual PIVOT")
        source, place = _source(pivot)
        made = _unpivoted(pivot, source, f"_sdc_unpivoted{next(number)}", of) if unpivot else _pivoted(pivot, source)
        with_ = pivot.args.get("with_")
        if with_ is not None:
            inner = made.args.get("with_")
            made.set("with_", exp.With(expressions=[*with_.expressions, *(inner.expressions if inner else [])]))
        if pivot.arg_key == "pivots":
            place.replace(exp.Subquery(this=made, alias=pivot.args.get("alias")))
        elif pivot is tree:
            tree = made
        else:
            pivot.replace(made)
    return tree


def _source(pivot: exp.Pivot) -> tuple[exp.Expr, exp.Expr]:
    """What is pivoted, on its own, and the node that the result takes the place of."""
    if pivot.arg_key != "pivots":
        return pivot.this, pivot
    table = pivot.parent
    if table is None or len(table.args["pivots"]) > 1 or table.args.get("joins") or table.args.get("sample"):
        raise Refused("SDC011", "several PIVOTs, or joins, of one table")
    alone = table.copy()
    alone.set("pivots", None)
    return alone, table


def _pivoted(pivot: exp.Pivot, source: exp.Expr) -> exp.Select:
    statement = pivot.arg_key != "pivots"
    ons = pivot.expressions if statement else pivot.args.get("fields") or []
    aggregates = (
        (pivot.args.get("using") or [exp.Count(this=exp.Star(), big_int=True)]) if statement else pivot.expressions
    )
    if any(part.find(exp.Query) is not None for part in (*ons, *aggregates)):  # it would be written many times
        raise Refused("SDC011", "a subquery in PIVOT")
    # DuckDB writes '' for an empty text at the beginning of a name only.
    choices = [_values(on, "" if place else "''") for place, on in enumerate(ons)]
    wanted = list(product(*choices))
    if len(wanted) * len(aggregates) > MOST_COLUMNS:
        raise Refused("SDC002", "a PIVOT into many columns")
    numbers = []
    for values in wanted:
        name = "_".join(text for text, _ in values)
        refuse_own_name(name)
        for aggregate in aggregates:
            what = aggregate.unalias()
            if not isinstance(what, exp.AggFunc):
                raise Refused("SDC011", "PIVOT takes aggregates such as sum(n)")
            label = aggregate.alias or ("" if len(aggregates) == 1 else default_name(what))
            chosen = exp.and_(*(condition.copy() for _, condition in values), copy=False)
            filtered = exp.Filter(this=what.copy(), expression=exp.Where(this=chosen))
            numbers.append(exp.alias_(filtered, f"{name}_{label}" if label else name, quoted=True))
    group = pivot.args.get("group")
    if group is not None:
        if group.args.get("all") or not all(isinstance(key, exp.Column) for key in group.expressions):
            raise Refused("SDC011", "GROUP BY of a PIVOT takes columns")
        shown = [key.copy() for key in group.expressions]
        by = exp.Group(expressions=[key.copy() for key in group.expressions])
    else:
        used = [column for part in (*ons, *aggregates) for column in part.find_all(exp.Column)]
        shown, by = [_all_but(used)], exp.Group(all=True)
    made = exp.Select(expressions=[*shown, *numbers], from_=exp.From(this=source.copy()), group=by)
    number_repeated(made)
    return made


def _values(on: exp.Expr, empty: str) -> list[tuple[str, exp.Expr]]:
    """What ``column IN ('f' AS women, 'm')`` lists: names and conditions.

    Args:
        empty: the name of an empty text.
    """
    if not isinstance(on, exp.In) or not on.expressions:
        raise Refused(
            "SDC011",
            f"PIVOT without a list of values: ask SELECT DISTINCT {_called(on)}, then ON {_called(on)} IN ('a', 'b')",
        )
    found: list[tuple[str, exp.Expr]] = []
    for item in on.expressions:
        value = item.this if isinstance(item, (exp.PivotAlias, exp.Alias)) else item
        if not isinstance(value, (exp.Literal, exp.Boolean)):
            raise Refused("SDC011", "PIVOT takes a list of values: ON column IN ('a', 'b')")
        name = folded(str(value.this)) if isinstance(value, exp.Boolean) else value.this
        if isinstance(value, exp.Literal) and not value.is_string:
            if not value.is_int:
                raise Refused("SDC011", "PIVOT takes whole numbers and texts: ON column IN ('a', 'b')")
            name = str(int(name))
        # DuckDB compares texts here: of numbers that are equal to 20, none but 20 itself is '20'.
        written = exp.cast(on.this.unnest().copy(), exp.DataType.Type.TEXT)
        found.append((item.alias or name or empty, exp.EQ(this=written, expression=exp.Literal.string(name))))
    return found


def _called(on: exp.Expr) -> str:
    return on.name if isinstance(on, exp.Column) else "column"


_TAKES = "UNPIVOT takes the names of columns, as many in each bracket as there are after VALUE"


def _unpivoted(pivot: exp.Pivot, source: exp.Expr, called: str, of: _NamesOf) -> exp.Query:
    listed, name, values = _names(pivot)
    sets = [one for item in listed for one in _stacked(item, source, of)]
    if not sets or any(len(columns) != len(values) for columns, _ in sets):
        raise Refused("SDC011", _TAKES)
    every = [column for columns, _ in sets for column in columns]
    sides: list[exp.Query] = []
    for columns, label in sets:
        stacked = zip(columns, values, strict=True)
        side = exp.Select(
            expressions=[
                _all_but(every),
                exp.alias_(exp.Literal.string(label), name, quoted=True),
                *(exp.alias_(column.copy(), value, quoted=True) for column, value in stacked),
            ],
            from_=exp.From(this=exp.Table(this=exp.to_identifier(called, quoted=True))),
        )
        if not pivot.args.get("include_nulls"):
            known = [exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null())) for column in columns]
            side.set("where", exp.Where(this=exp.and_(*known, copy=False)))
        sides.append(side)
    whole = sides[0]
    for other in sides[1:]:
        whole = exp.Union(this=whole, expression=other, distinct=False)
    plain = isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query) and not source.args.get("with_")
    query = source.this.copy() if plain else exp.Select(expressions=[exp.Star()], from_=exp.From(this=source.copy()))
    alias = exp.TableAlias(this=exp.to_identifier(called, quoted=True))
    whole.set("with_", exp.With(expressions=[exp.CTE(this=query, alias=alias)]))
    return whole


def _stacked(item: exp.Expr, source: exp.Expr, of: _NamesOf) -> list[tuple[list[exp.Column], str]]:
    """The columns that one row has beside each other, with what is said of them; of a star, each column for itself."""
    star = item.this if isinstance(item, exp.Columns) else item
    if isinstance(star, exp.Star):
        if any(value and part != "except_" for part, value in star.args.items()):
            raise Refused("SDC011", _TAKES)
        left_out = {folded(one.name) for one in star.args.get("except_") or []}
        names = of(source)
        if names is None:
            raise Refused("SDC011", "UNPIVOT of a star over a query with another star: write the names of the columns")
        return [([exp.column(name, quoted=True)], name) for name in names if folded(name) not in left_out]
    columns = item.this if isinstance(item, (exp.PivotAlias, exp.Alias)) else item
    found = [part.unnest() for part in (columns.expressions if isinstance(columns, exp.Tuple) else [columns])]
    if not all(isinstance(column, exp.Column) and not column.is_star and not column.table for column in found):
        raise Refused("SDC011", _TAKES)
    label = item.alias or "_".join(column.name for column in found)
    return [([exp.column(column.name, quoted=True) for column in found], label)]


def _names(pivot: exp.Pivot) -> tuple[list[exp.Expr], str, list[str]]:
    """The columns that an UNPIVOT stacks, and what it calls their names and their values."""
    if pivot.arg_key == "pivots":
        fields = pivot.args.get("fields") or []
        if len(fields) != 1 or len(pivot.expressions) != 1:
            raise Refused("SDC011", _TAKES)
        values = pivot.expressions[0]
        several = values.expressions if isinstance(values, exp.Tuple) else [values]
        return fields[0].expressions, fields[0].this.name, [value.name for value in several]
    into = pivot.args.get("into")
    if into is None:
        return pivot.expressions, "name", ["value"]
    return pivot.expressions, into.this.name, [value.name for value in into.expressions]


def _columns_of(source: exp.Expr, tree: exp.Expr, columns: Mapping[str, Sequence[str]]) -> list[str] | None:
    """The columns of what stands in FROM."""
    if isinstance(source, exp.Subquery):
        return output_names(source.this)
    if not isinstance(source, exp.Table) or source.args.get("alias") or source.args.get("joins"):
        return None
    made = [cte for cte in tree.find_all(exp.CTE) if folded(cte.alias) == folded(source.name)]
    if not made:
        found = columns.get(folded(source.name))
        return None if found is None else list(found)
    plain = len(made) == 1 and not made[0].args["alias"].columns
    return output_names(made[0].this) if plain else None


def _all_but(columns: list[exp.Column]) -> exp.Star:
    names = dict.fromkeys(folded(column.name) for column in columns)
    if not names:
        return exp.Star()
    return exp.Star(except_=[exp.to_identifier(name, quoted=True) for name in names])


def expand_pivots(draft: Draft) -> None:
    """PIVOT and UNPIVOT as SELECT; without brackets around joins, and without what stands beside the words.

    >>> after(expand_pivots, "PIVOT people ON region IN ('north', 'south') USING count(*) GROUP BY age")
    SELECT age, COUNT(*) FILTER(WHERE CAST(region AS TEXT) = 'north') AS "north", COUNT(*) FILTER(WHERE CAST(region
    AS TEXT) = 'south') AS "south" FROM people GROUP BY age
    """
    draft.tree = _in_one_form(draft)


def _in_one_form(draft: Draft) -> exp.Expr:
    """A tree with one form for what has several: joins in brackets, PIVOT; and without what stands beside the words."""
    tree = draft.tree
    without_brackets(tree)
    for node in tree.walk():
        node.comments = None  # they would be part of an expression's text, by which group keys are known
        node._meta = None  # where it stood in the text: it would be copied again and again
    for name in tree.find_all(exp.Identifier):
        refuse_own_name(name.name)
    if tree.find(exp.Pivot) is not None:
        starred = any(pivot.find(exp.Star) is not None for pivot in tree.find_all(exp.Pivot))
        tree = without_pivots(tree, _visible(draft) if starred else {})
        check_size(tree)
    return tree


def _visible(draft: Draft) -> dict[str, list[str]]:
    """The columns of the relations that are named, as they are spelled."""
    asked = {folded(table.name) for table in draft.tree.find_all(exp.Table)}
    policies = [draft.policies[name] for name in sorted(asked & set(draft.policies))]
    return {folded(policy.name): list(draft.schema.columns(policy).spelled.values()) for policy in policies}
