"""``sdc.policies``: what analysts may ask about each relation."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import duckdb

from sdcduck.catalog.database import current_database, first_row, transaction
from sdcduck.catalog.settings import set_setting, setting
from sdcduck.quoting import folded, folded_sql, identifier

METHODS = ("cell_key", "suppression", "threshold", "rounding", "dp")
"""How unit-level tables can be answered: by the names of the modules in which the guard has the methods."""

Limits = tuple[tuple[str, tuple[float, ...]], ...]
"""Measures and numbers in ascending order: the ends of what values are taken for, or the borders of bands."""

Definition = tuple[tuple[str, str, str], ...]
"""What a view is made of: views and macros, of each its name, its parameters, and the query that it is."""


@dataclass(frozen=True)
class Kind:
    """One of several kinds of units that a record is of, such as its person and its firm.

    Attributes:
        unit: the column that identifies them.
        record_key: the column with their record keys, where the method has noise.
        min_units: how many of them a number needs.
    """

    unit: str
    record_key: str | None
    min_units: int


@dataclass(frozen=True)
class SequenceLimit:
    """When a login has been told enough, see `sdc_protect`.

    Attributes:
        mode: 'off', or how it is measured what somebody knows after all answers.
        least_error: the least standard error that an attacker may reach for few units, as a share of that of somebody
            who was told nothing.
        secrets: the columns that nobody should learn of a unit.
        on_breach: 'refuse' or 'log'.
        granted: the query of what is published anyway; empty: nothing is.
        follows: the earlier releases of the same units, the last one first.
        followed_by: the later release; empty: there is none.
    """

    mode: str = "off"
    least_error: float = 0.8
    secrets: tuple[str, ...] = ()
    on_breach: str = "refuse"
    granted: str = ""
    follows: tuple[str, ...] = ()
    followed_by: str = ""

    @property
    def holds(self) -> bool:
        """Whether anything is limited."""
        return self.mode != "off"

    @property
    def is_exact(self) -> bool:
        """Whether it is about numbers without noise."""
        return self.mode in ("atoms", "pairwise", "rank")


@dataclass(frozen=True)
class Privacy:
    """What the answers about a table may cost together, see `sdc_protect(.., method := 'dp')`.

    Attributes:
        epsilon: of all answers together; 0: the policy is of another method.
        delta: of all answers together; 0: the noise is Laplace, and costs are epsilons.
        per_question: the epsilon that one question would cost alone.
        neighbours: 'replace' or 'add_remove'.
        domains: the values of dimensions that may be grouped by, as texts, and the type that they are of.
        declared: another text each time it is declared: what was answered before is not answered again for nothing.
        contributions: how many rows of a unit are looked at.
        ledger: 'policy', all who ask spend one budget; 'login', each has one of its own.
        period: 'day', 'week', 'month', 'quarter' or 'year', each of which has a budget anew; empty: there is one for
            ever.
        private: dimensions that may be grouped by though nobody may know their values: of these groups those appear
            that have many units.
        objective: what the noise of the totals of a statement is shared for: 'volume', 'mse' or 'none'.
        noise: 'least', or 'normal': all noise is normal, and costs are added up and converted exactly.
        days: of dimensions of dates and moments their names, types, first and last day: their domain is all between.
    """

    epsilon: float = 0
    delta: float = 0
    per_question: float = 0
    neighbours: str = "replace"
    domains: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    declared: str = ""
    contributions: int = 1
    ledger: str = "policy"
    period: str = ""
    private: tuple[str, ...] = ()
    objective: str = "volume"
    noise: str = "least"
    days: tuple[tuple[str, str, str, str], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether anything is counted."""
        return self.epsilon > 0

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.delta > 0

    @property
    def ends(self) -> dict[str, tuple[float, float]]:
        """The least and the largest value of the dimensions of whole numbers whose domains were declared."""
        numbers = {
            name: [int(value) for value in values]
            for name, kind, values in self.domains
            if kind not in ("VARCHAR", "BOOLEAN", "DATE")
        }
        return {name: (float(min(values)), float(max(values))) for name, values in numbers.items() if any(values)}

    @property
    def of_groups(self) -> float:
        """What of delta is for groups that appear although nobody may know them."""
        return self.delta / 2 if self.private else 0.0


@dataclass(frozen=True)
class Policy:
    """What analysts may ask about one relation, and how it is answered; see `sdc_protect` for the fields.

    Of the columns of what belongs to one unit (``owned``) was seen when it was declared: of ``identifying`` each record
    has another value, and of ``never_missing`` each has one.

    Three are not declared: ``is_whole``, whether all that its method needs is stored; and ``without_null`` and
    ``without_zero``, known of data that nobody can change, measures of which no record has such a value.

    Where ``units`` were declared, ``kinds`` has all of them; ``unit`` and ``record_key`` are those of the first, and
    ``min_units`` is the largest of theirs.
    """

    name: str
    label: str
    unit: str | None = None
    record_key: str | None = None
    dimensions: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    method: str | None = None
    ptable: str | None = None
    magnitude_ptable: str | None = None
    min_units: int = 1
    base: int = 3
    publication: str | None = None
    count_column: str | None = None
    one_row_per_unit: bool = True
    population: str | None = None
    role: str = ""
    complete: tuple[str, ...] = ()
    records: int = 0
    preview: str | None = None
    noise_secret: str = field(default="", repr=False)
    is_whole: bool = True
    without_null: frozenset[str] = frozenset()
    without_zero: frozenset[str] = frozenset()
    bounds: Limits = ()
    bands: Limits = ()
    owned: tuple[tuple[str, str], ...] = ()
    identifying: tuple[str, ...] = ()
    never_missing: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    sequence: SequenceLimit = SequenceLimit()
    questions: int | None = None
    privacy: Privacy = Privacy()

    @property
    def others(self) -> tuple[Kind, ...]:
        """The kinds of units beside the first."""
        return self.kinds[1:]

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns of units."""
        return tuple(kind.unit for kind in self.kinds) or (() if self.unit is None else (self.unit,))

    @property
    def record_keys(self) -> tuple[str, ...]:
        """The columns of record keys."""
        every = [kind.record_key for kind in self.kinds] or [self.record_key]
        return tuple(key for key in every if key is not None)


def total_of(measure: str) -> str:
    """What bands of the total that a unit has of a measure are declared for."""
    return f"sum({measure})"


def policies(con: duckdb.DuckDBPyConnection) -> list[Policy]:
    """Every policy of the database, by name and role."""
    stored = dict(con.execute("SELECT name, value FROM sdc.settings").fetchall())
    limits, kinds = _stored_limits(stored), _stored_kinds(stored)
    owned = _stored_owned(stored)
    sequences, budgets, noise_secret = _stored_sequences(stored), _stored_budgets(stored), stored.get("noise_secret")
    rows = con.execute(
        "SELECT name, label, unit, record_key, dimensions, measures, method, ptable, magnitude_ptable, min_units, "
        "base, publication, count_column, one_row_per_unit, population, role, complete, records, preview "
        "FROM sdc.policies ORDER BY name, role"
    ).fetchall()
    found = [
        Policy(
            name, label, unit, record_key, tuple(dimensions or ()), tuple(measures or ()), method, ptable,
            magnitude_ptable, min_units or 1, base or 3, publication, count_column, bool(one_row_per_unit), population,
            role or "", tuple(complete or ()), records or 0, preview, noise_secret or "",
            label == "public" or bool(
                label == "unit-level" and method in METHODS and all((dimensions, min_units))
                and (unit or (name, role or "") in kinds or (name, role or "") in sequences)
                and (method != "cell_key" or all((ptable, magnitude_ptable, noise_secret)))
                and (method not in ("cell_key", "rounding") or record_key or (name, role or "") in kinds
                     or (name, role or "") in sequences)
                and (method != "rounding" or base)
                and (method != "suppression" or publication)
            ),
            bounds=limits.get((name, role or "", "bounds"), ()),
            bands=limits.get((name, role or "", "bands"), ()),
            **owned.get((name, role or ""), {}),
        )
        for name, label, unit, record_key, dimensions, measures, method, ptable, magnitude_ptable, min_units, base,
            publication, count_column, one_row_per_unit, population, role, complete, records, preview in rows
    ]  # fmt: skip
    every = [_of_kinds(policy, kinds.get((policy.name, policy.role), ())) for policy in found]
    later = {(limit.follows[0], role): name for (name, role), (_, limit) in sequences.items() if limit.follows}
    limited = [
        _of_sequence(policy, sequences.get((policy.name, policy.role)), later.get((policy.name, policy.role), ""))
        for policy in every
    ]
    counted = [replace(policy, questions=budgets.get(_budget_of(policy.name, policy.role))) for policy in limited]
    private = _stored_privacy(stored)
    return [_of_privacy(policy, private.get((policy.name, policy.role))) for policy in counted]


def _of_kinds(policy: Policy, kinds: tuple[Kind, ...]) -> Policy:
    """A policy with all kinds of its units."""
    if not kinds or policy.unit is not None:
        return policy
    keyed = policy.method != "cell_key" or all(kind.record_key for kind in kinds)
    first = kinds[0]
    return replace(
        policy, unit=first.unit, record_key=first.record_key, kinds=kinds, is_whole=policy.is_whole and keyed
    )


def _of_sequence(policy: Policy, stored: tuple[str, SequenceLimit] | None, later: str) -> Policy:
    """A policy with what it limits of the sequence of answers."""
    if stored is None or _part_of(policy) is not None:
        return policy
    part, limit = stored[0], replace(stored[1], followed_by=later)
    if policy.method == "threshold":
        return replace(policy, unit=part, sequence=limit)
    return replace(policy, record_key=part, sequence=limit)


def _part_of(policy: Policy) -> str | None:
    """What is not in `sdc.policies` where the sequence of answers is limited: the unit, or the record key."""
    return policy.unit if policy.method == "threshold" else policy.record_key


def _of_privacy(policy: Policy, stored: Privacy | None) -> Policy:
    """A policy with what its answers may cost; without it that of a private table is not whole."""
    if policy.method != "dp":
        return policy
    return replace(policy, privacy=stored or Privacy(), is_whole=policy.is_whole and stored is not None)


def _values(settings: Mapping[str, str], kind: str) -> list[Any]:
    """What settings of a kind hold."""
    return [json.loads(text) for name, text in settings.items() if name.startswith(kind)]


def _stored_limits(settings: Mapping[str, str]) -> dict[tuple[str, str, str], Limits]:
    """By name and role of the policy, bounds and bands; they are settings: files of older versions have no column."""
    return {
        (stored["name"], stored["role"], kind): tuple(
            (measure, tuple(map(float, numbers))) for measure, numbers in stored[kind].items()
        )
        for stored in _values(settings, _LIMITS)
        for kind in ("bounds", "bands")
    }


def _stored_owned(settings: Mapping[str, str]) -> dict[tuple[str, str], dict[str, Any]]:
    """By name and role of the policy, what its columns identify, and what was seen of these columns."""
    return {
        (stored["name"], stored["role"]): {
            "owned": tuple(stored.get("owned", {}).items()),
            "identifying": tuple(stored.get("identifying", ())),
            "never_missing": tuple(stored.get("never_missing", ())),
        }
        for stored in _values(settings, _LIMITS)
    }


def _stored_kinds(settings: Mapping[str, str]) -> dict[tuple[str, str], tuple[Kind, ...]]:
    """By name and role of the policy, the kinds of its units, where it has several.

    They are settings, and `sdc.policies` has no unit there: an older sdcduck, which would protect the units of the
    first kind alone, takes the policy for one of which parts were removed.
    """
    return {
        (stored["name"], stored["role"]): tuple(
            Kind(one["unit"], one["record_key"], int(one["min_units"])) for one in stored["kinds"]
        )
        for stored in _values(settings, _KINDS)
    }


def _stored_sequences(settings: Mapping[str, str]) -> dict[tuple[str, str], tuple[str, SequenceLimit]]:
    """By name and role of the policy, the column of its record keys, and what it limits of the sequence of answers.

    They are settings, and `sdc.policies` has no record key there: an older sdcduck, which would answer any number of
    questions, takes the policy for one of which parts were removed. A threshold needs no keys: there it is the unit.
    """
    return {
        (stored["name"], stored["role"]): (
            stored["unit"] if "unit" in stored else stored["record_key"],
            SequenceLimit(
                stored["mode"], float(stored["least_error"]), tuple(stored["secrets"]), stored["on_breach"],
                stored.get("granted", ""), tuple(stored.get("follows", ())),
            ),
        )
        for stored in _values(settings, _SEQUENCE)
    }  # fmt: skip


def _stored_budgets(settings: Mapping[str, str]) -> dict[str, int]:
    """By the name of the setting, how many questions of a day are answered about a relation."""
    return {name: int(value) for name, value in settings.items() if name.startswith(_BUDGET)}


def store_budget(con: duckdb.DuckDBPyConnection, name: str, role: str, questions: int | None) -> None:
    """Store how many questions of a day are answered about a relation; None: any number.

    It stays where the policy is declared anew, and goes where it is dropped.
    """
    with transaction(con):
        if questions is None:
            _forget_budget(con, name, role)
        else:
            set_setting(con, _budget_of(name, role), str(questions))
        _policies_changed(con)


def _forget_budget(con: duckdb.DuckDBPyConnection, name: str, role: str) -> None:
    con.execute("DELETE FROM sdc.settings WHERE name = ?", [_budget_of(name, role)])


def _stored_privacy(settings: Mapping[str, str]) -> dict[tuple[str, str], Privacy]:
    """By name and role of the policy, what its answers may cost: an older sdcduck does not know the method."""
    return {
        (stored["name"], stored["role"]): Privacy(
            float(stored["epsilon"]), float(stored["delta"]), float(stored["per_question"]), stored["neighbours"],
            tuple((name, kind, tuple(values)) for name, kind, values in stored["domains"]), stored["declared"],
            int(stored.get("contributions", 1)), stored.get("ledger", "policy"), stored.get("period", ""),
            tuple(stored.get("private", ())), stored.get("objective", "volume"), stored.get("noise", "least"),
            tuple((one[0], one[1], one[2], one[3]) for one in stored.get("days", ())),
        )
        for stored in _values(settings, _PRIVACY)
    }  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """What is known of all policies at a time.

    Attributes:
        version: another one whenever a policy changes.
        database: in which they are.
        columns: of each relation when it was declared, by the name of the setting that has them.
        definitions: what each was made of then, in the same way.
    """

    version: str
    database: str
    columns: Mapping[str, str]
    definitions: Mapping[str, str]

    def definition(self, policy: Policy) -> Definition | None:
        """What a relation was made of when it was declared; None: an older version did not write it down."""
        stored = self.definitions.get(_definition_of(policy.name, policy.role))
        return None if stored is None else tuple((name, kind, text) for name, kind, text in json.loads(stored))

    def has_its_columns(self, policy: Policy, columns: Sequence[str]) -> bool:
        """Whether a relation of these columns has all of when it was declared, in that order, whatever came to them.

        Where one is gone or in another place, a column may have its name now that nobody may see.
        """
        stored = self.columns.get(_columns_of(policy.name, policy.role))
        if stored is None:  # in a file of an older version that was not opened for writing since
            return True
        declared: list[str] = json.loads(stored)
        known = set(declared)
        return [name for name in map(folded, columns) if name in known] == declared


def declared(con: duckdb.DuckDBPyConnection) -> Declared:
    """What is known of all policies now."""
    rows = con.execute("SELECT name, value, current_database() FROM sdc.settings").fetchall()
    stored = {name: value for name, value, _ in rows}
    columns, definitions = (
        {name: value for name, value in stored.items() if name.startswith(kind)} for kind in (_COLUMNS, _DEFINITION)
    )
    return Declared(stored.get("policies", ""), rows[0][2] if rows else current_database(con), columns, definitions)


def _policies_changed(con: duckdb.DuckDBPyConnection) -> None:
    set_setting(con, "policies", secrets.token_hex(8))


def store_policy(con: duckdb.DuckDBPyConnection, policy: Policy, definition: Definition = ()) -> None:
    """Store a policy, replacing that of the same relation and role, all or nothing.

    Args:
        definition: what its view is made of.
    """
    columns = columns_now(con, policy.name) if policy.label == "unit-level" else []
    hidden = "" if not policy.sequence.holds else "unit" if policy.method == "threshold" else "record_key"
    with transaction(con):
        _delete_policy(con, policy.name, policy.role)
        con.execute(
            f"INSERT INTO sdc.policies VALUES ({', '.join('?' * 19)})",
            [policy.name, policy.label, None if policy.kinds or hidden == "unit" else policy.unit,
             None if policy.kinds or hidden == "record_key" else policy.record_key, list(policy.dimensions),
             list(policy.measures), policy.method, policy.ptable, policy.magnitude_ptable, policy.min_units,
             policy.base, policy.publication, policy.count_column, policy.one_row_per_unit, policy.population,
             policy.role, list(policy.complete), policy.records, policy.preview],
        )  # fmt: skip
        if columns:
            set_setting(con, _columns_of(policy.name, policy.role), json.dumps(columns))
            store_definition(con, policy, definition)
        if policy.bounds or policy.bands or policy.owned:
            limits = {"bounds": dict(policy.bounds), "bands": dict(policy.bands), "owned": dict(policy.owned)}
            seen = {"identifying": list(policy.identifying), "never_missing": list(policy.never_missing)}
            stored = json.dumps({"name": policy.name, "role": policy.role, **limits, **(seen if policy.owned else {})})
            set_setting(con, _limits_of(policy.name, policy.role), stored)
        if policy.kinds:
            every = [{"unit": k.unit, "record_key": k.record_key, "min_units": k.min_units} for k in policy.kinds]
            stored = json.dumps({"name": policy.name, "role": policy.role, "kinds": every})
            set_setting(con, _kinds_of(policy.name, policy.role), stored)
        if policy.sequence.holds:
            limit = policy.sequence
            of_limit = {"mode": limit.mode, "least_error": limit.least_error, "on_breach": limit.on_breach}
            stored = json.dumps(
                {"name": policy.name, "role": policy.role, hidden: _part_of(policy), **of_limit}
                | {"secrets": list(limit.secrets)}
                | ({"granted": limit.granted} if limit.granted else {})
                | ({"follows": list(limit.follows)} if limit.follows else {})
            )
            set_setting(con, _sequence_of(policy.name, policy.role), stored)
        if policy.privacy.holds:
            costs = {"name": policy.name, "role": policy.role, **asdict(policy.privacy)}
            set_setting(con, _privacy_of(policy.name, policy.role), json.dumps(costs))
        made_up = first_row(con, preview_digest(policy)) if policy.preview is not None else None
        if made_up is not None:
            set_setting(con, _preview_of(policy.name, policy.role), made_up[0])
        if policy.noise_secret and setting(con, "noise_secret") is None:
            set_setting(con, "noise_secret", policy.noise_secret)
        _policies_changed(con)


def columns_now(con: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    """All columns of a relation in their order, visible or not."""
    try:
        return [folded(row[0]) for row in con.execute(f"DESCRIBE FROM main.{identifier(name)}").fetchall()]
    except duckdb.Error:
        return []


_COLUMNS = "columns "


def _columns_of(name: str, role: str) -> str:
    return f"{_COLUMNS}{json.dumps([folded(name), folded(role)])}"


_DEFINITION = "definition "


def _definition_of(name: str, role: str) -> str:
    return f"{_DEFINITION}{json.dumps([folded(name), folded(role)])}"


def has_definition(con: duckdb.DuckDBPyConnection, policy: Policy) -> bool:
    """Whether it is stored what a relation was made of when it was declared."""
    return setting(con, _definition_of(policy.name, policy.role)) is not None


def store_definition(con: duckdb.DuckDBPyConnection, policy: Policy, definition: Definition) -> None:
    """Store what a relation is made of."""
    set_setting(con, _definition_of(policy.name, policy.role), json.dumps(definition))


def _preview_of(name: str, role: str) -> str:
    return f"preview {json.dumps([folded(name), folded(role)])}"


_LIMITS = "limits "


def _limits_of(name: str, role: str) -> str:
    return f"{_LIMITS}{json.dumps([folded(name), folded(role)])}"


_KINDS = "kinds "


def _kinds_of(name: str, role: str) -> str:
    return f"{_KINDS}{json.dumps([folded(name), folded(role)])}"


_SEQUENCE = "sequence "


def _sequence_of(name: str, role: str) -> str:
    return f"{_SEQUENCE}{json.dumps([folded(name), folded(role)])}"


_BUDGET = "questions "


def _budget_of(name: str, role: str) -> str:
    return f"{_BUDGET}{json.dumps([folded(name), folded(role)])}"


_PRIVACY = "privacy "


def _privacy_of(name: str, role: str) -> str:
    return f"{_PRIVACY}{json.dumps([folded(name), folded(role)])}"


def declared_preview(con: duckdb.DuckDBPyConnection, policy: Policy) -> str | None:
    """What `preview_digest` said of a preview when it was declared; None: nobody asked then."""
    return setting(con, _preview_of(policy.name, policy.role))


def preview_digest(policy: Policy) -> str:
    """The query for a text that is another one when other rows are shown in a preview."""
    columns = [f"{identifier(name)}::VARCHAR" for name in (*policy.dimensions, *policy.measures)]
    row = " || ".join(f"coalesce(length({column}) || ':' || {column}, '-')" for column in columns)
    digest = f"count(*) || ' ' || coalesce(sum(md5_number_lower({row})), 0)"
    return f"SELECT {digest} FROM {identifier(str(policy.preview))}"


def note_columns(con: duckdb.DuckDBPyConnection) -> None:
    """Store the columns of the tables that an older version declared without, as they are now; in a transaction."""
    for policy in policies(con):
        kept = _columns_of(policy.name, policy.role)
        if policy.label == "unit-level" and setting(con, kept) is None:
            columns = columns_now(con, policy.name)
            if columns:
                set_setting(con, kept, json.dumps(columns))


def renew_policies(
    con: duckdb.DuckDBPyConnection, publication: str, count_column: str | None, complete: Sequence[str]
) -> None:
    """Bring policies in line with a publication that is stored anew; within the transaction that stores it."""
    named = f"{folded_sql('publication')} = ? AND method = 'suppression'"
    if first_row(con, f"SELECT 1 FROM sdc.policies WHERE {named}", [folded(publication)]) is not None:
        con.execute(
            f"UPDATE sdc.policies SET count_column = ?, complete = ? WHERE {named}",
            [count_column, list(complete), folded(publication)],
        )
        _policies_changed(con)


def _delete_policy(con: duckdb.DuckDBPyConnection, name: str, role: str) -> None:
    same = f"{folded_sql('name')} = ? AND coalesce({folded_sql('role')}, '') = ?"
    con.execute(f"DELETE FROM sdc.policies WHERE {same}", [folded(name), folded(role)])
    noted = (_columns_of, _definition_of, _preview_of, _limits_of, _kinds_of, _sequence_of, _privacy_of)
    kept = [of(name, role) for of in noted]
    con.execute("DELETE FROM sdc.settings WHERE name IN (SELECT unnest(?))", [kept])


def drop_policy(con: duckdb.DuckDBPyConnection, name: str, role: str) -> None:
    """Remove a policy, all or nothing."""
    with transaction(con):
        _delete_policy(con, name, role)
        _forget_budget(con, name, role)
        _policies_changed(con)
