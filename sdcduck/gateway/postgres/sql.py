"""SQL as PostgreSQL programs write it, into that of DuckDB, before the guard sees it.

What DuckDB reads as it was meant stays as it is, to the letter. The guard judges what comes out of here like any other
text, so nothing here decides what is safe.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp

from sdcduck.gateway.postgres import templates
from sdcduck.gateway.postgres.dialect import READ_FOR_DUCKDB, UNREADABLE, ended, is_large, listed_in, with_quoted_names
from sdcduck.gateway.postgres.parameters import parts_of
from sdcduck.gateway.postgres.patterns import CALLED, LIKE, must_be_settled, settle_patterns
from sdcduck.quoting import folded

SCHEMA = "public"
_OUR_SCHEMAS = frozenset([SCHEMA, "main"])
_LONGEST_KNOWN = 20_000
_WITH_TEMPLATES = frozenset(["to_char", "to_timestamp", "to_date", "to_number"])
_APART = "_sdc_template_"
_ONLY_POSTGRES = re.compile(
    r"\bnow\s*\(\s*\)|\bE'|\b(to_char|to_date|to_number|make_interval)\s*\(|\bto_timestamp\s*\([^()]*(\([^()]*\)[^()]*)*,"
    r"|\bfetch\s+(first|next)\b|\bgenerate_series\b|\|/|\bisnull\b|\bnotnull\b|::\s*\"?(name|regclass|bpchar)\b",
    re.I,
)


_LOOSE = (exp.Where, exp.Having, exp.Connector, exp.Not, exp.Paren)  # around these IN means what = ANY does
_SETTLED = re.compile(
    r"\b(?:any|all)\s*\(\s*\(?\s*(?:array\s*\[|')|\bpercentile_\w{4}\s*\(\s*(?:array\s*\[|\$)|^\s*values\b|\bwidth_bucket\s*\(",
    re.I,
)


_OTHER_MEANING = re.compile(r"\bsimilar\s+to\b|(?<![.\w])format\s*\(", re.I)
"""What has signs of its own in PostgreSQL: % in SIMILAR TO is any text, format has %s where DuckDB has {}."""


def to_duckdb(sql: str, database: str) -> str:
    """The text with which the guard is asked.

    Args:
        database: name under which clients know the database; with it and the schema ``public`` tables may be named.

    >>> to_duckdb("SELECT to_char(born, 'YYYY') FROM census.public.people", "census")
    "SELECT STRFTIME(born, '%Y') FROM people"
    >>> to_duckdb("SELECT count(*) FROM people WHERE born < to_timestamp('1990-05-01 06:00', 'YYYY-MM-DD HH24:MI')", "")
    "SELECT COUNT(*) FROM people WHERE born < CAST('1990-05-01 06:00:00' AS TIMESTAMP)"
    >>> to_duckdb("SELECT count(*) FROM people WHERE region = ANY (ARRAY['North', 'South'])", "census")
    "SELECT COUNT(*) FROM people WHERE region IN ('North', 'South')"
    >>> to_duckdb("FROM people SELECT count(*)", "census")
    'FROM people SELECT count(*)'
    >>> to_duckdb("SELECT n FROM t WHERE a = E'x' ORDER BY n DESC, m DESC NULLS FIRST", "")
    "SELECT n FROM t WHERE a = 'x' ORDER BY n DESC, m DESC NULLS FIRST"
    """
    return _known(sql, database) if len(sql) <= _LONGEST_KNOWN else _read(sql, database)


def _read(sql: str, database: str) -> str:
    other = _OTHER_MEANING.search(sql) is not None
    if is_large(sql) or CALLED.search(sql):
        return _OTHER_MEANING.sub(" similar_to_of_postgres ", sql) if other else sql
    dialect = "postgres" if _ONLY_POSTGRES.search(sql) else "duckdb"
    schemas = {*_OUR_SCHEMAS, folded(database)}
    changed = (
        other
        or _SETTLED.search(sql) is not None
        or any(f"{schema}." in sql.lower().replace('"', "").replace(" ", "") for schema in schemas)
    )
    try:
        if dialect == "duckdb" and not changed:
            plain = sqlglot.parse(ended(sql), read="duckdb")
            if not LIKE.search(sql) or not any(must_be_settled(tree) for tree in plain if tree is not None):
                return sql
        read = READ_FOR_DUCKDB if dialect == "postgres" else dialect
        trees = sqlglot.parse(ended(_renamed(sql, dialect)), read=read)
    except UNREADABLE:
        return _read_as_postgres(with_quoted_names(sql), database)
    return _written(trees, sql, database)


_known = lru_cache(maxsize=2000)(_read)


def _read_as_postgres(sql: str, database: str) -> str:
    try:
        return _written(sqlglot.parse(ended(_renamed(sql, "postgres")), read=READ_FOR_DUCKDB), sql, database)
    except UNREADABLE:
        return sql


def _renamed(sql: str, dialect: str) -> str:
    """A text in which functions with templates have names that sqlglot does not know, so that it leaves them alone."""
    words = sqlglot.tokenize(sql, read=dialect)
    for word, after in reversed(list(pairwise(words))):
        is_name = word.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and folded(word.text) in _WITH_TEMPLATES
        if is_name and after.token_type == TokenType.L_PAREN:
            sql = f"{sql[: word.start]}{_APART}{folded(word.text)}{sql[word.end + 1 :]}"
    return sql


def _text_of(node: exp.Expr) -> str | None:
    is_text = isinstance(node, exp.ByteString) or (isinstance(node, exp.Literal) and node.is_string)
    return node.name if is_text else None


def _by_template(call: exp.Anonymous) -> exp.Expr | None:
    """A function with a template as DuckDB has it; None: nothing there means the same.

    A text that is read, as it stands in the question, becomes the moment that is meant: the guard lets nothing read
    texts over records, as that can fail on one of them; this is how filters over time come.
    """
    name = call.name.removeprefix(_APART)
    if len(call.expressions) != 2 or isinstance(call.parent, exp.Dot):
        return None
    value, template = call.expressions[0], _text_of(call.expressions[1])
    if template is None or name == "to_number":
        return None
    kind = "date" if name == "to_date" else "timestamp"
    text = _text_of(value)
    if text is not None and name != "to_char":
        meant = templates.moment(text, template)
        if meant is None:
            return None
        return exp.cast(exp.Literal.string(str(meant.date() if kind == "date" else meant)), kind)
    form = templates.written(template) if name == "to_char" else templates.read_format(template)
    if form is None:
        return None
    put = exp.Anonymous(
        this="STRFTIME" if name == "to_char" else "STRPTIME", expressions=[value, exp.Literal.string(form)]
    )
    return exp.cast(put, "date") if kind == "date" else put


def _put_templates(tree: exp.Expr) -> None:
    """Functions with templates get the names and formats of DuckDB, or names that the guard refuses with a lesson."""
    for call in reversed(list(tree.find_all(exp.Anonymous))):
        if not call.name.startswith(_APART):
            continue
        put = _by_template(call)
        if put is not None:
            call.replace(put)
        else:
            name = call.name.removeprefix(_APART)
            call.set("this", "to_timestamp_by_template" if name == "to_timestamp" and call.expressions[1:] else name)


def _listed(array: exp.Expr) -> list[exp.Expr]:
    """What stands in ``ARRAY['a', 'b']``, ``'{a,b}'`` or one of them with a type; none where it cannot be told."""
    numbers = False
    if isinstance(array, exp.Cast) and array.to.is_type(exp.DataType.Type.ARRAY):
        numbers = bool(array.to.expressions) and array.to.expressions[0].is_type(*exp.DataType.INTEGER_TYPES)
        array = array.this
    if isinstance(array, exp.Array):
        return [one.copy() for one in array.expressions]
    if not (isinstance(array, exp.Literal) and array.is_string):
        return []
    try:
        parts = parts_of(array.name)
        return [
            exp.null() if part is None else exp.Literal.number(int(part)) if numbers else exp.Literal.string(part)
            for part in parts
        ]
    except ValueError:
        return []


def _settle_quantile(within: exp.WithinGroup) -> None:
    """A quantile, or a list of them, as the guard reads it: sqlglot leaves the order within the brackets."""
    quantile, order = within.this, within.expression
    first = order.expressions[0] if isinstance(order, exp.Order) and len(order.expressions) == 1 else None
    if first is None or first.args.get("desc") or not isinstance(quantile, (exp.PercentileCont, exp.PercentileDisc)):
        return
    name = "quantile_cont" if isinstance(quantile, exp.PercentileCont) else "quantile_disc"
    several = quantile.this.expressions if isinstance(quantile.this, exp.Array) else [quantile.this]
    found = [exp.Anonymous(this=name, expressions=[first.this.copy(), share.copy()]) for share in several]
    within.replace(exp.Array(expressions=found) if isinstance(quantile.this, exp.Array) else found[0])


def _settle_bucket(bucket: exp.WidthBucket) -> None:
    """A bucket in arithmetic; one of lists, or of borders that are no rising numbers, stays for the guard to refuse.

    >>> to_duckdb("SELECT width_bucket(a, 0, 60, 7) FROM t", "")
    'SELECT CASE WHEN a < 0 THEN 0 WHEN a >= 60 THEN 8 ELSE CAST(FLOOR((a - 0) * 7 / 60) AS INT) + 1 END FROM t'
    """
    value, ends = bucket.this, [bucket.args.get(part) for part in ("min_value", "max_value", "num_buckets")]
    try:
        low, high, number = (Decimal(end.sql("duckdb")) for end in ends if end is not None)
        width = high - low
        # As many as PostgreSQL has: a number of few signs may have a billion digits.
        if not (width > 0 and 1 <= number < 2**31 and number == int(number)):
            return
    except (ValueError, ArithmeticError):
        return
    at = exp.paren(value.copy()) if isinstance(value, exp.Binary) else value
    text = at.sql("duckdb")
    steps = f"CAST(floor(({text} - {low}) * {number} / {width}) AS INTEGER) + 1"
    case = f"CASE WHEN {text} < {low} THEN 0 WHEN {text} >= {high} THEN {number + 1} ELSE {steps} END"
    bucket.replace(sqlglot.parse_one(case, read="duckdb"))


def _as_table(values: exp.Values) -> exp.Expr:
    """``VALUES (1), (2)`` as a question, with the names that PostgreSQL gives its columns.

    >>> to_duckdb("VALUES (1, 'a'), (2, 'b') ORDER BY 1 LIMIT 1", "")
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS rows_of(column1, column2) ORDER BY 1 LIMIT 1"
    """
    names = [exp.to_identifier(f"column{place + 1}") for place in range(len(values.expressions[0].expressions))]
    alias = exp.TableAlias(this=exp.to_identifier("rows_of"), columns=names)
    around = {part: values.args.get(part) for part in ("order", "limit", "offset")}
    table = exp.Values(expressions=[row.copy() for row in values.expressions], alias=alias)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), **{k: v for k, v in around.items() if v})


def _written(trees: list[exp.Expr | None], sql: str, database: str) -> str:
    """A statement as DuckDB has it, with tables by their plain names; what is not one query stays as it is."""
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Values) and isinstance(tree.expressions[0], exp.Tuple):
        tree = _as_table(tree)
    if not isinstance(tree, exp.Query):
        return sql
    for node in list(tree.find_all(exp.Table, exp.Column)):
        schema, catalog = node.args.get("db"), node.args.get("catalog")
        ours = schema is not None and folded(schema.name) in _OUR_SCHEMAS
        if ours and (catalog is None or folded(catalog.name) == folded(database)):
            node.set("db", None)
            node.set("catalog", None)
    for several in list(tree.find_all(exp.EQ, exp.NEQ)):
        alone = isinstance(several.this, exp.Column) and isinstance(several.parent, _LOOSE)
        array = listed_in(several) if alone else None
        if array is not None and (listed := _listed(array)):
            within = exp.In(this=several.this, expressions=listed)
            several.replace(within if isinstance(several, exp.EQ) else exp.Not(this=within))
    for quantile in list(tree.find_all(exp.WithinGroup)):
        _settle_quantile(quantile)
    _put_templates(tree)
    for bucket in list(tree.find_all(exp.WidthBucket)):
        _settle_bucket(bucket)
    for call in reversed(list(tree.find_all(exp.SimilarTo, exp.Format))):
        if isinstance(call, exp.SimilarTo):
            call.replace(exp.Anonymous(this="similar_to_of_postgres", expressions=[call.this, call.expression]))
        elif "%" in (_text_of(call.this) or "%"):
            call.replace(exp.Anonymous(this="format_of_postgres", expressions=[call.this, *call.expressions]))
    settle_patterns(tree)
    for text in list(tree.find_all(exp.ByteString)):  # E'..', as psycopg2 writes texts with a backslash
        text.replace(exp.Literal.string(text.name))
    for kind in tree.find_all(exp.DataType):
        if kind.sql("postgres").lower() in ("name", "bpchar"):
            kind.replace(exp.DataType.build("text"))
    try:
        return tree.sql("duckdb", comments=False)
    except UNREADABLE:
        return sql
