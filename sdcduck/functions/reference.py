"""The reference of the SQL functions, read from the comments beside the macros.

A comment block of lines ``--|`` describes the macro that follows it: the signature, a one-line summary, a description,
and the sections ``@arg``, ``@column``, ``@example``, ``@output`` and ``@source``. What an argument or a column means
goes on in lines that begin with more spaces. ``@was old: new`` is what an argument was called in an earlier release,
and ``@was sdc_old`` the function itself: both still work, with a warning. ``@also name VARCHAR[]: SQL`` is what a
planner is told beside the arguments. The command line, ``sdc_functions()``, the documentation site and the tests all
read it from here.

``@args_of sdc_x`` stands for the arguments that a function has in common with that one and does not describe itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import duckdb

EXAMPLE_DATA = """
CREATE TABLE people AS SELECT * FROM (VALUES
    (1, 'North', 'm', 34, 2100), (2, 'North', 'm', 51, 3900), (3, 'North', 'f', 42, 3100), (4, 'North', 'f', 67, 1800),
    (5, 'North', 'm', 29, 2400), (6, 'South', 'f', 38, 2950), (7, 'South', 'f', 59, 4100), (8, 'South', 'm', 61, 5200),
    (9, 'South', 'f', 25, 1900), (10, 'South', 'm', 47, 3300), (11, 'East', 'f', 33, 2600), (12, 'East', 'm', 44, 9800)
) people(person_id, region, sex, age, income);
ALTER TABLE people ADD COLUMN record_key INTEGER;
UPDATE people SET record_key = (person_id * 7919 * 6151 + 12345678) % 100000000;
CREATE TABLE visits AS SELECT * FROM (VALUES
    ('A', 1, 12345678), ('A', 1, 12345678), ('A', 2, 45678901), ('B', 2, 45678901), ('B', 3, 99999999)
) visits(ward, patient, record_key);
CREATE TABLE visits_without_key AS SELECT ward, patient FROM visits;
"""
"""Tables that the examples use."""

EXAMPLE_SECRET = "the secret of the examples"


@dataclass(frozen=True)
class SQLFunction:
    """What is known about one SQL function.

    Attributes:
        name: of the function.
        family: file it is defined in, without ``_tables``.
        signature: arguments with defaults, and the result.
        summary: one sentence.
        description: the rest, paragraphs separated by blank lines.
        arguments: (name, type and meaning).
        columns: (name, type and meaning), for table functions; for a STRUCT its fields.
        example: a SQL statement.
        output: what it returns, as `render` shows it.
        source: where the method comes from.
        needs_python: whether it is one of those that need a connection with sdcduck.
        renamed: what arguments were called in an earlier release, and what they are called now.
        former: what the function was called.
        also: what its planner is told beside the arguments: (name, type and SQL).
    """

    name: str
    family: str
    signature: str
    summary: str
    description: str
    arguments: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]
    example: str
    output: str
    source: str
    needs_python: bool
    renamed: tuple[tuple[str, str], ...] = ()
    former: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()

    @property
    def parameters(self) -> tuple[tuple[str, str | None], ...]:
        """The arguments as the signature has them: name, and the default, as SQL."""
        inside = self.signature[self.signature.index("(") + 1 : self.signature.rindex(")")]
        parts = [part.partition(" := ") for part in _parts(inside)]
        return tuple((name.strip('"'), default or None) for name, _, default in parts)

    @property
    def types(self) -> tuple[tuple[str, str], ...]:
        """Name and type of each argument."""
        return _types(self.arguments)

    @property
    def types_of_columns(self) -> tuple[tuple[str, str], ...]:
        """Name and type of each column, but for those that the arguments decide (``..``)."""
        return tuple((name, kind) for name, kind in _types(self.columns) if name != "..")

    @property
    def kind(self) -> str:
        """'table', 'aggregate' or 'scalar'."""
        if self.signature.endswith("-> TABLE"):
            return "table"
        return "aggregate" if any(kind.endswith("column") for _, kind in self.types) else "scalar"


_OUTSIDE_AND_IN = re.compile(r"'[^']*'|[(\[{]|[)\]}]|,|[^'(\[{)\]},]+")


def _parts(text: str) -> list[str]:
    """What stands between commas, but for those in lists, tuples and texts.

    >>> _parts("a, b := [(1, 75), (2, 90)], c := 'x, y'")
    ['a', 'b := [(1, 75), (2, 90)]', "c := 'x, y'"]
    """
    parts, depth = [""], 0
    for piece in _OUTSIDE_AND_IN.findall(text):
        depth += (piece in "([{") - (piece in ")]}")
        if piece == "," and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts if part.strip()]


def _types(described: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name.strip('"'), meaning.partition(": ")[0]) for name, meaning in described)


SQL_FILES = (
    "perturbation.sql", "perturbation_tables.sql", "suppression.sql", "suppression_tables.sql",
    "suppression_exchange.sql", "synthesis_tables.sql", "record_swapping_tables.sql",
    "private_synthesis.sql", "private_synthesis_tables.sql", "synthetic_records.sql", "synthetic_records_tables.sql",
    "dp_tables.sql", "dp_means_tables.sql", "dp_regression_tables.sql", "dp_pca_tables.sql",
    "masking_tables.sql", "anonymize_tables.sql", "local_suppression_tables.sql", "recoding_tables.sql",
    "k_noise_tables.sql", "pram_tables.sql", "rank_swap_tables.sql", "add_noise_tables.sql", "estimates_tables.sql",
    "integral_tables.sql", "record_rules_tables.sql",
    "risk.sql", "risk_tables.sql", "diversity_tables.sql", "special_uniques_tables.sql", "output_checks.sql",
    "output_checks_tables.sql", "reconstruction_tables.sql", "recon_links_tables.sql", "synthetic_risk_tables.sql",
    "attacks_tables.sql",
    "sequence.sql", "sequence_tables.sql", "cubes_tables.sql", "plans_tables.sql", "sequence_check_tables.sql",
    "sequence_answers_tables.sql", "sequence_budget_tables.sql",
    "guard.sql", "guard_tables.sql", "dp_ledger_tables.sql", "noise.sql", "audit_log_tables.sql",
    "sequence_rehearsal_tables.sql", "users.sql", "users_tables.sql",
    "hierarchy_tables.sql", "utility.sql", "utility_tables.sql", "models_tables.sql", "trips_tables.sql",
    "encrypted_tables.sql", "text.sql", "text_tables.sql", "release_report_tables.sql", "approvals.sql",
    "approvals_tables.sql", "reference.sql",
)  # fmt: skip
PURE_SQL = frozenset([
    "perturbation.sql", "suppression.sql", "risk.sql", "output_checks.sql", "guard.sql", "noise.sql", "users.sql",
    "private_synthesis.sql", "synthetic_records.sql", "sequence.sql", "utility.sql", "approvals.sql",
])  # fmt: skip
"""Those of them that any DuckDB shell can read."""


@cache
def sql_functions() -> tuple[SQLFunction, ...]:
    """Every SQL function, family by family, in the order of the files."""
    return functions_of({name: (files("sdcduck.sql") / name).read_text(encoding="utf-8") for name in SQL_FILES})


def functions_of(texts: Mapping[str, str]) -> tuple[SQLFunction, ...]:
    """The functions that files declare, by name and text."""
    found = [_parse(block, name not in PURE_SQL, name) for name, text in texts.items() for block in _blocks(text)]
    by_name = {one.name: one for one in found}
    return tuple(replace(one, arguments=_all_arguments(one, by_name)) for one in found)


_ARGS_OF = ".."


def _all_arguments(function: SQLFunction, by_name: Mapping[str, SQLFunction]) -> tuple[tuple[str, str], ...]:
    """The arguments of a function in the order of its signature, with those that another function describes."""
    others = [meaning for name, meaning in function.arguments if name == _ARGS_OF]
    if not others:
        return function.arguments
    meanings = dict(function.arguments)
    for other in others:
        meanings = {**dict(_all_arguments(by_name[other], by_name)), **meanings}
    return tuple((name, meanings[name]) for name, _ in function.parameters if name in meanings)


COMMENT = r"(?:^--\|.*\n)++"
_DECLARED = re.compile(COMMENT, re.MULTILINE)


def _blocks(text: str) -> Iterable[list[str]]:
    """The lines of each comment."""
    for match in _DECLARED.finditer(text):
        yield [line[3:].removeprefix(" ") for line in match[0].splitlines()]


def _parse(lines: Sequence[str], needs_python: bool, file: str) -> SQLFunction:
    signature, summary, *rest = lines
    sections: dict[str, list[str]] = {"description": []}
    pairs: dict[str, list[tuple[str, str]]] = {"arg": [], "column": [], "was": [], "also": []}
    current = "description"
    continued: list[tuple[str, str]] | None = None
    for line in rest:
        tag = re.match(r"@(\w+) ?(.*)", line)
        if tag is None and continued is not None and line.startswith(" "):
            name, meaning = continued.pop()
            continued.append((name, f"{meaning} {line.strip()}"))
        elif tag is None:
            continued = None
            sections[current].append(line)
        elif tag[1] in pairs:
            continued = pairs[tag[1]]
            name, _, meaning = tag[2].partition(" ")
            continued.append((name, meaning))
        elif tag[1] == "args_of":
            continued = None
            pairs["arg"].append((_ARGS_OF, tag[2]))
        else:
            continued = None
            current = tag[1]
            sections[current] = [tag[2]] if tag[2] else []

    def joined(section: str) -> str:
        return "\n".join(sections.get(section, [])).strip("\n")

    return SQLFunction(
        name=signature.split("(")[0],
        family=file.removesuffix(".sql").removesuffix("_tables"),
        signature=signature,
        summary=summary,
        description=joined("description"),
        arguments=tuple(pairs["arg"]),
        columns=tuple(pairs["column"]),
        example=joined("example"),
        output=joined("output"),
        source=joined("source"),
        needs_python=needs_python,
        renamed=tuple((name.removesuffix(":"), now) for name, now in pairs["was"] if now),
        former=tuple(name for name, now in pairs["was"] if not now),
        also=tuple(pairs["also"]),
    )


def documentation(name: str, summary: str, first: Sequence[tuple[str, str]] = ()) -> str:
    """What the reference has of a function, for Python, where a file has its summary.

    Args:
        first: arguments that SQL has not.
    """
    [function] = [one for one in sql_functions() if one.name == name]
    sections = [_described("Args", [*first, *function.arguments]), _described("Columns", function.columns)]
    return "\n\n".join(filter(None, [summary, function.description, *sections]))


def _described(title: str, told: Sequence[tuple[str, str]]) -> str:
    lines = [f"    {name.strip(chr(34))}: {meaning.partition(': ')[2]}." for name, meaning in told]
    return "\n".join([f"{title}:", *lines]) if lines else ""


def run_example(con: duckdb.DuckDBPyConnection, example: str) -> str:
    """Run an example and render what it returns."""
    result = con.execute(example)
    assert result.description is not None
    return render([column[0] for column in result.description], result.fetchall())


def render(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A result as plain text, columns aligned.

    >>> print(render(["region", "n"], [("N", 12), (None, 7)]))
    region |  n
    -------+---
    N      | 12
    NULL   |  7
    """
    cells = [[_shown(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[k]) for row in cells)]) for k, name in enumerate(columns)]
    right = [all(isinstance(row[k], int | float) or row[k] is None for row in rows) for k in range(len(columns))]
    lines = [_line(columns, widths, [False] * len(columns)), "-+-".join("-" * width for width in widths)]
    lines[0] = _line(columns, widths, right)
    return "\n".join(line.rstrip() for line in [*lines, *(_line(row, widths, right) for row in cells)])


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if r else cell.ljust(width) for cell, width, r in zip(cells, widths, right, strict=True)
    ]
    return " | ".join(padded)
