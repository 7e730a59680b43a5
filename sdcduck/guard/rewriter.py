"""What becomes of a question: the passes, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import duckdb

from sdcduck.catalog import Policy
from sdcduck.guard.passes.aliases import resolve_aliases
from sdcduck.guard.passes.amounts import check_amounts
from sdcduck.guard.passes.answer_names import name_columns, spell_names
from sdcduck.guard.passes.columns import expand_columns
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.lineage import trace_lineage
from sdcduck.guard.passes.normalize import check_words, normalize
from sdcduck.guard.passes.output_names import name_outputs
from sdcduck.guard.passes.owned import join_on_units
from sdcduck.guard.passes.parse import number_parameters, parse, read_text
from sdcduck.guard.passes.pivots import expand_pivots
from sdcduck.guard.passes.preview import answer_previews
from sdcduck.guard.passes.probes import answer_probes
from sdcduck.guard.passes.protect import protect
from sdcduck.guard.passes.qualify import qualify, read_fields
from sdcduck.guard.passes.relation_names import name_relations, resolve_tables
from sdcduck.guard.passes.render import render
from sdcduck.guard.passes.row_order import order_rows
from sdcduck.guard.passes.same_reading import same_reading
from sdcduck.guard.passes.samples import expand_samples
from sdcduck.guard.passes.series import expand_series
from sdcduck.guard.passes.validate import validate, validate_rewritten
from sdcduck.guard.passes.zones import check_zones
from sdcduck.guard.question import columns_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.running import Limited
from sdcduck.guard.schema import Schema
from sdcduck.guard.sqlglot_logging import without_logging

PASSES: tuple[Callable[[Draft], None], ...] = (
    # A text that DuckDB and sqlglot read alike, of what is on the lists.
    read_text, number_parameters, parse, validate, same_reading,
    # One form for what has several.
    expand_pivots, expand_samples, expand_series, check_amounts, check_zones, check_words, resolve_tables, normalize,
    # Every name in full.
    name_outputs, expand_columns, resolve_aliases, qualify, read_fields,
    # What needs no record.
    answer_probes, answer_previews,
    # What belongs to one unit says which.
    join_on_units,
    # Records become protected numbers.
    protect, spell_names, trace_lineage, order_rows, name_relations,
    # A text again, of what is on shorter lists.
    render, validate_rewritten, name_columns,
)  # fmt: skip
"""Each sees what those before it made of a question, and may end it with an answer, or refuse it."""


class Rewriter:
    """Rewrites questions, one at a time.

    Args:
        con: the guard's own connection; whoever calls holds it.
        schema: what is known of its database.
        limited: asks what may take long.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, schema: Schema, limited: Limited) -> None:
        self._con, self._schema, self._limited = con, schema, limited

    def made(self, query: str, policies: Mapping[str, Policy], *, probes: bool = True) -> Rewritten:
        """What becomes of a question.

        Raises:
            Refused: it cannot be shown to be safe.
        """
        try:
            with without_logging():
                return self.rewrite(query, policies, probes=probes)
        except (RecursionError, MemoryError):
            raise Refused("SDC002") from None
        except (Refused, duckdb.OutOfMemoryException):
            raise
        except Exception:  # whatever sqlglot stumbles over: nothing is answered, and nothing said
            raise Refused("SDC001") from None

    def rewrite(self, query: str, policies: Mapping[str, Policy], *, probes: bool, again: bool = False) -> Rewritten:
        """As `made`, with whatever sqlglot stumbles over (`Start`)."""
        draft = Draft(query, policies, self._con, self._schema, self, probes, again)
        for step in PASSES:
            step(draft)
            if draft.answer is not None:
                return draft.answer
        return draft.rewritten()

    def steps(self, query: str, policies: Mapping[str, Policy]) -> Iterator[tuple[str, str]]:
        """The names of the passes that look at a question, each with what it made of it, or why it refuses it."""
        draft = Draft(query, policies, self._con, self._schema, self, probes=True, again=False)
        for step in PASSES:
            try:
                with without_logging():
                    step(draft)
            except Refused as refused:
                yield step.__name__, f"refused: {refused}"
                return
            yield step.__name__, draft.shown()
            if draft.answer is not None:
                return

    def without_probes(self, query: str, policies: Mapping[str, Policy]) -> Rewritten | None:
        """What becomes of a question for the columns alone, as of any other; None: it is not answered (`Start`)."""
        try:
            return self.made(query, policies, probes=False)
        except Refused:
            return None

    def types(self, rewritten: Rewritten | None) -> list[str]:
        """The DuckDB types of the columns of an answer; none where they are not known (`Start`)."""
        if rewritten is None:
            return []
        try:
            with self._limited.settled(self._con.cursor()) as cursor:
                return [kind for _, kind in columns_of(cursor, rewritten.sql, ())]
        except Refused:
            return []
