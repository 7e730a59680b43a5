"""Records: how many could be found by what somebody may know of them, and files of records that may leave."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from sdcduck.desk.alternatives import RECORD_KEY, RELEASE, seed_of
from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.forms import Form
from sdcduck.desk.guesses import Column
from sdcduck.desk.masks import choices, masked, picked
from sdcduck.desk.masks import told as masks_told
from sdcduck.desk.publications import check_free
from sdcduck.desk.statements import call, named
from sdcduck.desk.work import Work
from sdcduck.errors import SDCError, unknown
from sdcduck.quoting import folded, identifier, literal

_K = 3
_FILES = {
    "suppressed": "Records with local suppression", "masked": "Masked records", "synthetic": "Synthetic records",
}  # fmt: skip


def records_page(asked: Asked) -> Response:
    """Which table, and what somebody may know: the dimensions, unless others were picked."""
    form = asked.form
    tables = asked.register.tables(asked.reading)
    table = form.one("table")
    columns = asked.register.columns(asked.reading, table) if table else []
    if table and not form.has("filled"):
        keys = [("key", column.name) for column in columns if column.role == "dimension"]
        form = Form([*form.fields, *keys, ("k", str(_K))])
    return asked.page(
        "records.html", title="Records", here="records", tables=tables, table=table, columns=columns, form=form,
        choices={column.name: choices(column) for column in columns if may_leave(column)},
    )  # fmt: skip


def may_leave(column: Column) -> bool:
    """Whether a column is neither an identifier nor the record key."""
    return column.role != "identifier" and folded(column.name) != RECORD_KEY


def measure_risk(asked: Asked) -> Posted:
    """How anonymous the records are, or which column makes them rare."""
    form = asked.form
    table, keys = form.one("table"), form.all("key")
    if not keys:
        raise SDCError("pick what somebody may know of a person: at least one column")
    asked.register.check_columns(asked.reading, table, keys)
    k = form.whole("k", "records that share a combination")
    function = "sdc_unsafe_combinations" if form.one("measure") == "columns" else "sdc_k_anonymity"
    title = "Which column makes records rare" if form.one("measure") == "columns" else "How anonymous the records are"
    statement = call(function, named(table), keys=keys, k=k)
    about = {"keys": keys, "k": k or _K, "table": table}
    kind = "rows" if form.one("measure") == "columns" else "risk"
    return asked.begin(Work(kind, f"{title}: {table}", statement, form, (table,), about=about))


def release_records(asked: Asked) -> Posted:
    """Make a table of records that may leave, without identifiers: single values suppressed, or synthetic."""
    form = asked.form
    table, name, method = form.one("table"), form.one("release"), form.one("method")
    if method not in _FILES:
        raise unknown("kind of file", method, list(_FILES))
    keys, k = form.all("key"), form.whole("k", "records that share a combination") or _K
    if not keys and (method == "suppressed" or form.has("suppress")):
        raise SDCError("pick what somebody may know of a person: at least one column")
    asked.register.check_columns(asked.reading, table, keys)
    if not asked.reading.rows(f"SELECT 1 FROM {identifier(table)} LIMIT 1"):
        raise SDCError(f"'{table}' has no records: there is nothing to release")
    known = [one for one in asked.register.columns(asked.reading, table) if may_leave(one)]
    columns = [one.name for one in known]
    lost = next((key for key in keys if key not in columns), None)
    if lost is not None:
        raise SDCError(f"'{lost}' is an identifier, which does not leave")
    replace = form.has("replace")
    check_free(asked, name, replace=replace)
    kind = "file"
    if method == "suppressed":
        made, told = _suppressed(table, columns, keys, k, name)
    elif method == "masked":
        kind, (made, told) = "masked", _masked(form, table, known, keys if form.has("suppress") else [], k, name)
    else:
        made, told = _synthetic(table, columns, seed_of(form), name)
    statement = (
        f"CREATE {'OR REPLACE ' if replace else ''}TABLE {identifier(name)} AS\n{made};\n"
        f"COMMENT ON TABLE {identifier(name)} IS {literal(f'{RELEASE} {_FILES[method]}, of {table}')};\n{told}"
    )
    about = {"name": name, "method": method, "k": k, "keys": keys}
    return asked.begin(Work(kind, f"{_FILES[method]}: {name}", statement, form, (table,), writes=True, about=about))


def _masked(form: Form, table: str, known: Sequence[Column], keys: Sequence[str], k: int, name: str) -> tuple[str, str]:
    """What makes the records, and what tells how many are what they were.

    Args:
        keys: values of these are suppressed afterwards, until each record may be one of k; none: nothing is.
    """
    left, masks = picked(form, known)
    if not masks:
        raise SDCError("pick a mask for at least one column")
    columns = [one.name for one in left]
    lost = next((key for key in keys if key not in columns), None)
    if lost is not None:
        raise SDCError(f"'{lost}' is left out: take it from what somebody may know, or let it leave")
    records = f"(SELECT {', '.join(map(identifier, columns))} FROM {identifier(table)})"
    made, anonymous = masked(table, left, masks, k, seed_of(form)), ""
    if keys:
        made = f"SELECT * EXCLUDE (suppressed) {call('sdc_local_suppress', f'({made})', keys=list(keys), k=k)}"
        anonymous = call("sdc_k_anonymity", named(name), keys=list(keys), k=k, nulls="match")
    return f"FROM ({made}) ORDER BY ALL", masks_told(records, name, list(masks), _halves(table, columns), anonymous)


def _suppressed(table: str, columns: Sequence[str], keys: Sequence[str], k: int, name: str) -> tuple[str, str]:
    """What makes the records, and what tells whether each may be one of k."""
    records = f"(SELECT {', '.join(map(identifier, columns))} FROM {identifier(table)})"
    # In the order of the register, the place of a record would say whose it is.
    made = f"SELECT * EXCLUDE (suppressed) {call('sdc_local_suppress', records, keys=list(keys), k=k)} ORDER BY ALL"
    told = call("sdc_k_anonymity", named(name), keys=list(keys), k=k, nulls="match")
    gaps = " + ".join(f"count(*) - count({identifier(key)})" for key in keys)
    return made, f"SELECT *, (SELECT {gaps} FROM {identifier(name)}) AS suppressed {told}"


def _synthetic(table: str, columns: Sequence[str], seed: int, name: str) -> tuple[str, str]:
    """What makes the records, and how many are copies, beside what one half of the persons shares with the other."""
    listed = ", ".join(map(identifier, columns))
    records = f"(SELECT {listed} FROM {identifier(table)})"
    made = call("sdc_synth_records", records, seed=seed)
    told = (
        "SELECT s.synthetic_records AS records, s.matches, s.share, s.matches_of_uniques, b.share AS baseline\n"
        f"FROM ({call('sdc_identical_matches', records, named(name))}) s, "
        f"({call('sdc_identical_matches', *_halves(table, columns))}) b"
    )
    return made, told


def _halves(table: str, columns: Sequence[str]) -> list[str]:
    """Two queries of one half of the records each: how many are equal by chance."""
    listed = ", ".join(map(identifier, columns))
    numbered = f"(SELECT *, row_number() OVER () AS _place FROM {identifier(table)})"
    return [f"(SELECT {listed} FROM {numbered} WHERE _place % 2 = {k})" for k in (0, 1)]
