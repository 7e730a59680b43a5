"""What sdcduck stores in the custodian's database: the schema ``sdc``.

``sdc.settings``          name, value: the version that wrote the file, and the secret if the custodian stored it
``sdc.ptables``           one row a perturbation table
``sdc.policies``          one row a relation and role that analysts may ask about
``sdc.users``             one row a user of the gateway, with what checks the password
``sdc.publications``      one row a publication: its SELECT, and how it was suppressed; its tables are
                          ``sdc.<name>_cells`` (as published) and ``sdc.<name>_stencil`` (inner cells, confidential)
``sdc.rule_sets``         one row a rule set: its name, and the arguments of suppression that it stands for
``sdc.synth_models``      one row a model of synthetic records; it holds original values, and is confidential
``sdc.dp_releases``       one row a differentially private release and table that it reads: what it cost
``sdc.dp_budgets``        one row a table: what its differentially private releases may cost together
``sdc.outputs``           one row an output that was checked: what came of it, who asked, who decided, when and why
``sdc.approvals``         one row an approval: who approved which numbers of what leaves the house, and when
``sdc.ptable_intervals``  its intervals, with integer bounds on the scale of the keys: what a join reads

Beside these tables every p-table is written into macros that map its name to constants
(`sdcduck.methods.perturbation.lookup`), so that a protected query joins nothing. Tables and macros change in one
transaction. Only pure SQL is stored: the file opens in a plain DuckDB shell, 1.5 or later.
"""

from __future__ import annotations

from sdcduck.catalog.accounts import (
    User,
    drop_user,
    salts_secret,
    store_user,
    users,
)
from sdcduck.catalog.approvals import (
    Approval,
    Release,
    approvals,
    approvals_of,
    numbers_of,
    releases,
    store_approval,
)
from sdcduck.catalog.checked_outputs import (
    Output,
    decide_output,
    drop_output,
    output,
    outputs,
    store_output,
)
from sdcduck.catalog.database import (
    cannot_change,
    check_name,
    current_database,
    file_of,
    first_row,
    is_read_only,
    transaction,
)
from sdcduck.catalog.macros import Variant, refused_calls, signatures
from sdcduck.catalog.meaning import WRONG_OPTIMIZERS, as_unset, switch_off, switch_on
from sdcduck.catalog.privacy_ledger import (
    PrivateRelease,
    charge_private_release,
    check_private_release,
    set_private_budget,
)
from sdcduck.catalog.ptables import (
    BUILT_IN,
    TABLES_SQL,
    StoredPTable,
    drop_ptable,
    ptable_macros,
    rewrite_ptable_macros,
    scales_by_digits,
    store_ptable,
    stored_ptable,
    stored_ptables,
)
from sdcduck.catalog.publications import (
    EXPORT,
    EXPORT_SAYS,
    StoredPublication,
    cells_table,
    drop_publication,
    is_export,
    note_stencil,
    publication,
    publications,
    stencil_digest,
    stencil_digest_query,
    stencil_table,
    store_publication,
)
from sdcduck.catalog.records import (
    PolicyFacts,
    failing_columns,
    key_fingerprint,
    keys_are_spread,
    measure_of_keys,
    misses,
    policy_facts,
)
from sdcduck.catalog.relations import (
    METHODS,
    Declared,
    Definition,
    Kind,
    Policy,
    Privacy,
    SequenceLimit,
    declared,
    declared_preview,
    drop_policy,
    note_columns,
    policies,
    preview_digest,
    renew_policies,
    store_budget,
    store_policy,
)
from sdcduck.catalog.rule_sets import (
    PAIRS,
    RuleSet,
    drop_rule_set,
    rule_set,
    rule_sets,
    store_rule_set,
)
from sdcduck.catalog.same_records import (
    Twice,
    different_keys,
    open_in_role,
    open_twice,
)
from sdcduck.catalog.settings import (
    set_setting,
    setting,
)
from sdcduck.catalog.synthesis_models import (
    SynthModel,
    drop_synth_model,
    store_synth_model,
    synth_model,
    synth_models,
)
from sdcduck.catalog.views import (
    READ_NOTHING_ELSE,
    Read,
    Texts,
    has_records_of,
    is_of_the_moment,
    is_view,
    note_definitions,
    read_by,
    records_behind,
)

__all__ = [
    "BUILT_IN",
    "EXPORT",
    "EXPORT_SAYS",
    "METHODS",
    "PAIRS",
    "READ_NOTHING_ELSE",
    "TABLES_SQL",
    "WRONG_OPTIMIZERS",
    "Approval",
    "Declared",
    "Definition",
    "Kind",
    "Output",
    "Policy",
    "PolicyFacts",
    "Privacy",
    "PrivateRelease",
    "Read",
    "Release",
    "RuleSet",
    "SequenceLimit",
    "StoredPTable",
    "StoredPublication",
    "SynthModel",
    "Texts",
    "Twice",
    "User",
    "Variant",
    "approvals",
    "approvals_of",
    "as_unset",
    "cannot_change",
    "cells_table",
    "charge_private_release",
    "check_name",
    "check_private_release",
    "current_database",
    "decide_output",
    "declared",
    "declared_preview",
    "different_keys",
    "drop_output",
    "drop_policy",
    "drop_ptable",
    "drop_publication",
    "drop_rule_set",
    "drop_synth_model",
    "drop_user",
    "failing_columns",
    "file_of",
    "first_row",
    "has_records_of",
    "is_export",
    "is_of_the_moment",
    "is_read_only",
    "is_view",
    "key_fingerprint",
    "keys_are_spread",
    "measure_of_keys",
    "misses",
    "note_columns",
    "note_definitions",
    "note_stencil",
    "numbers_of",
    "open_in_role",
    "open_twice",
    "output",
    "outputs",
    "policies",
    "policy_facts",
    "preview_digest",
    "ptable_macros",
    "publication",
    "publications",
    "read_by",
    "records_behind",
    "refused_calls",
    "releases",
    "renew_policies",
    "rewrite_ptable_macros",
    "rule_set",
    "rule_sets",
    "salts_secret",
    "scales_by_digits",
    "set_private_budget",
    "set_setting",
    "setting",
    "signatures",
    "stencil_digest",
    "stencil_digest_query",
    "stencil_table",
    "store_approval",
    "store_budget",
    "store_output",
    "store_policy",
    "store_ptable",
    "store_publication",
    "store_rule_set",
    "store_synth_model",
    "store_user",
    "stored_ptable",
    "stored_ptables",
    "switch_off",
    "switch_on",
    "synth_model",
    "synth_models",
    "transaction",
    "users",
]
