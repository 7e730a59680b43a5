"""What an engine is asked for: the inner cells of one block, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sdcduck.catalog import engine_semantics as semantics
from sdcduck.catalog.engine_semantics import Semantics, column
from sdcduck.quoting import identifier

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


@dataclass(frozen=True)
class Half:
    """The part of a question that an engine answers.

    Attributes:
        sql: in its words.
        name: of what it answers, in the part that DuckDB answers.
        table: whose records it is about.
        counted: the column with how many of them there are.
        keys: the column with the sum of their keys; None: they have none.
    """

    sql: str
    name: str
    table: str
    counted: str
    keys: str | None


@dataclass
class InnerCells:
    """Collects what is asked of the records of one table for one block.

    Args:
        table: its name on the engine.
        types: DuckDB types of its columns.
        name: of the relation that holds the answer.
    """

    table: str
    types: dict[str, str]
    name: str
    _columns: dict[str, tuple[exp.Expr, str]] = field(default_factory=dict)
    _names: dict[exp.Expr, str] = field(default_factory=dict)
    _keys: list[str] = field(default_factory=list)

    def dimension(self, name: str) -> None:
        """Tell cells apart by a column, which keeps its name."""
        if name not in self._columns:
            self._columns[name] = column(name), self.types[name]
            self._keys.append(name)

    def condition(self, tree: exp.Expr) -> str:
        """Tell cells apart by a condition for a measure: the name of its column."""
        new = tree not in self._names
        name = self._named(tree, "BOOLEAN")
        if new:
            self._keys.append(name)
        return name

    def number(self, tree: exp.Expr, kind: str) -> str:
        """Add something up: the name of its column, which has a DuckDB type."""
        return self._named(tree, kind)

    def _named(self, tree: exp.Expr, kind: str) -> str:
        name = self._names.setdefault(tree, f"_sdc_i{len(self._names)}")
        self._columns.setdefault(name, (tree, kind))
        return name

    def half(self, engine: Semantics, key: str | None) -> Half:
        """What the engine is asked: no row where no record is.

        Args:
            key: the column of the record keys, which are added up in each cell.
        """
        keys = None if key is None else self.number(semantics.total(column(key)), "HUGEINT")
        places = {name: f"c{place}" for place, name in enumerate(self._columns)}
        items = [exp.alias_(tree.copy(), places[name], quoted=True) for name, (tree, _) in self._columns.items()]
        select = exp.Select(expressions=items).from_(exp.table_(self.table, quoted=True))
        if self._keys:
            select = select.group_by(*(self._columns[name][0].copy() for name in self._keys))
        having = exp.GT(this=semantics.count(), expression=exp.Literal.number(0))
        return Half(
            engine.written(select.having(having)),
            self.name,
            self.table,
            places[self._names[semantics.count()]],
            None if keys is None else places[keys],
        )

    def relation(self) -> str:
        """The SQL of what DuckDB reads in place of the records: columns of the types that it would have itself."""
        columns = [
            f'CAST("c{place}" AS {kind}) AS {identifier(name)}'
            for place, (name, (_, kind)) in enumerate(self._columns.items())
        ]
        return f"SELECT {', '.join(columns)} FROM temp.main.{identifier(self.name)}"
