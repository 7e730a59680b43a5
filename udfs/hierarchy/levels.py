"""Hierarchies: trees of codes as level columns, and the files in which tau-Argus keeps them.

Planners behind ``sql/hierarchy_tables.sql``. The formats are those of tau-Argus 4 as its manual describes them and its
source reads them: ``Metadata.java`` for .rda, ``TableSet.java`` for .hst.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import wrong
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, read_file, source

_MOST_LEVELS = 100


# --- Levels -----------------------------------------------------------------------------------------------------------


def plan_levels(session: Session, table: str | None, child: str | None, parent: str | None, prefix: str | None) -> str:
    """``sdc_levels``: a recursive query, with as many columns as the tree is deep now."""
    if prefix is None:
        raise wrong("prefix", "be the beginning of the names of the level columns")
    cursor = session.cursor()
    tree = source(cursor, table, "source")
    pairs = _pairs(cursor, tree, tree.column(child, "child"), tree.column(parent, "parent"))
    depth = _depth(cursor, tree, pairs)
    names = [f"{prefix}{level}" for level in range(1, max(depth, 1) + 1)]
    if "code" in (folded(name) for name in names):
        raise SDCError("argument 'prefix' makes a column 'code', as the result has: take another prefix")
    levels = ", ".join(f"_sdc_path[least({level}, len(_sdc_path))] AS {identifier(name)}" for level, name in
                       enumerate(names, start=1))  # fmt: skip
    changed = literal(f"the hierarchy in {tree.described} became deeper since the statement was prepared; try again")
    return f"""
        {_paths(pairs, max(depth, 1) + 1)}
        SELECT _sdc_code AS code, {levels} FROM _sdc_paths
        WHERE _sdc_code NOT IN (SELECT parent FROM _sdc_pairs WHERE parent IS NOT NULL)
            AND CASE WHEN len(_sdc_path) > {max(depth, 1)} THEN error({changed}) ELSE true END
        ORDER BY _sdc_path"""


def _pairs(cursor: duckdb.DuckDBPyConnection, tree: Source, child: str, parent: str) -> str:
    """SQL of the distinct (child, parent) rows, both of the type that holds either."""
    described = cursor.execute(
        f"DESCRIBE SELECT {child} AS code FROM {tree.sql} UNION ALL SELECT {parent} FROM {tree.sql}"
    ).fetchall()
    return f"SELECT DISTINCT {child}::{described[0][1]} AS child, {parent}::{described[0][1]} AS parent FROM {tree.sql}"


def _paths(pairs: str, most: int) -> str:
    """SQL, a WITH clause: for each code that a top reaches the path from the top down to it, at most so many long."""
    return f"""
        WITH RECURSIVE _sdc_pairs AS MATERIALIZED ({pairs}),
        _sdc_paths AS (
            SELECT DISTINCT _sdc_code, [_sdc_code] AS _sdc_path FROM (
                SELECT child AS _sdc_code FROM _sdc_pairs WHERE parent IS NULL
                UNION ALL
                SELECT parent FROM _sdc_pairs WHERE parent NOT IN (SELECT child FROM _sdc_pairs)
            )
            UNION ALL
            SELECT child, list_append(_sdc_path, child) FROM _sdc_paths JOIN _sdc_pairs ON parent = _sdc_code
            WHERE len(_sdc_path) < {most}
        )"""


def _depth(cursor: duckdb.DuckDBPyConnection, tree: Source, pairs: str) -> int:
    """How many levels there are.

    Raises:
        SDCError: it is not a tree, or a forest.
    """
    row = first_row(
        cursor,
        f"""WITH pairs AS ({pairs}) SELECT
            count(*) FILTER (child IS NULL), count(DISTINCT child) FILTER (child = parent),
            (SELECT count(*) FROM (SELECT child FROM pairs GROUP BY child HAVING count(*) > 1))
        FROM pairs""",
    )
    assert row is not None
    without_child, own_parents, with_two = row
    if without_child:
        raise SDCError(f"the child is NULL in {tree.described}; a code at the top has the parent NULL, or no row")
    if own_parents:
        raise SDCError(f"{_codes(own_parents)} in {tree.described} {_are(own_parents)} a parent of itself")
    if with_two:
        raise SDCError(
            f"{_codes(with_two)} in {tree.described} {_have(with_two)} two parents or more; "
            "groupings that overlap are columns of their own"
        )
    row = first_row(
        cursor,
        f"""{_paths(pairs, _MOST_LEVELS + 1)}
        SELECT coalesce(max(len(_sdc_path)), 0),
            (SELECT count(*) FROM (SELECT child FROM _sdc_pairs UNION SELECT parent FROM _sdc_pairs) c(code)
                WHERE code IS NOT NULL AND code NOT IN (SELECT _sdc_code FROM _sdc_paths))
        FROM _sdc_paths""",
    )
    assert row is not None
    depth, unreached = row
    if depth > _MOST_LEVELS:
        raise SDCError(f"the hierarchy in {tree.described} has more than {_MOST_LEVELS} levels")
    if unreached:
        raise SDCError(f"{_codes(unreached)} in {tree.described} {_are(unreached)} on or below a cycle of parents")
    return int(depth)


def _codes(count: int) -> str:
    return "one code" if count == 1 else f"{count} codes"


def _are(count: int) -> str:
    return "is" if count == 1 else "are each"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


# --- Files of tau-Argus -----------------------------------------------------------------------------------------------


def lines_of(session: Session, path: str | None) -> list[str]:
    """The lines of a file."""
    content: bytes = read_file(session.cursor(), path, "content")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")  # as tau-Argus writes on Windows
    return text.splitlines()


def in_line(number: int, what: str) -> SDCError:
    return SDCError(f"line {number}: {what}")


def plan_read_hrc(session: Session, path: str | None, indent: str | None) -> Rows:
    """``sdc_read_hrc``: one row a code of an indented hierarchy file."""
    once = indent or ""  # blanks are one, too
    if not once:
        raise wrong("indent", "be what stands once before a code for each level, e.g. '@'")

    def read() -> pa.Table:
        return table_of(list(indented(lines_of(session, path), once)), _HRC_COLUMNS)

    return Rows(read)


_HRC_COLUMNS: Mapping[str, str] = {"child": "VARCHAR", "parent": "VARCHAR", "level": "BIGINT", "position": "BIGINT"}


def indented(lines: Sequence[str], indent: str) -> Iterator[dict[str, Any]]:
    """The codes of a hierarchy that is written with one a line, each with the one above it.

    >>> [(row["child"], row["parent"]) for row in indented(["North", "@Oslo", "South"], "@")]
    [('North', None), ('Oslo', 'North'), ('South', None)]

    Raises:
        SDCError: a line that has no place in the tree, by its number.
    """
    above: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        level, code = 0, line.rstrip()
        while code.startswith(indent):
            level, code = level + 1, code[len(indent) :]
        code = code.strip()
        if not code:
            raise in_line(number, "there is no code after the indent")
        if level > len(above):
            raise in_line(number, "indented by more than one level below the line above it")
        if code in seen:
            raise in_line(number, f"the code stands in line {seen[code]} already; every code has one place")
        seen[code] = number
        above[level:] = [code]
        parent = above[level - 1] if level else None
        yield {"child": code, "parent": parent, "level": level + 1, "position": len(seen)}


@dataclass
class _Variable:
    """One variable of a metadata file, while it is read."""

    name: str
    line: int
    words: list[tuple[str, bool]]  # after the name: text, and whether it was quoted
    keywords: dict[str, list[str]] = field(default_factory=dict)


_OF_TABLES = ("FREQUENCY", "STATUS", "MAXSCORE", "SHADOW", "COST", "COSTVAR", "LOWERPL", "UPPERPL")
_OF_FILE = ("SEPARATOR", "SPSS", "SAFE", "UNSAFE", "PROTECT")
_FLAGS = ("RECODEABLE", "NUMERIC", "WEIGHT", "HIERARCHICAL", "HOLDING", "FREQUENCY")
_TEXTS = {"hier_code_list": "HIERCODELIST", "hier_lead_string": "HIERLEADSTRING", "total_code": "TOTCODE",
          "code_list": "CODELIST"}  # fmt: skip
_NUMBERS = ("HIERLEVELS", "DISTANCE")
_OTHERS = (
    "TRUNCABLE", "RECORDKEY", "PFILE", "PFILE_FREQ", "PFILE_CONT", "PFILE_SEP", "CKM", "INCLUDEZEROS", "PARITY",
    "SCALING", "SEPARATION",
)  # fmt: skip
_KEYWORDS = {*_OF_TABLES, *_FLAGS, *_TEXTS.values(), *_NUMBERS, *_OTHERS, "DECIMALS", "REQUEST"}

_RDA_COLUMNS: Mapping[str, str] = {
    "name": "VARCHAR", "position": "BIGINT", "width": "BIGINT", "missing": "VARCHAR", "recodeable": "BOOLEAN",
    "total_code": "VARCHAR", "code_list": "VARCHAR", "hierarchical": "BOOLEAN", "hier_code_list": "VARCHAR",
    "hier_lead_string": "VARCHAR", "hier_levels": "VARCHAR", "distance": "VARCHAR", "numeric": "BOOLEAN",
    "decimals": "BIGINT", "weight": "BOOLEAN", "frequency": "BOOLEAN", "holding": "BOOLEAN", "request": "VARCHAR",
    "other": "VARCHAR", "separator": "VARCHAR",
}  # fmt: skip


def plan_read_rda(session: Session, path: str | None) -> Rows:
    """``sdc_read_rda``: one row a variable of a metadata file."""

    def read() -> pa.Table:
        return table_of(metadata_of(lines_of(session, path)), _RDA_COLUMNS)

    lists = {"missing": "VARCHAR[]", "request": "VARCHAR[]", "other": "VARCHAR[]", "hier_levels": "BIGINT[]",
             "distance": "BIGINT[]"}  # fmt: skip
    return Rows(read, _with_lists(_RDA_COLUMNS, lists))


def _with_lists(columns: Mapping[str, str], lists: Mapping[str, str]) -> str:
    """SQL that turns the columns that travel as JSON into lists."""
    shown = (
        f"{identifier(name)}::JSON::{lists[name]} AS {identifier(name)}" if name in lists else identifier(name)
        for name in columns
    )
    return f"SELECT {', '.join(shown)} FROM {{rows}}"


def metadata_of(lines: Sequence[str]) -> list[dict[str, Any]]:
    variables: list[_Variable] = []
    of_file: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        words = _words(line, number)
        if not words:
            continue
        if _keyword(*words[0]) is None:
            (name, _), *rest = words
            if any(folded(name) == folded(variable.name) for variable in variables):
                raise in_line(number, "there is a variable of that name already")
            variables.append(_Variable(name, number, rest))
        else:
            _add_keywords(words, number, variables, of_file)
    fixed = "SEPARATOR" not in of_file and "SPSS" not in of_file
    tables = any(keyword in _OF_TABLES for variable in variables for keyword in variable.keywords)
    tables = tables or any(keyword in of_file for keyword in ("SAFE", "UNSAFE", "PROTECT"))
    separator = next(iter(of_file.get("SEPARATOR", [])), None)
    return [{**_place(variable, fixed, tables), **_properties(variable), "separator": separator}
            for variable in variables]  # fmt: skip


def _words(line: str, number: int) -> list[tuple[str, bool]]:
    """The words of a line, with whether they were quoted; ``//`` begins a comment."""
    words: list[tuple[str, bool]] = []
    rest = line.strip()
    while rest and not rest.startswith("//"):
        if rest.startswith('"'):
            word, quote, rest = rest[1:].partition('"')
            if not quote:
                raise in_line(number, "a quote is not closed")
            words.append((word, True))
        else:
            word = rest.split(maxsplit=1)[0]
            rest = rest[len(word) :]
            words.append((word, False))
        rest = rest.strip()
    return words


def _keyword(word: str, quoted: bool) -> str | None:
    if quoted or not (word.startswith("<") and word.endswith(">")):
        return None
    keyword = word[1:-1].upper()
    return "RECODEABLE" if keyword == "RECODABLE" else keyword


def _add_keywords(
    words: Sequence[tuple[str, bool]], number: int, variables: Sequence[_Variable], of_file: dict[str, list[str]]
) -> None:
    """A line of keywords, each with what follows it: of the last variable, or of the file."""
    found: list[tuple[str, list[str]]] = []
    for word, quoted in words:
        keyword = _keyword(word, quoted)
        if keyword is None:
            found[-1][1].append(word)
        else:
            found.append((keyword, []))
    for keyword, arguments in found:
        if keyword in _OF_FILE:
            of_file[keyword] = arguments
        elif keyword not in _KEYWORDS:
            raise in_line(number, "unknown keyword")
        elif not variables:
            raise in_line(number, f"<{keyword}> stands before the first variable")
        elif keyword in variables[-1].keywords:
            raise in_line(number, f"<{keyword}> stands twice below one variable")
        elif keyword in ("DECIMALS", *_TEXTS.values()) and len(arguments) != 1:
            raise in_line(number, f"<{keyword}> takes one value")
        elif keyword in ("DECIMALS", *_NUMBERS) and not (arguments and all(map(str.isdecimal, arguments))):
            raise in_line(number, f"<{keyword}> takes whole numbers")
        else:
            variables[-1].keywords[keyword] = arguments


def _place(variable: _Variable, fixed: bool, tables: bool) -> dict[str, Any]:
    """Position, width and missing codes: in free format there are no positions, in tables no widths either."""
    words = list(variable.words)
    numbers: list[int | None] = []
    for what in [] if tables else (["position", "width"] if fixed else ["width"]):
        if words and words[0][0].isdecimal() and not words[0][1]:
            numbers.append(int(words.pop(0)[0]))
        elif fixed:
            raise in_line(variable.line, f"the {what} of the variable is missing")
    position, width = ([*numbers, None, None] if fixed and not tables else [None, *numbers, None])[:2]
    levels = variable.keywords.get("HIERLEVELS")
    if levels and width is not None and sum(map(int, levels)) != width:
        raise in_line(variable.line, f"<HIERLEVELS> of this variable must add up to its width, {width}")
    missing = [word for word, _ in words]
    return {"name": variable.name, "position": position, "width": width, "missing": json.dumps(missing)}


def _properties(variable: _Variable) -> dict[str, Any]:
    given = variable.keywords
    decimals = given.get("DECIMALS")
    others = [" ".join([f"<{keyword}>", *arguments]) for keyword, arguments in given.items()
              if keyword in (*_OTHERS, *_OF_TABLES) and keyword not in _FLAGS]  # fmt: skip
    return {
        **{flag.lower(): flag in given for flag in _FLAGS},
        "hierarchical": any(keyword in given for keyword in ("HIERARCHICAL", "HIERLEVELS", "HIERCODELIST")),
        **{name: given[keyword][0] if keyword in given else None for name, keyword in _TEXTS.items()},
        "hier_levels": _json_numbers(given.get("HIERLEVELS")),
        "distance": _json_numbers(given.get("DISTANCE")),
        "decimals": None if decimals is None else int(decimals[0]),
        "request": json.dumps(given["REQUEST"]) if "REQUEST" in given else None,
        "other": json.dumps(others),
    }


def _json_numbers(words: Sequence[str] | None) -> str | None:
    return None if words is None else json.dumps([int(word) for word in words])


# --- A priori files ---------------------------------------------------------------------------------------------------

_HST_COLUMNS: Mapping[str, str] = {
    "line": "BIGINT", "codes": "VARCHAR", "status": "VARCHAR", "cost": "DOUBLE", "lower_protection": "DOUBLE",
    "upper_protection": "DOUBLE",
}  # fmt: skip
_STATUSES = ("s", "u", "p", "m", "ml")
_COSTS = ("c", "w")
_SEPARATORS = (";", "\t", "|", ",")


def plan_read_hst(session: Session, path: str | None, separator: str | None, total: str | None) -> Rows:
    """``sdc_read_hst``: one row a line of an a priori file."""
    if separator is not None and len(separator) != 1:
        raise wrong("separator", "be one character")

    def read() -> pa.Table:
        return table_of(list(_a_priori(lines_of(session, path), separator, total)), _HST_COLUMNS)

    return Rows(read, _with_lists(_HST_COLUMNS, {"codes": "VARCHAR[]"}))


def _a_priori(lines: Sequence[str], separator: str | None, total: str | None) -> Iterator[dict[str, Any]]:
    dimensions: int | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.strip().startswith("//"):
            continue
        separator = separator or next((one for one in _SEPARATORS if one in line), None)
        if separator is None:
            raise in_line(number, "there is no separator; say which one with the argument 'separator'")
        fields = _fields(line, separator, number)
        if dimensions is None:
            dimensions = _command_place(fields, number)
        row = _command(fields[dimensions:])
        if row is None:
            raise in_line(
                number,
                f"after {dimensions} codes comes s, u, p, m or ml; or c with a cost; or pl with one or two numbers",
            )
        codes = [None if code in ("", total) else code for code in fields[:dimensions]]
        yield {"line": number, "codes": json.dumps(codes), **row}


def _fields(line: str, separator: str, number: int) -> list[str]:
    try:
        [fields] = csv.reader([line.strip(" ")], delimiter=separator, skipinitialspace=True, strict=True)
    except csv.Error:
        raise in_line(number, "a quote is not closed, or in the middle of a code") from None
    fields = [one.strip() for one in fields]
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def _command_place(fields: Sequence[str], number: int) -> int:
    """After how many codes the command of a line stands, the last place where one can be."""
    for place in range(len(fields) - 1, 0, -1):
        if _command(fields[place:]) is not None:
            return place
    raise in_line(number, "there is no s, u, p, m, ml, c or pl after the codes")


def _command(words: Sequence[str]) -> dict[str, Any] | None:
    """What a line says of its cell, or None if these words are no command."""
    row: dict[str, Any] = {"status": None, "cost": None, "lower_protection": None, "upper_protection": None}
    name, numbers = (words[0].lower() if words else ""), [_number(word) for word in words[1:]]
    if None in numbers:
        return None
    if name in _STATUSES and not numbers:
        return {**row, "status": name}
    if name in _COSTS and len(numbers) == 1:
        return {**row, "cost": numbers[0]}
    if name == "pl" and len(numbers) in (1, 2):
        return {**row, "lower_protection": numbers[0], "upper_protection": numbers[-1]}
    return None


def _number(word: str) -> float | None:
    """A number that is not negative; tau-Argus writes a decimal comma where the system does."""
    try:
        value = float(word.replace(",", "."))
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


FAMILY = Family(
    name="hierarchy",
    temporary=("hierarchy_tables.sql",),
    planners=(
        *planners(plan_levels, plan_read_hrc),
        planner(plan_read_rda, _RDA_COLUMNS),
        planner(plan_read_hst, _HST_COLUMNS),
    ),
)
