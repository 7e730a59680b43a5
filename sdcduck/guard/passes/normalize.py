"""Forms that DuckDB and sqlglot read in two ways, other than subscripts: settled or refused.

What is refused here would be answered as sqlglot reads it, which is another question than the one that was asked. And
a form that sqlglot reads only in brackets gets them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from sdcduck.guard.allowed import TYPES
from sdcduck.guard.expressions import is_query, refuse_many_sets
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.quantified import settle_quantified
from sdcduck.guard.passes.selected_values import name_values
from sdcduck.guard.passes.subscripts import settle_subscripts
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_DUCKDB = Dialect.get_or_raise("duckdb")
_BEFORE_A_TEXT = frozenset(_DUCKDB.parser_class.TYPE_TOKENS) - {TokenType.INTERVAL} | {TokenType.R_PAREN, TokenType.VAR}
_BINDING = (exp.Binary, exp.Unary, exp.In, exp.Between, exp.Cast, exp.Bracket)
_LOOSE = (exp.Connector, exp.Not, exp.Paren)
"""What binds less than NOT, or as much, or has brackets of its own."""
_SUBTOTALS = (exp.Cube, exp.Rollup, exp.GroupingSets)
_WORDS_OF_SUBTOTALS = frozenset([TokenType.CUBE, TokenType.ROLLUP, TokenType.GROUPING_SETS])
_OPENING = frozenset([TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE])
_CLOSING = frozenset([TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE])


def with_bracketed_keys(words: Sequence[Token]) -> list[Token]:
    """Words with brackets around what ROLLUP, CUBE and GROUPING SETS list: sqlglot reads no comparison there without.

    >>> words = _DUCKDB.tokenize("GROUP BY ROLLUP (a > 1, b), GROUPING SETS (CUBE (a IS NULL), (a, b), ())")
    >>> " ".join(word.text for word in with_bracketed_keys(words))
    'GROUP BY ROLLUP ( ( a > 1 ) , b ) , GROUPING SETS ( CUBE ( ( a IS NULL ) ) , ( a , b ) , ( ) )'
    """
    result: list[Token] = []
    opened: list[int | None] = []  # of each open bracket, where a key begins, if it is around keys
    for word in words:
        key = opened[-1] if opened else None
        if key is not None and (word.token_type == TokenType.COMMA or word.token_type in _CLOSING):
            if not _reads_alone(result[key:]):
                result.insert(key, Token(TokenType.L_PAREN, "("))
                result.append(Token(TokenType.R_PAREN, ")"))
            opened[-1] = len(result) + 1
        if word.token_type in _OPENING:
            of_subtotals = bool(result) and result[-1].token_type in _WORDS_OF_SUBTOTALS
            opened.append(len(result) + 1 if of_subtotals else None)
        elif word.token_type in _CLOSING and opened:
            opened.pop()
        result.append(word)
    return result


def _reads_alone(key: Sequence[Token]) -> bool:
    """Whether a key is one word, has brackets around all of it, or is a list of further keys."""
    depth = 0
    for word in key[:-1]:
        depth += (word.token_type in _OPENING) - (word.token_type in _CLOSING)
        if depth == 0:
            return key[0].token_type in _WORDS_OF_SUBTOTALS
    return True


def bracket_keys(tree: exp.Expr) -> None:
    """As `with_bracketed_keys`, of a tree that is to be written, in place: numbers and aliases are expressions by then.

    >>> tree = exp.maybe_parse("SELECT FROM t GROUP BY ROLLUP (a, 1)", dialect="duckdb")
    >>> tree.find(exp.Literal).replace(exp.condition("b > 2")) and bracket_keys(tree)
    >>> print(tree.sql("duckdb"))
    SELECT FROM t GROUP BY ROLLUP (a, (b > 2))
    """
    for subtotals in tree.find_all(*_SUBTOTALS):
        for key in subtotals.expressions:
            if not isinstance(key, (*_SUBTOTALS, exp.Column, exp.Paren, exp.Tuple)):
                around = exp.Paren()
                key.replace(around)
                around.set("this", key)


def settle_readings(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Bring what reads in two ways into one form, in place.

    sqlglot has ``a NOT IN (1) < b`` right, and writes NOT a IN (1) < b for it, which is NOT of all that follows.

    >>> text = "SELECT a NOT IN (1) < b, NOT a < b FROM t"
    >>> tree = exp.maybe_parse(text, dialect="duckdb")
    >>> settle_readings(tree, _DUCKDB.tokenize(text))
    >>> print(tree.sql("duckdb"))
    SELECT (NOT a IN (1)) < b, NOT a < b FROM t

    Raises:
        Refused: it means something else for DuckDB.
    """
    for call in list(tree.find_all(exp.LogicalAnd, exp.LogicalOr)):
        if isinstance(call.this, exp.Order):  # which says nothing, and sqlglot writes it inside of a cast
            call.set("this", call.this.this)
    for type_, text, cast in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (text.token_type, cast.token_type) == (TokenType.STRING, TokenType.DCOLON) and (
            type_.token_type in _BEFORE_A_TEXT
        ):
            raise Refused("SDC006", f"a cast of a value with its type before it: write ({type_.text} '..')::..")
    for star in tree.find_all(exp.Star):
        if isinstance(star.parent, exp.Predicate) or (
            isinstance(star.parent, exp.Binary) and not isinstance(star.parent, exp.Dot)
        ):
            raise Refused("SDC012", "* LIKE: write COLUMNS('..') with a pattern, or the names of the columns")
        select = star.parent
        if star.args.get("replace") and isinstance(select, exp.Select) and select.args.get("joins"):
            raise Refused("SDC012", "* REPLACE beside a join: write the names of the columns")
    for name in tree.find_all(exp.Table, exp.TableAlias, exp.Column):
        called = name.parts[0].name if isinstance(name, exp.Column) and len(name.parts) > 1 else ""
        if folded(called if isinstance(name, exp.Column) else name.name) == "alias":
            raise Refused("SDC006", "alias.x, which DuckDB takes for a column of SELECT: take another name")
    for found in tree.find_all(exp.Is):
        if not isinstance(found.expression, (exp.Null, exp.Boolean)):
            raise Refused("SDC006", "IS of more than NULL, TRUE and FALSE: put brackets around (x IS TRUE)")
    for distinct in tree.find_all(exp.Distinct):  # count(DISTINCT(id)), as several programs write it
        for value in list(distinct.expressions):
            if isinstance(value, exp.Paren):
                value.replace(value.unnest())
    for negation in list(tree.find_all(exp.Not)):
        if isinstance(negation.parent, _BINDING) and not isinstance(negation.parent, _LOOSE):
            around = exp.Paren()
            negation.replace(around)
            around.set("this", negation)


def without_brackets(tree: exp.Expr) -> None:
    """Take brackets around the first joins of FROM away, in place: joins come from left to right without them, too.

    >>> text = "SELECT * FROM ((a JOIN b USING (x)) LEFT JOIN c USING (y)) JOIN d USING (z)"
    >>> tree = exp.maybe_parse(text, dialect="duckdb")
    >>> without_brackets(tree)
    >>> print(tree.sql("duckdb"))
    SELECT * FROM a JOIN b USING (x) LEFT JOIN c USING (y) JOIN d USING (z)

    Where FROM comes first, joins are with its relation, and go where they are otherwise.

    Raises:
        Refused: there are others.
    """
    for from_ in tree.find_all(exp.From):
        select, relation, joins = from_.parent, from_.this, list[exp.Expr]()
        while isinstance(select, exp.Select):
            # FROM a JOIN b SELECT .. has its joins here without brackets, too.
            joins = [*(relation.args.get("joins") or []), *joins]
            relation.set("joins", None)
            if not _is_bracket(relation):
                break
            relation = relation.this
            from_.set("this", relation)
        if joins and select is not None:
            select.set("joins", [*joins, *(select.args.get("joins") or [])])
    for join in tree.find_all(exp.Join):
        while _is_bracket(join.this) and not join.this.this.args.get("joins"):
            join.set("this", join.this.this)
    if any(_is_bracket(relation) for relation in tree.find_all(exp.Subquery)):
        raise Refused("SDC022", "brackets around joins: write (SELECT .. FROM .. JOIN ..) AS name")


def _is_bracket(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Subquery) or not isinstance(node.this, (exp.Table, exp.Subquery)):
        return False
    return isinstance(node.parent, (exp.From, exp.Join)) and not any(
        node.args.get(part) for part in node.args if part != "this"
    )


def refuse_hidden_relations(tree: exp.Expr) -> None:
    """Refuse names, in a tree with all of them in full, that are of a column for DuckDB and a relation here, or so.

    For DuckDB a.b.c is the field c of column b where relation a has one, whether or not that may be seen, and else the
    column c of b in schema a. Where b may be seen it is a field here, too; what is left would be read as c of relation
    b. And sqlglot does not see the relation that stands behind SEMI or ANTI JOIN where a column has its name.

    Raises:
        Refused: there is such a name.
    """
    for column in tree.find_all(exp.Column):
        if column.args.get("db"):
            name = ".".join(part.name for part in column.parts)
            raise Refused("SDC030", f"'{name}'; write {column.table}.{column.name}")
    for dot in tree.find_all(exp.Dot):
        column, select = dot.this, dot.parent_select
        joins = select.args.get("joins") if isinstance(select, exp.Select) else None
        for join in joins or []:
            hidden = join.kind in ("SEMI", "ANTI") and folded(join.this.alias_or_name)
            if isinstance(column, exp.Column) and folded(column.name) == hidden:
                raise Refused("SDC031", f"'{column.name}' is a column and a relation")


def check_words(draft: Draft) -> None:
    """Refuse words that are none, in places where sqlglot writes them as they are.

    >>> after(check_words, "SELECT age::mood FROM people")
    refused: SDC005: a form of SQL that the guard does not know (a type that is none of DuckDB's: cast to VARCHAR,
    INTEGER, ..). Write it with plain SELECT, JOIN, GROUP BY and WITH.
    """
    _check_words(draft.tree)


def normalize(draft: Draft) -> None:
    """Forms that sqlglot writes in another way than it reads, as it writes them.

    >>> after(normalize, "SELECT region, if(age > 9, 'a', 'b'), count(*) FROM people GROUP BY ROLLUP (1, 2)")
    SELECT region, CASE WHEN age > 9 THEN 'a' ELSE 'b' END, COUNT(*) FROM people GROUP BY ROLLUP (region, CASE WHEN
    age > 9 THEN 'a' ELSE 'b' END)
    """
    _normalize(draft.tree)
    name_values(draft.tree)
    settle_quantified(draft.tree)
    _check_limits(draft.tree)
    draft.subscripts = settle_subscripts(draft.tree)


_AGGREGATES = frozenset(
    [
        "product",
        "histogram",
        "entropy",
        "mad",
        "weighted_avg",
        "wavg",
        "geomean",
        "geometric_mean",
        "sem",
        "kurtosis_pop",
    ]
)
"""Aggregates that sqlglot takes for any function."""

_NOW = ("now", "transaction_timestamp")
"""Functions that say when a statement began, as current_timestamp does."""

_WORD = re.compile(r"\w+")

_ALSO_WORDS = ("", "=", "CURRENT ROW", "NO OTHERS")


def _check_words(tree: exp.Expr) -> None:
    """Refuse words that are not words: names of units, types and functions that sqlglot would write as they are."""
    for node in tree.walk():
        if isinstance(node, (exp.Identifier, exp.Literal)):
            continue
        own = isinstance(node, exp.DataType) and node.this == exp.DataType.Type.USERDEFINED
        if own and folded(node.text("kind")) not in TYPES:
            # A cast to an ENUM of the custodian's would tell whether a text is one of its labels.
            raise Refused("SDC005", "a type that is none of DuckDB's: cast to VARCHAR, INTEGER, ..")
        for value in node.args.values():
            if isinstance(value, str) and not _WORD.fullmatch(value) and value not in _ALSO_WORDS:
                raise Refused("SDC005", "an unusual word")


def _normalize(tree: exp.Expr) -> None:
    """Forms that sqlglot writes in another way than it reads, as it writes them.

    Raises:
        Refused: there is one that it does not write at all.
    """
    for node in list(tree.find_all(exp.If)):
        if not isinstance(node.parent, exp.Case):
            branch = exp.If(this=node.this, true=node.args["true"])
            node.replace(exp.Case(ifs=[branch], default=node.args.get("false")))
    for call in list(tree.find_all(exp.Anonymous)):
        if folded(call.name) == "count_star" and not call.expressions:
            call.replace(exp.Count(this=exp.Star(), big_int=True))
        elif folded(call.name) in _NOW and not call.expressions:
            call.replace(exp.CurrentTimestamp())
        elif folded(call.name) in _AGGREGATES:
            call.replace(exp.AnonymousAggFunc(this=folded(call.name), expressions=call.expressions))
    for quantile in list(tree.find_all(exp.ApproxQuantile)):
        arguments = [quantile.args[part] for part in quantile.arg_types if quantile.args.get(part) is not None]
        quantile.replace(exp.AnonymousAggFunc(this="approx_quantile", expressions=arguments))
    for places in tree.find_all(exp.GroupingId):
        if not places.expressions:
            raise Refused("SDC047", "grouping_id() of no column: write grouping(a, b) with those of GROUP BY")
    for frame in tree.find_all(exp.WindowSpec):
        if frame.args.get("end") is None:
            frame.set("end", "CURRENT ROW")
    for group in tree.find_all(exp.Group):
        if isinstance(group.parent, exp.Select):
            _replace_numbers(group, group.parent)


def _check_limits(tree: exp.Expr) -> None:
    """Refuse very many grouping sets, and columns and figures of the same query as a limit.

    There is one limit for all rows, known before them.
    """
    refuse_many_sets(tree)
    for limit in tree.find_all(exp.Limit, exp.Offset, exp.Fetch):
        number = limit.args.get("count") or limit.expression
        for part in number.walk(prune=is_query) if number is not None else ():
            if isinstance(part, (exp.Column, exp.AggFunc)):
                raise Refused("SDC030", "one in LIMIT or OFFSET, which take a number, or (SELECT max(..) FROM ..)")


def _replace_numbers(group: exp.Group, select: exp.Select) -> None:
    """In ROLLUP, CUBE and GROUPING SETS a number is a column of SELECT, as it is outside of them."""
    named = {folded(item.alias): place for place, item in enumerate(select.expressions, 1) if item.alias}
    places: dict[str, int] = {}
    written_out: set[str] = set()
    spelled: dict[str, str] = {}
    waiting = list(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))
    for key in group.expressions if waiting else ():
        _refuse_two_spellings(spelled, key)
    while waiting:
        for part in waiting.pop().expressions:
            leaf = part.unnest()
            if isinstance(leaf, exp.Tuple):
                waiting.append(leaf)
            elif isinstance(leaf, exp.Literal) and not leaf.is_string:
                place = int(leaf.this) if leaf.is_int else 0
                items = select.expressions[:place]
                plain = all(not item.is_star and item.find(exp.Columns) is None for item in items)
                if not plain or not 0 < place == len(items) or isinstance(items[-1].unalias(), exp.Literal):
                    raise Refused("SDC047", "a number in ROLLUP, CUBE or GROUPING SETS")
                _refuse_two_places(places, place, select)
                leaf.replace(items[-1].unalias().copy())
            elif isinstance(leaf, exp.Column) and not leaf.table and folded(leaf.name) in named:
                _refuse_two_places(places, named[folded(leaf.name)], select)
            else:
                written_out.add(_without_tables(leaf, select))
                _refuse_two_spellings(spelled, leaf)
    if written_out & set(places):  # by number it is another key to DuckDB than written out
        raise Refused("SDC047", _TWO_KEYS)


_TWO_KEYS = "one expression as two keys of ROLLUP, CUBE or GROUPING SETS: take it once"


def _without_tables(node: exp.Expr, select: exp.Select) -> str:
    """An expression as text; of one relation it does not matter whether it is named."""
    node = node.copy()
    if not select.args.get("joins"):
        for column in node.find_all(exp.Column):
            column.set("table", None)
    return folded(node.sql("duckdb"))


def _refuse_two_spellings(spelled: dict[str, str], leaf: exp.Expr) -> None:
    """Refuse subtotals over p.age and age: to DuckDB these are two keys, and the same column here."""
    columns = list(leaf.find_all(exp.Column))
    bare = leaf.copy()
    for column in bare.find_all(exp.Column):
        column.set("table", None)
    written = folded(leaf.sql("duckdb"))
    other = spelled.setdefault(folded(bare.sql("duckdb")), written)
    if other != written and (any(not column.table for column in columns) or "." not in other):
        raise Refused("SDC047", _TWO_KEYS)


def _refuse_two_places(places: dict[str, int], place: int, select: exp.Select) -> None:
    """Refuse subtotals over two columns that are one expression: to DuckDB they are two keys by number or alias."""
    if places.setdefault(_without_tables(select.expressions[place - 1].unalias(), select), place) != place:
        raise Refused("SDC047", _TWO_KEYS)
