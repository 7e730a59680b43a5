"""A plan of masking, step by step with what each brings and costs: the planner of ``sdc_mask_plan``.

The order is that of a methodologist (Miranda, Mas and Ayestaran 2022; mu-ARGUS): the key in most rare combinations is
recoded first, one level at a time, until few records are rare; single values of these are suppressed; then measures are
masked. The steps are calls of the functions that do this alone, so that what is planned is what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pyarrow as pa

from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, needed, share, struct, whole, wrong
from sdcduck.udfs.hierarchy.levels import plan_levels
from sdcduck.udfs.masking.records import check_ids
from sdcduck.udfs.source import Source, source

_EXAMPLE = "{'age': [5, 10, 20], 'born': ['month', 'year'], 'region': 'regions'}"
_MASKS = ("microaggregation", "noise", "none")
_MOST_TOGETHER = 3  # variables of a rare combination
_COLUMNS = {
    "step": pa.int64(), "action": pa.string(), "columns": pa.list_(pa.string()), "k": pa.int64(),
    "uniques": pa.int64(), "below_k": pa.int64(), "share_below_k": pa.float64(), "expected": pa.float64(),
    "changed": pa.int64(), "suppressed": pa.int64(), "il": pa.float64(), "query": pa.string(),
}  # fmt: skip


@dataclass(frozen=True)
class _Call:
    """A checked call: columns by the names that they have in the source, without quotes.

    Attributes:
        levels: rules of `sdc_recode` by key, each coarser than the one before.
    """

    relation: Source
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    k: int
    levels: dict[str, list[dict[str, Any]]]
    suppress_limit: float
    mask: str
    weight: str | None
    id: str


@dataclass(frozen=True)
class _State:
    """How far the plan is.

    Attributes:
        relation: the records, as an argument of a function: a name, or a query in parentheses.
        level: of each key that is recoded.
        nulls: what a missing key is: a value, until values are suppressed.
    """

    relation: str
    level: dict[str, int] = field(default_factory=dict)
    nulls: str = "category"


def plan_mask_plan(
    session: Session, text: str | None, keys: list[str] | None, measures: list[str] | None, k: int | None,
    given: str | None, suppress_limit: float | None, mask: str | None, weight: str | None, id: str | None,
) -> Rows:  # fmt: skip
    """``sdc_mask_plan``: the arguments are checked while binding, the steps tried when the statement runs."""
    relation = source(session.cursor(), text, "source")
    needed(keys, "keys", "name the columns by which a person could be found")
    names = relation.named(keys, "keys")
    amounts = relation.named(measures, "measures")
    relation.column(needed(id, "id", "name a column that is different in each record"), "id")
    known = relation.named([id], "id")[0]
    for name in amounts:
        relation.number(name, "measures")
    weighted = relation.named([weight], "weight")[0] if weight is not None else None
    for argument, others in (("measures", amounts), ("id", (known,)), ("weight", (weighted,))):
        for other in others:
            if other in names or (argument != "measures" and other in amounts):
                raise wrong(argument, "name other columns than 'keys' and 'measures'")
    relation.check_names(tuple(relation.columns))
    call = _Call(
        relation, names, amounts, whole(k, "k", least=2, why="so many records have the same keys"),
        _levels(session, relation, names, given), share(suppress_limit, "suppress_limit"), choice(mask, "mask", _MASKS),
        weighted, known,
    )  # fmt: skip
    return Rows(lambda: _plan(session, call))


def _levels(
    session: Session, relation: Source, keys: Sequence[str], given: str | None
) -> dict[str, list[dict[str, Any]]]:
    """The rules of each key that may be recoded."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, how in struct(given, "hierarchies", _EXAMPLE).items():
        key = next((key for key in keys if folded(key) == folded(name)), None)
        if key is None:
            raise unknown("key", name, keys, where="'keys', which argument 'hierarchies' is about")
        if isinstance(how, str):
            found[key] = _stored(session, how)
        elif isinstance(how, list) and how and all(isinstance(one, dict) for one in how):
            # In a list of structs each has the fields of all.
            found[key] = [{field: one for field, one in rule.items() if one is not None} for rule in how]
        elif isinstance(how, list) and how and all(isinstance(one, str) for one in how):
            found[key] = [{"period": one} for one in how]
        elif isinstance(how, list) and all(isinstance(one, int | float) and not isinstance(one, bool) for one in how):
            found[key] = [{"width": one} for one in how]
        else:
            raise SDCError(
                f"argument 'hierarchies': that of '{name}' must be widths, periods, rules of sdc_recode, or a table of "
                f"children and parents, such as {_EXAMPLE}"
            )
        for rule in found[key]:
            # What sdc_recode cannot do is said now, and of the argument that asked for it.
            try:
                session.cursor().execute(f"DESCRIBE FROM {_recoded(relation.text, {key: rule})}")
            except duckdb.Error as problem:
                raise SDCError(f"argument 'hierarchies': {str(problem).split('sdc_recode: ', 1)[-1]}") from None
    return found


def _stored(session: Session, table: str) -> list[dict[str, Any]]:
    """The levels of a stored hierarchy above its leaves, from the finest up; the single top is none."""
    tree = plan_levels(session, table, "child", "parent", "level_")
    cursor = session.cursor()
    names = [row[0] for row in cursor.execute(f"DESCRIBE {tree}").fetchall()]
    rows = cursor.execute(
        f"SELECT {', '.join(f'{identifier(name)}::VARCHAR' for name in names)} FROM ({tree})"
    ).fetchall()
    by_level = [
        dict(zip((row[0] for row in rows), column, strict=True)) for column in list(zip(*rows, strict=True))[1:]
    ]
    coarser = [one for one in reversed(by_level) if len(set(one.values())) > 1]
    return [{"map": one} for one in coarser if any(leaf != label for leaf, label in one.items())]


def _sql(value: Any) -> str:
    """A rule as SQL."""
    if isinstance(value, dict):
        inner = ", ".join(f"{literal(str(name))}: {_sql(one)}" for name, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_sql, value))}]"
    return literal(value) if isinstance(value, str) else "NULL" if value is None else repr(value).lower()


def _rule(rule: dict[str, Any]) -> str:
    if "map" not in rule:
        return _sql(rule)
    # The fields of a struct are the same in capitals; those of a map are not.
    others = {name: one for name, one in rule.items() if name != "map"}
    pairs = ", ".join(f"{_sql(old)}: {_sql(new)}" for old, new in rule["map"].items())
    fields = [f"'map': MAP {{{pairs}}}", *(f"{literal(name)}: {_sql(one)}" for name, one in others.items())]
    return f"{{{', '.join(fields)}}}"


def _recoded(relation: str, rules: dict[str, dict[str, Any]]) -> str:
    shown = ", ".join(f"{literal(name)}: {_rule(rule)}" for name, rule in rules.items())
    return f"sdc_recode({literal(relation)}, rules := {{{shown}}})"


def _names(names: Sequence[str]) -> str:
    return f"[{', '.join(map(literal, names))}]"


def _plan(session: Session, call: _Call) -> pa.Table:
    """All steps, each measured against the records as they were."""
    check = shown_checkpoint()
    rows: list[dict[str, Any]] = []
    with closing(reads(session.cursor())) as cursor:
        check_ids(cursor, call.relation, call.id)
        state = _State(call.relation.text)
        rows.append(_measured(cursor, call, state, "as it is", []))
        steps = sum(map(len, call.levels.values())) + 2
        while rows[-1]["share_below_k"] > call.suppress_limit:
            check(len(rows), steps)
            key = _first_to_recode(cursor, call, state)
            if key is None:
                break
            level = {**state.level, key: state.level.get(key, 0) + 1}
            rules = {name: call.levels[name][at - 1] for name, at in level.items()}
            state = replace(state, relation=f"(FROM {_recoded(call.relation.text, rules)})", level=level)
            rows.append(_measured(cursor, call, state, "recode", [key]))
        check(steps - 2, steps)
        if rows[-1]["below_k"]:
            given = f"{literal(state.relation)}, {_names(call.keys)}, k := {call.k}, id := {literal(call.id)}"
            masked = f"sdc_local_suppress({given})"
            state = replace(state, relation=f"(SELECT * EXCLUDE (suppressed) FROM {masked})", nulls="match")
            rows.append(_measured(cursor, call, state, "local suppression", list(call.keys)))
        check(steps - 1, steps)
        if call.measures and call.mask != "none":
            state = replace(state, relation=_of_measures(call, state.relation))
            rows.append(_measured(cursor, call, state, call.mask, list(call.measures)))
        check(steps, steps)
    for place, row in enumerate(rows):
        row["step"] = place
    return pa.Table.from_pylist(rows, pa.schema(list(_COLUMNS.items())))


def _of_measures(call: _Call, relation: str) -> str:
    """The records with masked measures; gaps stay gaps."""
    given = f"{literal(relation)}, {_names(call.measures)}"
    if call.mask == "noise":
        return f"(FROM sdc_add_noise({given}, 'correlated2', id := {literal(call.id)}, nulls := 'keep'))"
    grouped = f"sdc_microaggregate({given}, k := {call.k}, id := {literal(call.id)}, nulls := 'keep')"
    return f"(SELECT * EXCLUDE (group_id, group_size) FROM {grouped})"


def _first_to_recode(cursor: duckdb.DuckDBPyConnection, call: _Call, state: _State) -> str | None:
    """The key in most rare combinations of those that have a coarser level; one key alone counts first."""
    left = [key for key, levels in call.levels.items() if state.level.get(key, 0) < len(levels)]
    if not left:
        return None
    found = cursor.execute(
        f"SELECT variable, list(unsafe ORDER BY dimension) FROM sdc_unsafe_combinations({literal(state.relation)}, "
        f"{_names(call.keys)}, k := {call.k}, max_size := {min(_MOST_TOGETHER, len(call.keys))}) GROUP BY variable"
    ).fetchall()
    unsafe: dict[str, list[int]] = dict(found)
    return max(left, key=lambda key: (unsafe[key], -call.keys.index(key)))


def _measured(
    cursor: duckdb.DuckDBPyConnection, call: _Call, state: _State, action: str, columns: list[str]
) -> dict[str, Any]:
    """The risk of the records, and what has changed since the beginning."""
    asked = f"{literal(state.relation)}, {_names(call.keys)}, nulls := '{state.nulls}'"
    records, smallest, uniques, below, mean = _one(
        cursor,
        f"SELECT records, k, uniques, below_k, mean_risk FROM sdc_k_anonymity({asked}, k := {call.k})",
    )
    expected = None if mean is None else mean * records
    if call.weight is not None:
        weighted = f"sdc_global_risk({asked}, weight := {literal(call.weight)})"
        [expected] = _one(cursor, f"SELECT expected FROM {weighted}")
    changed = suppressed = 0
    loss = None
    if action != "as it is":
        compared = f"{literal(call.relation.text)}, {literal(state.relation)}, {_names((*call.keys, *call.measures))}"
        of_keys, of_measures = (
            f"column_name IN ({', '.join(map(literal, some)) or 'NULL'})" for some in (call.keys, call.measures)
        )
        changed, suppressed, loss = _one(
            cursor,
            f"SELECT sum(changed) FILTER ({of_keys}), sum(suppressed) FILTER ({of_keys}), "
            f"avg(il) FILTER ({of_measures}) "
            f"FROM sdc_mask_loss({compared}, id := {literal(call.id)})",
        )
    return {
        "action": action, "columns": columns, "k": smallest, "uniques": uniques, "below_k": below,
        "share_below_k": below / records if records else 0.0, "expected": expected, "changed": int(changed),
        "suppressed": int(suppressed), "il": loss, "query": f"FROM {state.relation}",
    }  # fmt: skip


def _one(cursor: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] = cursor.execute(query).fetchall()[0]
    return row


PLANNERS = (
    planner(
        plan_mask_plan,
        {
            "step": "BIGINT", "action": "VARCHAR", "columns": "VARCHAR[]", "k": "BIGINT", "uniques": "BIGINT",
            "below_k": "BIGINT", "share_below_k": "DOUBLE", "expected": "DOUBLE", "changed": "BIGINT",
            "suppressed": "BIGINT", "il": "DOUBLE", "query": "VARCHAR",
        },
    ),
)  # fmt: skip
