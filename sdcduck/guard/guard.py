"""The way in: one object that answers, rewrites and explains."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog import Policy
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.catalog.audit_reading import read_log
from sdcduck.catalog.plan_file import plan_file_beside
from sdcduck.catalog.plan_rules import PLAN_RULES_SQL, PlanRules
from sdcduck.errors import SDCError
from sdcduck.guard.auditing import Auditing
from sdcduck.guard.confidence import FUNCTION as INTERVALS
from sdcduck.guard.confidence import check_same_totals, level_of, with_intervals
from sdcduck.guard.engines.compiling import compiled
from sdcduck.guard.engines.records import Records
from sdcduck.guard.forecasts import COLUMNS as OF_PREVIEW
from sdcduck.guard.forecasts import FUNCTION as PREVIEW_OF_COSTS
from sdcduck.guard.forecasts import Row, rows_of_preview, table_of_preview
from sdcduck.guard.granted import granted_by, limit_of
from sdcduck.guard.laws import Laws, explained, explanation, rows_as_query, with_noise, with_rows
from sdcduck.guard.listings import listed
from sdcduck.guard.own_macros import NOT_OURS, macros_of
from sdcduck.guard.passes.pivot_values import written_out
from sdcduck.guard.planned import Planned, Plans, call_of
from sdcduck.guard.question import Constant, Question, columns_of, unforeseen, written_down
from sdcduck.guard.question_budgets import QuestionBudgets
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rehearsal import limited_otherwise, questions, rehearsed
from sdcduck.guard.releases import Releases
from sdcduck.guard.rewriter import Rewriter
from sdcduck.guard.rewritings import Rewritings
from sdcduck.guard.rewritten import Explanation, Rewritten
from sdcduck.guard.running import Limited, Parameters, begun, in_memory, plans_once
from sdcduck.guard.schema import Schema
from sdcduck.guard.sequence import Sequences
from sdcduck.guard.told import Database, Told
from sdcduck.guard.worth import Worth, table_of_worth, with_worth
from sdcduck.quoting import folded, identifier

_LONGEST = 100_000  # characters
_DEEPEST = 200
_ROWS = 122_880  # of a batch
NOTICE = "sdcduck.notice"
"""The key of the Arrow schema's metadata that says what an answer is, where that is not what it looks like, and how
many questions are left, where the custodian counts them."""


class Guard:
    """Answers queries under the policies of a database (`sdc_protect`, `sdc_declare_public`).

    In one process with the data this protects from mistakes, not from somebody who holds the connection or the file.

    Args:
        con: a connection that sdcduck is installed on.
        role: whose policies hold; those of a role come before those of everybody.
        seconds: a query that runs longer is stopped; None: no limit.
        log: where every question is written down; None: nowhere.
        raw: nothing is protected: whoever asks may see the records of every table. What a question may be made of, and
            that it is written down, is as ever.
        plans_only: nothing is answered about records but the steps of plans (`sdc_plan_seal`).
        records: the engine that has the records of tables that stand for its own; None: there is none.
        own: the connection is this guard's own, which closes it.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        *,
        role: str = "",
        seconds: float | None = None,
        log: AuditLog | None = None,
        raw: bool = False,
        plans_only: bool = False,
        records: object | None = None,
        own: bool = False,
    ) -> None:
        if not isinstance(role, str):
            raise SDCError("argument 'role' must be a text, as in sdc_protect(.., role := 'reporter')")
        if seconds is not None and not seconds > 0:  # nor NaN
            raise SDCError("argument 'seconds' must be more than 0; None is no limit")
        # An own one is used itself: whatever else held it, if only a frame, would hold the file after the end.
        self._con = con if own else con.cursor()
        # A connection holds one result: of two threads each could fetch what the other asked, and be judged by it.
        self._alone = threading.Lock()
        self.raw = raw
        """Whether it shows records as they are."""
        self.audit = Auditing(log, role=folded(role), raw=raw)
        """Writes down what is asked."""
        self.at_once = plans_once(self._con)
        """How the engine is asked (`begun`)."""
        catalog.check_name(self._con)
        try:
            catalog.policies(self._con)
        except (duckdb.CatalogException, duckdb.InvalidInputException):
            raise SDCError("this database has no policies; declare them with sdc_protect") from None
        unchanging = catalog.cannot_change(self._con)
        database = None if unchanging else catalog.current_database(self._con)
        self._limited = Limited(self._con, self._alone, seconds, database)
        macros = macros_of(self._con)
        if macros.shadowing:
            shadowing = macros.shadowing[0]
            raise SDCError(
                f"the macro {shadowing!r} of the database would run in place of DuckDB's function of that name: "
                f"DROP MACRO {identifier(shadowing)}"
            )
        if not raw and not macros.are_ours():
            raise SDCError(NOT_OURS)
        self._schema = Schema(self._con, self._alone, self._limited, role=folded(role), raw=raw, unchanging=unchanging)
        self._records = Records(self._con, self._alone, records, seconds)
        self._rewriter = Rewriter(self._con, self._schema, self._limited)
        self._rewritings = Rewritings(self._alone, self._schema, self._rewriter)
        self._laws = Laws(self._limited, self._schema.stamp, macros.own)
        laws, limited = self._laws, self._limited  # and not the guard itself, which is let go of with its connection
        file = catalog.file_of(self._con)
        beside = None if file is None else plan_file_beside(file)
        if plans_only and beside is None:
            raise SDCError("plans are kept beside a database file, and this database is in memory")
        self.plans = Plans(beside, role=folded(role), only=plans_only, rules=lambda: _plan_rules(limited))
        """The plans of those who ask."""
        granted = granted_by(self._alone, self._schema, self._rewriter)
        self._sequences = Sequences(limited, file, laws.of, self._schema.is_settled, granted)
        self._questions = QuestionBudgets(file)
        self._releases = Releases(self._limited, file)
        self._database = Database(
            self._schema,
            self._alone,
            self._rewriter,
            self._limited,
            self._laws,
            self._sequences,
            self._questions,
            self._releases,
        )
        self.constants: dict[str, Constant] = {}
        """Answers to questions that are `Rewritten.constant`, by what ran."""

    def sql(
        self,
        query: str,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        *,
        user: str = "",
    ) -> pa.Table:
        """The protected answer, as an Arrow table.

        A preview (`sdc_protect(.., preview := ..)`) says so in the metadata of its schema, under ``sdcduck.notice``.
        The metadata of each field say what its numbers are worth (`noise`): ``sdcduck.statistic``, and
        ``sdcduck.noise_sd``, ``sdcduck.noise_max``, ``sdcduck.noise_per`` and, in words, ``sdcduck.noise``.

        Args:
            parameters: for ``?`` and ``$1``, or by name for ``$name``.
            user: who asks, for the audit log.

        Raises:
            Refused: a query that is not answered, or that failed while it ran; never with data in the message.
        """
        start = time.perf_counter()
        self.audit.check(user)
        version = self._schema.version()
        rewritten: Rewritten | None = None
        given, planned = "", Planned(query)
        try:
            given = written_down(parameters)
            planned = self.plans.begun(query, user, parameters)
            rewritten = self._rewrite(planned.question, version, user)
            self.plans.check(planned, query, rewritten)
            worth = self._laws.worth(rewritten)
            rewritten = self.charge(rewritten, parameters, query, user)
            answer = self._run(*self.drawn(rewritten, parameters, query, user))
        except Refused as refused:
            self.audit.write(query, user, start, refused.code, 0, rewritten, version, parameters=given)
            planned.refused(refused.code)
            raise
        except BaseException as problem:
            with suppress(Refused):  # the log cannot be written: what went wrong before is what is said
                self.audit.write(query, user, start, unforeseen(problem), 0, rewritten, version, parameters=given)
            raise
        self.audit.write(query, user, start, "answered", answer.num_rows, rewritten, version, parameters=given)
        try:
            planned.answered()
        except Refused as refused:
            self.audit.write(query, user, start, refused.code, 0, rewritten, version, end=True, parameters=given)
            raise
        if rewritten.notice:
            answer = answer.replace_schema_metadata({NOTICE: rewritten.notice})
        return answer.cast(with_worth(answer.schema, worth))

    def noise(self, query: str) -> pa.Table:
        """What the numbers of an answer are worth, without asking for it: a row for each column.

        It looks at no record: which statistic a column is, how it is protected, the standard deviation of its noise and
        the largest that it can be, what these are multiples of, and all of it in words. ``EXPLAIN SELECT ..`` is
        answered so, too.

        Raises:
            Refused: the query would not be answered.
        """
        return table_of_worth(self.worth(self._rewrite(query, self._schema.version())))

    def dp_preview(self, query: str, *, user: str = "") -> pa.Table:
        """What a question would cost under ``method := 'dp'``, and the noise of each column, before anything is spent.

        ``FROM sdc_dp_preview('SELECT ..')`` is answered so, too. It looks at no record, draws nothing and charges
        nothing. There is a row for each column of the answer; of a question that nothing is drawn for, without a cost.

        Args:
            user: who would ask.

        Raises:
            Refused: the question would not be answered, whatever is left; or it is not known what was spent.
        """
        return table_of_preview(self._preview(query, self._schema.version(), user))

    def worth(self, rewritten: Rewritten) -> tuple[Worth, ...]:
        """What the columns of an answer are worth."""
        return self._laws.worth(rewritten)

    def question(self, query: str, *, user: str = "") -> Question:
        """A question whose answer comes batch by batch, and which can be stopped.

        The time limit of the guard holds for `sql` and `stream` only: who asks this way stops the query itself.
        """
        return Question(self, self._limited.cursor(), query, user)

    def columns(
        self,
        query: str,
        parameter_types: Sequence[str] = (),
        *,
        user: str | None = None,
        first: Callable[[Question], None] | None = None,
    ) -> list[tuple[str, str]]:
        """Names and DuckDB types of the columns of an answer, without asking for it.

        Args:
            parameter_types: DuckDB types of ``$1``, ``$2``, ..
            user: who asks, and gets a line in the audit log where this is refused: programs that hear so do not ask
                the question itself any more. None: there is no line.
            first: told of the question that a PIVOT needs for its columns, so that it can be stopped.

        Raises:
            Refused: the query would not be answered.
        """
        if user is not None:
            self.audit.check(user)
        start, version = time.perf_counter(), self._schema.version()
        try:
            sql = self._rewrite(query, version, user or "", first).sql
        except Refused as refused:
            if user is not None:
                self.audit.write(query, user, start, refused.code, 0, None, version)
            raise
        cursor = self._limited.cursor()
        try:
            return columns_of(cursor, sql, parameter_types)
        finally:
            cursor.close()

    @in_memory()
    def relations(self) -> list[tuple[Policy, dict[str, str]]]:
        """The relations that can be asked about, with the columns that are visible and their DuckDB types."""
        return self._database.relations(self._schema.version())

    @in_memory()
    def unanswered(self) -> list[str]:
        """Why nothing is answered about some of the relations that have a policy, for the custodian."""
        return self._database.unanswered(self._schema.version())

    def rewritten(
        self, query: str, user: str = "", *, first: Callable[[Question], None] | None = None
    ) -> tuple[Rewritten, str]:
        """What runs in place of a query, and the version of the policies.

        Args:
            user: who asks, for the audit log.
            first: told of every question that has to be asked before, so that it can be stopped.
        """
        version = self._schema.version()
        return self._rewrite(query, version, user, first), version

    def check_files(self, rewritten: Rewritten) -> None:
        """Refuse what is made of other files than those that were looked at."""
        for name in rewritten.tables:
            self._schema.files.check(name)

    def charge(self, rewritten: Rewritten, parameters: Parameters, query: str, user: str) -> Rewritten:
        """Write down what the answer to a question tells, where a policy limits that; before it is made.

        Returns:
            The same, with what is left in its notice.

        Raises:
            Refused: too much would be known, or too much was asked on this day.
        """
        if explained(query) is None:
            rewritten = self._questions.charge(rewritten, user)
        self._sequences.charge(rewritten, parameters, query, user)
        return rewritten

    def drawn(
        self, rewritten: Rewritten, parameters: Parameters, query: str, user: str
    ) -> tuple[Rewritten, Parameters]:
        """What runs, and with what: with the noise that was drawn, where that is not done in SQL; charged for before.

        Its numbers stand in its text, which goes into no log.

        Raises:
            Refused: the budget is spent.
        """
        # What an EXPLAIN says does not depend on values, and stands in its text.
        given = parameters if explained(query) is None else None
        return self._releases.drawn(rewritten, given, query, user)

    def stream(
        self,
        query: str,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        *,
        user: str = "",
        rows: int = 100_000,
    ) -> pa.RecordBatchReader:
        """The protected answer of `sql` as a stream: only so many rows at a time are in memory.

        A `question` as Arrow has it, with the time limit of the guard. Read it to the end, or let go of it.

        Args:
            rows: of a batch, at most.

        Raises:
            Refused: as `sql` does; while it is read, too.
        """
        cursor = self._limited.cursor()
        asked = Question(self, cursor, query, user, seconds=self._limited.seconds, rows=rows)
        asked.ask(parameters)
        schema = asked.schema.with_metadata({NOTICE: asked.notice}) if asked.notice else asked.schema
        schema = with_worth(schema, asked.worth)
        return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in asked.batches()))

    def _run(self, rewritten: Rewritten, parameters: Parameters) -> pa.Table:
        def ask(cursor: duckdb.DuckDBPyConnection) -> pa.Table:
            rows = _ROWS if rewritten.rows is None else min(rewritten.rows, _ROWS)
            sql = self.located(cursor, rewritten)
            _, reader = begun(cursor, sql, parameters, rows, at_once=self.at_once, grouped=rewritten.grouped)
            return reader.read_all()

        return self._limited.ask(ask)

    def located(self, cursor: duckdb.DuckDBPyConnection, rewritten: Rewritten) -> str:
        """What runs on a cursor, with what an engine answers in its reach, where records are on one.

        Raises:
            Refused: the engine fails.
        """
        if rewritten.cut is None:
            return rewritten.sql
        return self._records.located(cursor, rewritten.cut)

    def rewrite(self, query: str) -> str:
        """The SQL that runs in place of a query.

        Raises:
            Refused: the query cannot be shown to be safe.
        """
        return self._rewrite(query, self._schema.version()).sql

    def explain(
        self, query: str, *, user: str | None = None, first: Callable[[Question], None] | None = None
    ) -> Explanation:
        """What would be done with a query, without running it.

        Args:
            user: who asks, and gets a line in the audit log where the query would be refused, as `columns` has it, or
                where its PIVOT needs another question first. None: there is none of the former.
            first: told of that other question, so that it can be stopped.

        Raises:
            Refused: the user may not write into the audit log any more.
        """
        if user is not None:
            self.audit.check(user)
        start, version = time.perf_counter(), self._schema.version()
        try:
            rewritten = self._rewrite(explained(query) or query, version, user or "", first)
            worth = self._laws.worth(rewritten)
            notes = (*rewritten.notes, *self._releases.notes(rewritten, user or ""))
        except Refused as refused:
            if user is not None:
                self.audit.write(query, user, start, refused.code, 0, None, version)
            return Explanation(False, "", (str(refused),), 1000 * (time.perf_counter() - start))
        found = rewritten.cut
        sql, engine = (rewritten.sql, ()) if found is None else (found.sql, tuple(half.sql for half in found.halves))
        took = 1000 * (time.perf_counter() - start)
        return Explanation(True, sql, notes, took, rewritten.columns, worth, engine)

    def _values(
        self, query: str, user: str, seconds: float | None, first: Callable[[Question], None] | None
    ) -> list[str | None]:
        """The answer to a question with one column of texts, which is asked before another one."""
        cursor = self._limited.cursor()
        question = Question(self, cursor, query, user, seconds=seconds)
        try:
            if first is not None:
                first(question)
            question.ask()
            return [value for batch in question.batches() for value in batch.column(0).to_pylist()]
        finally:
            question.close()

    @in_memory()
    def sequence_rehearsal(
        self,
        log: str | Path,
        table: str,
        login: str | None = None,
        *,
        mode: str = "precision",
        secrets: Sequence[str] = (),
        least_error: float = 0.8,
        min_units: int | None = None,
        granted: str | None = None,
    ) -> pa.Table:
        """What a limit on the sequence of answers would have said to the questions of an audit log; for the custodian.

        A row for each question about the table that was answered, or refused since too much would be known: how many
        cells it asks for, which of them are new, the least error or the smallest group, and whether it would be
        answered. Parameters are as the log has them: a date is a text there.

        Args:
            log: the file of the audit log.
            table: the table or view.
            login: whose questions; None: those of all, each by itself.
            mode: with ``secrets``, ``least_error`` and ``granted`` as `sdc_protect` takes them.
            min_units: of the policy, if it is to be another number.

        Raises:
            SDCError: the limit does not go with the policy; or the log was changed.
            OSError: the log cannot be read.
        """
        version = self._schema.version()
        policies = self._database.policies(version)
        with self._alone:
            limited = limited_otherwise(
                policies, table, min_units, lambda one: limit_of(self._con, one, mode, least_error, secrets, granted)
            )

        def made(query: str) -> Rewritten:
            text = listed(query, Told(self._database, version, "", lambda one: self._rewrite(one, version)))
            with self._alone, self._schema.relations.cached():
                return self._rewriter.made(text, {**policies, folded(table): limited})

        sequences = self._sequences.without_file()
        try:
            return rehearsed(questions(read_log(log), table, login), limited, sequences, made)
        finally:
            sequences.close()

    def close(self) -> None:
        """Ask no more: a file that only this guard held is free again."""
        self._sequences.close()
        self._records.close()
        with self._alone:
            self._con.close()
        self.audit.settle()

    def steps(self, query: str) -> list[tuple[str, str]]:
        """The names of the passes that look at a query (`sdcduck.guard.rewriter.PASSES`), each with what it made of it.

        For whoever works on the guard. The last of them has the answer, or says why it refuses the query; a PIVOT has
        to say which values it has.
        """
        version = self._schema.version()
        with self._alone:
            return list(self._rewriter.steps(query, self._schema.policies(version)))

    def compiled(self, query: str, engine: str) -> str:
        """A question as one text in the words of another engine; see `sdcduck compile`."""
        version = self._schema.version()
        with self._alone, self._schema.relations.cached():
            made = self._rewriter.made(query, self._schema.policies(version))
        return compiled(self._con, self._alone, made, engine, self._schema.check_unique)

    def _preview(self, query: str, version: str, user: str) -> list[Row]:
        """The rows of `sdc_dp_preview`; no other question is asked for them."""
        if PREVIEW_OF_COSTS in folded(query):
            raise Refused("SDC021", f"{PREVIEW_OF_COSTS} of {PREVIEW_OF_COSTS}")
        rewritten = self._rewrite(query, version, user, alone=True)
        return rows_of_preview(self._laws.worth(rewritten), self._releases.forecast(rewritten, user))

    def _intervals(self, query: str, level: str | None, version: str, user: str) -> tuple[str, Rewritten]:
        """A question with intervals around its numbers, and what it becomes without them."""
        if INTERVALS in folded(query):
            raise Refused("SDC021", f"{INTERVALS} of {INTERVALS}")
        rewritten = self._rewrite(query, version, user, alone=True)
        kinds = self._limited.ask(lambda cursor: columns_of(cursor, rewritten.sql, ()))
        return with_intervals(query, rewritten, kinds, level_of(level)), rewritten

    @in_memory()
    def _rewrite(
        self,
        query: str,
        version: str,
        user: str = "",
        first: Callable[[Question], None] | None = None,
        *,
        alone: bool = False,
    ) -> Rewritten:
        call, within = call_of(query), list[Rewritten]()
        if call is not None:
            query = self.plans.described(call, user)
        about = explained(query)
        if about is not None:
            would_run = self._rewrite(about, version, user, first, alone=alone)
            return explanation(would_run, self._laws.worth(would_run))
        if len(query) <= _LONGEST and query.count("(") <= _DEEPEST:
            start, most = time.perf_counter(), self._limited.seconds

            def values(question: str) -> list[str | None]:
                if alone:
                    raise Refused("SDC005", "a PIVOT that asks for its columns: write its values, IN (..)")
                if self.plans.only:
                    raise Refused("SDC077", "a PIVOT that asks for its columns: write its values, IN (..)")
                left = None if most is None else max(most - (time.perf_counter() - start), 0)
                return self._values(question, user, left, first)

            query = with_noise(written_out(query, values), lambda table: self._database.noise_of(table, version))
            query = with_rows(
                query,
                PREVIEW_OF_COSTS,
                "SELECT ..",
                lambda asked, _: rows_as_query(self._preview(asked, version, user), OF_PREVIEW),
            )

            def intervals(asked: str, level: str | None) -> str:
                text, found = self._intervals(asked, level, version, user)
                within.append(found)
                return text

            query = with_rows(query, INTERVALS, "SELECT ..", intervals, numbered=True)
            told = Told(
                self._database, version, user, lambda one: self._rewrite(one, version, user, first, alone=alone)
            )
            query = listed(query, told)
        rewritten = self._rewritings.of(query, version)
        for one in within:
            check_same_totals(one, rewritten)
        # Not part of what is remembered: tables may have changed.
        self._schema.check_names(rewritten.tables, rewritten.schemas, joined=bool(rewritten.unique))
        self.check_files(rewritten)
        for policy in rewritten.policies:
            self._schema.check_facts(policy)
        self._schema.check_one_noise(rewritten.policies)
        if rewritten.preview is not None:
            self._schema.check_preview(rewritten.preview)
        for unique in rewritten.unique:
            self._schema.check_unique(unique)
        found = self._records.check(rewritten, version)
        return rewritten if found is None else replace(rewritten, cut=found)


def _plan_rules(limited: Limited) -> PlanRules:
    stored = limited.rows(PLAN_RULES_SQL)
    return PlanRules.of(stored[0][0] if stored else None)
