"""What a client may send, told apart: statements of the session, which are answered here, and questions.

Everything that is not recognised is a question; the guard or the system catalog says whether it has an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sdcduck.gateway.postgres.dialect import semicolons
from sdcduck.quoting import folded


class Unsupported(Exception):
    """A statement that the gateway does not answer.

    Attributes:
        code: SQLSTATE.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True)
class Empty:
    """No statement at all."""


@dataclass(frozen=True)
class Ask:
    """A question."""

    sql: str


@dataclass(frozen=True)
class Explain:
    """What would be done with a question: as notes, or as one JSON document."""

    sql: str
    json: bool = False


@dataclass(frozen=True)
class Transaction:
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE or ROLLBACK TO."""

    verb: str
    chain: bool = False


@dataclass(frozen=True)
class Set:
    """A setting; no value: back to what it was."""

    name: str
    value: str | None


@dataclass(frozen=True)
class Show:
    """The value of a setting, or of all."""

    name: str


@dataclass(frozen=True)
class Declare:
    """A cursor over a question."""

    name: str
    sql: str
    hold: bool
    binary: bool


@dataclass(frozen=True)
class Fetch:
    """Rows of a cursor; None: all that are left."""

    name: str
    rows: int | None
    move: bool


@dataclass(frozen=True)
class CloseCursor:
    """Forget a cursor, or all."""

    name: str | None


@dataclass(frozen=True)
class Deallocate:
    """Forget a prepared statement, or all."""

    name: str | None


@dataclass(frozen=True)
class Copy:
    """COPY (question) TO STDOUT."""

    sql: str
    form: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class Nothing:
    """A statement without effect here, with the tag of its answer."""

    tag: str
    discard: bool = False


Statement = (
    Empty | Ask | Explain | Transaction | Set | Show | Declare | Fetch | CloseCursor | Deallocate | Copy | Nothing
)

_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/|;)*([A-Za-z]+|\(|$)")
_LONGEST = 100_000
_MUCH_SPACE = re.compile(r"\s{200}")  # on which the patterns here would take long
_NAME = r'("(?:[^"]|"")+"|[A-Za-z_][\w$]*)'


def split(text: str) -> list[str]:
    """The statements of a text, as it has them between semicolons.

    >>> split("SELECT ';'; -- done;\\nCOMMIT;")
    ["SELECT ';'", ' -- done;\\nCOMMIT']
    """
    if ";" not in text.rstrip().rstrip(";") or len(text) > _LONGEST:
        return [text.rstrip().rstrip(";")]
    ends = semicolons(text)
    if ends is None:
        return [text]  # the guard says what is wrong with it
    starts = [0, *(end + 1 for end in ends)]
    parts = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [part for part in parts if (found := _FIRST_WORD.match(part)) is None or found[1]] or [""]


def read(text: str) -> Statement:
    """The statement that a text is.

    Raises:
        Unsupported: it is of a kind that is known, and not answered.
    """
    found = _FIRST_WORD.match(text) if len(text) <= _LONGEST else None
    if found is None:
        return Ask(text)
    word = found[1].upper()
    if not word:
        return Empty()
    reader = _READERS.get(word)
    if reader is not None and _MUCH_SPACE.search(text):
        raise Unsupported("54001", "a statement with too much white space")
    return reader(text[found.start(1) :].strip().rstrip(";").strip()) if reader is not None else Ask(text)


def attempted(text: str) -> Statement | Unsupported:
    """The statement that a text is, or why it is none that is answered."""
    try:
        return read(text)
    except Unsupported as problem:
        return problem


def question_of(statement: Statement) -> str | None:
    """What a statement asks of the guard, if it does."""
    if isinstance(statement, Ask | Explain | Declare | Copy):
        return statement.sql
    return None


def name_of(written: str) -> str:
    """A name as SQL means it: in lower case unless quoted."""
    return written[1:-1].replace('""', '"') if written.startswith('"') else folded(written)


def _match(pattern: str, text: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text, re.I | re.S)
    if found is None:
        raise Unsupported("42601", f"syntax error in {text.split()[0][:20].upper()}")
    return found


def _begin(text: str) -> Statement:
    _match(r"(begin|start)\b[\w\s,]*", text)
    return Transaction("START TRANSACTION" if text[:1] in "sS" else "BEGIN")


def _commit(text: str) -> Statement:
    found = _match(r"(commit|end)(?:\s+(?:work|transaction))?(\s+and\s+(?:no\s+)?chain)?", text)
    return Transaction("COMMIT", bool(found[2]) and "no" not in found[2].lower().split())


def _rollback(text: str) -> Statement:
    if re.fullmatch(rf"rollback(?:\s+(?:work|transaction))?\s+to(?:\s+savepoint)?\s+{_NAME}", text, re.I):
        return Transaction("ROLLBACK TO")
    found = _match(r"(rollback|abort)(?:\s+(?:work|transaction))?(\s+and\s+(?:no\s+)?chain)?", text)
    return Transaction("ROLLBACK", bool(found[2]) and "no" not in found[2].lower().split())


def _savepoint(text: str) -> Statement:
    _match(rf"savepoint\s+{_NAME}", text)
    return Transaction("SAVEPOINT")


def _release(text: str) -> Statement:
    _match(rf"release(?:\s+savepoint)?\s+{_NAME}", text)
    return Transaction("RELEASE")


# Of each text there is one way to be a list of values, so that no text takes long to be none.
_ITEM = r"(?:'(?:[^']|'')*'|[^\s;',]+)"
_VALUE = rf"({_ITEM}(?:\s*,\s*{_ITEM})*)"
_SET = r"set\s+(?:session\s+(?!authorization)|local\s+)?"


def _set(text: str) -> Statement:
    if re.match(r"set\s+(session\s+characteristics\s+as\s+|local\s+|session\s+)?transaction\b", text, re.I):
        return Nothing("SET")
    if found := re.fullmatch(rf"{_SET}time\s+zone\s+interval\s+'([^']*)'(?:\s+hour\s+to\s+minute)?", text, re.I | re.S):
        return Set("timezone", found[1])
    if re.fullmatch(rf"{_SET}role\s+('none'|none)", text, re.I | re.S):
        return Set("role", "none")
    if re.fullmatch(rf"{_SET}session\s+authorization\s+default", text, re.I | re.S):
        return Nothing("SET")
    if found := re.fullmatch(rf"{_SET}time\s+zone\s+{_VALUE}", text, re.I | re.S):
        return Set("timezone", _plain(found[1]))
    if found := re.fullmatch(rf"{_SET}names\s+{_VALUE}", text, re.I | re.S):
        return Set("client_encoding", _plain(found[1]))
    found = _match(rf"{_SET}([\w.]+|\"[\w.]+\")\s*(?:=|\s+to\s+)\s*{_VALUE}", text)
    value = _plain(found[2])
    return Set(found[1].strip('"').lower(), None if found[2].lower() == "default" else value)


def _plain(value: str) -> str:
    """A value, or several with commas, without quotes.

    >>> _plain("'it''s'"), _plain("'public' ,x")
    ("it's", 'public, x')
    """
    items = re.findall(_ITEM, value)
    return ", ".join(item[1:-1].replace("''", "'") if item.startswith("'") else item for item in items)


def _reset(text: str) -> Statement:
    if re.fullmatch(r"reset\s+session\s+authorization", text, re.I):
        return Nothing("RESET")
    found = _match(r"reset\s+([\w.]+|time\s+zone)", text)
    name = "".join(found[1].lower().split())
    return Set(name, None)


_SHOWN_AS = {
    "time zone": "timezone",
    "transaction isolation level": "transaction_isolation",
    "session authorization": "session_authorization",
}


_ODD_NAME = re.compile(r'show\s+"(?=[^"]*[^\w."])(?:[^"]|"")+"', re.I)
"""The name of a table, and not of a setting."""


_LISTED = r"(all )?tables|tables from .*|databases|schemas|sdc_sequence|sdc_questions|sdc_budget"
"""What SHOW lists; anything else is a setting."""


def _show(text: str) -> Statement:
    words = " ".join(text.lower().split()).removeprefix("show ")
    if words in _SHOWN_AS:
        return Show(_SHOWN_AS[words])
    if re.fullmatch(_LISTED, words) or _ODD_NAME.fullmatch(text):
        return Ask(text)  # the guard lists what there is
    found = _match(r'show\s+"?([\w.]+)"?', text)
    return Show(found[1].lower())


def _declare(text: str) -> Statement:
    found = _match(
        rf"declare\s+{_NAME}((?:\s+(?:binary|insensitive|asensitive|no\s+scroll|scroll))*)\s+cursor"
        r"(\s+with\s+hold|\s+without\s+hold)?\s+for\s+(.*)",
        text,
    )
    hold = found[3] is not None and "without" not in found[3].lower()
    return Declare(name_of(found[1]), found[4], hold, "binary" in found[2].lower())


def _fetch(text: str) -> Statement:
    found = _match(
        r"(fetch|move)(?:\s+(next|all|forward\s+all|forward\s+\d{1,18}|forward|\d{1,18}"
        r"|prior|first|last|absolute\s+-?\d+|relative\s+-?\d+|backward\s+all|backward\s+\d+|backward|-\d+))?"
        rf"(?:\s+(?:from|in))?\s+{_NAME}",
        text,
    )
    how = (found[2] or "next").lower().split()
    if how[0] in ("prior", "first", "last", "absolute", "relative", "backward") or how[0].startswith("-"):
        raise Unsupported("55000", "cursor can only scan forward")
    rows = None if how[-1] == "all" else int(how[-1]) if how[-1].isdigit() else 1
    return Fetch(name_of(found[3]), rows, found[1].lower() == "move")


def _close(text: str) -> Statement:
    found = _match(rf"close\s+{_NAME}", text)
    return CloseCursor(None if found[1].lower() == "all" else name_of(found[1]))


def _deallocate(text: str) -> Statement:
    found = _match(rf"deallocate\s+(?:prepare\s+)?{_NAME}", text)
    return Deallocate(None if found[1].lower() == "all" else name_of(found[1]))


def _discard(text: str) -> Statement:
    found = _match(r"discard\s+(all|plans|sequences|temp|temporary)", text)
    return Nothing(f"DISCARD {found[1].upper()}", discard=found[1].lower() == "all")


def _explain(text: str) -> Statement:
    found = _match(r"explain\s+(\([^)]*\)\s*)?((?:analyze|verbose)\s+)*(.*)", text)
    return Explain(found[3], json=bool(re.search(r"\bformat\s+json\b", found[1] or "", re.I)))


def _copy(text: str) -> Statement:
    if re.search(r"\bfrom\s+(stdin|program\b|')", text, re.I) and not re.search(r"\bto\s+stdout\b", text, re.I):
        raise Unsupported("0A000", "COPY FROM is not supported: nothing can be written here")
    ends = list(re.finditer(r"\bto\s+stdout\b", text, re.I))
    if not ends:
        raise Unsupported("0A000", "only COPY (query) TO STDOUT is supported")
    source, options_text = text[len("copy") : ends[-1].start()].strip(), text[ends[-1].end() :]
    if source.startswith("(") and source.endswith(")"):
        query = source[1:-1]
    else:
        table = _match(rf"((?:{_NAME}\.)?{_NAME})\s*(\(.*\))?", source)
        query = f"SELECT {table[4][1:-1] if table[4] else '*'} FROM {table[1]}"
    options = _copy_options(options_text)
    form = options.pop("format", "text").lower()
    if form not in ("text", "csv", "binary"):
        raise Unsupported("22023", f'COPY format "{form}" not recognized')
    return Copy(query, form, options)


_COPY_OPTION = re.compile(
    r"\s*(\w+)\s*(?:(?:as\s+)?(E'[^']*'|'(?:[^']|'')*'|\"[^\"]*\"|[\w*]+|\([^)]*\)))?\s*(?:,|$)", re.I
)
_OLD_OPTION = re.compile(
    r"\s*(binary|csv|header|(?:delimiters?|null|quote|escape|encoding)\s+(?:as\s+)?E?'[^']*')", re.I
)
_COPY_OPTIONS = frozenset(["format", "header", "delimiter", "null", "quote", "escape", "encoding", "force_quote"])


def _copy_options(text: str) -> dict[str, str]:
    """Options in brackets, or as they were before."""
    text = re.sub(r"^with\b", "", text.strip(), flags=re.I).strip()
    options: dict[str, str] = {}
    if text.startswith("(") and text.endswith(")"):
        inside, place = text[1:-1].rstrip(), 0
        while place < len(inside):
            found = _COPY_OPTION.match(inside, place)
            if found is None:
                raise Unsupported("42601", "syntax error in the options of COPY")
            options[found[1].lower()] = _text(found[2] or "true")
            place = found.end()
    else:
        place = 0
        while place < len(text):
            found = _OLD_OPTION.match(text, place)
            if found is None:
                raise Unsupported("42601", "syntax error in the options of COPY")
            name, _, value = found[1].partition(" ")
            if name.lower() in ("binary", "csv"):
                options["format"] = name.lower()
            else:
                value = re.sub(r"^as\s+", "", value.strip(), flags=re.I)
                options[name.lower().replace("delimiters", "delimiter")] = _text(value or "true")
            place = found.end()
    if unknown := set(options) - _COPY_OPTIONS:
        raise Unsupported("42601", f'option "{sorted(unknown)[0]}" not recognized')
    return options


def _pragma(text: str) -> Statement:
    if not re.match(r"pragma\s+(table_info\s*\(|show_tables(_expanded)?\b)", text, re.I):
        raise Unsupported("25006", "cannot execute PRAGMA here: only questions are answered")
    return Ask(text)


def _text(value: str) -> str:
    if value[:2] in ("E'", "e'"):
        return value[2:-1].replace("\\t", "\t").replace("\\\\", "\\")
    return _plain(value) if value.startswith("'") else value.strip('"')


def _refused(what: str) -> Callable[[str], Statement]:
    def refuse(_: str) -> Statement:
        raise Unsupported("25006", f"cannot execute {what} here: only questions are answered")

    return refuse


_READERS: Mapping[str, Callable[[str], Any]] = {
    "BEGIN": _begin, "START": _begin, "COMMIT": _commit, "END": _commit, "ROLLBACK": _rollback, "ABORT": _rollback,
    "SAVEPOINT": _savepoint, "RELEASE": _release, "SET": _set, "RESET": _reset, "SHOW": _show, "DECLARE": _declare,
    "FETCH": _fetch, "MOVE": _fetch, "CLOSE": _close, "DEALLOCATE": _deallocate, "DISCARD": _discard,
    "EXPLAIN": _explain, "COPY": _copy, "PRAGMA": _pragma, "UNLISTEN": lambda text: Nothing("UNLISTEN"),
    **{word: _refused(word) for word in (
        "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "GRANT", "REVOKE", "ATTACH",
        "DETACH", "USE", "INSTALL", "LOAD", "CALL", "EXPORT", "IMPORT", "CHECKPOINT", "VACUUM", "ANALYZE",
        "LISTEN", "NOTIFY", "LOCK", "DO", "REINDEX", "CLUSTER", "COMMENT", "REFRESH", "PREPARE", "EXECUTE",
    )},
}  # fmt: skip
