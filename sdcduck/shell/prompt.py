"""The line that is typed on: history, completion, colours, and further lines until a statement is whole."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from pygments.lexers.sql import SqlLexer

from sdcduck.errors import SDCError
from sdcduck.shell.completion import completions
from sdcduck.shell.sources import Table
from sdcduck.shell.statements import is_complete

_SECRET = re.compile(r"passw|secret|sdc_create_user|\w+://[^\s/]*:[^\s/]*@", re.I)
_PROMPT, _FURTHER = "sdcduck> ", "     ..> "


def history_file() -> Path:
    """Where the history of this user is kept."""
    if os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "sdcduck" / "history"


class History(FileHistory):
    """What was typed, in a file that only the user reads; nothing that looks like a password."""

    def append_string(self, string: str) -> None:
        """Keep a statement, unless it may hold a secret."""
        if not _SECRET.search(string):
            super().append_string(string)


def _history() -> History | None:
    """The history; none where the folder cannot be written to."""
    file = history_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600))
    except OSError:
        return None
    return History(str(file))


class _Completer(Completer):
    def __init__(self, tables: Callable[[], Sequence[Table]]) -> None:
        self._tables = tables

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may stand at the cursor."""
        try:
            tables = self._tables()
        except SDCError:  # the gateway is gone; the next question will say so
            tables = []
        word, options = completions(document.text_before_cursor, document.text, tables)
        for text, about in options:
            yield Completion(text, start_position=-len(word), display_meta=about)


class Prompt:
    """Asks for statements.

    Args:
        tables: what can be asked about.
        colour: whether the terminal may be coloured.
    """

    def __init__(self, tables: Callable[[], Sequence[Table]], *, colour: bool) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=_Completer(tables),
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer) if colour else None,
            multiline=Condition(lambda: not is_complete(self._session.default_buffer.text)),
            prompt_continuation=lambda width, line, wrapped: _FURTHER,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
        )

    def statement(self) -> str:
        """What was typed.

        Raises:
            KeyboardInterrupt: Ctrl-C: forget what was typed.
            EOFError: Ctrl-D: leave.
        """
        return self._session.prompt(_PROMPT)
