"""Records become protected numbers."""

from __future__ import annotations

from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.products import refuse_values_of_products
from sdcduck.guard.passes.samples import OF_RECORDS
from sdcduck.guard.passes.sizes import refuse_lists_of_windows
from sdcduck.guard.protect.protection import Protection
from sdcduck.guard.refusals import Refused


def protect(draft: Draft) -> None:
    """Label each relation, check each block over records, and put protected numbers in place of its aggregates.

    >>> after(protect, "SELECT region, count(*) AS n FROM people GROUP BY 1 HAVING count(*) > 5")
    SELECT "_sdc"."_g0" AS "region", "_sdc"."_a0" AS "n" FROM "a block" AS "_sdc" WHERE "_sdc"."_a0" > 5
    """
    schema = draft.schema
    tables, collated = schema.tables_among(draft.named), schema.is_collated()
    draft.protection = Protection(draft.policies, draft.visible(), tables, collated=collated)
    try:
        draft.protection.protect(draft.tree)
    except Refused as refused:
        if refused.code == "SDC045" and draft.sampled:
            raise Refused("SDC045", OF_RECORDS) from None
        raise
    refuse_lists_of_windows(draft.tree)
    refuse_values_of_products(draft.tree, draft.schema.rows_of(draft.policies))
