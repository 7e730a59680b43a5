"""What a session keeps by name: prepared statements and portals, and the transaction in which they live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sdcduck.gateway.postgres import errors, statements
from sdcduck.gateway.postgres.errors import PostgresError
from sdcduck.gateway.postgres.portals import Portal, Prepared

_MOST_STATEMENTS, _MOST_PORTALS = 1000, 100
_MOST_HELD = 8_000_000


class StatementsAndPortals:
    """Prepared statements and portals, by name; the empty one is taken over by the next.

    Args:
        aside: does something that nobody waits for.
    """

    def __init__(self, aside: Callable[[Callable[[], None]], None]) -> None:
        self._aside = aside
        self._statements: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}

    def check_statement(self, name: str, size: int) -> None:
        """Whether a statement of a name can be prepared.

        Args:
            size: of its text.

        Raises:
            PostgresError: it cannot.
        """
        if name and name in self._statements:
            raise PostgresError("42P05", "a prepared statement of this name exists")
        others = [statement for known, statement in self._statements.items() if known != name]
        if len(others) >= _MOST_STATEMENTS or size + sum(other.size for other in others) > _MOST_HELD:
            raise PostgresError("53400", "too many prepared statements; close some")

    def check_portal(self, name: str, size: int) -> None:
        """Whether there is room for a portal or cursor.

        Args:
            size: of its values.

        Raises:
            PostgresError: there is none.
        """
        if name and name in self._portals:
            raise PostgresError("42P03", "a portal or cursor of this name exists")
        others = [portal for known, portal in self._portals.items() if known != name]
        if len(others) >= _MOST_PORTALS or size + sum(other.size for other in others) > _MOST_HELD:
            raise PostgresError("53400", "too many portals or cursors; close some")

    def keep_statement(self, name: str, prepared: Prepared) -> None:
        """Keep a prepared statement."""
        self._statements[name] = prepared

    def prepared(self, name: str) -> Prepared:
        """A prepared statement.

        Raises:
            PostgresError: there is none of the name.
        """
        if name not in self._statements:
            raise PostgresError("26000", "there is no prepared statement of this name")
        return self._statements[name]

    def deallocate(self, name: str) -> None:
        """Forget a prepared statement, if it is there."""
        self._statements.pop(name, None)

    def deallocate_all(self) -> None:
        """Forget all prepared statements."""
        self._statements.clear()

    def keep_portal(self, name: str, portal: Portal) -> None:
        """Keep a portal, in the place of the one that had its name."""
        self.close_portal(name)
        self._portals[name] = portal

    def portal(self, name: str) -> Portal:
        """A portal.

        Raises:
            PostgresError: there is none of the name.
        """
        if name not in self._portals:
            raise PostgresError("34000", "there is no portal or cursor of this name")
        return self._portals[name]

    def portals(self) -> list[str]:
        """The names of all portals."""
        return [*self._portals]

    def close_portal(self, name: str) -> None:
        """Forget a portal, if it is there."""
        portal = self._portals.pop(name, None)
        if portal is not None:
            self.dispose(portal)

    def dispose(self, portal: Portal) -> None:
        """Give back what a portal holds; where rows are left, the audit log hears of it, which may take a while."""
        if portal.done or portal.answer is None:
            portal.close()
        else:
            self._aside(portal.close)

    def end_transaction(self) -> None:
        """Forget the portals that do not outlive a transaction."""
        for name in [name for name, portal in self._portals.items() if not portal.hold]:
            self.close_portal(name)

    def discard_all(self) -> None:
        """Forget everything."""
        for name in self.portals():
            self.close_portal(name)
        self.deallocate_all()


@dataclass
class TransactionStatus:
    """Where the client believes to be: there is nothing to undo, so what counts is the status that it expects.

    Attributes:
        status: ``I``: in none; ``T``: in one; ``E``: in one that failed.
    """

    status: str = "I"

    @property
    def open(self) -> bool:
        """Whether there is one."""
        return self.status != "I"

    def fail(self) -> None:
        """A statement failed."""
        if self.status == "T":
            self.status = "E"

    def check(self, statement: statements.Statement) -> None:
        """Whether a statement may come now.

        Raises:
            PostgresError: only the end of the transaction may.
        """
        if self.status == "E" and not isinstance(statement, statements.Transaction | statements.Empty):
            raise errors.FAILED_TRANSACTION

    def move(self, statement: statements.Transaction) -> tuple[str, tuple[str, str] | None]:
        """Do what a statement says; the tag of its answer, and a notice with its code where there is one.

        Raises:
            PostgresError: it has no place here.
        """
        verb, failed = statement.verb, self.status == "E"
        notice: tuple[str, str] | None = None
        if verb in ("BEGIN", "START TRANSACTION"):
            if failed:
                raise errors.FAILED_TRANSACTION
            if self.status == "T":
                notice = ("there is already a transaction in progress", "25001")
            self.status = "T"
            return verb, notice
        if verb in ("COMMIT", "ROLLBACK"):
            if self.status == "I":
                notice = ("there is no transaction in progress", "25P01")
            self.status = "T" if statement.chain and self.status != "I" else "I"
            return "ROLLBACK" if failed else verb, notice
        if self.status == "I":
            raise PostgresError("25P01", f"{verb} can only be used in transaction blocks")
        if failed and verb != "ROLLBACK TO":
            raise errors.FAILED_TRANSACTION
        self.status = "T"
        return "ROLLBACK" if verb == "ROLLBACK TO" else verb, None
