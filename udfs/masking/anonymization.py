"""The planners of ``sdc_anonymize`` and ``sdc_anonymize_lattice``: arguments, and the answer joined to records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.generalisation_costs import COSTS
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import choice, needed, number, share, truth, whole, wrong
from sdcduck.udfs.masking.generalisations import Hierarchy, hierarchies, key_value
from sdcduck.udfs.masking.lattice_nodes import Demands, Nodes
from sdcduck.udfs.masking.records import check_ids, there_are
from sdcduck.udfs.risk.diversity import is_ordered
from sdcduck.udfs.source import Source, refuse_taken, source

_L_METHODS = ("distinct", "entropy", "recursive")
_ADDED = ("class_size", "suppressed")
_TYPES = {"BIGINT": pa.int64(), "BIGINT[]": pa.list_(pa.int64()), "VARCHAR": pa.string(),
          "VARCHAR[]": pa.list_(pa.string()), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}  # fmt: skip
_GENERALISED = {
    "place": "BIGINT", "labels": "VARCHAR[]", "texts": "VARCHAR[]", "records": "BIGINT", "combinations": "BIGINT",
    "class_size": "BIGINT", "suppressed": "BOOLEAN",
}  # fmt: skip
_LATTICE = {
    "node": "BIGINT", "levels": "BIGINT[]", "classes": "BIGINT", "smallest": "BIGINT", "suppressed": "BIGINT",
    "passes": "BOOLEAN", "cost": "DOUBLE", "bound": "DOUBLE", "searched": "BOOLEAN", "why": "VARCHAR",
    "chosen": "BOOLEAN",
}  # fmt: skip


@dataclass(frozen=True)
class _Call:
    """A checked call: columns by the names that they have in the source, without quotes."""

    relation: Source
    keys: tuple[tuple[str, Hierarchy], ...]
    demands: Demands
    sensitive: str | None
    suppress_limit: float
    cost: str
    id: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """The keys."""
        return tuple(name for name, _ in self.keys)


def _call(
    session: Session, text: str | None, keys: list[str] | None, k: int | None, given: str | None, diverse: float | None,
    sensitive: str | None, t: float | None, suppress_limit: float | None, cost: str | None, l_method: str | None,
    c: float | None, ordered: bool | None, id: str | None,
) -> _Call:  # fmt: skip
    relation = source(session.cursor(), text, "source")
    needed(keys, "keys", "name the columns by which a person could be found")
    names = relation.named(keys, "keys")
    relation.check_names(tuple(relation.columns))
    least = whole(k, "k", least=1, why="so many records have the same keys")
    if sensitive is None and (diverse is not None or t is not None):
        raise wrong("sensitive", "name the column that nobody should learn: l and t are about it")
    if sensitive is not None and diverse is None and t is None:
        raise SDCError("argument 'sensitive' is for l-diversity or t-closeness: give l or t, too")
    learned = relation.named([sensitive], "sensitive")[0] if sensitive is not None else None
    if learned in names:
        raise wrong("sensitive", "name another column than 'keys'")
    known = relation.named([id], "id")[0] if id is not None else None
    if known is not None and known in (*names, learned):
        raise wrong("id", "name another column than 'keys' and 'sensitive'")
    method = choice(l_method, "l_method", _L_METHODS)
    if diverse is not None:
        number(diverse, "l", least=1)
        if method != "entropy" and diverse != int(diverse):
            raise wrong("l", f"be a whole number for l_method := '{method}'")
    in_order = is_ordered(relation.type_of(learned)) if learned else False
    demands = Demands(
        least, diverse, method, number(c, "c", above=0), None if t is None else share(t, "t"),
        in_order if ordered is None else truth(ordered, "ordered"),
    )  # fmt: skip
    hows = hierarchies(session, relation, names, given)
    return _Call(
        relation, tuple(zip(names, hows, strict=True)), demands, learned, share(suppress_limit, "suppress_limit"),
        choice(cost, "cost", COSTS), known,
    )  # fmt: skip


def plan_anonymize(session: Session, *given: Any) -> Rows:
    """``sdc_anonymize``: records are joined to the combination of keys that they have."""
    call = _call(session, *given)
    refuse_taken(call.relation.columns, _ADDED)
    return Rows(lambda: _anonymize(session, call), _select(call))


def _select(call: _Call) -> str:
    """The columns of the source with what the keys have become.

    A statement may see other records than the search did, those of its own transaction: then it fails, as a place
    would stand for another combination, and classes would be smaller than they are said to be.
    """
    number_of = {name: place for place, name in enumerate(call.names, 1)}
    shown = [
        f"m.labels[{number_of[name]}] AS {identifier(name)}" if name in number_of else f"r.{identifier(name)}"
        for name in call.relation.columns
    ]
    keys = [identifier(name) for name in call.names]
    alike = " AND ".join(f"r.{key} IS NOT DISTINCT FROM b.{key}" for key in keys)
    order = ", ".join(f"{key} ASC NULLS LAST" for key in keys)
    texts = ", ".join(f"({key_value(call.relation, name, 'b.')})::VARCHAR" for name in call.names)
    return f"""SELECT {", ".join(shown)}, m.class_size, m.suppressed
        FROM {call.relation.sql} r
        JOIN (
            SELECT *, row_number() OVER (ORDER BY {order}) - 1 AS _sdc_place, count(*) OVER () AS _sdc_combinations
            FROM (SELECT {", ".join(keys)}, count(*) AS _sdc_records FROM {call.relation.sql} GROUP BY ALL)
        ) b ON {alike}
        LEFT JOIN {{rows}} m ON b._sdc_place = m.place
        WHERE CASE WHEN m.combinations = b._sdc_combinations AND m.records = b._sdc_records AND m.texts = [{texts}]
            THEN true ELSE error('sdc_anonymize: the records are not those that others see: commit first') END"""


def _searched(session: Session, call: _Call, cursor: Any) -> Nodes | None:
    """The lattice of a call with its best node; None without records."""
    if call.id:
        check_ids(cursor, call.relation, call.id)
    nodes = Nodes(
        cursor, call.relation, call.keys, call.sensitive, call.demands, call.suppress_limit, call.cost
    )  # fmt: skip
    if not nodes.count:
        return None
    if nodes.count < call.demands.k:
        raise SDCError(f"{there_are(nodes.count)}, fewer than k := {call.demands.k}")
    if nodes.lattice.search(nodes.look, nodes.most, shown_checkpoint()) is None:
        raise SDCError(
            f"all records together do not have the diversity l := {call.demands.diversity:g} of the column "
            f"'{call.sensitive}': no generalisation has it"
        )
    return nodes


def _anonymize(session: Session, call: _Call) -> pa.Table:
    """What each combination of keys becomes at the best node."""
    with reads(session.cursor()) as cursor:
        nodes = _searched(session, call, cursor)
        if nodes is None or nodes.lattice.best is None:
            return _typed([], _GENERALISED)
        return nodes.generalised(tuple(nodes.lattice.levels[nodes.lattice.best].tolist()))


def plan_anonymize_lattice(session: Session, *given: Any) -> Rows:
    """``sdc_anonymize_lattice``: what the search knows of each node when it is done."""
    call = _call(session, *given)
    return Rows(lambda: _lattice(session, call), "FROM {rows} ORDER BY node")


def _lattice(session: Session, call: _Call) -> pa.Table:
    with reads(session.cursor()) as cursor:
        nodes = _searched(session, call, cursor)
    if nodes is None:
        return _typed([], _LATTICE)
    lattice = nodes.lattice
    rows = []
    for node, (levels, bound) in enumerate(zip(lattice.levels.tolist(), lattice.bounds.tolist(), strict=True)):
        found = lattice.found.get(node)
        excluded = bool(lattice.excluded[node])
        row: dict[str, Any] = {"node": node + 1, "levels": levels, "chosen": node == lattice.best}
        row["bound"] = nodes.shown_cost(bound)
        row["searched"] = found is not None
        row["passes"] = False if found is None and excluded else None
        row["why"] = "searched" if found else "a coarser node suppresses too many" if excluded else "costs more"
        if found:
            row |= {name: getattr(found, name) for name in ("classes", "smallest", "suppressed", "passes")}
            row["cost"] = None if found.cost is None else nodes.shown_cost(found.cost)
        rows.append(row)
    return _typed(rows, _LATTICE)


def _typed(rows: list[dict[str, Any]], columns: dict[str, str]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()]))


PLANNERS = (planner(plan_anonymize, _GENERALISED), planner(plan_anonymize_lattice, _LATTICE))
