"""The names of relations in what runs: none is one that an analyst wrote.

The guard says what each table of a query is, and DuckDB looks its name up again. Where the two looked it up in
different ways, records would be taken for the rows of a subquery. So the guard writes down what it found: a query of
WITH has a name that it made up, and a table is named with its database and schema.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Numbered
from sdcduck.guard.passes.draft import Draft, TableName
from sdcduck.guard.protect.recursion import is_recursive
from sdcduck.guard.refusals import Refused, unknown_relation
from sdcduck.quoting import folded

_WITH = "_sdc_with_"
_SCHEMAS = ("", "sdc")
_WITHOUT_RELATIONS = (exp.Column, exp.Identifier, exp.Literal, exp.DataType)
"""Most of a tree. Were there a relation in one, it would keep its name, and be refused by the last look at the text."""


@dataclass
class OwnNames:
    """The names of one query.

    Attributes:
        database: in which its tables are.
        policies: by folded name.
        numbers: of blocks, by the name of the table that stands for them.
        tables: which may be read under these names, after `settle`.
    """

    database: str
    policies: Mapping[str, Policy]
    numbers: Mapping[str, Numbered]
    tables: set[TableName] = field(default_factory=set)
    _around: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def settle(self, tree: exp.Expr) -> None:
        """Name all relations of a query and of the blocks in it, in place.

        Raises:
            Refused: a table is none that the guard knows.
        """
        self._within(tree, {})

    def _within(self, node: exp.Expr, visible: Mapping[str, str]) -> None:
        """As `settle`, of a part; ``visible``: the new names of the queries in WITH around it."""
        with_ = node.args.get("with_")
        if with_ is not None:
            for cte in with_.expressions:
                itself = is_recursive(cte)
                if not itself:
                    self._within(cte.this, visible)
                made = f"{_WITH}{len(self.tables)}"
                self.tables.add(("", "", made))
                visible = {**visible, folded(cte.alias): made}
                if itself:
                    self._within(cte.this, visible)
                cte.args["alias"].set("this", exp.to_identifier(made, quoted=True))
        if isinstance(node, exp.Table):
            self._name(node, visible)
        if isinstance(node, _WITHOUT_RELATIONS):
            return
        for key, value in node.args.items():
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, exp.Expr) and key != "with_":
                    self._within(part, visible)

    def _name(self, table: exp.Table, visible: Mapping[str, str]) -> None:
        name, schema = table.name, table.db
        if table.args.get("catalog") or schema not in _SCHEMAS or not isinstance(table.this, exp.Identifier):
            raise Refused("SDC020")
        found: TableName
        if schema:
            found = (self.database, schema, name)
        elif folded(name) in visible:
            found = ("", "", visible[folded(name)])
        elif name in self.numbers:
            found = ("", "", name)
            if self._around.setdefault(name, visible) != visible:
                raise Refused("SDC005", "a block in two places")
            if found not in self.tables:
                drawn = self.numbers[name].drawn
                # What noise is drawn for is worked out before the rest of a query, and sees nothing of it.
                self._within(self.numbers[name].grouped, visible if drawn is None else {})
                for grouping in drawn.groupings if drawn is not None else ():
                    if grouping.grouped is not self.numbers[name].grouped:
                        self._within(grouping.grouped, {})
                    if grouping.cells is not None:
                        self._within(grouping.cells, {})
        elif folded(name) in self.policies:
            found = (self.database, "main", self.policies[folded(name)].name)
        else:
            raise Refused("SDC020", name)
        self.tables.add(found)
        if not table.alias and found[2] != name:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        for part, text in zip(("catalog", "db", "this"), found, strict=True):
            table.set(part, exp.to_identifier(text, quoted=True) if text else None)


def unknown_tables(items: Collection[Mapping[str, object]], tables: Collection[TableName]) -> bool:
    """Whether DuckDB's tree of a text has a relation that is none of these, to the letter."""
    for item in items:
        if item.get("type") == "BASE_TABLE":
            named = (item.get("catalog_name"), item.get("schema_name"), item.get("table_name"))
            path = item.get("qualified_name", {"path": list(filter(None, named))})
            if named not in tables or path != {"path": list(filter(None, named))}:
                return True
        made = item.get("cte_map")
        if isinstance(made, Mapping) and any(("", "", cte["key"]) not in tables for cte in made["map"]):
            return True
    return False


def resolve_tables(draft: Draft) -> None:
    """Refuse tables that have no policy; main.people is people.

    >>> after(resolve_tables, "SELECT count(*) FROM main.people JOIN salaries USING (id)")
    refused: SDC020: an unknown table ('salaries'; there are: 'people', 'regions'). Ask the custodian which tables
    are open.
    """
    _check_tables(draft.tree, draft.policies)


def name_relations(draft: Draft) -> None:
    """Name all relations as the guard found them.

    >>> after(name_relations, "WITH people AS (SELECT * FROM regions) SELECT area FROM people")
    WITH "_sdc_with_1" AS (SELECT "regions"."region" AS "region", "regions"."area" AS "area" FROM
    "memory"."main"."regions" AS "regions") SELECT "people"."area" AS "area" FROM "_sdc_with_1" AS "people"
    """
    naming = OwnNames(draft.schema.database(), draft.policies, draft.protection.progress.numbers)
    naming.settle(draft.tree)
    draft.relations = naming.tables


def _check_tables(tree: exp.Expr, policies: Mapping[str, Policy]) -> None:
    ctes = {folded(cte.alias) for cte in tree.find_all(exp.CTE)}
    # Where a relation is called main, main.people may be its column.
    is_schema = all(folded(called.name) != "main" for called in tree.find_all(exp.TableAlias))
    for named in tree.find_all(exp.Table, exp.Column):
        # main.people, as many programs write; a query's own relation of that name is not in a schema.
        schema, relation = named.args.get("db"), named.name if isinstance(named, exp.Table) else named.text("table")
        if not is_schema and isinstance(named, exp.Column):
            continue
        if isinstance(schema, exp.Identifier) and folded(schema.name) == "main" and folded(relation) not in ctes:
            if not named.args.get("catalog"):
                named.set("db", None)
            elif folded(relation) in policies:  # else it may be a field of a field
                raise Refused("SDC020", f"{named.text('catalog')}.main.{relation}: write {relation}")
    for table in tree.find_all(exp.Table):
        if table.args.get("db") or table.args.get("catalog") or not isinstance(table.this, exp.Identifier):
            raise Refused("SDC020", ".".join(part.name for part in table.parts))
        if folded(table.name) not in ctes | set(policies):
            made = [cte.alias for cte in tree.find_all(exp.CTE)]
            raise unknown_relation(table.name, [*made, *(policy.name for policy in policies.values())])
