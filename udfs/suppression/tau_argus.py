"""A publication as the files that tau-Argus starts from: the planner of ``sdc_write_tau_argus``.

Records in columns of fixed width (.asc), what the columns are (.rda), codes below each other (.hrc) and the batch with
tables and rules (.arb). Formats are those of tau-Argus 4 as its manual describes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.registry import Rows, Session
from sdcduck.udfs.arguments import needed, number
from sdcduck.udfs.publication import Publication
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.suppression.pattern import ARGUMENTS, Call, Options, read_call
from sdcduck.udfs.suppression.rules import Rules
from sdcduck.udfs.target import Target, write_together

_WRITTEN = {"file": "VARCHAR", "content": "VARCHAR", "lines": "BIGINT"}
_INDENT, _TOTAL = "@", "Total"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_FILE = re.compile(r"[A-Za-z0-9_.-]([A-Za-z0-9_. -]*[A-Za-z0-9_.-])?")
_MOST_DECIMALS, _MOST_WIDTH = 9, 20
_TRANSLATED = {"max_count", "dominance", "p_percent", "pq", "value", "freq"}
_OUR_WAY = {"improve", "protect_intervals", "singleton", "k_disclosure", "cost", "every_width"}
"""Options on how secondary cells are chosen, which tau-Argus does in its own way."""


@dataclass(frozen=True)
class _Field:
    """A column of the file of records.

    Attributes:
        name: as the publication calls it.
        sql: of its text, of a record.
        width: characters.
        decimals: of a number; None: a code.
        tree: lines of its hierarchy, if it has one.
    """

    name: str
    sql: str
    width: int
    decimals: int | None = None
    tree: tuple[str, ...] = ()


def plan_write_tau_argus(
    session: Session, publication: str | None, file: str | None, safety_range: float | None, force: bool | None
) -> Rows:
    """``sdc_write_tau_argus``: the files are written when the statement runs."""
    cursor = session.cursor()
    stored = catalog.publication(cursor, needed(publication, "publication", "be the name of a stored publication"))
    if stored.fingerprint is None:
        raise SDCError(f"'{stored.name}' has not been published yet: FROM sdc_publish('{stored.name}', ..)")
    batch = Target.read(cursor, file, force)
    if batch.path.suffix.lower() != ".arb":
        raise SDCError("argument 'file' must end with .arb; the other files are written beside it")
    if not _FILE.fullmatch(batch.path.stem):
        raise SDCError("argument 'file': names of files in tau-Argus have letters of a to z, digits, blanks and . _ -")
    around = number(safety_range, "safety_range", least=0, why="per cent")
    call = read_call(session, stored.name, None, (None,) * len(ARGUMENTS))
    call.publication.check_has_records()
    rules = _rules(call, around)
    chains = _chains(call.publication)
    for name in (*call.publication.dimensions, *(one.name for one in call.publication.measures)):
        if not _NAME.fullmatch(name):
            raise SDCError(f"column '{name}': names in tau-Argus have letters, digits and _; publish it under another")

    def write() -> pa.Table:
        cursor = session.cursor()
        found = _fields(cursor, call.publication, chains)
        made = _files(cursor, call.publication, found, batch.path, rules)
        for name, _ in made:
            replace(batch, path=batch.path.with_name(name)).check(cursor)
        try:
            encoded = [(replace(batch, path=batch.path.with_name(name)), text.encode("cp1252")) for name, text in made]
        except UnicodeEncodeError:
            raise SDCError("a code has letters that Windows-1252 has not, which tau-Argus reads") from None
        write_together(encoded)
        contents = {".asc": "records", ".rda": "metadata", ".hrc": "hierarchy", ".arb": "batch"}
        rows = [
            {"file": name, "content": contents[Path(name).suffix], "lines": text.count("\r\n")} for name, text in made
        ]
        return table_of(rows, _WRITTEN)

    return Rows(write)


def _rules(call: Call, around: float) -> str:
    """The rules in the words of tau-Argus.

    Raises:
        SDCError: there is one that it has not, or means otherwise.
    """
    rules, usual = call.rules, Rules()
    strange = [
        one.name for one in fields(Rules)
        if one.name not in _TRANSLATED and getattr(rules, one.name) != getattr(usual, one.name)
    ]  # fmt: skip
    strange += [
        one.name for one in fields(Options)
        if one.name not in _OUR_WAY and getattr(call.options, one.name) != getattr(Options(), one.name)
    ]  # fmt: skip
    if strange:
        raise SDCError(
            f"'{strange[0]}' is nothing that a batch of tau-Argus says as we mean it: publish with max_count, "
            "dominance, p_percent or pq alone"
        )
    if call.publication.counts is not None:
        raise SDCError("tau-Argus counts records: publish one row a record, not a column that has a count of its own")
    words = [f"NK({n},{share:.15g})" for n, share in rules.dominance]
    if rules.p_percent is not None:
        words.append(f"P({rules.p_percent:.15g},1)")
    if rules.pq is not None:
        words.append(f"P({100 * rules.pq[0] / rules.pq[1]:.15g},1)")
    if rules.max_count is not None:
        # Ours says up to which count a cell is unsafe, theirs from which on it is safe.
        words.append(f"FREQ({int(rules.max_count) + 1},{around:.15g})")
    return "|".join(words)


def _chains(publication: Publication) -> tuple[tuple[int, ...], ...]:
    """The dimensions as variables: those that are only totalled one after the other are levels of one hierarchy.

    Raises:
        SDCError: there are other grouping sets than all combinations of their levels, which tau-Argus always makes.
    """
    sets = [frozenset(one) for one in publication.sets]
    having = {place: frozenset(one for one in sets if place in one) for place in range(len(publication.dimensions))}
    above = {
        place: {other for other, theirs in having.items() if having[place] < theirs} for place in having
    }  # fmt: skip
    lowest = [place for place in having if not any(place in higher for higher in above.values())]
    chains = tuple(tuple(sorted((*above[place], place), key=lambda one: len(above[one]))) for place in lowest)
    prefixes = [[chain[:length] for length in range(len(chain) + 1)] for chain in chains]
    whole = {frozenset(place for part in parts for place in part) for parts in product(*prefixes)}
    if not chains or sorted(place for chain in chains for place in chain) != sorted(having) or whole != set(sets):
        raise SDCError(
            "tau-Argus makes tables with all totals: publish GROUP BY CUBE (..), or all combinations of the levels of "
            "each hierarchy, such as GROUP BY CUBE (a, b), or ROLLUP (region, town)"
        )
    return chains


def _fields(
    cursor: duckdb.DuckDBPyConnection, publication: Publication, chains: Sequence[Sequence[int]]
) -> list[_Field]:  # fmt: skip
    """The columns of the file of records."""
    records, found = publication.records, []
    for chain in chains:
        found.append(_code_field(cursor, publication, chain))
    for place, measure in enumerate(publication.measures):
        missing, low = cursor.execute(
            f"SELECT count(*) FILTER (_sdc_m{place} IS NULL), min(_sdc_m{place}) FROM ({records})"
        ).fetchall()[0]
        if missing:
            raise SDCError(
                f"'{measure.name}' leaves out records, or has NULL: tau-Argus counts and adds up all of a file; "
                "publish a query that has none of these"
            )
        if measure.kind == "count":
            continue
        if low is not None and low < 0:
            raise SDCError(f"'{measure.name}' has negative values, on which rules about contributors mean nothing")
        found.append(_number_field(cursor, records, measure.name, f"_sdc_m{place}"))
    return found


def _code_field(cursor: duckdb.DuckDBPyConnection, publication: Publication, chain: Sequence[int]) -> _Field:
    """A categorical variable: the codes of its lowest level, with the higher ones above them."""
    levels = [f"_sdc_d{place}::VARCHAR" for place in chain]
    name = publication.dimensions[chain[-1]]
    codes = cursor.execute(f"SELECT DISTINCT {', '.join(levels)} FROM ({publication.records}) ORDER BY ALL").fetchall()
    texts = {code for row in codes for code in row}
    if None in texts:
        raise SDCError(f"'{name}' has NULL: tau-Argus has codes only; publish coalesce({name}, 'unknown')")
    for code in texts:
        if code != code.strip() or not code or code == _TOTAL or code[0] == _INDENT or re.search(r'["\x00-\x1f]', code):
            raise SDCError(
                f"'{name}' has a code that tau-Argus cannot read: it is empty or '{_TOTAL}', begins with {_INDENT} or "
                "a blank, ends with one, or holds a quote or a sign that is no letter"
            )
    parents: dict[str, tuple[str, ...]] = {}
    lines = []
    for row in codes:
        path: tuple[str, ...] = ()
        for code in row:
            if path and code == path[-1]:  # a branch that is shorter repeats its last code
                continue
            if code in parents and parents[code] != path:
                raise SDCError(f"a code of '{name}' stands in two places of its hierarchy: every code has one")
            if code not in parents:
                parents[code] = path
                lines.append(_INDENT * len(path) + code)
            path += (code,)
    higher = {code for path in parents.values() for code in path}
    if any(row[-1] in higher for row in codes):
        raise SDCError(
            f"a code of '{name}' has records of its own and codes below it, for which tau-Argus has one cell: give "
            "these records a code of their own in the query"
        )
    width = max(map(len, texts), default=1)
    return _Field(name, levels[-1], width, tree=tuple(lines) if len(chain) > 1 else ())


def _number_field(cursor: duckdb.DuckDBPyConnection, records: str, name: str, value: str) -> _Field:
    """A numeric variable, with as many decimals as it needs."""
    fits = ", ".join(f"bool_and(round({value}, {digits}) = {value})" for digits in range(_MOST_DECIMALS + 1))
    small = f"coalesce(max(abs({value})) < 1e{_MOST_WIDTH}, true)"
    is_small, *row = cursor.execute(f"SELECT {small}, {fits} FROM ({records})").fetchall()[0]
    decimals = next((digits for digits, fit in enumerate(row) if fit is not False), None)
    if is_small and decimals is None:
        raise SDCError(f"'{name}' has more than {_MOST_DECIMALS} decimals: round it in the query that is published")
    text = f"({value})::DECIMAL(38, {decimals})::VARCHAR"
    width = 0
    if is_small:
        width = cursor.execute(f"SELECT max(length({text})) FROM ({records})").fetchall()[0][0] or 1
    if not is_small or width > _MOST_WIDTH:
        raise SDCError(f"'{name}' has numbers of more than {_MOST_WIDTH} digits, which tau-Argus cannot add up")
    return _Field(name, text, width, decimals=decimals)


def _files(
    cursor: duckdb.DuckDBPyConnection, publication: Publication, found: Sequence[_Field], batch: Path, rules: str
) -> list[tuple[str, str]]:
    """The names and texts of all files, the batch last."""
    stem = batch.stem
    line = " || ' ' || ".join(f"lpad({one.sql}, {one.width}, ' ')" for one in found)
    records = cursor.sql(f"SELECT {line} AS line FROM ({publication.records})").to_arrow_table()["line"].to_pylist()
    files = [(f"{stem}.asc", _text(records))]
    meta: list[str] = []
    at = 1
    for one in found:
        meta.append(f"{one.name} {at} {one.width}")
        at += one.width + 1
        if one.decimals is not None:
            meta += ["  <NUMERIC>", f"  <DECIMALS> {one.decimals}"]
            continue
        meta += ["  <RECODEABLE>", f'  <TOTCODE> "{_TOTAL}"']
        if one.tree:
            tree = f"{stem}_{one.name}.hrc"
            files.append((tree, _text(one.tree)))
            meta += ["  <HIERARCHICAL>", f'  <HIERCODELIST> "{tree}"', f'  <HIERLEADSTRING> "{_INDENT}"']
    files.append((f"{stem}.rda", _text(meta)))
    explained = "".join(f'"{one.name}"' for one in found if one.decimals is None)
    responses = [one.name for one in found if one.decimals is not None]
    if any(measure.kind == "count" for measure in publication.measures) and not responses:
        responses = ["<freq>"]
    lines = [f'<OPENMICRODATA> "{stem}.asc"', f'<OPENMETADATA> "{stem}.rda"']
    for response in responses:
        lines += [f'<SPECIFYTABLE> {explained}|"{response}"||', f"<SAFETYRULE> {rules}"]
    lines.append("<READMICRODATA>")
    for place, _ in enumerate(responses, start=1):
        lines += [f"<SUPPRESS> MOD({place})", f'<WRITETABLE> ({place},3,AS+,"{stem}_{place}.txt")']
    return [*files, (f"{stem}.arb", _text(lines))]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\r\n" for line in lines)
