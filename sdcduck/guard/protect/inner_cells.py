"""Inner cells of a policy that limits the sequence of answers: what they are called, and what is added up in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

CELLS, PLACE = "_sdc_cells", "_sdc_place"
"""The table of inner cells, and its column with the number of each."""


@dataclass(frozen=True)
class Figure:
    """What is added up in a number that is no count of units.

    Attributes:
        kind: ``sum`` of values; ``value``: how many have one, or one in a band; ``all``: what can be told of all values
            together, such as a median; ``known``: of dimensions that are no secret.
        measures: of which it is made, folded.
        made: how, whatever the table is called, and what its noise goes by.
    """

    kind: str
    measures: tuple[str, ...]
    made: str

    @classmethod
    def of(cls, kind: str, values: Sequence[exp.Expr], noise: str = "") -> Figure:
        """Of expressions over measures.

        Raises:
            Refused: a parameter is in one, so that the same words are different numbers.
        """
        named = [value.copy() for value in values]
        for value in named:
            if value.find(exp.Parameter, exp.Placeholder) is not None:
                raise Refused("SDC071", "a parameter in what is added up: write the number")
            for column in value.find_all(exp.Column):
                column.set("table", None)
                column.set("this", exp.to_identifier(folded(column.name), quoted=True))
        measures = {column.name for value in named for column in value.find_all(exp.Column)}
        made = "; ".join(sorted({value.sql("duckdb") for value in named}))
        return cls(kind, tuple(sorted(measures)), f"{made}; {noise}" if noise else made)

    @property
    def text(self) -> str:
        """All of it as a text: the same for the same."""
        return json.dumps([self.kind, self.measures, self.made])

    @classmethod
    def at(cls, text: str, release: str) -> str:
        """What was added up in another release, whose noise is another; a count has the same for the same units."""
        if not text:
            return text
        one = cls.read(text)
        return cls(one.kind, one.measures, f"{one.made}; {release}").text

    @classmethod
    def read(cls, text: str) -> Figure:
        """What `text` was made of."""
        kind, measures, made = json.loads(text)
        return cls(kind, tuple(measures), made)


def refuse_beside_others(policies: Sequence[Policy]) -> None:
    """Refuse records of a policy that limits the sequence of answers beside other records.

    Raises:
        Refused: there are.
    """
    if len(policies) > 1 and any(policy.sequence.holds for policy in policies):
        raise Refused("SDC071", "records beside other records: ask for counts of each, and join these")
