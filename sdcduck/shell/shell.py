"""The shell itself: statements and commands in, results out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TextIO, TypeVar

import duckdb
import pyarrow as pa
from rich.console import Console

from sdcduck.client.refusals import refusal
from sdcduck.errors import SDCError, unknown
from sdcduck.guard import REASONS
from sdcduck.guard.rewritten import Origin
from sdcduck.quoting import folded
from sdcduck.shell.boxes import Column, clean
from sdcduck.shell.results import ENDINGS, FORMS, MODES, Boxed, Parquet, Texts, Writer
from sdcduck.shell.running import Cancelled, wait
from sdcduck.shell.sources import Explained, Source, Table
from sdcduck.shell.statements import command_of, explained, is_question, split

_T = TypeVar("_T")
_MOST_ROWS = 40
_DEEPEST = 10
_LONGEST_BEGINNING = 50  # characters


@dataclass(frozen=True)
class Command:
    """A line that begins with a point.

    Attributes:
        argument: what follows it, for people; in brackets where it may be left out.
        about: what it does.
    """

    argument: str
    about: str


COMMANDS = {
    "tables": Command("", "the tables that can be asked about"),
    "columns": Command("TABLE", "the columns of a table, and what each may be used for"),
    "describe": Command("TABLE", "the same"),
    "explain": Command("[QUERY]", "what is protected in a query and how, or why it is refused; without one the last"),
    "rewrite": Command("[QUERY]", "the SQL that runs in place of a query (on a file)"),
    "mode": Command("[" + "|".join(MODES) + "]", "how results are written"),
    "maxrows": Command("[ROWS]", "rows of a box at most; 0 for all"),
    "output": Command("[FILE]", "write results to a file from now on; without one to the terminal again"),
    "once": Command("FILE", "write the next result to a file: .csv, .json, .md, .parquet, or as the mode is"),
    "read": Command("FILE", "run the statements of a file"),
    "timer": Command("[on|off]", "say how long each question took"),
    "help": Command("", "this list"),
    "quit": Command("", "leave, as Ctrl-D does"),
    "exit": Command("", "the same"),
}
"""The commands, without their points."""


@dataclass(frozen=True)
class Target:
    """A file that results go to.

    Attributes:
        form: what the end of its name says of it; None: nothing.
        file: it, open; None: it is written at once.
    """

    path: Path
    form: str | None
    file: TextIO | None

    def close(self) -> None:
        """Nothing more is written."""
        if self.file is not None:
            self.file.close()


class Left(Exception):
    """The user wants to go."""


class Shell:
    """Asks a source, and writes what it answers.

    Args:
        console: the terminal or pipe that results go to.
        interactive: whether somebody is there: seconds are shown, and a question that is stopped ends nothing else.
    """

    def __init__(self, source: Source, console: Console, *, interactive: bool) -> None:
        self.source, self._console, self._interactive = source, console, interactive
        self.failed = False
        self._mode, self._timer, self._most = "box", interactive, _MOST_ROWS
        self._output: Target | None = None
        self._once: Target | None = None
        self._last = ""
        self._about = ""
        self._depth = 0
        self._texts = Texts()
        self._tables: Sequence[Table] | None = None

    @property
    def tables(self) -> Sequence[Table]:
        """What can be asked about; looked up once."""
        if self._tables is None:
            self._tables = self.source.tables()
        return self._tables

    def run(self, text: str) -> None:
        """Do what a text says, one statement or command after the other; one that fails does not keep the next.

        Raises:
            Left: it says to leave.
            Cancelled: the user stopped it, and nobody is there to go on.
        BrokenPipeError: nobody reads what is written.
        """
        parts = list(split(text))
        for place, part in enumerate(parts, 1):
            self._about = f"statement {place} of {len(parts)}: {_beginning(part)}" if len(parts) > 1 else ""
            try:
                self._do(part)
            except BrokenPipeError:
                raise
            except OSError as problem:
                self._complain(f"'{problem.filename}': {problem.strerror}" if problem.filename else str(problem))
            except (SDCError, duckdb.Error) as problem:
                self._complain(str(problem))
            except (Cancelled, KeyboardInterrupt):
                self._complain("cancelled")
                if not self._interactive or self._depth:
                    raise Cancelled from None
                return

    def close(self) -> None:
        """Let go of files."""
        for target in (self._output, self._once):
            if target is not None:
                target.close()
        self.source.close()

    def _do(self, part: str) -> None:
        command = command_of(part)
        if command is not None:
            self._command(command)
            return
        if part[:4].lower() == "copy":
            raise SDCError(
                "COPY is not answered: .once FILE.csv or .once FILE.parquet writes the next result to a file"
            )
        self._last = part
        query = explained(part)
        if query is not None:
            self._explain(query)
        else:
            self._ask(part)

    def _complain(self, text: str) -> None:
        """An error on standard error; a refusal with what to do instead on a line of its own."""
        self.failed = True
        self._console.file.flush()
        refused = refusal(text)
        if refused is not None:
            advice = REASONS[refused.code][1]
            lines = [("bold red", f"Refused, {str(refused).removesuffix(f' {advice}')}"), ("", f"  {advice}")]
            lines += [("", f"  In {self._about}")] if self._about else []
        else:
            lines = [("bold red", clean(text.split("\n\nLINE ")[0]))]
        told = Console(stderr=True, no_color=self._console.no_color, soft_wrap=True)
        for style, line in lines:
            told.print(clean(line), style=style, markup=False, highlight=False)

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(clean(text), style=style, markup=False, highlight=False, soft_wrap=True)

    # --- Questions --------------------------------------------------------------------------------------------------

    def _ask(self, sql: str) -> None:
        start = time.perf_counter()
        question = self.source.question(sql)
        try:
            columns = self._wait(question.ask, question.interrupt)
            about = self.source.explain(sql) if columns and is_question(sql) else Explained(True, (), ())
            if columns:
                shown = _columns(columns, about)
                self._write(shown, lambda: self._wait(question.read, question.interrupt))
            notice = question.notice
        except BaseException:
            with suppress(Exception):
                question.interrupt()
            raise
        finally:
            question.close()
        if notice:
            self._notice(notice)
        if self._timer:
            self._say(f"{time.perf_counter() - start:.3f} s", "dim")

    def _notice(self, text: str) -> None:
        self._console.file.flush()
        told = Console(stderr=True, no_color=self._console.no_color, soft_wrap=True)
        told.print(clean(text), style="yellow", markup=False, highlight=False)

    def _wait(self, work: Callable[[], _T], stop: Callable[[], None]) -> _T:
        return wait(work, stop, show=self._interactive and sys.stderr.isatty())

    def _write(self, columns: Sequence[Column], read: Callable[[], pa.RecordBatch | None]) -> None:
        """Write a result where results go."""
        target, self._once = self._once or self._output, None
        try:
            writer = self._writer(columns, target)
            while (batch := read()) is not None:
                if batch.num_rows:
                    writer.batch(batch)
            writer.end()
        finally:
            if target is not None and target is not self._output:
                target.close()
            elif target is not None and target.file is not None:
                target.file.flush()

    def _writer(self, columns: Sequence[Column], target: Target | None) -> Writer:
        if target is not None and target.file is None:
            return Parquet(target.path, self._texts, columns)
        file = None if target is None else target.file
        mode = (target and target.form) or self._mode
        if mode == "box":
            console = self._console if file is None else Console(file=file, no_color=True, width=1_000_000)
            width = console.width if file is None and console.is_terminal else None
            return Boxed(console, self._texts, columns, most=self._most, width=width)
        return FORMS[mode]((self._console.file if file is None else file).write, self._texts, columns)

    def _table(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table of the shell's own."""
        columns = [Column(name, "") for name in names]
        values = list(zip(*rows, strict=True)) or [()] * len(names)
        batches = [pa.record_batch([pa.array(list(column), pa.string()) for column in values], list(names))]
        self._write(columns, lambda: batches.pop() if batches else None)

    # --- Commands ---------------------------------------------------------------------------------------------------

    def _command(self, line: str) -> None:
        if line.startswith("\\"):
            raise SDCError("commands begin with a point here, not with a backslash (.help lists them)")
        name, _, argument = line[1:].partition(" ")
        name, argument = name.rstrip(";").lower(), argument.strip().rstrip(";").strip()
        if name not in COMMANDS:
            raise SDCError(str(unknown("command", name, COMMANDS)).replace("'", "'.", 1) + " (.help lists them)")
        if argument and not COMMANDS[name].argument:
            raise SDCError(f".{name} takes nothing")
        if not argument and COMMANDS[name].argument and not COMMANDS[name].argument.startswith("["):
            raise SDCError(f".{name} needs something: .{name} {COMMANDS[name].argument}")
        self._commands[name](self, argument)

    def _help(self, _: str) -> None:
        for name, command in COMMANDS.items():
            self._say(f"{f'.{name} {command.argument}'.rstrip():<38} {command.about}")
        self._say("Statements end with ; and may have several lines. Ctrl-C stops a question, Ctrl-D leaves.")

    def _show_tables(self, _: str) -> None:
        self._table(("table", "columns", "about"), [
            (table.name, str(len(table.columns)), table.about) for table in self.tables
        ])  # fmt: skip

    def _show_columns(self, name: str) -> None:
        wanted = folded(name.strip('"')).removeprefix("main.").removeprefix("public.")
        for table in self.tables:
            if folded(table.name) == wanted:
                self._table(("column", "type", "use"), table.columns)
                return
        raise unknown("table", name, [table.name for table in self.tables])

    def _query(self, argument: str) -> str:
        query = argument or explained(self._last) or self._last
        if not query:
            raise SDCError("nothing was asked yet: write the query after the command")
        return query

    def _explain(self, argument: str) -> None:
        query = self._query(argument)
        found = self.source.explain(query)
        if not found.answered:
            self._complain(found.notes[0])
            return
        for note in found.notes or ("answered as it is",):
            self._say(note)
        if found.columns:
            worth = [one.words for one in found.worth] or [""] * len(found.columns)
            told = [(origin.name, _told(origin), noise) for origin, noise in zip(found.columns, worth, strict=True)]
            self._table(("column", "made of", "noise"), told)

    def _rewrite(self, argument: str) -> None:
        self._say(self.source.rewrite(self._query(argument)))

    def _set_mode(self, mode: str) -> None:
        if not mode:
            self._say(self._mode)
        elif mode.lower() in MODES:
            self._mode = mode.lower()
        elif mode.lower() == "parquet":
            raise SDCError("Parquet goes into a file: .once FILE.parquet")
        else:
            raise unknown("mode", mode, MODES)

    def _set_most(self, rows: str) -> None:
        if not rows:
            self._say(str(self._most))
        elif rows.isdecimal() and len(rows) < 10:
            self._most = int(rows)
        else:
            raise SDCError(".maxrows takes a number of rows, or 0 for all")

    def _set_timer(self, switch: str) -> None:
        if switch.lower() not in ("on", "off", ""):
            raise SDCError(".timer takes on or off")
        self._timer = switch.lower() != "off"

    def _set_output(self, name: str) -> None:
        if _form(name) == "parquet":
            raise SDCError(f"a Parquet file has one result only: .once {name}")
        target = None if name in ("", "stdout") else _opened(name)
        if self._output is not None:
            self._output.close()
        self._output = target

    def _set_once(self, name: str) -> None:
        if self._once is not None:
            self._once.close()
        self._once = _opened(name)

    def _read(self, name: str) -> None:
        if self._depth >= _DEEPEST:
            raise SDCError(f"'{name}' is read by a file that is read by a file, and so on: that is too deep")
        try:
            text = _path(name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise SDCError(f"'{name}' is not a text in UTF-8") from None
        self._depth += 1
        try:
            self.run(text)
        finally:
            self._depth -= 1

    def _leave(self, _: str) -> None:
        raise Left

    _commands: ClassVar[dict[str, Callable[[Shell, str], None]]] = {
        "tables": _show_tables, "columns": _show_columns, "describe": _show_columns, "explain": _explain,
        "rewrite": _rewrite, "mode": _set_mode, "maxrows": _set_most, "output": _set_output, "once": _set_once,
        "read": _read, "timer": _set_timer, "help": _help, "quit": _leave, "exit": _leave,
    }  # fmt: skip


def _columns(columns: Sequence[tuple[str, str]], about: Explained) -> list[Column]:
    """The columns of an answer, with what they are made of and worth where that is known of each."""
    if len(about.columns) != len(columns):
        return [Column(name, kind) for name, kind in columns]
    worth = about.worth or [None] * len(columns)
    known = zip(columns, about.columns, worth, strict=True)
    return [Column(name, kind, origin, one) for (name, kind), origin, one in known]


def _beginning(statement: str) -> str:
    """The first words of a statement.

    >>> _beginning("SELECT region,\\n  count(*) AS n, sum(income) AS income FROM people GROUP BY region")
    'SELECT region, count(*) AS n, sum(income) AS ..'
    """
    words = " ".join(statement.split())
    return words if len(words) <= _LONGEST_BEGINNING else f"{words[:_LONGEST_BEGINNING].rpartition(' ')[0]} .."


def _told(origin: Origin) -> str:
    if origin.protected:
        behind = ", ".join(f"{method} of {table}" for table, method in sorted(origin.protected))
        return f"{origin.kind}: {behind}" + (", calculated with" if origin.computed else "")
    if origin.grouped:
        return f"group: values of {', '.join(sorted(origin.grouped))}"
    return "public"


def _path(name: str) -> Path:
    quoted = len(name) > 1 and name[0] == name[-1] and name[0] in "'\""
    return Path(name[1:-1] if quoted else name).expanduser()


def _form(name: str) -> str | None:
    return ENDINGS.get(_path(name).suffix.lower())


def _opened(name: str) -> Target:
    form, file = _form(name), _path(name).open("w", encoding="utf-8", newline="\n")
    if form == "parquet":
        file.close()
    return Target(_path(name), form, None if file.closed else file)
