"""What a report shows: the cells of a suppressed publication, table by table, with what may be known of them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.reference import sql_functions
from sdcduck.quoting import identifier, literal, sql_value
from sdcduck.udfs.publication import Publication, read_publication

STATUSES = ("open", "forced", "primary", "secondary")
_RULES_APART = re.compile(r", (?![^()]*\))")  # dominance (1, 75) is one rule


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        codes: its categories, one a dimension of its table; None: the category is NULL.
        numbers: of each measure; None where it is suppressed and the report is not for custodians, or NULL.
        status: one of `STATUSES`.
        why: the rules that made it primary.
        known: of each measure, what can be told of a suppressed number, in words.
    """

    codes: tuple[object, ...]
    numbers: tuple[object, ...]
    status: str
    why: str | None
    known: tuple[str | None, ...]


@dataclass(frozen=True)
class Table:
    """The cells of one grouping set.

    Attributes:
        level: the grouping set in words.
        dimensions: its columns.
        cells: in the order of the publication.
        shares: of each measure, the share of the total that published cells have; None where that cannot be told from
            published numbers.
    """

    level: str
    dimensions: tuple[str, ...]
    cells: tuple[Cell, ...]
    shares: tuple[float | None, ...]

    def count(self, status: str) -> int:
        """How many cells have a status."""
        return sum(cell.status == status for cell in self.cells)


@dataclass(frozen=True)
class Report:
    """A suppressed publication.

    Attributes:
        name: of the publication, if it is stored.
        measures: names of the counts and sums.
        tables: one a grouping set.
        by_rule: primary cells that each rule marks.
        audited, custodian: what was asked for.
        rules: what was given, in words.
        counts_looked_at: whether a rule is about how many stand behind a number.
        exact, narrow: suppressed numbers that follow exactly, or are known more closely than the rules want; None: no
            audit says so.
        records: that were counted; None: that is not published, and the report is not for custodians.
    """

    name: str | None
    measures: tuple[str, ...]
    tables: tuple[Table, ...]
    by_rule: tuple[tuple[str, int], ...]
    audited: bool
    custodian: bool
    rules: str = ""
    counts_looked_at: bool = False
    exact: int | None = None
    narrow: int | None = None
    records: int | None = None


def read_report(
    con: duckdb.DuckDBPyConnection, text: str, rules: Mapping[str, Any], *, audit: bool, custodian: bool
) -> Report:
    """Suppress a publication and gather what is to be shown of it.

    Raises:
        SDCError: an unknown rule, no such publication.
        duckdb.Error: whatever is wrong with the publication or the rules.
    """
    arguments = _arguments(rules)
    name = None if any(character.isspace() for character in text.strip()) else text.strip()
    publication = read_publication(con, text if name is None else catalog.publication(con, name).query)
    measures = tuple(measure.name for measure in publication.measures)
    rows = _rows(con, f"FROM sdc_suppress({literal(text)}{arguments})")
    audits = _audits(con, publication, text, arguments) if audit else {}
    known = {place: _interval(row, custodian) for place, row in audits.items()}
    originals = _originals(con, publication) if custodian else {}

    tables = []
    for columns in publication.sets:
        level = publication.level_of(columns)
        dimensions = tuple(publication.dimensions[place] for place in columns)
        cells = [_Read(row, publication) for row in rows if row["level"] == level]
        shown = tuple(
            Cell(
                tuple(cell.row[dimension] for dimension in dimensions),
                tuple(originals.get(cell.key, cell.numbers)),
                cell.row["status"],
                cell.row["why"],
                tuple(known.get((measure, cell.key)) for measure in measures),
            )
            for cell in cells
        )
        tables.append(Table(level, dimensions, shown, tuple(_share(rows, cells, measure) for measure in measures)))
    marked = [row["why"] or "" for row in rows if row["status"] == "primary"]
    by_rule = Counter(rule for why in marked for rule in _RULES_APART.split(why) if rule)
    held = _rules_that_hold(con, name, rules)
    exact = sum(_is_exact(row) for row in audits.values())
    narrow = sum(not row["protected"] and not _is_exact(row) for row in audits.values())
    return Report(
        name, measures, tuple(tables), tuple(by_rule.most_common()), audit, custodian,
        "; ".join(f"{rule} {_in_words(given)}" for rule, given in held.items()),
        any(held.get(rule) for rule in _RULES_OF_COUNTS), exact if audit else None, narrow if audit else None,
        _records(con, publication, rows, custodian),
    )  # fmt: skip


_RULES_OF_COUNTS = frozenset(["max_count", "min_contributors", "k_disclosure", "primary_if"])


def _rules_that_hold(con: duckdb.DuckDBPyConnection, name: str | None, rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that are given, and those of a rule set or of the stored publication where these do not say so."""
    given = {rule: value for rule, value in rules.items() if value is not None}
    held: dict[str, Any] = {}
    if "rules" in given:
        held = dict(catalog.rule_set(con, str(given["rules"])).arguments)
    elif name is not None and not given:
        held = json.loads(catalog.publication(con, name).arguments or "{}")
    both = {**held, **given}
    return {rule: both[rule] for rule in sorted(both) if rule != "rules" and not _is_nothing(both[rule])}


def _is_nothing(given: Any) -> bool:
    return given is None or given is False or given == []


def _in_words(given: Any) -> str:
    """What a rule was given, the same for a list and for one that is written as text.

    >>> _in_words([(1, 75.0), (2, 90)]), _in_words("[(1,75), (2, 90)]"), _in_words(3.0), _in_words(True)
    ('(1, 75), (2, 90)', '(1, 75), (2, 90)', '3', 'yes')
    """
    if isinstance(given, str):
        return re.sub(r"\s*,\s*", ", ", given.removeprefix("[").removesuffix("]"))
    if isinstance(given, list | tuple):
        return ", ".join(f"({_in_words(one)})" if isinstance(one, list | tuple) else _in_words(one) for one in given)
    if given is True:
        return "yes"
    return f"{given:g}" if isinstance(given, float) else str(given)


def _records(
    con: duckdb.DuckDBPyConnection, publication: Publication, rows: Sequence[Mapping[str, Any]], custodian: bool
) -> int | None:
    """How many records were counted; where the report is not for custodians, if that is a published total."""
    if custodian:
        found = catalog.first_row(con, f"SELECT count(*) FROM ({publication.records})")
        return None if found is None else int(found[0])
    count = next((measure.name for measure in publication.measures if measure.kind == "count"), None)
    totals = [row for row in rows if row["level"] == "total" and not row["suppressed"]]
    return int(totals[0][count]) if totals and count is not None and totals[0][count] is not None else None


@dataclass(frozen=True)
class _Read:
    """A row of ``sdc_suppress``, with what finds its cell elsewhere."""

    row: Mapping[str, Any]
    publication: Publication
    key: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _key(self.row, self.publication))

    @property
    def numbers(self) -> list[object]:
        return [self.row[measure.name] for measure in self.publication.measures]


def _key(row: Mapping[str, Any], publication: Publication) -> tuple[str, ...]:
    return (row["level"], *(repr(row[dimension]) for dimension in publication.dimensions))


def _rows(con: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = con.execute(query)
    columns = [column[0] for column in result.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in result.fetchall()]


def _arguments(rules: Mapping[str, Any]) -> str:
    """The rules as arguments of a SQL function.

    >>> _arguments({"max_count": 3, "dominance": [(1, 75)], "not_counted": ["it's"]})
    ", max_count := 3, dominance := [(1, 75)], not_counted := ['it''s']"
    """
    [function] = [function for function in sql_functions() if function.name == "sdc_suppress"]
    known = [name for name, _ in function.arguments if name != "publication"]
    for name in rules:
        if name not in known:
            raise unknown("rule", name, known)
    return "".join(f", {name} := {_in_sql(name, given)}" for name, given in rules.items() if given is not None)


def _in_sql(name: str, given: Any) -> str:
    try:
        return sql_value(given)
    except TypeError:
        raise SDCError(f"rule '{name}' must be a number, a text, a truth value, or a list of these") from None


def _share(rows: Sequence[Mapping[str, Any]], cells: Sequence[_Read], measure: str) -> float | None:
    """The share of the total in the published cells of a table, from published numbers alone."""
    totals = [row[measure] for row in rows if row["level"] == "total" and not row["suppressed"]]
    if not totals or not totals[0]:
        return None
    return float(sum(cell.row[measure] or 0 for cell in cells)) / float(totals[0])


def _audits(
    con: duckdb.DuckDBPyConnection, publication: Publication, text: str, arguments: str
) -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
    """What the audit says of each suppressed number."""
    known = {}
    for measure in publication.measures:
        call = f"sdc_audit({literal(text)}, measure := {literal(measure.name)}{arguments})"
        for row in _rows(con, f"FROM {call}"):
            known[measure.name, _key(row, publication)] = row
    return known


def _is_exact(row: Mapping[str, Any]) -> bool:
    return bool(row["exact"] or _rounded(row["lower"]) == _rounded(row["upper"]))


def _interval(row: Mapping[str, Any], custodian: bool) -> str:
    lower, upper = row["lower"], row["upper"]
    exact = _is_exact(row)
    if exact and not custodian:
        return "follows exactly from published numbers"
    if math.isinf(lower) and math.isinf(upper):
        words = "any value"
    elif math.isinf(upper):
        words = f"at least {_rounded(lower)}"
    elif math.isinf(lower):
        words = f"at most {_rounded(upper)}"
    else:
        words = f"between {_rounded(lower)} and {_rounded(upper)}"
    if custodian and exact:
        words += ", exactly known"
    elif custodian and not row["protected"]:
        words += ", less than the rule wants"
    return words


def _rounded(value: float) -> str:
    return f"{value + 0.0:,.10g}"


def _originals(con: duckdb.DuckDBPyConnection, publication: Publication) -> dict[tuple[str, ...], list[object]]:
    """The numbers of all cells that have records, suppressed or not."""
    columns = ", ".join(identifier(name) for name in publication.columns)
    rows = _rows(con, f"SELECT _sdc_set, {columns} FROM ({publication.cells()})")
    for row in rows:
        row["level"] = publication.level_of(publication.sets[row["_sdc_set"]])
    return {_key(row, publication): [row[measure.name] for measure in publication.measures] for row in rows}
