"""What a release of statistics is charged to: the ledger that all differentially private releases share."""

from __future__ import annotations

from collections.abc import Sequence

from sdcduck import catalog
from sdcduck.functions.jobs import confirm
from sdcduck.functions.registry import Session
from sdcduck.udfs.source import Source
from sdcduck.udfs.synthesis.privacy_ledger import NEIGHBOURS, tables_read

__all__ = ["NEIGHBOURS", "Charge"]


class Charge:
    """The cost of one release: looked at before anything is read, written down before there is noise."""

    def __init__(
        self, session: Session, relations: Sequence[Source], neighbours: str, what: str, epsilon: float,
        delta: float = 0.0, ratio: float | None = None,
    ) -> None:  # fmt: skip
        """Of what reads these relations.

        Args:
            ratio: sensitivity / sigma of all its normal noise together, if it has no other.

        Raises:
            SDCError: a budget does not allow it, or it could not be written down.
        """
        self._session = session
        rho = None if ratio is None else ratio**2 / 2
        with session.cursor() as cursor:
            data = sorted({name for relation in relations for name in tables_read(cursor, relation)})
            texts = ", ".join(dict.fromkeys(relation.text for relation in relations))
            self._release = catalog.PrivateRelease(tuple(data), neighbours, epsilon, what, texts, delta, rho)
            catalog.check_private_release(cursor, self._release)

    def write(self) -> None:
        """Charge it, for good, unless nobody waits for the answer any more."""
        confirm()
        with self._session.cursor() as cursor:
            catalog.charge_private_release(cursor, self._release)
