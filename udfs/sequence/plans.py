"""Plans that are sealed and certified, and what became of those that were opened: the planners.

The chain itself is `sdcduck.methods.sequence.plans`; plans are opened and their steps asked through the guard.
"""

from __future__ import annotations

import secrets

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog.plan_file import PlanFile, plan_file_beside, shown
from sdcduck.catalog.plan_rules import PlanRules, store_plan_rules
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.sequence import plans
from sdcduck.methods.sequence.plans import KEY, LENGTH, SALT
from sdcduck.udfs.arguments import needed, truth, wrong
from sdcduck.udfs.plan_arguments import octets, read_binding

MOST_STEPS = 10_000


def plan_plan_seal(
    session: Session,
    statements: list[str | None] | None,
    private_key: bytes | None,
    binding: str | None,
    salts: list[bytes | None] | None,
) -> Rows:
    """``sdc_plan_seal``: what is random is drawn when the statement runs."""
    texts, key = _texts(statements), octets(private_key, "private_key", KEY)
    bound = read_binding(binding, len(texts))
    given = None if salts is None else [octets(salt, "salts", SALT) for salt in salts]
    if given is not None and len(given) != len(texts):
        raise wrong("salts", "have 16 bytes for each question")

    def seal() -> pa.Table:
        random = given if given is not None else [secrets.token_bytes(SALT) for _ in texts]
        blocks = [plans.block(text, step, salt) for step, (text, salt) in enumerate(zip(texts, random, strict=True), 1)]
        traces = plans.traces(blocks)
        none = [None] * len(texts)
        return pa.table(
            {
                "step": pa.array(range(len(traces)), pa.int64()),
                "trace": pa.array(traces, pa.binary()),
                "signature": pa.array([plans.sign(key, plans.message(traces[0], bound)), *none], pa.binary()),
                "public_key": pa.array([plans.public_key(key), *none], pa.binary()),
                "statement": pa.array([None, *texts], pa.string()),
            }
        )

    return Rows(seal)


def plan_plan_certify(
    session: Session,
    traces: list[bytes | None] | None,
    statements: list[str | None] | None,
    private_key: bytes | None,
    binding: str | None,
) -> Rows:
    """``sdc_plan_certify``: a plan that is not whole has no signature."""
    texts, key = _texts(statements), octets(private_key, "private_key", KEY)
    chain = [octets(trace, "traces", LENGTH) for trace in needed(traces, "traces", "have the traces of all steps")]
    bound = read_binding(binding, len(texts))
    if len(chain) != len(texts) + 1:
        raise wrong("traces", "have one more trace than there are questions: that of step 0")

    def certify() -> pa.Table:
        broken = plans.first_broken(chain, texts)
        if broken is not None:
            raise SDCError(f"the traces are not those of these questions: step {broken} does not open as it should")
        return pa.table(
            {
                "steps": pa.array([len(texts)], pa.int64()),
                "signature": pa.array([plans.sign(key, plans.message(chain[0], bound))], pa.binary()),
                "public_key": pa.array([plans.public_key(key)], pa.binary()),
            }
        )

    return Rows(certify)


def plan_plan_rules(
    session: Session,
    data: str | None,
    release: str | None,
    policy: str | None,
    bound: bool | None,
    required: list[str | None] | None,
) -> Rows:
    """``sdc_plan_rules``: stores them."""
    keys = tuple(octets(None if key is None else key.encode(), "required", KEY).hex() for key in required or ())
    rules = PlanRules(data or "", release or "", policy or "", truth(bound, "bound"), keys)
    if rules.bound and not (rules.data or rules.release or rules.policy):
        raise wrong("bound", "go with the data, release or policy that plans are bound to")
    if catalog.is_read_only(session.cursor()):
        raise SDCError("rules of plans are stored in the database, which is open for reading only")

    def store() -> pa.Table:
        store_plan_rules(session.cursor(), rules)
        return pa.table(
            {
                "data": pa.array([data], pa.string()),
                "release": pa.array([release], pa.string()),
                "policy": pa.array([policy], pa.string()),
                "bound": pa.array([rules.bound], pa.bool_()),
                "required": pa.array([keys], pa.list_(pa.string())),
            }
        )

    return Rows(store)


_LOG = {
    "time": pa.string(), "login": pa.string(), "role": pa.string(), "plan": pa.string(), "step": pa.int64(),
    "state": pa.string(), "rule": pa.string(), "trace_sha256": pa.string(), "statement_sha256": pa.string(),
    "hash": pa.string(),
}  # fmt: skip


def plan_plan_log(session: Session, plan: str | None, path: str | None) -> Rows:
    """``sdc_plan_log``: times travel as text."""

    def read() -> pa.Table:
        lines = [line for line in _plan_file(session, path).lines() if plan is None or line["plan"] == plan]
        rows = []
        for line in lines:
            time, *rest = shown(line)
            rows.append([time, line["login"], line["role"], line["plan"], *rest, line["hash"]])
        columns = zip(*rows, strict=True) if rows else ([] for _ in _LOG)
        return pa.table(
            {name: pa.array(values, kind) for values, (name, kind) in zip(columns, _LOG.items(), strict=True)}
        )

    return Rows(read, 'SELECT * REPLACE ("time"::TIMESTAMP AS "time") FROM {rows}')


def _plan_file(session: Session, path: str | None) -> PlanFile:
    """The file of plans; one that is named is asked of DuckDB, whose limits on external access hold."""
    cursor = session.cursor()
    if path is not None:
        try:
            found = cursor.execute("SELECT filename FROM read_blob(?)", [path]).fetchall()
        except duckdb.IOException:
            found = []
        if len(found) != 1:
            raise SDCError(f"there is no file '{path}', or it cannot be read")
        return PlanFile(found[0][0])
    database = catalog.file_of(cursor)
    if database is None:
        raise SDCError(
            "plans are kept beside a database file, and this database is in memory; name their file, path := .."
        )
    return PlanFile(plan_file_beside(database))


def _texts(statements: list[str | None] | None) -> list[str]:
    found = needed(statements, "statements", "list the questions of the plan")
    texts = [text for text in found if text is not None and text.strip()]
    if len(texts) != len(found):
        raise wrong("statements", "hold no NULL and no empty text")
    if len(texts) > MOST_STEPS:
        raise wrong("statements", f"have at most {MOST_STEPS} questions")
    return texts


_LOG_COLUMNS = {name: "BIGINT" if name == "step" else "VARCHAR" for name in _LOG}
PLANNERS = (
    *planners(plan_plan_seal, plan_plan_certify, plan_plan_rules),
    planner(plan_plan_log, _LOG_COLUMNS),
)
