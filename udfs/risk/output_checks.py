"""Checking what is to leave a safe room, and keeping the record: planners behind ``sql/output_checks_tables.sql``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, needed, person, share, whole, wrong
from sdcduck.udfs.conditions import parsed
from sdcduck.udfs.publication import Measure, Publication, clusters
from sdcduck.udfs.risk import curves
from sdcduck.udfs.source import source
from sdcduck.udfs.suppression.pattern import resolve
from sdcduck.udfs.suppression.rules import Rules, marked_cells, read_rules, with_amounts, with_structural_zeros

_ZEROS = ("fail", "review", "ignore")
_ADDED = ("level", "status", "why")
CHECKS = ("sdc_check_table", "sdc_check_statistics", "sdc_check_regression", "sdc_check_model")
"""The functions whose answers can be recorded: each has the columns ``status`` and ``why``."""
_LEAST = 2
_POSITIONAL = {"sdc_check_table": 1, "sdc_check_statistics": 1, "sdc_check_regression": 2, "sdc_check_model": 1}
_OF_NO_RECORDS = ("sdc_check_regression", "sdc_check_model")
"""Those whose first argument is no query."""
_NOT_ONE_TABLE = "the source is not one table: that each record is there once is for somebody to see"
_AS_STRICT: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "threshold": ("is not 10 or more", lambda value: value >= 10),
    "max_share": ("is not 0.9 or less", lambda value: value <= 0.9),
    "zeros": ("is not 'fail'", lambda value: value == "fail"),
    "dominance": ("is not [(2, 90)], as it is where it is not given", lambda value: False),
    "p_percent": ("is not 10 or more", lambda value: value >= 10),
    "structural_zeros": ("is given: what is impossible is for somebody to say", lambda value: False),
    "freq": ("is given: that a sum is a number of records is for somebody to see", lambda value: False),
    "weight": ("is given: what stands for how many is for somebody to see", lambda value: False),
    "leaf": ("is given: that these are the leaves of the model is for somebody to see", lambda value: False),
    "records": ("is given: how many were fitted is for somebody to see", lambda value: False),
    "min_df": ("is not 10 or more", lambda value: value >= 10),
}
"""By argument, what is said where it is not as strict as it is by default, and whether it is."""


# --- tables ----------------------------------------------------------------------------------------------------------


def plan_check_table(
    session: Session, text: str | None, threshold: int | None, max_share: float | None, zeros: str | None,
    dominance: str | None, p_percent: float | None, contributor: str | None, weight: str | None,
    structural_zeros: str | None, hide: bool | None, freq: str | None,
) -> str:  # fmt: skip
    """``sdc_check_table``: every cell of a publication under the rules of output checking."""
    publication = resolve(session, text, _ADDED).counted(freq)
    publication.check_has_records()
    publication.measure(None, "freq", "count")
    least, most = _threshold(threshold), share(max_share, "max_share", zero=False)
    about_zeros = choice(zeros, "zeros", _ZEROS)
    finest = len(publication.sets) - 1
    if hide and len(publication.sets[finest]) < len(publication.dimensions):
        raise SDCError(
            "argument 'hide' goes with a table that shows its inner cells, as CUBE and ROLLUP do: margins become the "
            "sums of those that are shown; for other tables use sdc_suppress"
        )
    sums = [measure for measure in publication.measures if measure.kind == "sum"]
    if not sums and (contributor is not None or weight is not None):
        raise SDCError("arguments 'contributor' and 'weight' go with a sum(..) column")
    cursor = session.cursor()
    publication = with_structural_zeros(cursor, publication, structural_zeros, about_zeros != "ignore")
    extend = clusters(cursor, publication) if about_zeros != "ignore" else ()
    findings = _count_findings(publication, least, most, about_zeros)
    rules = [
        read_rules(
            None, False, max(least, 2), dominance, p_percent, None, None, measure.name, None, contributor, None, weight
        )
        for measure in sums
    ]
    # Everything about a cell is said by one list of (status, rule); sums are looked at one by one.
    marked = [
        marked_cells(with_amounts(cursor, publication, rule, shown=True), rule, extend=extend, members=False)
        for rule in rules or [Rules()]
    ]
    joined = f"({marked[0]}) c" + "".join(
        f" JOIN (SELECT _sdc_cell, _sdc_why AS _sdc_why{place} FROM ({more})) USING (_sdc_cell)"
        for place, more in enumerate(marked[1:], start=1)
    )
    renamed = "c.* EXCLUDE (_sdc_why), _sdc_why AS _sdc_why0"
    shown = ", ".join([renamed, *(f"_sdc_why{place}" for place in range(1, len(marked)))])
    for place, measure in enumerate(sums):
        findings.append((f"_sdc_why{place} <> ''", "fail", f"{literal(measure.name + ': ')} || _sdc_why{place}"))
    negative, joined_negative = _negative_values(publication, sums)
    findings += negative
    fail = ", ".join(f"CASE WHEN {condition} THEN {why} END" for condition, kind, why in findings if kind == "fail")
    review = ", ".join(f"CASE WHEN {condition} THEN {why} END" for condition, kind, why in findings if kind == "review")
    statement = f"""
        WITH _sdc_cells AS MATERIALIZED (SELECT {shown} FROM {joined}),
        _sdc_totals AS (
            SELECT *{_totals(publication)}
            FROM _sdc_cells c JOIN ({_several(publication)}) USING (_sdc_set) {joined_negative}
        ),
        _sdc_found AS MATERIALIZED (
            SELECT *, concat_ws(', ', {fail or "NULL"}) AS _sdc_fail,
                concat_ws(', ', {review or "NULL"}) AS _sdc_review
            FROM _sdc_totals
        ),
        _sdc_judged AS MATERIALIZED (
            SELECT *,
                CASE WHEN _sdc_fail <> '' THEN 'fail' WHEN _sdc_review <> '' THEN 'review' ELSE 'pass' END AS status,
                nullif(concat_ws(', ', nullif(_sdc_fail, ''), nullif(_sdc_review, '')), '') AS why
            FROM _sdc_found
        )"""
    columns = ", ".join(identifier(name) for name in publication.columns)
    if not hide:
        return f"{statement} SELECT {columns}, level, status, why FROM _sdc_judged ORDER BY _sdc_cell"
    return statement + _with_cells_hidden(publication, finest)


def _threshold(threshold: int | None) -> int:
    return whole(threshold, "threshold", least=_LEAST, why="with 1, every cell passes")


def _count_findings(publication: Publication, least: int, max_share: float, zeros: str) -> list[tuple[str, str, str]]:
    """Condition, status and rule, as SQL, for every count(..) of a publication."""
    findings = []
    for place, measure in enumerate(publication.measures):
        if measure.kind != "count":
            continue
        n, name = identifier(measure.name), measure.name
        findings.append((f"{n} > 0 AND {n} < {least}", "fail", literal(f"{name}: threshold")))
        if zeros != "ignore":
            findings.append((f"{n} = 0", zeros, literal(f"{name}: zero")))
        shares = [
            (f"_sdc_row{place}_{axis}", f"_sdc_set IN ({', '.join(map(str, sets))}) AND _sdc_several{axis}")
            for axis in range(len(publication.dimensions))
            if (sets := [number for number, columns in enumerate(publication.sets) if axis in columns])
        ]
        if shares:
            alone = " OR ".join(f"({known} AND {n} = {total})" for total, known in shares)
            most = " OR ".join(f"({known} AND {n} > {max_share!r}::DOUBLE * {total})" for total, known in shares)
            findings.append((f"{n} > 0 AND ({alone})", "fail", literal(f"{name}: all in one cell")))
            findings.append((f"{n} > 0 AND NOT ({alone}) AND ({most})", "fail", literal(f"{name}: share")))
    return findings


def _totals(publication: Publication) -> str:
    """Columns for the total that a cell is part of along each dimension."""
    names = publication.quoted_dimensions
    parts = []
    for axis, name in enumerate(names):
        others = ", ".join(["_sdc_set", *(other for other in names if other != name)])
        for place, measure in enumerate(publication.measures):
            if measure.kind == "count":
                parts.append(f"sum({identifier(measure.name)}) OVER (PARTITION BY {others}) AS _sdc_row{place}_{axis}")
    return "".join(", " + part for part in parts)


def _several(publication: Publication) -> str:
    """A query for the dimensions that have several categories, by grouping set."""
    parts = [
        f"min({name}) IS DISTINCT FROM max({name}) OR count({name}) NOT IN (0, count(*)) AS _sdc_several{axis}"
        for axis, name in enumerate(publication.quoted_dimensions)
    ]
    return f"SELECT {', '.join(['_sdc_set', *parts])} FROM _sdc_cells GROUP BY _sdc_set"


def _negative_values(publication: Publication, sums: list[Measure]) -> tuple[list[tuple[str, str, str]], str]:
    """Findings for sums with negative contributions, which rules take for positive; and what to join for them."""
    if not sums:
        return [], ""
    keys = [f"_sdc_d{place}" for place in range(len(publication.dimensions))]
    flags = [f"_sdc_m{publication.measures.index(measure)}" for measure in sums]
    inner = ", ".join([*keys, *(f"coalesce(bool_or({flag} < 0), false) AS {flag}" for flag in flags)])
    outer = ", ".join([*keys, *(f"bool_or({flag}) AS _sdc_negative{place}" for place, flag in enumerate(flags))])
    match = " AND ".join(
        ["c._sdc_set = s._sdc_in", *(
            f"c.{name} IS NOT DISTINCT FROM s.{key}"
            for name, key in zip(publication.quoted_dimensions, keys, strict=True)
        )]
    )  # fmt: skip
    joined = f"""LEFT JOIN (
            SELECT {publication.set_number(keys)} AS _sdc_in, {outer}
            FROM (SELECT {inner} FROM ({publication.records}) GROUP BY {", ".join(keys) or "()"})
            GROUP BY {publication.grouping_sets(keys)}
        ) s ON {match}"""
    return [
        (f"_sdc_negative{place}", "review", literal(f"{measure.name}: negative values"))
        for place, measure in enumerate(sums)
    ], joined


def _with_cells_hidden(publication: Publication, finest: int) -> str:
    """The end of the statement where inner cells that fail are NULL, and margins the sums of those that are left."""
    names = publication.quoted_dimensions
    measures = [identifier(measure.name) for measure in publication.measures]
    added = ", ".join(
        f"sum({name})::{measure.sql_type} AS {name}"
        for name, measure in zip(measures, publication.measures, strict=True)
    )
    match = " AND ".join(["j._sdc_set = m._sdc_margin", *(f"j.{name} IS NOT DISTINCT FROM m.{name}" for name in names)])
    columns = ", ".join(
        f"j.{identifier(name)}" if identifier(name) in names else f"m.{identifier(name)}"
        for name in publication.columns
    )
    listed = "".join(f", {name}" for name in names)
    kept = f"m.{measures[0]} IS NOT NULL" if measures else "true"
    return f""",
        _sdc_margins AS (
            SELECT {publication.set_number(names)} AS _sdc_margin{listed}, {added}
            FROM (FROM _sdc_judged WHERE _sdc_set = {finest} AND status <> 'fail')
            GROUP BY {publication.grouping_sets(names)}
        )
        SELECT {columns}, level, CASE WHEN {kept} THEN status ELSE 'hidden' END AS status, why
        FROM _sdc_judged j LEFT JOIN _sdc_margins m ON {match} ORDER BY _sdc_cell"""


# --- statistics ------------------------------------------------------------------------------------------------------

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_STATISTICS = ("min", "max", "range", "median", "mode", "sd", "variance")


def plan_check_statistics(
    session: Session, text: str | None, value: str | None, statistics: list[str] | None, by: list[str] | None,
    contributor: str | None, threshold: int | None, max_share: float | None,
) -> str:  # fmt: skip
    """``sdc_check_statistics``: how many stand behind an extreme, a percentile, a mode or a spread."""
    relation = source(session.cursor(), text, "source")
    x = relation.column(value, "value")
    least, most = _threshold(threshold), share(max_share, "max_share", zero=False)
    named = needed(statistics, "statistics", f"name some of {', '.join(_STATISTICS)}, p1 .. p99")
    groups = list(map(identifier, relation.named(by, "by", ("statistic", "units", "support", "status", "why"))))
    whose = "_sdc_number" if contributor is None else relation.column(contributor, "contributor")
    units = "count(DISTINCT _sdc_who)"
    listed = "".join(f", {column}" for column in groups)
    shown = ", ".join([*groups, "statistic", "units", "support"])
    parts = []
    for place, name in enumerate(named):
        support, quantile, need = _support(name, units)
        parts.append(f"""
            SELECT {place} AS _sdc_place{listed}, {literal(folded(str(name)))} AS statistic,
                {units} AS units, {support} AS support, {need}::BIGINT AS _sdc_need
            FROM (SELECT *, {quantile.format(over=f"OVER (PARTITION BY 1{listed})")} AS _sdc_q FROM _sdc_values)
            {f"GROUP BY {', '.join(groups)}" if groups else ""}""")
    return f"""
        WITH _sdc_values AS MATERIALIZED (
            SELECT {"".join(column + ", " for column in groups)}{x} AS _sdc_x, {whose} AS _sdc_who
            FROM (SELECT *, row_number() OVER () AS _sdc_number FROM {relation.sql}) WHERE {x} IS NOT NULL
        ),
        _sdc_all AS ({" UNION ALL ".join(parts)})
        SELECT {shown}, CASE WHEN why IS NULL THEN 'pass' ELSE 'fail' END AS status, why
        FROM (
            SELECT *, CASE
                WHEN units < {least} THEN 'threshold'
                WHEN support < {least} + _sdc_need THEN
                    CASE WHEN _sdc_need > 0 THEN 'degrees of freedom' ELSE 'too few behind it' END
                WHEN statistic = 'mode' AND support > {most!r}::DOUBLE * units THEN 'share'
                END AS why
            FROM _sdc_all
        ) ORDER BY {"".join(column + " NULLS FIRST, " for column in groups)}_sdc_place"""


def _support(name: str | None, units: str) -> tuple[str, str, int]:
    """SQL for the units behind a statistic, for the value that tells who they are, and what they need in addition.

    The value is computed over a window, which stands as ``{over}``.
    """
    text = folded(str(name))

    def those(condition: str) -> str:
        return f"{units} FILTER ({condition})"

    if text == "min":
        return those("_sdc_x = _sdc_q"), "min(_sdc_x) {over}", 0
    if text == "max":
        return those("_sdc_x = _sdc_q"), "max(_sdc_x) {over}", 0
    if text == "range":
        low, high = those("_sdc_x = _sdc_q.low"), those("_sdc_x = _sdc_q.high")
        return f"least({low}, {high})", "struct_pack(low := min(_sdc_x) {over}, high := max(_sdc_x) {over})", 0
    if text == "mode":
        return those("_sdc_x = _sdc_q"), "mode(_sdc_x) {over}", 0
    if text in ("sd", "variance"):
        return units, "NULL", 1
    found = _PERCENTILE.fullmatch("p50" if text == "median" else text)
    if found is None or not 0 < float(found[1]) < 100:
        raise unknown("statistic", str(name), [*_STATISTICS, "p10", "p90"], where="argument 'statistics'")
    return (
        f"least({those('_sdc_x <= _sdc_q')}, {those('_sdc_x >= _sdc_q')})",
        f"quantile_disc(_sdc_x, {float(found[1]) / 100!r}::DOUBLE) {{over}}",
        0,
    )


# --- the record ------------------------------------------------------------------------------------------------------


def _checked_call(cursor: duckdb.DuckDBPyConnection, text: str | None) -> tuple[str, str | None]:
    """The name of the check that a query consists of, and how its rules are laxer than usual, if they are.

    Nothing else may be in it, or it could call anything a pass.

    Raises:
        SDCError: another query.
    """
    wanted = f"argument 'checked' must be one call of a check in parentheses: (FROM {CHECKS[0]}(..))"
    text = (text or "").strip()
    if not text.startswith("(") or not text.endswith(")"):
        raise SDCError(wanted)
    given = parsed(cursor, text[1:-1])
    function = ((given.get("node") or {}).get("from_table") or {}).get("function") or {}
    name = str(function.get("function_name", "")).lower()
    if name not in CHECKS or function.get("schema") or function.get("catalog"):
        raise SDCError(wanted)
    plain = parsed(cursor, f"FROM {name}(0)")
    plain["node"]["from_table"]["function"] = function
    if given != plain:
        raise SDCError(wanted)
    named, lax = 0, []
    for argument, expression in _arguments(function):
        checked = argument in ("publication", "source") or (not argument and name not in _OF_NO_RECORDS)
        if checked and not _is_of_one_table(cursor, expression):
            lax.append(_NOT_ONE_TABLE)
        if not argument:
            continue
        named += 1
        usual = _AS_STRICT.get(argument)
        if usual is not None and not _is_as_strict(usual[1], expression):
            lax.append(f"{argument} {usual[0]}")
    if len(_arguments(function)) - named > _POSITIONAL[name]:
        raise SDCError(f"{wanted}; write its options by name, as in threshold := 10")
    return name, ", ".join(sorted(lax)) or None


def _arguments(function: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Name and expression of the arguments of a call, as either version of DuckDB has them; no name: by its place."""
    if "arguments" in function:
        return [(folded(argument["name"]), argument["expression"]) for argument in function["arguments"]]
    return [(folded(child.get("alias", "")), child) for child in function.get("children", [])]


def _is_as_strict(usual: Callable[[Any], bool], expression: dict[str, Any]) -> bool:
    """Whether an argument is as strict as usual; what is not a plain number or text is not known to be."""
    literal_of, value = expression.get("literal"), expression.get("value")
    if literal_of is not None:  # DuckDB 2
        number = literal_of.get("kind") in ("INTEGER", "NUMERIC")
        found = float(literal_of["text"]) if number else literal_of["text"]
    elif value is not None and not value.get("is_null", True):
        kind = value["type"]
        scale = (kind["type_info"] or {}).get("scale", 0) if kind["id"] == "DECIMAL" else 0
        found = value["value"] if kind["id"] == "VARCHAR" else float(value["value"]) / 10**scale
    else:
        return False
    try:
        return usual(found)
    except TypeError:
        return False


def _is_of_one_table(cursor: duckdb.DuckDBPyConnection, expression: dict[str, Any]) -> bool:
    """Whether what is checked is written out, and has the records of one table, each at most once.

    A join, or a list that is unnested, makes many units of one.
    """
    text = _text_of(expression)
    if text is None:
        return False
    if not text.startswith("(") and not any(character.isspace() for character in text):
        try:
            text = catalog.publication(cursor, text).query
        except SDCError:
            return True  # a table
    tree = parsed(cursor, text[1:-1] if text.startswith("(") else text)
    return bool(tree) and _is_plain(tree.get("node"))


def _text_of(expression: dict[str, Any]) -> str | None:
    """The text that an argument is, as either version of DuckDB has it; None: it is something else."""
    written = expression.get("literal") or {}
    if written.get("kind") == "STRING":
        return str(written["text"]).strip()
    value = expression.get("value") or {}
    if expression.get("class") == "CONSTANT" and (value.get("type") or {}).get("id") == "VARCHAR":
        return str(value["value"]).strip()
    return None


def _is_plain(node: Any) -> bool:
    """Whether a query has one table behind FROM, or a query of one, and no other query anywhere."""
    if not isinstance(node, dict) or node.get("type") != "SELECT_NODE" or (node.get("cte_map") or {}).get("map"):
        return False
    source = node.get("from_table") or {}
    if source.get("type") == "SUBQUERY":
        inner = (source.get("subquery") or {}).get("node")
        if not _is_plain(inner):
            return False
    elif source.get("type") != "BASE_TABLE":
        return False
    return not any(map(_multiplies, (value for part, value in node.items() if part != "from_table")))


_SEVERAL_ROWS = frozenset(("unnest", "unlist", "generate_subscripts"))
"""Functions that make several rows of one where they stand among columns."""


def _multiplies(part: Any) -> bool:
    """Whether a part of a query has another query in it, or makes several rows of one."""
    if isinstance(part, list):
        return any(map(_multiplies, part))
    if not isinstance(part, dict):
        return False
    if part.get("class") == "SUBQUERY" or folded(str(part.get("function_name", ""))) in _SEVERAL_ROWS:
        return True
    return any(map(_multiplies, part.values()))


def plan_check_submit(
    session: Session, name: str | None, checked: str | None, requested_by: str | None, exception: str | None
) -> Rows:
    """``sdc_check_submit``: runs a check and stores what came of it."""
    title = needed(name, "name", "name the output").strip()
    who = person(requested_by, "requested_by")
    kind, lax = _checked_call(session.cursor(), checked)
    reason = (exception or "").strip() or None
    known = catalog.output(session.cursor(), title)
    if known is not None and known.decision is not None:
        raise SDCError(f"output '{title}' is decided already; drop it with sdc_drop_output, or take another name")

    def submit() -> pa.Table:
        with session.cursor() as cursor:
            found = cursor.execute(
                "SELECT count(*), count(*) FILTER (status = 'fail'), count(*) FILTER (status = 'review'), "
                "count(*) FILTER (coalesce(status NOT IN ('pass', 'hidden', 'fail', 'review'), true)), "
                f"string_agg(DISTINCT why, '; ' ORDER BY why) FILTER (status <> 'pass') FROM {checked}"
            ).fetchone()
            assert found is not None
            cells, failed, review, strange, why = found
            # A status that nobody knows, or none, is no pass.
            status = "fail" if failed or strange or not cells else "review" if review or lax else "pass"
            why = "; ".join(filter(None, (why, lax))) or None
            rows = cursor.execute(f"SELECT _sdc_row::VARCHAR FROM {checked} _sdc_row ORDER BY ALL").fetchall()
            said = "\n".join([str(checked), *(str(row[0]) for row in rows)])
            fingerprint = hashlib.sha256(said.encode()).hexdigest()
            catalog.store_output(
                cursor,
                catalog.Output(title, kind, str(checked), status, cells, failed, review, why, fingerprint, who, reason),
            )
        return pa.table(
            {"name": [title], "kind": [kind], "status": [status], "cells": [cells], "failed": [failed],
             "review": [review]}
        )  # fmt: skip

    return Rows(submit)


def plan_check_decide(
    session: Session,
    name: str | None,
    decision: str | None,
    decided_by: str | None,
    reason: str | None,
    fingerprint: str | None,
) -> Rows:
    """``sdc_check_decide``: approves or rejects a stored output."""
    who = person(decided_by, "decided_by")
    title = (name or "").strip()
    known = catalog.output(session.cursor(), title)
    if known is None:
        raise unknown("output", title, catalog.outputs(session.cursor()))
    verdict = choice(decision, "decision", ("approve", "reject"))
    if known.decision is not None:
        raise SDCError(f"output '{title}' is decided already")
    if folded(who) == folded(_submitter(known)):
        raise SDCError("an output is decided by somebody else than who submitted it")
    why = (reason or "").strip() or None
    if why is None and (verdict == "reject" or known.status != "pass"):
        raise wrong("reason", "say why", "the output did not pass, or is not to go")
    if fingerprint is None and known.replaces is not None:
        raise SDCError(
            f"output '{title}' was submitted again, as something else: look at what it is now, and give "
            "argument 'fingerprint' as it is in sdc_outputs()"
        )
    if fingerprint is not None and fingerprint.strip() != known.fingerprint:
        raise SDCError(
            f"argument 'fingerprint' is not that of output '{title}' in sdc_outputs(): it was submitted again since"
        )

    def decide() -> pa.Table:
        catalog.decide_output(session.cursor(), known, verdict, who, why)
        return pa.table(
            {"name": [title], "status": [known.status], "decision": [verdict], "by": [who],
             "fingerprint": [known.fingerprint]}
        )  # fmt: skip

    return Rows(decide)


def _submitter(output: catalog.Output) -> str:
    """Who submitted an output: records from before names had to be plain may hold others."""
    try:
        return person(output.submitted_by, "requested_by")
    except SDCError:
        raise SDCError(
            f"output '{output.name}' was submitted under a name that may look like another one: submit it again, by "
            "somebody whose name is in plain letters"
        ) from None


def plan_drop_output(session: Session, name: str | None) -> Rows:
    """``sdc_drop_output``: fails while binding if there is no such output."""
    title = (name or "").strip()
    if catalog.output(session.cursor(), title) is None:
        raise unknown("output", title, catalog.outputs(session.cursor()))

    def drop() -> pa.Table:
        catalog.drop_output(session.cursor(), title)
        return pa.table({"name": [title]})

    return Rows(drop)


FAMILY = Family(
    name="output_checks",
    stored=("output_checks.sql",),
    temporary=("output_checks_tables.sql",),
    planners=(
        *planners(plan_check_table, plan_check_statistics, plan_check_submit, plan_check_decide, plan_drop_output),
        *curves.PLANNERS,
    ),
)
