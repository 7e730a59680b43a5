"""Policies: planners behind ``sql/guard_tables.sql``."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog import Kind, Policy
from sdcduck.catalog.engines import marked_tables
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.methods.perturbation.lookup import KEY_MODULUS
from sdcduck.quoting import folded, folded_sql, identifier
from sdcduck.udfs.arguments import choice, needed, whole, wrong
from sdcduck.udfs.guard.days import read_days
from sdcduck.udfs.guard.ledger import PLANNERS as LEDGER
from sdcduck.udfs.guard.limits import read_limits
from sdcduck.udfs.guard.owned import check_owned, read_owned, seen_of
from sdcduck.udfs.guard.privacy import check_beside_private, check_privacy, make_ledger, read_privacy
from sdcduck.udfs.guard.sequence import PLANNERS as SEQUENCE
from sdcduck.udfs.guard.sequence import check_sequence, mode_of, read_follows, read_granted, read_sequence
from sdcduck.udfs.guard.units import check_several, check_whole, of_kinds, of_one_kind
from sdcduck.udfs.publication import Publication, complete_measures, count_of_records, read_publication
from sdcduck.udfs.source import Source, is_number, source

_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
            "FLOAT", "DOUBLE", "DECIMAL")  # fmt: skip


def plan_protect(
    session: Session, text: str | None, unit: str | None, record_key: str | None, dimensions: Sequence[str] | None,
    measures: Sequence[str] | None, method: str | None, ptable: str | None, magnitude_ptable: str | None,
    min_units: str | None, base: int | None, publication: str | None, population: str | None, role: str | None,
    preview: str | None, bounds: str | None, bands: str | None, owned: str | None,
    units: Sequence[str] | None, sequence: str | None, least_error: float | None, secrets: Sequence[str] | None,
    on_breach: str | None, granted: str | None, follows: str | None, epsilon: float | None, delta: float | None,
    per_question: float | None, domains: str | None, neighbours: str | None, contributions: int | None,
    ledger: str | None, epsilon_per: str | None, objective: str | None, noise: str | None, here: Sequence[str],
) -> Rows:  # fmt: skip
    """``sdc_protect``: every check while binding, the policy stored when the statement runs."""
    cursor = session.cursor()
    _check_place(cursor, here)
    table = _table(session, text)
    method = choice(method, "method", catalog.METHODS)
    check_whole(min_units)
    dimensions = needed(dimensions, "dimensions", "list the columns to group by and filter on")
    base = whole(base, "base", least=2)
    kinds = _kinds(table, unit, units, record_key, min_units, method, population)
    if method == "suppression":
        if marked_tables(cursor, f"FROM {table.sql}"):
            raise SDCError(
                f"the records of '{table.text}' are on another engine, of which method := 'suppression' answers "
                "nothing: ask the inner cells that sdc_publish stored (sdc_open_count, sdc_open_sum), or the file of "
                "sdc_export"
            )
        read_owned(owned, table, (), method)
        _check_published_names(cursor, publication, table, dimensions, measures or ())
    shown = [_plain(table, name, "dimensions") for name in dimensions]
    summed = [_plain(table, name, "measures") for name in measures or ()]
    of_measures, days = read_days(bounds, table, shown, method)
    ends = read_limits("bounds", of_measures, table, summed, method)
    borders = read_limits("bands", bands, table, summed, method)
    of_units = read_owned(owned, table, shown, method)
    if of_units and len(kinds) > 1:
        raise SDCError("argument 'owned' does not go with 'units': what is of one person need not be of one firm")
    if publication is not None and method != "suppression":
        raise SDCError("argument 'publication' goes with method := 'suppression'")
    first = kinds[0]
    for kind in kinds:
        _check_columns(table, kind.unit, kind.record_key, shown, summed)
    if method == "cell_key":
        _check_ptable(cursor, ptable, "ptable", "counts")
        _check_ptable(cursor, magnitude_ptable, "magnitude_ptable", "magnitudes")
    published = _published(cursor, publication) if method == "suppression" else None
    _check_view(cursor, table)
    rows, number = _check_units(cursor, table, kinds)
    if published is not None:
        _check_counted(cursor, table, str(publication), published, rows)
    _check_keys(cursor, table, kinds, summed, str(ptable) if method == "cell_key" else None, rows)
    identifiers = [kind.unit for kind in kinds]
    shows = None if preview is None else _preview(session, table, preview, identifiers, shown, summed)
    alone = len(kinds) == 1 and rows == number
    identifying, never_missing = seen_of(cursor, table, of_units)
    policy = Policy(
        table.text, "unit-level", first.unit, first.record_key, tuple(shown), tuple(summed), method, ptable,
        magnitude_ptable, max(kind.min_units for kind in kinds), base, publication,
        None if published is None else published.count_column, alone, population, role or "",
        () if published is None else published.complete, rows, shows, bounds=ends, bands=borders, owned=of_units,
        kinds=kinds if len(kinds) > 1 else (), identifying=identifying, never_missing=never_missing,
    )  # fmt: skip
    privacy = read_privacy(
        method, epsilon, delta, per_question, domains, neighbours, contributions, ledger, epsilon_per, objective,
        noise, table, policy.dimensions, days,
    )  # fmt: skip
    policy = replace(policy, privacy=privacy, one_row_per_unit=alone and privacy.contributions == 1)  # as declared
    check_privacy(cursor, table, policy)
    check_beside_private(cursor, policy)
    limit = read_sequence(mode_of(cursor, sequence, method, secrets), least_error, secrets, on_breach, policy)
    limit = replace(limit, granted=read_granted(cursor, granted, table.text, limit))
    limit = replace(limit, follows=read_follows(cursor, follows, table, policy, limit))
    if limit.holds:
        check_sequence(cursor, table, policy, limit)
        policy = replace(policy, sequence=limit)
    _check_beside_others(cursor, policy)

    return Rows(lambda: _stored(session, table, policy, number, alone=alone))


def _stored(session: Session, table: Source, policy: Policy, units: int, *, alone: bool) -> pa.Table:
    """Store a policy, and what is said of it."""
    noise_secret = "" if policy.record_key is None else _noise_secret(session, table, policy.record_key)
    made_of = catalog.read_by(session.cursor(), table.text).definition
    replaced = _policy(session, policy.name, policy.role) is not None
    make_ledger(session.cursor(), policy)
    catalog.store_policy(session.cursor(), replace(policy, noise_secret=noise_secret), made_of)
    return pa.table(
        {
            "name": [table.text],
            "method": [policy.method],
            "rows": [policy.records],
            "units": [units],
            "one_row_per_unit": [alone],
            "replaced": [replaced],
            "sequence": [policy.sequence.mode],
        }
    )


def _check_beside_others(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Refuse a policy that tells, together with what else is declared, more than it does alone."""
    _check_not_public(cursor, policy)
    _check_population(cursor, policy)
    check_owned(cursor, policy)
    _check_open_twice(cursor, policy)


def _kinds(
    table: Source, unit: str | None, units: Sequence[str] | None, record_key: str | None, min_units: str | None,
    method: str, population: str | None,
) -> tuple[Kind, ...]:  # fmt: skip
    """The kinds of units that records are of: mostly one."""
    if units:
        named = check_several(units, unit, method, population, table)
        return of_kinds(named, record_key, min_units, method, table)
    who, called, least = of_one_kind(unit, record_key, min_units, method, table)
    return (Kind(who, _key(table, called, who) if method in ("cell_key", "rounding") else None, least),)


def _check_units(cursor: duckdb.DuckDBPyConnection, table: Source, kinds: Sequence[Kind]) -> tuple[int, int]:
    """Refuse records without units or proper keys; how many there are, and how many units of the first kind."""
    found = []
    for kind in kinds:
        key = kind.record_key
        if key is not None and table.type_of(key).split("(")[0] not in _NUMERIC[:9]:
            raise SDCError(f"column '{key}' must hold integers to be a record key")
        facts = catalog.policy_facts(cursor, table.sql, kind.unit, key)
        _check_records(facts, kind.unit, key)
        found.append((facts.rows, facts.units))
    return found[0]


def _check_keys(
    cursor: duckdb.DuckDBPyConnection, table: Source, kinds: Sequence[Kind], summed: Sequence[str], ptable: str | None,
    rows: int,
) -> None:  # fmt: skip
    """Refuse keys that are no random numbers, or made of a measure."""
    for kind in kinds:
        if kind.record_key is not None:
            _check_spread(cursor, table, kind.unit, kind.record_key, ptable)
            _check_made_of(cursor, table, kind.unit, kind.record_key, summed, rows)


def _check_columns(table: Source, who: str, key: str | None, shown: Sequence[str], summed: Sequence[str]) -> None:
    """Refuse columns that are two things at once, or no measures."""
    for name, part in [(who, "the unit"), (key, "the record key")]:
        if name is not None and name in (*shown, *summed):
            raise SDCError(f"column '{name}' is {part}; it can be neither a dimension nor a measure")
    for argument, names in (("dimensions", shown), ("measures", summed)):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise SDCError(f"argument '{argument}' has column '{twice}' twice")
    for name in shown:
        if name in summed:
            raise SDCError(f"column '{name}' cannot be both a dimension and a measure")
    for name in summed:
        if table.type_of(name).split("(")[0] not in _NUMERIC or not is_number(table.type_of(name)):
            raise SDCError(f"column '{name}' cannot be a measure: it is not numeric")


@dataclass(frozen=True)
class _Published:
    """What a policy takes of a publication.

    Attributes:
        answers: its cells.
        count_column: of the records of an inner cell.
        complete: the measures without missing values.
    """

    answers: Publication
    count_column: str
    complete: tuple[str, ...]


def _answers(cursor: duckdb.DuckDBPyConnection, publication: str | None) -> Publication:
    """The publication that answers."""
    if publication is None:
        raise wrong("publication", "name a publication stored with sdc_publish")
    stored = catalog.publication(cursor, publication)
    if stored.fingerprint is None:
        raise SDCError(f"the publication '{publication}' has not been published (sdc_publish)")
    return read_publication(cursor, stored.query)


def _check_published_names(
    cursor: duckdb.DuckDBPyConnection, publication: str | None, table: Source, shown: Sequence[str],
    summed: Sequence[str],
) -> None:  # fmt: skip
    """Refuse a name that the table has and the publication has not, or the other way round, and say how both get it.

    Raises:
        SDCError: there is one.
    """
    answers = _answers(cursor, publication)
    sums = [measure.name for measure in answers.measures if measure.kind == "sum"]
    columns = {folded(name): name for name in table.columns}
    for part, names, known, example in (
        ("dimension", shown, answers.dimensions, "{0}"), ("measure", summed, sums, "sum({0}) AS {0}"),
    ):  # fmt: skip
        for name in names:
            own = columns.get(folded(name))
            if own in known or (own is None and folded(name) not in map(folded, known)):
                continue  # where neither has it, what reads the columns of the table says so
            column = "x" if own is None else own if own.isidentifier() else identifier(own)
            raise SDCError(
                f"{part} '{name}': a column of '{table.text}' and a {part} of the publication '{publication}' have to "
                f"have one name, and only the {'publication' if own is None else 'table'} has this one; the "
                f"publication has {', '.join(map(repr, known)) or 'none'}: publish it again with the column's own "
                f"name, as in SELECT {example.format(column)} .., and name that one here"
            )


def _published(cursor: duckdb.DuckDBPyConnection, publication: str | None) -> _Published:
    """What a policy takes of the publication."""
    answers = _answers(cursor, publication)
    complete = complete_measures(cursor, answers)
    count_column = count_of_records(answers, complete)
    if count_column is None:
        raise SDCError(
            f"the publication '{publication}' has no count of all its records: publish it with count(*) AS n"
        )
    return _Published(answers, count_column, complete)


def _check_records(facts: catalog.PolicyFacts, who: str, key: str | None) -> None:
    """Refuse records without a unit or a proper key."""
    if facts.no_unit:
        raise SDCError(f"column '{who}' is NULL in {facts.no_unit} rows: every record needs a unit")
    if facts.no_key:
        raise SDCError(f"column '{key}' is NULL or out of range in {facts.no_key} rows (see sdc_check_keys)")
    if facts.several_keys:
        raise SDCError(f"column '{key}' differs between rows of one unit, for {facts.several_keys} units")


def _check_counted(
    cursor: duckdb.DuckDBPyConnection, table: Source, publication: str, published: _Published, rows: int
) -> None:
    """Refuse a publication of other records."""
    counted = f"SELECT coalesce(sum({identifier(published.count_column)}), 0) FROM ({published.answers.inner})"
    if catalog.first_row(cursor, counted) != (rows,):
        raise SDCError(
            f"the publication '{publication}' counts other records than '{table.text}' has: protect the view or "
            "table that it was made of"
        )


def _check_made_of(
    cursor: duckdb.DuckDBPyConnection, table: Source, who: str, key: str, summed: Sequence[str], rows: int
) -> None:
    """Refuse keys that a measure tells."""
    made_of = catalog.measure_of_keys(cursor, table.sql, who, key, summed, rows)
    if made_of is not None:
        raise SDCError(
            f"column '{key}' cannot hold record keys: it is made of '{made_of}', and who knows one knows the "
            f"other; {_MAKES_KEYS}"
        )


def _check_not_public(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Refuse to protect a view of records that the same people read freely where they are stored."""
    for other in catalog.policies(cursor):
        same = other.label == "public" and folded(other.role) == folded(policy.role)
        if same and catalog.has_records_of(cursor, policy.name, policy, other.name):
            raise SDCError(
                f"'{policy.name}' has the records of '{other.name}', which is public; take that back first "
                "(sdc_unprotect)"
            )


def _check_population(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Refuse a table in which units have other record keys than in another one of their population.

    Joined one way or the other they would have two draws of noise, whose mean is better than either.
    """
    if policy.population is None or policy.record_key is None:
        return
    for other in catalog.policies(cursor):
        is_replaced = (folded(other.name), folded(other.role)) == (folded(policy.name), folded(policy.role))
        if other.population != policy.population or other.record_key is None or is_replaced:
            continue
        different = catalog.different_keys(cursor, policy, other)
        if different:
            raise SDCError(
                f"{different} units have other record keys in '{other.name}', of the same population "
                f"'{policy.population}': the same people need the same keys (sdc_add_record_key)"
            )


def _check_open_twice(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Refuse records that the same people see under another policy, with other noise: both answers together tell."""
    found = catalog.open_twice(cursor, policy, catalog.policies(cursor))
    if found is None:
        return
    if found.is_copy:
        raise SDCError(
            f"'{policy.name}' looks like a copy of '{found.other}' ('{found.shared}' is the same for the same units), "
            f"and who asks both is told more than one of them tells, for they differ in their {found.differs}: make "
            "that the same in both, protect one of them for another role (role := ..), or make a view in place of the "
            "copy"
        )
    of_others = folded(found.shared) not in (folded(policy.name), folded(found.other))
    lookup = f"; if '{found.shared}' only looks something up, make it public first (sdc_declare_public)"
    raise SDCError(
        f"'{policy.name}' and '{found.other}' both have records of '{found.shared}', and who asks both sees what "
        f"neither tells alone, for they differ in their {found.differs}: make that the same in both, or protect one of "
        f"them for another role (role := ..), or take one back (sdc_unprotect){lookup if of_others else ''}"
    )


def _key(table: Source, name: str | None, unit: str) -> str:
    """The name of the column with the record keys, as the table has it."""
    if name is not None and folded(name) not in {folded(known) for known in table.columns}:
        missing = unknown("column", name, table.columns, where=table.described)
        raise SDCError(f"{missing}; sdc_add_record_key('{table.text}', unit := '{unit}') makes record keys")
    return _plain(table, name, "record_key")


def _check_spread(cursor: duckdb.DuckDBPyConnection, table: Source, unit: str, key: str, ptable: str | None) -> None:
    """Refuse keys that are no random numbers of the scale of the p-table: many cells would have the same noise."""
    if folded(key) == folded(unit):
        raise SDCError(f"column '{key}' is the unit: whoever knows the units would know the noise; {_MAKES_KEYS}")
    if not catalog.keys_are_spread(cursor, table.sql, unit, key, ptable):
        modulus = KEY_MODULUS
        if ptable is not None:
            modulus = dict(cursor.execute("SELECT name, modulus FROM sdc.ptables").fetchall())[ptable]
        scale = f"random numbers from 0 to {modulus - 1}"
        raise SDCError(f"column '{key}' cannot hold record keys, which are {scale}; {_MAKES_KEYS}")


_MAKES_KEYS = "sdc_add_record_key makes record keys"


def _check_ptable(cursor: duckdb.DuckDBPyConnection, name: str | None, argument: str, kind: str) -> None:
    """Refuse a p-table that is not stored, or of the other kind: every number would be NULL, or 0."""
    stored = dict(cursor.execute("SELECT name, kind FROM sdc.ptables").fetchall())
    if name is None or name not in stored:
        raise unknown("p-table", str(name), [known for known, of in stored.items() if of == kind])
    if stored[name] != kind:
        raise wrong(argument, f"name a p-table for {kind}", f"'{name}' is one for {stored[name]}")
    table = catalog.stored_ptable(cursor, name)
    if table is None or not table.is_noise:
        raise SDCError(
            f"argument '{argument}': '{name}' makes no noise: every number of it is the original one, or as far from "
            "it as the next; sdc_ptable makes others"
        )


def _noise_secret(session: Session, table: Source, key: str) -> str:
    """What the keys of quantities are made of: what the database has, or what it is to keep from now on.

    Of the secret of the record keys, so that the same records have the same numbers in every database; where there is
    none, of the record keys.
    """
    cursor = session.cursor()
    stored = catalog.setting(cursor, "noise_secret")
    if stored is not None:
        return stored
    secret = session.secret()
    if secret is None:
        return catalog.key_fingerprint(cursor, table.sql, key)
    return hmac.new(secret, b"the keys of quantities", "sha256").hexdigest()


def _preview(
    session: Session, table: Source, text: str, units: Sequence[str], shown: Sequence[str], summed: Sequence[str]
) -> str:
    """The name of a table that can stand for another one where somebody wants to see rows.

    Raises:
        SDCError: a column is missing, or what is to be shown comes from records.
    """
    made_up = _table(session, text, "preview")
    for name in (*shown, *summed):
        made_up.column(name, "preview")
    cursor = session.cursor()
    records = {policy.name for policy in catalog.policies(cursor) if policy.label == "unit-level"} | {table.text}
    behind = cursor.get_table_names(f"FROM {made_up.sql}")
    for name in sorted(records):
        if behind & cursor.get_table_names(f"FROM {identifier(name)}"):
            raise SDCError(f"the preview '{made_up.text}' is made of the records of '{name}'; make rows up")
    with_unit = [unit for unit in units if folded(unit) in map(folded, made_up.columns)]
    if summed or with_unit:  # by dimensions alone made-up rows are like records
        listed = ", ".join(f"{identifier(name)}::VARCHAR" for name in (*with_unit, *shown, *summed))
        alike = f"SELECT {listed} FROM {made_up.sql} INTERSECT ALL SELECT {listed} FROM {table.sql}"
        found = catalog.first_row(
            cursor, f"SELECT (SELECT count(*) FROM ({alike})) * 2 > (SELECT count(*) FROM {made_up.sql})"
        )
        if found is not None and found[0]:
            raise SDCError(f"most rows of the preview '{made_up.text}' are records of '{table.text}'; make rows up")
    return made_up.text


def _table(session: Session, text: str | None, argument: str = "tbl") -> Source:
    cursor = session.cursor()
    if text is not None and text != text.strip():
        called = "SELECT 1 FROM information_schema.tables WHERE table_name = ? AND table_catalog = current_database()"
        if catalog.first_row(cursor, called, [text]) is not None:  # another table may have the name without the spaces
            raise SDCError(f"argument '{argument}' names a table with spaces around its name; make a view of it")
    table = source(cursor, text, argument, elsewhere=argument == "tbl")
    if table.text.startswith("("):
        raise wrong(argument, "name a table or view of the main schema; for a query make a view")
    name = _name_alone(table)
    if name is None:
        wanted = "name a table or view of the main schema, by its name alone, in double quotes where SQL needs them"
        raise wrong(argument, f"{wanted}; for any other make a view", "CREATE VIEW name AS FROM ..")
    table = replace(table, text=name, sql=identifier(name))
    # DuckDB finds its own views by their names alone, and they tell of tables that nobody declared.
    name = folded(table.text)
    views = f"""SELECT count(*) > 0 AND bool_and(internal) FROM duckdb_views()
        WHERE {folded_sql("view_name")} = ?"""
    tables = f"SELECT count(*) = 0 FROM duckdb_tables() WHERE {folded_sql('table_name')} = ?"
    if cursor.execute(f"SELECT ({views}) AND ({tables})", [name, name]).fetchall() == [(True,)]:
        raise SDCError(f"'{table.text}' is a view of DuckDB's own catalog, which tells of all tables")
    return table


_QUOTED = re.compile(r'"((?:[^"]|"")+)"')


def _name_alone(table: Source) -> str | None:
    """The name of a relation that was written without a schema, as SQL means it; None: it was not, or has odd signs."""
    if table.sql == identifier(table.text) or table.text.replace("_", "a").isalnum():
        name = table.text
    elif quoted := _QUOTED.fullmatch(table.text):
        name = quoted[1].replace('""', '"')
    else:
        return None
    fits = name.isprintable() and name == name.strip() and ";" not in name and not name.startswith(("(", '"'))
    return name if fits else None


def _check_place(cursor: duckdb.DuckDBPyConnection, here: Sequence[str]) -> None:
    """Refuse names where they mean another table than that of the main schema, which is the one that has policies."""
    home = (catalog.current_database(cursor), "main")
    if tuple(map(folded, here)) != tuple(map(folded, home)):
        told = ".".join(map(identifier, here))
        raise SDCError(
            f"policies are for tables and views of the main schema, and a name means one of {told} here: "
            f"USE {'.'.join(map(identifier, home))} first; for a table of another schema make a view in main"
        )


def _check_view(cursor: duckdb.DuckDBPyConnection, table: Source) -> None:
    """Refuse a view that fails for some of its rows: analysts would find out which by what they are answered."""
    if not catalog.is_view(cursor, table.text):
        return
    failing = catalog.failing_columns(cursor, table.sql, table.columns)
    if failing:
        raise SDCError(
            f"the view '{table.text}' fails for some of its rows, in {', '.join(map(repr, failing))}: "
            "let it give NULL there, as TRY_CAST and TRY do"
        )


def _plain(table: Source, name: str | None, argument: str) -> str:
    """A column's name as the table has it."""
    return table.column(name, argument)[1:-1].replace('""', '"')


def plan_declare_public(session: Session, text: str | None, role: str | None, here: Sequence[str]) -> Rows:
    """``sdc_declare_public``: a relation that analysts read freely."""
    _check_place(session.cursor(), here)
    table = _table(session, text)
    before = _policy(session, table.text, role)
    if before is not None and before.label == "unit-level":
        raise SDCError(f"'{table.text}' is protected as unit-level; take that back first (sdc_unprotect)")
    _check_view(session.cursor(), table)
    cursor = session.cursor()
    if catalog.is_view(cursor, table.text):
        behind = catalog.records_behind(cursor, table.text, role or "")
        if behind is not None:
            raise SDCError(
                f"'{table.text}' reads '{behind}', which is not for everybody; make a table of what is; a table that "
                "protected views look up in has to be public itself (sdc_declare_public)"
            )
    for policy in catalog.policies(cursor):
        same = policy.label == "unit-level" and folded(policy.role) == folded(role or "")
        if same and catalog.has_records_of(cursor, policy.name, policy, table.text):
            raise SDCError(
                f"'{table.text}' has the records of '{policy.name}', which is protected; make a table of what is public"
            )

    def store() -> pa.Table:
        catalog.store_policy(session.cursor(), Policy(table.text, "public", role=role or ""))
        return pa.table({"name": [table.text], "columns": [len(table.columns)]})

    return Rows(store)


def _policy(session: Session, name: str | None, role: str | None) -> Policy | None:
    """The policy of a relation for a role."""
    asked = (folded(name or ""), folded(role or ""))
    known = catalog.policies(session.cursor())
    return next((policy for policy in known if (folded(policy.name), folded(policy.role)) == asked), None)


def plan_unprotect(session: Session, text: str | None, role: str | None) -> Rows:
    """``sdc_unprotect``: fails while binding if there is no such policy."""
    quoted = _QUOTED.fullmatch(text or "")
    found = _policy(session, text, role) or (_policy(session, quoted[1].replace('""', '"'), role) if quoted else None)
    if found is None:
        known = catalog.policies(session.cursor())
        raise unknown("policy", str(text), [policy.name for policy in known if policy.role == (role or "")])

    def drop() -> pa.Table:
        catalog.drop_policy(session.cursor(), found.name, found.role)
        return pa.table({"name": [found.name]})

    return Rows(drop)


FAMILY = Family(
    name="guard",
    stored=("guard.sql",),
    temporary=("guard_tables.sql", "dp_ledger_tables.sql"),
    planners=(*planners(plan_protect, plan_declare_public, plan_unprotect), *LEDGER, *SEQUENCE),
)
