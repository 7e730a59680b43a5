"""A register of people of whom it is a secret who is ill, with a limit on what many answers tell together."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb

import sdcduck
from sdcduck.catalog import Policy
from sdcduck.guard import Guard, Refused
from sdcduck.guard.rewritten import Counted

SECRET = b"a secret for the tests of sequences"
POLICY = """FROM sdc_protect('people', unit := 'person_id', dimensions := {dimensions}, min_units := {least},
    sequence := 'precision', secrets := ['ill']{more})"""
DIMENSIONS = "['a', 'b', 'c', 'ill']"


def made(
    folder: Path,
    *,
    people: int = 60,
    seed: int = 0,
    turned: int | None = None,
    dimensions: str = DIMENSIONS,
    least: int = 3,
    more: str = "",
) -> Path:
    """The file of a register.

    Args:
        turned: the person who is ill if nobody else would say so, and the other way round.
    """
    folder.mkdir(exist_ok=True)
    path = folder / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        turns = -1 if turned is None else 1000 * seed + turned
        con.execute(f"""CREATE TABLE people AS SELECT i AS person_id, hash(i) % 8 AS a, hash(i * 7 + 1) % 8 AS b,
            hash(i * 11 + 2) % 8 AS c, (hash(i * 13 + 3) % 10 < 3) <> (i = {turns}) AS ill
            FROM range({1000 * seed}, {1000 * seed + people}) t(i)""").fetchall()
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        declare(con, dimensions=dimensions, least=least, more=more)
    return path


def declare(con: duckdb.DuckDBPyConnection, *, dimensions: str = DIMENSIONS, least: int = 3, more: str = "") -> None:
    con.execute(POLICY.format(dimensions=dimensions, least=least, more=more)).fetchall()


def add_zones(con: duckdb.DuckDBPyConnection) -> None:
    """A public table that has each of some values of `a` once, and a view of it."""
    con.execute("CREATE TABLE zones AS FROM (VALUES (0, 'north'), (1, 'north'), (2, 'south'), (3, 'west')) t(a, zone)")
    con.execute("CREATE VIEW shown AS FROM zones")
    for name in ("zones", "shown"):
        con.execute(f"FROM sdc_declare_public('{name}')").fetchall()


def persons_of(guard: Guard, policy: Policy, counted: Counted) -> list[tuple[frozenset[int], str]]:
    """The sets of persons that a block counts, and what is added up of them."""
    cells = guard._sequences._cells_of(policy)
    people = cells.cursor.execute(
        "SELECT _sdc_place, person_id FROM people JOIN temp.main._sdc_cells USING (a, b, c, ill)"
    ).fetchall()
    asked = guard._sequences._sets(cells, counted, None)
    return [
        (frozenset(person for place, person in people if chosen[place]), of)
        for chosen, of in zip(asked.sets, asked.of, strict=True)
    ]


def outcome(guard: Guard, query: str, user: str = "ann") -> str:
    """The code of the refusal, or 'answered'."""
    try:
        guard.sql(query, user=user)
    except Refused as refused:
        return refused.code
    return "answered"


def told(guard: Guard, where: str) -> int | None:
    """A count, or None where it is refused or of too few, as Eve is told it."""
    try:
        [number] = guard.sql(f"SELECT count(*) AS n FROM people WHERE {where}", user="eve").column("n").to_pylist()
    except Refused as refused:
        if refused.code != "SDC070":
            raise
        return None
    return None if number is None else int(number)


def folder(register: Path) -> Path:
    """Where what logins were told is kept."""
    return register.with_name(f"{register.name}.sequence")


def file_of(register: Path) -> Path:
    """What the one login was told."""
    [path] = folder(register).glob("*.jsonl")
    return path
