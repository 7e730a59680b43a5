"""The way in: one object that answers, rewrites and explains."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NoReturn

import duckdb
import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from sdcduck import catalog
from sdcduck.catalog import Policy
from sdcduck.catalog.audit_log import OVER_QUOTA, AuditLog, OverQuota
from sdcduck.errors import SDCError, unknown
from sdcduck.guard.allowed import TYPES, check_query, check_rewritten, read
from sdcduck.guard.expression_types import EXPRESSION_TYPES
from sdcduck.guard.known import Known
from sdcduck.guard.labels import settle_defaults, without_labels
from sdcduck.guard.names import settle_names
from sdcduck.guard.one_reading import refuse_two_readings
from sdcduck.guard.origins import PREVIEW, Origin, origins
from sdcduck.guard.own_macros import NOT_OURS, macros_of
from sdcduck.guard.own_names import OwnNames
from sdcduck.guard.pivot_values import written_out
from sdcduck.guard.pivots import without_pivots
from sdcduck.guard.preview import preview_of
from sdcduck.guard.products import refuse_values_of_products
from sdcduck.guard.protect import Protection
from sdcduck.guard.question import Constant, Question, columns_of, written_down
from sdcduck.guard.quiet import quiet
from sdcduck.guard.readings import refuse_hidden_relations, settle_readings, with_bracketed_keys, without_brackets
from sdcduck.guard.refusals import Refused, refuse_own_name, unknown_column
from sdcduck.guard.relations import RAW
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.row_order import settle_row_order
from sdcduck.guard.running import Limited, Parameters, begun, in_memory, plans_once
from sdcduck.guard.shapes import RELEASED, conjuncts, has_aggregate, is_number, is_query, refuse_many_sets
from sdcduck.guard.sizes import bound, refuse_lists_of_windows
from sdcduck.guard.spelling import Spelling, spell
from sdcduck.guard.stars import without_columns
from sdcduck.guard.subscripts import refuse_other_readings, settle_fields, settle_subscripts
from sdcduck.guard.templates import Templates, asked
from sdcduck.guard.unnamed import name_all, name_subqueries, output_names
from sdcduck.guard.using import note_using, refuse_other_using
from sdcduck.guard.written import words_of, written
from sdcduck.quoting import folded, identifier

_LONGEST = 100_000  # characters
_DEEPEST = 200
_MOST_TOKENS = 10_000
_MOST_NODES = 5_000
_MOST_CACHED = 1000
_LONGEST_PLAIN, _LONGEST_CONSTANT = 10_000, 1000
_LONGEST_KEPT = 50_000  # characters of a question with its rewriting: a thousand longer ones would fill the memory
_ROWS = 122_880  # of a batch
NOTICE = "sdcduck.notice"
"""The key of the Arrow schema's metadata that says what an answer is, where that is not what it looks like."""


@dataclass(frozen=True)
class Explanation:
    """What became of a query.

    Attributes:
        answered: whether it would be answered.
        sql: the SQL that runs; empty when refused.
        notes: what was protected and how, or why the query is refused.
        milliseconds: it took to rewrite it.
        columns: what each column of the answer is made of; none where it is refused or empty.
    """

    answered: bool
    sql: str
    notes: tuple[str, ...]
    milliseconds: float
    columns: tuple[Origin, ...] = ()


class Guard:
    """Answers queries under the policies of a database (`sdc_protect`, `sdc_public`).

    In one process with the data this protects from mistakes, not from somebody who holds the connection or the file.

    Args:
        con: a connection that sdcduck is installed on.
        role: whose policies hold; those of a role come before those of everybody.
        seconds: a query that runs longer is stopped; None: no limit.
        log: where every question is written down; None: nowhere.
        raw: nothing is protected: whoever asks may see the records of every table. What a question may be made of, and
            that it is written down, is as ever.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        *,
        role: str = "",
        seconds: float | None = None,
        log: AuditLog | None = None,
        raw: bool = False,
    ) -> None:
        if not isinstance(role, str):
            raise SDCError("argument 'role' must be a text, as in sdc_protect(.., role := 'reporter')")
        if seconds is not None and not seconds > 0:  # nor NaN
            raise SDCError("argument 'seconds' must be more than 0; None is no limit")
        self._con = con.cursor()
        # A connection holds one result: of two threads each could fetch what the other asked, and be judged by it.
        self._alone = threading.Lock()
        self._role, self._log = folded(role), log
        self.raw = raw
        """Whether it shows records as they are."""
        self.heard: Callable[[str, float, int], None] = lambda verdict, seconds, rows: None
        """Told of each line that is written down, or would be if there were a log: verdict, seconds, rows."""
        self.at_once = plans_once(self._con)
        """How the engine is asked (`begun`)."""
        catalog.check_name(self._con)
        try:
            catalog.policies(self._con)
        except (duckdb.CatalogException, duckdb.InvalidInputException):
            raise SDCError("this database has no policies; declare them with sdc_protect") from None
        # Nobody can change a database that this process holds for reading.
        unchanging = catalog.is_read_only(self._con)
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
        self._known = Known(self._con, self._alone, self._limited, role=self._role, raw=raw, unchanging=unchanging)
        self._rewritten: dict[str, tuple[str, Rewritten]] = {}
        self._templates = Templates(_MOST_CACHED)
        self._texts: dict[str, str] = {}
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

        Args:
            parameters: for ``?`` and ``$1``, or by name for ``$name``.
            user: who asks, for the audit log.

        Raises:
            Refused: a query that is not answered, or that failed while it ran; never with data in the message.
        """
        start = time.perf_counter()
        self.check_log(user)
        version = self._known.version()
        rewritten: Rewritten | None = None
        given = ""
        try:
            given = written_down(parameters)
            rewritten = self._rewrite(query, version, user)
            answer = self._run(rewritten, parameters)
        except Refused as refused:
            self.write(query, user, start, refused.code, 0, rewritten, version, parameters=given)
            raise
        self.write(query, user, start, "answered", answer.num_rows, rewritten, version, parameters=given)
        if rewritten.notice:
            answer = answer.replace_schema_metadata({NOTICE: rewritten.notice})
        return answer

    def close(self) -> None:
        """Ask no more: a file that only this guard held is free again."""
        with self._alone:
            self._con.close()
        self.settle()

    def settle(self) -> None:
        """Write down how many questions were left out of the audit log, where that is not written yet and can be."""
        if self._log is not None:
            with suppress(OSError):
                self._log.settle()

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
            self.check_log(user)
        start, version = time.perf_counter(), self._known.version()
        try:
            sql = self._rewrite(query, version, user or "", first).sql
        except Refused as refused:
            if user is not None:
                self.write(query, user, start, refused.code, 0, None, version)
            raise
        cursor = self._limited.cursor()
        try:
            return columns_of(cursor, sql, parameter_types)
        finally:
            cursor.close()

    @in_memory()
    def relations(self) -> list[tuple[Policy, dict[str, str]]]:
        """The relations that can be asked about, with the columns that are visible and their DuckDB types."""
        version = self._known.version()
        found = []
        with self._alone:
            for _, policy in sorted(self._known.policies(version).items()):
                with suppress(Refused):  # a table that was removed does not hide the others
                    described = self._known.described(policy)
                    found.append((policy, {name: without_labels(kind) for name, kind in described.items()}))
        return found

    def rewritten(
        self, query: str, user: str = "", *, first: Callable[[Question], None] | None = None
    ) -> tuple[Rewritten, str]:
        """What runs in place of a query, and the version of the policies.

        Args:
            user: who asks, for the audit log.
            first: told of every question that has to be asked before, so that it can be stopped.
        """
        version = self._known.version()
        return self._rewrite(query, version, user, first), version

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
        batches = (batch.cast(schema) for batch in asked.batches()) if asked.notice else asked.batches()
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _run(self, rewritten: Rewritten, parameters: Parameters) -> pa.Table:
        def ask(cursor: duckdb.DuckDBPyConnection) -> pa.Table:
            rows = _ROWS if rewritten.rows is None else min(rewritten.rows, _ROWS)
            _, reader = begun(cursor, rewritten.sql, parameters, rows, at_once=self.at_once, grouped=rewritten.grouped)
            return reader.read_all()

        return self._limited.ask(ask)

    def check_log(self, user: str) -> None:
        """Refuse the question of somebody who has written too much into the audit log, before it is looked at."""
        if self._log is None:
            return
        try:
            self._log.check_quota(user)
        except OSError as problem:
            self._refuse_unwritten(problem, 0.0)

    def write(
        self,
        query: str,
        user: str,
        start: float,
        verdict: str,
        rows: int,
        ran: Rewritten | None,
        version: str,
        *,
        end: bool = False,
        parameters: str = "",
    ) -> None:
        """Write down a question; without the line there is no answer.

        Args:
            end: whether it has a line already.
            parameters: with what values it was asked (`written_down`).
        """
        seconds = time.perf_counter() - start
        try:
            self._write(query, user, seconds, verdict, rows, ran, version, end=end, parameters=parameters)
        except OSError as problem:
            self._refuse_unwritten(problem, seconds)
        self.heard(verdict, seconds, rows)

    def _refuse_unwritten(self, problem: OSError, seconds: float) -> NoReturn:
        code = OVER_QUOTA if isinstance(problem, OverQuota) else "SDC092"
        self.heard(code, seconds, 0)
        raise Refused(code) from None

    def _write(
        self,
        query: str,
        user: str,
        seconds: float,
        verdict: str,
        rows: int,
        ran: Rewritten | None,
        version: str,
        *,
        end: bool,
        parameters: str,
    ) -> None:
        if self._log is not None:
            (self._log.write_end if end else self._log.write)(
                user=user,
                role=self._role,
                verdict=verdict,
                milliseconds=round(1000 * seconds, 3),
                rows=rows,
                query=query,
                **({"parameters": parameters} if parameters else {}),
                sql="" if ran is None else ran.sql,
                tables=[] if ran is None else list(ran.tables),
                methods=[RAW] if self.raw else [] if ran is None else list(ran.methods),
                policies=version,
            )

    def rewrite(self, query: str) -> str:
        """The SQL that runs in place of a query.

        Raises:
            Refused: the query cannot be shown to be safe.
        """
        return self._rewrite(query, self._known.version()).sql

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
            self.check_log(user)
        start, version = time.perf_counter(), self._known.version()
        try:
            rewritten = self._rewrite(query, version, user or "", first)
        except Refused as refused:
            if user is not None:
                self.write(query, user, start, refused.code, 0, None, version)
            return Explanation(False, "", (str(refused),), 1000 * (time.perf_counter() - start))
        return Explanation(
            True, rewritten.sql, rewritten.notes, 1000 * (time.perf_counter() - start), rewritten.columns
        )

    @in_memory()
    def _rewrite(
        self, query: str, version: str, user: str = "", first: Callable[[Question], None] | None = None
    ) -> Rewritten:
        if len(query) <= _LONGEST and query.count("(") <= _DEEPEST:
            start, most = time.perf_counter(), self._limited.seconds

            def values(question: str) -> list[str | None]:
                left = None if most is None else max(most - (time.perf_counter() - start), 0)
                return self._values(question, user, left, first)

            query = written_out(query, values)
        text = self._plain(query)
        known = self._rewritten.get(text)
        if known is None or known[0] != version or not self._known.have(known[1].shapes):
            known = (version, self._anew(query, text, version))
            if len(text) + len(known[1].sql) <= _LONGEST_KEPT:
                if len(self._rewritten) >= _MOST_CACHED:
                    self._rewritten.clear()
                self._rewritten[text] = known
        rewritten = known[1]
        # Not part of what is remembered: tables may have changed.
        self._known.check_names(rewritten.tables, rewritten.shapes)
        for policy in rewritten.policies:
            self._known.check_facts(policy)
        if rewritten.preview is not None:
            self._known.check_preview(rewritten.preview)
        for unique in rewritten.unique:
            self._known.check_unique(unique)
        return rewritten

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

    def _anew(self, query: str, text: str, version: str) -> Rewritten:
        """What a question becomes that is not remembered; another one may be that differs only in its constants."""
        question = asked(text) if len(text) <= _LONGEST else None
        if question is not None:
            found = self._templates.find(question, version)
            if found is not None and self._known.have(found.rewritten.shapes):
                return found.filled(question.constants)
        with self._alone:
            policies = self._known.policies(version)
            rewritten = self._made(query, policies)
            if question is not None and len(text) + len(rewritten.sql) <= _LONGEST_KEPT:
                self._templates.learn(question, version, rewritten, lambda other: self._made(other, policies))
        return rewritten

    def _plain(self, query: str) -> str:
        """`plain_text`, remembered: most texts come again to the letter. Long ones would fill the memory."""
        if len(query) > _LONGEST_PLAIN:
            return query
        text = self._texts.get(query)
        if text is None:
            text = plain_text(query)
            if len(self._texts) >= _MOST_CACHED:
                self._texts.clear()
            self._texts[query] = text
        return text

    def _made(self, query: str, policies: Mapping[str, Policy], *, probes: bool = True) -> Rewritten:
        try:
            with quiet():
                return self._protected(query, policies, probes=probes)
        except (RecursionError, MemoryError):
            raise Refused("SDC002") from None
        except (Refused, duckdb.OutOfMemoryException):
            raise
        except Exception:  # whatever sqlglot stumbles over: nothing is answered, and nothing said
            raise Refused("SDC001") from None

    def _of_probe(self, query: str, policies: Mapping[str, Policy]) -> Rewritten | None:
        """What becomes of a question for the columns alone, as of any other; None: of records, or not answered."""
        try:
            return self._made(query, policies, probes=False)
        except Refused:
            return None

    def _types(self, rewritten: Rewritten | None) -> list[str]:
        """The DuckDB types of the columns of an answer; none where they are not known."""
        if rewritten is None:
            return []
        try:
            with self._limited.settled(self._con.cursor()) as cursor:
                return [kind for _, kind in columns_of(cursor, rewritten.sql, ())]
        except Refused:
            return []

    def _protected(
        self, query: str, policies: Mapping[str, Policy], *, again: bool = False, probes: bool = True
    ) -> Rewritten:
        """What a question becomes.

        Args:
            again: it was written by sqlglot already.
            probes: whether a question for the columns alone is answered without its tables.
        """
        asked_first = query
        _check_text(query)
        reading = read(self._con, query)
        numbered = _with_numbers(query)
        if numbered != query:
            again_read = read(self._con, numbered)
            if again_read.parameters() != reading.parameters():
                raise Refused("SDC005", "? that reads in two ways: write $1, $2, ..")
            query, reading = numbered, again_read
        tree = _parsed(query, is_query=not reading.problem)
        check_query(reading, pivots=True)
        plain = tree.sql("duckdb", comments=False)
        refuse_two_readings(self._con, reading, plain)
        tree = _in_one_form(tree)
        _check_words(tree)
        _check_tables(tree, policies)
        _normalize(tree)
        _check_limits(tree)
        subscripts = settle_subscripts(tree)
        named = [
            policies[name]
            for name in sorted({folded(table.name) for table in tree.find_all(exp.Table)} & set(policies))
        ]
        name_all(tree)
        names = output_names(tree)
        shapes = self._known.shapes(named)
        described = {folded(policy.name): self._known.columns(policy) for policy in named}
        schema = {name: columns.types for name, columns in described.items()}
        if tree.find(exp.Columns) is not None:
            spelled = {name: list(columns.spelled.values()) for name, columns in described.items()}
            without_columns(tree, spelled, self._known.names_and_numbers)
            _check_size(tree)
            name_all(tree)
            names = output_names(tree)
        settle_names(tree, schema)
        spelling = Spelling(tree)
        note_using(tree)
        name_subqueries(tree)
        stored = {folded(policy.name): lengths for policy in named if (lengths := self._known.lengths(policy))}
        tree, rows = _qualified(tree, schema, stored)
        refuse_other_using(tree, schema)
        refuse_hidden_relations(tree)
        settle_defaults(tree)
        of_records = any(policy.label == "unit-level" for policy in named)
        subscripts = settle_fields(tree, of_records=of_records) or subscripts
        names = spelling.of(tree, {name: columns.spelled for name, columns in described.items()}, names)
        if probes and _asks_for_columns(tree):
            parameters, whole = reading.parameters(), self._of_probe(asked_first, policies)
            if parameters and whole is not None:  # the types of its columns are up to them
                return whole
            spell(tree, names)
            empty = _empty(tree, self._types(whole), parameters)
            check_query(read(self._con, empty))
            tables = tuple(policy.name for policy in named)
            return Rewritten(empty, ("only the columns are asked for",), (), tables, (), (), shapes=shapes)
        preview = preview_of(tree, policies, schema, names, self._known.database())
        if preview is not None:
            sql, notice = preview
            check_query(read(self._con, sql))
            shapes += self._known.preview_shapes(named[0], sql)
            made_up = frozenset((policy.name, PREVIEW) for policy in named)
            columns = tuple(Origin(name, made_up, computed=True) for name in names)
            tables = tuple(policy.name for policy in named)
            methods = (PREVIEW,)
            return Rewritten(
                sql, (notice,), (), tables, methods, (), notice, columns, shapes=shapes, preview=named[0]
            )  # fmt: skip
        visible = {name: frozenset(columns) for name, columns in schema.items()}
        protection = Protection(policies, visible, self._known.tables())
        protection.protect(tree)
        refuse_lists_of_windows(tree)
        refuse_values_of_products(tree, self._known.rows_of(policies))
        spell(tree, names)
        columns = origins(tree, protection.blocks)
        public = {name: columns for name, columns in visible.items() if policies[name].label == "public"}
        settle_row_order(tree, protection.numbers, public)
        now, grouped, constant = output_names(tree), _is_grouped(tree), _is_constant(tree)
        naming = OwnNames(self._known.database(), policies, protection.numbers)
        naming.settle(tree)
        text = written(tree, protection.numbers, subscripts=subscripts)
        if text is None:
            # Some words have another one that is written in their place: a query of those is judged from the start.
            if again or plain == query:
                raise Refused("SDC005", "text that reads in two ways")
            return self._protected(plain, policies, again=True, probes=probes)
        formulas = [formula for made in protection.numbers.values() for formula in made.formulas]
        words = check_rewritten(
            self._con, text, over_records=protection.unit_expressions, over_numbers=formulas, tables=naming.tables
        )
        sql, grouped = text.sql, grouped and "unnest" not in folded(_STRING.sub(r"\1", text.sql))
        if words and (any(f'"{word}"' in folded(sql) for word in words) or self._known.have_column(named, words)):
            raise Refused("SDC010", f"{min(words)}, beside a column of that name")
        if now is not None and names != now and len(names) == len(now) == len(set(map(folded, now))):
            shown = ", ".join(f"{identifier(old)} AS {identifier(new)}" for old, new in zip(now, names, strict=True))
            sql = f"SELECT {shown} FROM ({sql})"
            columns = tuple(replace(column, name=name) for column, name in zip(columns, names, strict=False))
        return Rewritten(
            sql,
            tuple(protection.notes),
            tuple(protection.unique),
            tuple(policy.name for policy in named),
            tuple(sorted({policy.method for policy in named if policy.method is not None})),
            tuple(policy for policy in named if policy.label == "unit-level"),
            columns=columns,
            grouped=grouped,
            constant=constant and len(sql) <= _LONGEST_CONSTANT,
            shapes=shapes,
            rows=rows,
        )


def open_guard(
    database: duckdb.DuckDBPyConnection | str | Path,
    *,
    role: str = "",
    seconds: float | None = None,
    memory: str | None = None,
    log: str | Path | AuditLog | None = None,
    raw: bool = False,
) -> Guard:
    """A guard over a connection that sdcduck is installed on, or over a file.

    A file is opened for reading in an instance of its own that nobody else holds, with access to files, network,
    extensions and Python objects switched off and its settings locked.

    Args:
        database: the connection, or the file; it must have policies (`sdc_protect`).
        role: whose policies hold: `sdc_protect(.., role := ..)`; those for everybody hold where there is none.
        seconds: a query that runs longer is stopped.
        memory: limit of the instance, such as ``2GB``, only with a file; None: half of the machine's memory. What an
            answer needs on its way out comes on top of it.
        log: file for the audit log; an `AuditLog` where it has a size and a quota of its own, or several guards of this
            process write to it.
        raw: show the records of every table of the file as they are; see `Guard`.
    """
    written = log if log is None or isinstance(log, AuditLog) else AuditLog(log)
    if isinstance(database, duckdb.DuckDBPyConnection):
        if memory is not None:
            raise SDCError("a memory limit goes with a file: a connection has the limits of its database")
        if raw:
            raise SDCError("raw records are shown of a file only: a connection shows them anyway")
        return Guard(database, role=role, seconds=seconds, log=written)
    if not Path(database).is_file():
        raise SDCError("there is no such database file")
    config = locked(memory)
    try:
        con = duckdb.connect(str(database), read_only=True, config=config)
    except duckdb.ConnectionException:
        raise SDCError(
            "this process has the file open with other settings: guards of one file share one instance and take the "
            "same memory; close the other guard or connection first"
        ) from None
    except duckdb.CatalogException:  # what DuckDB would read as a table, such as JSON
        raise SDCError("the file is no database of DuckDB") from None
    return Guard(con, role=role, seconds=seconds, log=written, raw=raw)


def locked(memory: str | None = None) -> dict[str, str | bool | int | float | list[str]]:
    """The settings of an instance that only a guard holds: all connections of a process to one file have the same.

    Args:
        memory: its limit; None: half of the machine's memory.

    Raises:
        SDCError: a limit that DuckDB would not understand, or take for none, as -1GB.
    """
    if memory is None:
        limit = half_of_memory()
    else:
        size = _SIZE.fullmatch(memory) if isinstance(memory, str) else None
        if size is None or not 0 < float(size[1]) * _UNITS[size[2][:1].upper()] <= _MOST:
            raise SDCError("argument 'memory' must be a size such as '2GB' or '500MB', or a share such as '50%'")
        limit = _of_memory(float(size[1]) / 100) if size[2] == "%" else memory
    return {**LOCKED, "memory_limit": limit}


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%|[KMGT]i?B)\s*", re.ASCII | re.IGNORECASE)
_MOST = 1e18  # bytes: more than any machine has, and less than DuckDB can count
_UNITS = {"%": _MOST / 100, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def half_of_memory() -> str:
    """Half of the machine's memory, or of what its container has of it: DuckDB, which looks there, takes 80 %."""
    return _of_memory(0.5)


@cache
def _of_memory(share: float) -> str:
    """A share of the machine's memory; DuckDB 1 takes no percents."""
    with duckdb.connect() as con:
        size, unit = con.execute("SELECT current_setting('memory_limit')").fetchall()[0][0].split()
    return f"{float(size) / 0.8 * share:.1f}{unit}"


LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "lock_configuration": True,
}
"""What an instance may not do that only a guard holds."""


_PART = re.compile(
    r"""
    [\w,.()*=<>]+
    | '(?:[^'\\]|'')*'
    | "(?:[^"]|"")*"
    | (?P<gap>(?:[ \t\n] | \r\n | (?<![^\s\w),;'"])(?:--[^\r\n]* | /\*[^*/]*\*/))+)
    | (?P<odd>[\\`\#'"\x00-\x1f\x7f] | \$(?!\d) | /\* | --)
    """,
    re.VERBOSE,
)


def plain_text(query: str) -> str:
    """A text with one space where there were several, or comments: two questions with one text are the same.

    Programs put the name of their user or the number of a chart into a comment. Where comments or strings could be read
    in another way than here, the text stays as it is.

    >>> plain_text("/* chart 7 */ SELECT  1 -- one\\n , 'a  -- b' "), plain_text("SELECT $$ /* $$")
    ("SELECT 1 , 'a  -- b'", 'SELECT $$ /* $$')
    """
    if not query.isascii():
        return query
    parts, end = [], 0
    for found in _PART.finditer(query):
        if found["odd"]:
            return query
        if found["gap"]:
            before, end = query[end : found.start()], found.end()
            if before.endswith("'") and query.startswith("'", end):  # with a line between them they may be one string
                return query
            parts += [before, " "]
    return "".join([*parts, query[end:]]).strip(" ")


_BRACKETS = re.compile(r"[()\[\]{}]")
_DUCKDB = Dialect.get_or_raise("duckdb")


def _check_text(query: str) -> None:
    """Refuse texts that could keep a parser busy: sqlglot's takes the square of the time for many brackets."""
    if len(query) > _LONGEST or query.count("[") > _DEEPEST:
        raise Refused("SDC002")
    depth = 0
    for bracket in _BRACKETS.findall(query):
        depth += 1 if bracket in "([{" else -1
        if depth > _DEEPEST:
            raise Refused("SDC002")


def _parsed(query: str, *, is_query: bool = False) -> exp.Expr:
    """The tree of a text; it says so where DuckDB read a query that sqlglot does not."""
    try:
        tokens = words_of(query)
        if len(tokens) > _MOST_TOKENS:
            raise Refused("SDC002")
        trees = [tree for tree in _DUCKDB.parser().parse(with_bracketed_keys(tokens), query) if tree is not None]
    except SqlglotError:
        raise (Refused("SDC005", "a text that only DuckDB reads") if is_query else Refused("SDC001")) from None
    if len(trees) != 1:
        raise Refused("SDC003")
    tree = trees[0]
    _check_size(tree)
    refuse_other_readings(tree, tokens)
    settle_readings(tree, tokens)
    settle_subscripts(tree)
    if not isinstance(tree, (exp.Query, exp.Pivot)):
        raise Refused("SDC004")
    return tree


def _in_one_form(tree: exp.Expr) -> exp.Expr:
    """A tree with one form for what has several: joins in brackets, PIVOT; and without what stands beside the words."""
    without_brackets(tree)
    for node in tree.walk():
        node.comments = None  # they would be part of an expression's text, by which group keys are known
        node._meta = None  # where it stood in the text: it would be copied again and again
    for name in tree.find_all(exp.Identifier):
        refuse_own_name(name.name)
    if tree.find(exp.Pivot) is not None:
        tree = without_pivots(tree)
        _check_size(tree)
    return tree


def _check_size(tree: exp.Expr) -> None:
    if sum(1 for _ in tree.walk()) > _MOST_NODES:
        raise Refused("SDC002")


def _normalize(tree: exp.Expr) -> None:
    """Forms that sqlglot writes in another way than it reads, as it writes them.

    Raises:
        Refused: there is one that it does not write at all.
    """
    for node in list(tree.find_all(exp.If)):
        if not isinstance(node.parent, exp.Case):
            branch = exp.If(this=node.this, true=node.args["true"])
            node.replace(exp.Case(ifs=[branch], default=node.args.get("false")))
    for call in list(tree.find_all(exp.Anonymous)):
        if folded(call.name) == "count_star" and not call.expressions:
            call.replace(exp.Count(this=exp.Star(), big_int=True))
    for places in tree.find_all(exp.GroupingId):
        if not places.expressions:
            raise Refused("SDC005", "grouping_id() of no column: write grouping(a, b) with those of GROUP BY")
    for frame in tree.find_all(exp.WindowSpec):
        if frame.args.get("end") is None:
            frame.set("end", "CURRENT ROW")
    for group in tree.find_all(exp.Group):
        if isinstance(group.parent, exp.Select):
            _replace_numbers(group, group.parent)


def _check_limits(tree: exp.Expr) -> None:
    """Refuse very many grouping sets, and columns and figures of the same query as a limit.

    There is one limit for all rows, known before them.
    """
    refuse_many_sets(tree)
    for limit in tree.find_all(exp.Limit, exp.Offset, exp.Fetch):
        number = limit.args.get("count") or limit.expression
        for part in number.walk(prune=is_query) if number is not None else ():
            if isinstance(part, (exp.Column, exp.AggFunc)):
                raise Refused("SDC030", "one in LIMIT or OFFSET, which take a number, or (SELECT max(..) FROM ..)")


def _replace_numbers(group: exp.Group, select: exp.Select) -> None:
    """In ROLLUP, CUBE and GROUPING SETS a number is a column of SELECT, as it is outside of them."""
    named = {folded(item.alias): place for place, item in enumerate(select.expressions, 1) if item.alias}
    places: dict[str, int] = {}
    written_out: set[str] = set()
    waiting = list(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))
    while waiting:
        for part in waiting.pop().expressions:
            leaf = part.unnest()
            if isinstance(leaf, exp.Tuple):
                waiting.append(leaf)
            elif isinstance(leaf, exp.Literal) and not leaf.is_string:
                place = int(leaf.this) if leaf.is_int else 0
                items = select.expressions[:place]
                plain = all(not item.is_star and item.find(exp.Columns) is None for item in items)
                if not plain or not 0 < place == len(items) or isinstance(items[-1].unalias(), exp.Literal):
                    raise Refused("SDC005", "a number in ROLLUP, CUBE or GROUPING SETS")
                _refuse_two_places(places, place, select)
                leaf.replace(items[-1].unalias().copy())
            elif isinstance(leaf, exp.Column) and not leaf.table and folded(leaf.name) in named:
                _refuse_two_places(places, named[folded(leaf.name)], select)
            else:
                written_out.add(_without_tables(leaf, select))
    if written_out & set(places):  # by number it is another key to DuckDB than written out
        raise Refused("SDC005", _TWO_KEYS)


_TWO_KEYS = "one expression as two keys of ROLLUP, CUBE or GROUPING SETS: take it once"


def _without_tables(node: exp.Expr, select: exp.Select) -> str:
    """An expression as text; of one relation it does not matter whether it is named."""
    node = node.copy()
    if not select.args.get("joins"):
        for column in node.find_all(exp.Column):
            column.set("table", None)
    return folded(node.sql("duckdb"))


def _refuse_two_places(places: dict[str, int], place: int, select: exp.Select) -> None:
    """Refuse subtotals over two columns that are one expression: to DuckDB they are two keys by number or alias."""
    if places.setdefault(_without_tables(select.expressions[place - 1].unalias(), select), place) != place:
        raise Refused("SDC005", _TWO_KEYS)


_WORD = re.compile(r"\w+")
_STRING = re.compile(r"""'(?:[^']|'')*'|("(?:[^"]|"")*")""")  # or a name, which stays: it may have a ' in it
_ALSO_WORDS = ("", "=", "CURRENT ROW", "NO OTHERS")


def _check_words(tree: exp.Expr) -> None:
    """Refuse words that are not words: names of units, types and functions that sqlglot would write as they are."""
    for node in tree.walk():
        if isinstance(node, (exp.Identifier, exp.Literal)):
            continue
        own = isinstance(node, exp.DataType) and node.this == exp.DataType.Type.USERDEFINED
        if own and folded(node.text("kind")) not in TYPES:
            # A cast to an ENUM of the custodian's would tell whether a text is one of its labels.
            raise Refused("SDC005", "a type that is none of DuckDB's: cast to VARCHAR, INTEGER, ..")
        for value in node.args.values():
            if isinstance(value, str) and not _WORD.fullmatch(value) and value not in _ALSO_WORDS:
                raise Refused("SDC005", "an unusual word")


def _qualified(
    tree: exp.Expr, schema: dict[str, dict[str, exp.DataType]], stored: Mapping[str, Mapping[str, float]]
) -> tuple[exp.Expr, int | None]:
    """The tree with every column in full and its type, stars and names written out; how many rows may leave at once.

    Args:
        stored: bytes of the longest texts in columns of tables, where they are known.
    """
    # As they are: sqlglot would read the names of tables and columns as SQL, "hidden--x" as hidden.
    known = MappingSchema({**schema}, dialect=_DUCKDB, normalize=False)
    for named in tree.find_all(exp.Table):
        if not named.alias and not _WORD.fullmatch(named.name):
            named.set("alias", exp.TableAlias(this=exp.to_identifier(folded(named.name), quoted=True)))
    try:
        qualified, rows = bound(qualify(tree, schema=known, dialect=_DUCKDB), stored)
        typed = annotate_types(qualified, schema=known, expression_metadata=EXPRESSION_TYPES, dialect=_DUCKDB)
        return typed, rows
    except OptimizeError as problem:
        text = str(problem)
        name = _named_in(text)
        asked = {folded(table.name) for table in tree.find_all(exp.Table)}
        having = sum(folded(name) in columns for table, columns in schema.items() if table in asked)
        table = _OF_TABLE.search(text)
        if table is not None or text.startswith("Unknown table"):
            raise Refused("SDC020", table["name"] if table is not None else name) from None
        if "mbiguous" in text or text.startswith("Alias already used") or having > 1:
            raise Refused("SDC031", name) from None
        visible = {column for table in asked for column in schema.get(table, ())}
        if folded(name) in visible:
            raise Refused("SDC030", f"'{name}' is not in the FROM of its SELECT") from None
        raise unknown_column(name, visible) from None


def _check_tables(tree: exp.Expr, policies: Mapping[str, Policy]) -> None:
    ctes = {folded(cte.alias) for cte in tree.find_all(exp.CTE)}
    # Where a relation is called main, main.people may be its column.
    is_schema = all(folded(called.name) != "main" for called in tree.find_all(exp.TableAlias))
    for named in tree.find_all(exp.Table, exp.Column):
        # main.people, as many programs write; a query's own relation of that name is not in a schema.
        schema, relation = named.args.get("db"), named.name if isinstance(named, exp.Table) else named.text("table")
        if not is_schema and isinstance(named, exp.Column):
            continue
        if isinstance(schema, exp.Identifier) and folded(schema.name) == "main" and folded(relation) not in ctes:
            if not named.args.get("catalog"):
                named.set("db", None)
            elif folded(relation) in policies:  # else it may be a field of a field
                raise Refused("SDC020", f"{named.text('catalog')}.main.{relation}: write {relation}")
    for table in tree.find_all(exp.Table):
        if table.args.get("db") or table.args.get("catalog") or not isinstance(table.this, exp.Identifier):
            raise Refused("SDC020", ".".join(part.name for part in table.parts))
        if folded(table.name) not in ctes | set(policies):
            hint = str(unknown("table", table.name, [policy.name for policy in policies.values()])).split("; ")[1]
            raise Refused("SDC020", f"'{table.name}'; {hint}")


def _with_numbers(query: str) -> str:
    """A text with $1 in place of the first ?, and so on: what stands in several places of a query is copied.

    >>> _with_numbers("SELECT age + ? FROM people WHERE region = '?' AND age > ?::INTEGER")
    "SELECT age + $1 FROM people WHERE region = '?' AND age > $2::INTEGER"
    """
    if "?" not in query:
        return query
    try:
        marks = [word.start for word in words_of(query) if query[word.start : word.start + 1] == "?"]
    except SqlglotError:
        return query
    if any(query[start + 1 : start + 2].isalnum() for start in marks):
        return query  # ?1 has its number
    parts, end = [], 0
    for number, start in enumerate(marks, 1):
        parts += [query[end:start], f"${number}"]
        end = start + 1
    return "".join([*parts, query[end:]])


def _asks_for_columns(tree: exp.Expr) -> bool:
    """Whether this is SELECT .. LIMIT 0, or .. WHERE 1 = 0: how programs ask for the columns of a table or a query."""
    if not isinstance(tree, exp.Select):
        return False
    limit = tree.args.get("limit")
    if isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Literal) and limit.expression.this == "0":
        return True
    group, from_ = tree.args.get("group"), tree.args.get("from_")
    if group is None and (tree.args.get("having") is not None or any(map(has_aggregate, tree.selects))):
        return False  # there is one row, of nobody
    if group is not None and (not group.expressions or group.find(exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple)):
        return False  # there may be a row of the whole
    where = tree.args.get("where")
    if where is not None and any(_is_never(condition) for condition in conjuncts(where.this)):
        return True
    inner = from_.this if from_ is not None and not tree.args.get("joins") else None
    return isinstance(inner, exp.Subquery) and _asks_for_columns(inner.this)


def _is_grouped(tree: exp.Expr) -> bool:
    """Whether the rows of a protected query are those of one block, or some of them, where none is unnested."""
    if not isinstance(tree, exp.Select) or tree.args.get("joins") or tree.args.get("laterals"):
        return False
    from_ = tree.args.get("from_")
    inner = from_.this if from_ is not None else None
    if not isinstance(inner, (exp.Subquery, exp.Table)):
        return False
    return inner.alias == RELEASED or (isinstance(inner, exp.Subquery) and _is_grouped(inner.this))


def _is_constant(tree: exp.Expr) -> bool:
    """Whether this is SELECT and literals, and nothing else.

    >>> [_is_constant(_parsed(text)) for text in ("SELECT 1, 'a' AS b", "SELECT now()", "SELECT 1 LIMIT 0")]
    [True, False, False]
    """
    if not isinstance(tree, exp.Select) or any(value for name, value in tree.args.items() if name != "expressions"):
        return False
    return all(isinstance(item.unalias(), (exp.Literal, exp.Boolean, exp.Null)) for item in tree.expressions)


def _is_never(condition: exp.Expr) -> bool:
    """FALSE, and 1 = 0."""
    if isinstance(condition, exp.Boolean):
        return condition.this is False
    if not isinstance(condition, exp.EQ):
        return False
    left, right = condition.this, condition.expression
    plain = all(is_number(side) and side.this.isdecimal() for side in (left, right))
    return plain and int(left.this) != int(right.this)


def _empty(tree: exp.Expr, types: Sequence[str], parameters: Sequence[str]) -> str:
    """A query without rows that has the columns of another, and looks at no table.

    Args:
        types: of the columns, as DuckDB has them; of as many as there are, or they are not known.
        parameters: that it is asked with: DuckDB takes no values for what does not occur.
    """
    assert isinstance(tree, exp.Select)
    columns = []
    known = types if len(types) == len(tree.selects) else [""] * len(tree.selects)
    for item, written_type in zip(tree.selects, known, strict=True):
        kind = item.unalias().type
        sql = written_type or "VARCHAR"
        if (
            not written_type
            and kind is not None
            and kind.this not in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL)
        ):
            kind = kind.copy()
            for field in kind.find_all(exp.ColumnDef):
                field.set("this", exp.to_identifier(field.name, quoted=True))
            sql = kind.sql("duckdb")
        columns.append(f"CAST(NULL AS {sql}) AS {identifier(item.alias_or_name)}")
    given = " OR ".join(f"${name} IS NULL" for name in dict.fromkeys(parameters))
    return f"SELECT {', '.join(columns)}{' WHERE ' if given else ''}{given} LIMIT 0"


_AFTER = re.compile(r"(?:Unknown column|Unknown output column|Unknown table|Alias already used): (?P<name>.+)", re.S)

_OF_TABLE = re.compile(r"could not be resolved for table: '(?P<name>.*)'\.")


def _named_in(text: str) -> str:
    """The column that sqlglot's message names: a word of the query."""
    after = _AFTER.match(text)
    if after is not None:
        return after["name"]
    parts = text.replace('"', "'").split("'")
    return parts[1] if len(parts) > 2 else ""


__all__ = ["Explanation", "Guard", "open_guard"]
