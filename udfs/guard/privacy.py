"""Differential privacy: what `sdc_protect(.., method := 'dp')` is told, read and checked.

Nothing is taken from the records: bounds and domains are what the custodian knows without them.
"""

from __future__ import annotations

import importlib.util
import json
import secrets
from typing import Any

import duckdb

from sdcduck import catalog
from sdcduck.catalog import Policy, Privacy
from sdcduck.catalog.cost_files import PERIODS, CostFile
from sdcduck.errors import SDCError
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, number, wrong
from sdcduck.udfs.source import Source

_EXAMPLE = "{'region': ['north', 'south']}"
_MOST_VALUES = 10_000
_MOST_ROWS = 1000
_LEDGERS = ("policy", "login")
OBJECTIVES = ("volume", "mse", "none")
_NOISES = ("least", "normal")
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_LARGEST_BOUND, _SMALLEST_BOUND = 9e14, 1e-9


def read_privacy(
    method: str, epsilon: float | None, delta: float | None, per_question: float | None, domains: str | None,
    neighbours: str | None, contributions: int | None, ledger: str | None, epsilon_per: str | None,
    objective: str | None, noise: str | None, table: Source, dimensions: tuple[str, ...],
    days: tuple[tuple[str, str, str, str], ...] = (),
) -> Privacy:  # fmt: skip
    """What the answers about a table may cost.

    Raises:
        SDCError: it is nothing that there is, or goes with another method.
    """
    given = {
        "epsilon": epsilon, "delta": delta or None, "per_question": per_question, "domains": domains,
        "epsilon_per": epsilon_per,
    }  # fmt: skip
    if method != "dp":
        for argument, value in given.items():
            if value is not None:
                raise SDCError(f"argument '{argument}' goes with method := 'dp'")
        for argument, chosen, usual in (
            ("ledger", choice(ledger, "ledger", _LEDGERS), "policy"),
            ("objective", choice(objective, "objective", OBJECTIVES), "volume"),
            ("noise", choice(noise, "noise", _NOISES), "least"),
        ):
            if chosen != usual:
                raise SDCError(f"argument '{argument}' goes with method := 'dp'")
        return Privacy()
    if importlib.util.find_spec("opendp") is None:
        raise SDCError("differential privacy needs the package 'opendp': pip install 'sdcduck[dp]'")
    for argument in ("epsilon", "per_question"):
        if given[argument] is None:
            what = "what all answers together may cost" if argument == "epsilon" else "what one question costs"
            raise wrong(argument, f"say {what}, such as {argument} := {'1' if argument == 'epsilon' else '0.1'}")
    of_all = number(epsilon, "epsilon", above=0)
    of_one = number(per_question, "per_question", above=0)
    if of_one > of_all:
        raise SDCError(f"argument 'per_question': {of_one:g} is more than all answers may cost, epsilon {of_all:g}")
    beyond = number(delta, "delta", least=0)
    if beyond >= 0.01:
        raise SDCError("argument 'delta': it must be far below one part in the number of people, such as 1e-8")
    if 0 < beyond < 1e-30:
        raise SDCError("argument 'delta': take 0, for Laplace noise, or at least 1e-30")
    rows = number(contributions, "contributions", least=1)
    if rows != int(rows) or rows > _MOST_ROWS:
        raise SDCError(f"argument 'contributions': a whole number of rows of a unit, {_MOST_ROWS} at most")
    if not 1e-6 <= of_one <= 100 or of_all > 1000:
        raise SDCError("argument 'epsilon': a question costs 1e-6 to 100, and all together 1000 at most")
    asked = choice(neighbours, "neighbours", ("replace", "add_remove"))
    law = choice(noise, "noise", _NOISES)
    known, private = _domains(domains, table, dimensions)
    between = {name for name, *_ in days}
    named = json.loads(domains) if domains is not None else {}
    twice = {folded(name) for name in named} & set(map(folded, between)) if isinstance(named, dict) else set()
    if twice:
        raise SDCError(
            f"arguments 'bounds' and 'domains' both have column '{min(twice)}': say which days there may be once"
        )
    private = tuple(name for name in private if name not in between)
    if beyond == 0 and (private or law == "normal"):
        what = "domains := 'private'" if private else "noise := 'normal'"
        raise SDCError(f"argument 'delta': {what} needs one, far below one part in the number of people, such as 1e-8")
    return Privacy(
        of_all, beyond, of_one, asked, known, secrets.token_hex(8), int(rows), choice(ledger, "ledger", _LEDGERS),
        "" if epsilon_per is None else choice(epsilon_per, "epsilon_per", PERIODS), private,
        choice(objective, "objective", OBJECTIVES), law, days,
    )  # fmt: skip


def _domains(
    given: str | None, table: Source, dimensions: tuple[str, ...]
) -> tuple[tuple[tuple[str, str, tuple[str, ...]], ...], tuple[str, ...]]:
    """The values that dimensions have, as everybody knows: what is given, and what types say; and which are private."""
    read = json.loads(given) if given is not None else {}
    if read not in ("public", "private") and not isinstance(read, dict):
        raise wrong(
            "domains",
            f"name the values of dimensions, such as {_EXAMPLE}, or say 'public' where types say them, or 'private' "
            "where nobody may know them",
        )
    lists = _lists({} if isinstance(read, str) else read, table, dimensions)
    found, private = [], []
    for name in dimensions:
        kind, values = table.type_of(name), lists.get(name, read if isinstance(read, str) else None)
        if isinstance(values, list):
            found.append((name, *_of_list(name, kind, values)))
        elif values not in (None, "public", "private"):
            raise wrong("domains", f"name the values of '{name}', such as {_EXAMPLE}, or say {{'{name}': 'private'}}")
        elif kind == "BOOLEAN":
            found.append((name, kind, ("false", "true")))
        elif values == "private":
            if kind.startswith("ENUM"):
                raise SDCError(
                    f"argument 'domains': the type of '{name}' tells its labels: make it a VARCHAR, or say "
                    f"{{'{name}': 'public'}}"
                )
            private.append(name)
        elif values == "public" and kind.startswith("ENUM"):
            found.append((name, "VARCHAR", tuple(_labels(kind))))
        elif name in lists:
            raise SDCError(f"argument 'domains': the type of '{name}' says no values: list them, or say 'private'")
    return tuple(found), tuple(private)


def _lists(read: dict[str, Any], table: Source, dimensions: tuple[str, ...]) -> dict[str, Any]:
    """What was said of single dimensions."""
    known = {folded(name): name for name in dimensions}
    lists: dict[str, Any] = {}
    for written, values in read.items():
        name = table.column(written, "domains")[1:-1].replace('""', '"')
        if folded(name) not in known:
            raise SDCError(f"argument 'domains': column '{name}' is not one of the dimensions")
        if known[folded(name)] in lists:
            raise SDCError(f"argument 'domains' has column '{name}' twice")
        lists[known[folded(name)]] = values
    return lists


def _of_list(name: str, kind: str, values: Any) -> tuple[str, tuple[str, ...]]:
    """The type and the texts of the values of a domain."""
    if not isinstance(values, list) or not values or any(value is None for value in values):
        raise wrong("domains", f"name the values of '{name}', none of them NULL, such as {_EXAMPLE}")
    if len(values) > _MOST_VALUES:
        raise SDCError(f"argument 'domains': '{name}' has more than {_MOST_VALUES} values")
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        fits, of = all(isinstance(value, str) for value in values), "VARCHAR"
    elif kind == "BOOLEAN":
        fits, of = all(isinstance(value, bool) for value in values), kind
    elif kind in _WHOLE:
        fits, of = all(type(value) is int for value in values), kind
    elif kind == "DATE":
        fits, of = all(isinstance(value, str) for value in values), kind
    else:
        raise SDCError(
            f"argument 'domains': '{name}' is {kind}; domains are of texts, whole numbers, dates or truth values"
        )
    if not fits:
        raise SDCError(f"argument 'domains': the values of '{name}' must be {of}, as the column is")
    texts = tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
    if len(set(texts)) < len(texts):
        raise SDCError(f"argument 'domains': '{name}' has a value twice")
    return of, texts


def _labels(kind: str) -> list[str]:
    row = duckdb.execute(f"SELECT enum_range(NULL::{kind})").fetchone()
    return [] if row is None else list(row[0])


def check_privacy(cursor: duckdb.DuckDBPyConnection, table: Source, policy: Policy) -> None:
    """Refuse records of which one unit could change more than the proof says.

    Raises:
        SDCError: they could.
    """
    if policy.method != "dp":
        return
    if catalog.file_of(cursor) is None:
        raise SDCError("method := 'dp': what questions cost is kept beside the database, which is in no file")
    if catalog.is_view(cursor, table.text):
        raise SDCError("method := 'dp': a row of a view may be of several people: make a table of it")
    if not policy.one_row_per_unit and policy.privacy.contributions == 1:
        raise SDCError(
            "method := 'dp': a unit has several rows; say how many of them are looked at, contributions := 3, or make "
            "a table with one for each"
        )
    if policy.min_units > 1:
        raise SDCError("argument 'min_units' does not go with method := 'dp': groups of nobody are answered, too")
    for argument, value in (
        ("units", policy.kinds), ("owned", policy.owned), ("bands", policy.bands),
        ("preview", policy.preview),
    ):  # fmt: skip
        if value:
            raise SDCError(f"argument '{argument}' is not available yet for method := 'dp'")
    if policy.privacy.delta * policy.records >= 1:
        raise SDCError("argument 'delta': it must be far below one part in the number of people")
    for name, (low, high) in ((name, (ends[0], ends[1])) for name, ends in policy.bounds):
        if not _SMALLEST_BOUND <= max(abs(low), abs(high)) <= _LARGEST_BOUND:
            raise SDCError(f"argument 'bounds': those of '{name}' are too near to 0")
    _check_values(cursor, policy)
    collated = "SELECT count(*) FROM duckdb_tables() WHERE contains(lower(sql), 'collate')"
    if catalog.first_row(cursor, f"SELECT ({collated}) > 0 OR current_setting('default_collation') <> ''") == (True,):
        raise SDCError("method := 'dp' does not go with collations: texts that differ would be one")
    for other in catalog.policies(cursor):
        is_replaced = (folded(other.name), folded(other.role)) == (folded(policy.name), folded(policy.role))
        if is_replaced and other.label == "unit-level" and other.method != "dp":
            raise SDCError(
                f"'{policy.name}' is protected by '{other.method}' now: what was answered under it is not undone, and "
                "no budget counts it; take it back first (sdc_unprotect)"
            )
        if other.label == "unit-level" and not is_replaced and _reads(cursor, other.name, policy.name):
            raise SDCError(
                f"'{other.name}' has records of '{policy.name}' under another policy{_for(other.role)}, and what that "
                "tells is not counted: take it back first (sdc_unprotect)"
            )


def check_beside_private(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Refuse another policy over the records of a table whose answers are counted.

    Raises:
        SDCError: there is such a table.
    """
    for other in catalog.policies(cursor):
        is_replaced = (folded(other.name), folded(other.role)) == (folded(policy.name), folded(policy.role))
        if other.method == "dp" and not is_replaced and _reads(cursor, policy.name, other.name):
            raise SDCError(
                f"'{policy.name}' has records of '{other.name}', whose answers are counted{_for(other.role)} "
                "(method := 'dp'), and what this policy tells would not be: take that back first (sdc_unprotect)"
            )


def make_ledger(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Make the file of what questions cost, where there is none yet: what was spent before is not forgotten.

    Raises:
        SDCError: it is not what was written, or cannot be.
    """
    register = catalog.file_of(cursor)
    if not policy.privacy.holds or register is None:
        return
    try:
        with CostFile(register, policy.name).held():
            pass
    except OSError as problem:
        raise SDCError(f"the ledger of '{policy.name}' cannot be written: {problem.strerror}") from None


def _for(role: str) -> str:
    return f" for role '{role}'" if role else ""


def _reads(cursor: duckdb.DuckDBPyConnection, name: str, table: str) -> bool:
    here = (catalog.current_database(cursor), "main", folded(table))
    read = catalog.read_by(cursor, name)
    return folded(name) == folded(table) or here in {(db, schema, folded(one)) for db, schema, one in read.tables}


def _check_values(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Refuse values of domains that are none of their type, or are written in another way than DuckDB writes them."""
    for name, kind, values in policy.privacy.domains:
        listed = ", ".join(map(literal, values))
        row = catalog.first_row(
            cursor,
            f"SELECT list_filter([{listed}], lambda x: TRY_CAST(x AS {kind})::VARCHAR IS DISTINCT FROM x)",
        )
        if row is not None and row[0]:
            raise SDCError(f"argument 'domains': {row[0][0]!r} is no value of {identifier(name)}, which is {kind}")
