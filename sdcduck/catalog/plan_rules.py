"""``sdc.settings``, ``plans``: which plans of analysts a custodian takes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import duckdb

from sdcduck.catalog.database import transaction
from sdcduck.catalog.plan_file import PlanError, Sealed
from sdcduck.catalog.settings import set_setting

PLAN_RULES_SQL = "SELECT value FROM sdc.settings WHERE name = 'plans'"
"""What stores them, for whoever asks in a way of his own."""
_FIELDS = ("data", "release", "policy")


@dataclass(frozen=True)
class PlanRules:
    """What a plan has to be.

    Attributes:
        data: what the custodian calls the data set; empty: nothing, and so the others.
        release: of the data.
        policy: under which they are asked.
        bound: whether a plan must be for these.
        required: public keys, in hex, that must have signed it.
    """

    data: str = ""
    release: str = ""
    policy: str = ""
    bound: bool = False
    required: tuple[str, ...] = ()

    @classmethod
    def of(cls, stored: str | None) -> PlanRules:
        """Those that are stored as a text."""
        given = json.loads(stored or "{}")
        return cls(**{**given, "required": tuple(given.get("required", ()))})

    def check(self, sealed: Sealed) -> None:
        """Refuse a plan that is for other data, or that somebody has not signed.

        Raises:
            PlanError: it is not taken.
        """
        missing = set(self.required) - {key.hex() for key, _ in sealed.signatures}
        if missing:
            raise PlanError(f"the custodian asks for the signature of {min(missing)}")
        bound = sealed.binding
        here = {name: getattr(self, name) for name in _FIELDS if getattr(self, name)}
        if bound is not None and any(getattr(bound, name) not in ("", here.get(name, "")) for name in _FIELDS):
            raise PlanError(f"the plan was sealed for other data, another release or policy; these are {here}")
        if self.bound and (bound is None or any(not getattr(bound, name) for name in here)):
            raise PlanError(f"plans must be bound here: seal them with binding := {here}")


def store_plan_rules(con: duckdb.DuckDBPyConnection, rules: PlanRules) -> None:
    """Store them in the place of others."""
    with transaction(con):
        set_setting(con, "plans", json.dumps(asdict(rules)))
