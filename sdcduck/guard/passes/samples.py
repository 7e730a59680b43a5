"""TABLESAMPLE and USING SAMPLE of answers and public tables: rows that are drawn by their place in an order of values.

DuckDB draws by where rows stand in memory, which is up to how records are stored. Here a row is drawn by a hash of its
place among the rows in order, so that the same question has the same sample.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

OF_RECORDS = (
    "a sample of records, of which each question would be another part: ask without it, as numbers of all records are "
    "what is protected; or draw from the answer, FROM (SELECT .. GROUP BY ..) TABLESAMPLE 10%"
)
_PLACE = "md5(CAST({seed} AS VARCHAR) || '/' || CAST(row_number() OVER () AS VARCHAR))"


def expand_samples(draft: Draft) -> None:
    """Samples as SELECT.

    >>> after(expand_samples, "SELECT region FROM regions TABLESAMPLE 50%")
    SELECT region FROM (SELECT * FROM regions QUALIFY LEFT(MD5(CAST(0 AS TEXT) || '/' || CAST(ROW_NUMBER() OVER () AS
    TEXT)), 8) < '80000000') AS "regions"
    """
    for sample in list(draft.tree.find_all(exp.TableSample)):
        relation = sample.parent
        sample.pop()
        if isinstance(relation, exp.Select):
            if relation.args.get("joins") or relation.args.get("from_") is None:
                raise Refused("SDC013", "USING SAMPLE beside a join: FROM (SELECT .. JOIN ..) TABLESAMPLE ..")
            relation = relation.args["from_"].this
        if not isinstance(relation, (exp.Table, exp.Subquery)):
            raise Refused("SDC013", "a sample of this relation")
        _refuse_records(relation, draft.tree, draft.policies)
        _put(relation, _drawn(sample))
        draft.sampled = True


def _refuse_records(relation: exp.Expr, tree: exp.Expr, policies: Mapping[str, Policy]) -> None:
    """Refuse a sample of a table of records; of what a query makes of one, that is seen when it is protected."""
    made = {folded(cte.alias) for cte in tree.find_all(exp.CTE)}
    policy = policies.get(folded(relation.name)) if isinstance(relation, exp.Table) else None
    if policy is not None and policy.label == "unit-level" and folded(relation.name) not in made:
        raise Refused("SDC045", OF_RECORDS)


def _put(relation: exp.Expr, drawn: exp.Select) -> None:
    """Put the sample of a relation in its place, under its name."""
    alias = relation.args.get("alias")
    if alias is None and isinstance(relation, exp.Table):
        alias = exp.TableAlias(this=exp.to_identifier(relation.name, quoted=True))
    if alias is not None and alias.columns:
        raise Refused("SDC013", "a sample of a relation whose columns are renamed: rename them in a subquery")
    inner = relation.copy()
    if not isinstance(inner, exp.Subquery):
        inner.set("alias", None)
    relation.replace(exp.Subquery(this=drawn, alias=None if alias is None else alias.copy()))
    drawn.set("from_", exp.From(this=inner))


def _drawn(sample: exp.TableSample) -> exp.Select:
    """A SELECT, without a relation, of the rows that are drawn."""
    for part, value in sample.args.items():
        if value and part not in ("method", "percent", "size", "seed"):
            raise Refused("SDC013", f"a sample by {part}")
    seed, rows, percent = sample.args.get("seed"), sample.args.get("size"), sample.args.get("percent")
    hashed = parse_one(_PLACE.format(seed=_number(seed) if seed else "0"), read="duckdb")
    select = exp.Select(expressions=[exp.Star()])
    if rows:
        return _first(select, hashed, exp.Limit(expression=exp.Literal.number(_number(rows, whole=True))))
    share = float(_number(percent))
    if share > 100:
        raise Refused("SDC013", "a sample of more than 100 %")
    if folded(str(sample.args.get("method") or "")) == "reservoir":
        several = exp.Literal.number(_number(percent))
        return _first(select, hashed, parse_one("SELECT 1 LIMIT 1%", read="duckdb").args["limit"].copy(), several)
    if share < 100:
        border = exp.Literal.string(f"{int(share / 100 * 2**32):08x}")
        first = exp.Left(this=hashed, expression=exp.Literal.number(8))
        select.set("qualify", exp.Qualify(this=exp.LT(this=first, expression=border)))
    return select


def _first(select: exp.Select, by: exp.Expr, limit: exp.Expr, percent: exp.Expr | None = None) -> exp.Select:
    """The first rows in the order of their hashes."""
    if percent is not None:
        number = limit.find(exp.Literal)
        assert number is not None
        number.replace(percent)
    select.set("order", exp.Order(expressions=[exp.Ordered(this=by, nulls_first=False)]))
    select.set("limit", limit)
    return select


def _number(value: exp.Expr | None, *, whole: bool = False) -> str:
    if not isinstance(value, exp.Literal) or value.is_string or (whole and not value.is_int):
        raise Refused("SDC013", "a sample of anything but a number of rows or percent: TABLESAMPLE 10%")
    return str(value.this)
