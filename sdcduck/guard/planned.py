"""Plans through the guard: an analyst opens one, reveals its steps, and gets the answers of the questions in them.

    FROM sdc_plan_open('income', t0 := '7cc2..', signatures := ['bbbd..'], public_keys := ['03a1..'])
    FROM sdc_plan_reveal('income', 'edb3..', $$SELECT region, count(*) FROM people GROUP BY region$$)
    FROM sdc_plan_log('income')

are statements of their own. A step is revealed before its question is looked at, so that nobody decodes one without
having it judged; the question is then any question. Where it is refused, the plan ends. What describes a question (its
columns, EXPLAIN) opens nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sdcduck.catalog.plan_file import Asker, PlanError, PlanFile, Sealed, Step, shown
from sdcduck.catalog.plan_rules import PlanRules
from sdcduck.errors import SDCError
from sdcduck.guard.laws import explained
from sdcduck.guard.listings import rows_of
from sdcduck.guard.passes.words import words_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.running import Parameters
from sdcduck.methods.sequence.plans import LENGTH, Binding
from sdcduck.quoting import folded
from sdcduck.udfs.plan_arguments import octets, read_binding

_CALL = re.compile(r"[\s;]*(?:FROM|SELECT\s+\*\s+FROM)\s+(sdc_plan_open|sdc_plan_reveal|sdc_plan_log)\b", re.IGNORECASE)
_ARGUMENTS = {
    "sdc_plan_open": ("plan", "t0", "signatures", "public_keys", "binding"),
    "sdc_plan_reveal": ("plan", "trace", "statement"),
    "sdc_plan_log": ("plan",),
}
_FORMS = {
    "sdc_plan_open": "FROM sdc_plan_open('plan', t0 := 'hex', signatures := ['hex'], public_keys := ['hex'])",
    "sdc_plan_reveal": "FROM sdc_plan_reveal('plan', 'trace in hex', 'question')",
    "sdc_plan_log": "FROM sdc_plan_log('plan')",
}
_TEXTS = (TokenType.STRING, TokenType.HEREDOC_STRING)
_OPENED = {"plan": "VARCHAR", "state": "VARCHAR", "step": "INTEGER"}
_LOG = {
    "time": "TIMESTAMP", "step": "INTEGER", "state": "VARCHAR", "rule": "VARCHAR", "trace_sha256": "VARCHAR",
    "statement_sha256": "VARCHAR",
}  # fmt: skip
MOST_LINES = 200
"""Of a plan that an analyst is shown, the newest."""
_MAY_BE_ASKED_AGAIN = frozenset(
    ["SDC072", "SDC073", "SDC076", "SDC080", "SDC082", "SDC091", "SDC092", "SDC094", "SDC095"]
)
"""Refusals that are not about the question: no time, no memory, no disk, no more today, nothing left to spend."""

Value = str | int | None | list["Value"] | dict[str, "Value"]


@dataclass(frozen=True)
class Call:
    """A statement about a plan.

    Attributes:
        function: which of the three.
        given: its arguments by name.
    """

    function: str
    given: dict[str, Value]

    def text(self, name: str) -> str:
        """An argument that is a text.

        Raises:
            Refused: it is none.
        """
        value = self.given.get(name)
        if not isinstance(value, str):
            _refuse(self.function)
        return value


def _refuse(function: str) -> NoReturn:
    raise Refused("SDC021", f"write {_FORMS[function]}")


def about_plan(text: str) -> bool:
    """Whether a text is a statement about a plan, or meant to be: then it is asked to the letter.

    >>> about_plan("select * from sdc_plan_log('income')"), about_plan("SELECT 1")
    (True, False)
    """
    return _CALL.match(text) is not None


def call_of(query: str) -> Call | None:
    """The statement about a plan that a text is; None: it is none.

    >>> call_of("FROM sdc_plan_log('income')")
    Call(function='sdc_plan_log', given={'plan': 'income'})
    >>> call_of("SELECT 'FROM sdc_plan_log()'") is None
    True

    Raises:
        Refused: it begins as one, and is more, or less.
    """
    found = _CALL.match(query)
    if found is None:
        return None
    function = folded(found[1])
    try:
        words = [word for word in words_of(query) if word.token_type != TokenType.SEMICOLON]
    except SqlglotError:
        _refuse(function)
    begins = next(place for place, word in enumerate(words) if folded(word.text) == function)
    reader = _Values(words[begins + 1 :], function)
    return Call(function, reader.arguments())


class _Values:
    """Reads constants: texts, whole numbers, NULL, lists and structs of these."""

    def __init__(self, words: Sequence[Token], function: str) -> None:
        self._words, self._place, self._function = words, 0, function

    def arguments(self) -> dict[str, Value]:
        """What stands in brackets, up to the end of the text."""
        names, given = _ARGUMENTS[self._function], dict[str, Value]()
        self._take(TokenType.L_PAREN)
        while not self._is(TokenType.R_PAREN):
            name = names[min(len(given), len(names) - 1)]
            if self._is(TokenType.COLON_EQ, 1):
                name = folded(self._words[self._place].text)
                self._place += 2
            if name not in names or name in given:
                _refuse(self._function)
            given[name] = self._value()
            self._comma(TokenType.R_PAREN)
        self._place += 1
        if self._place != len(self._words):
            _refuse(self._function)
        return given

    def _value(self) -> Value:
        word = self._next()
        if word.token_type in _TEXTS:
            return word.text
        if word.token_type == TokenType.NULL:
            return None
        if word.token_type == TokenType.NUMBER and word.text.isdecimal():
            return int(word.text)
        if word.token_type == TokenType.L_BRACKET:
            values: list[Value] = []
            while not self._is(TokenType.R_BRACKET):
                values.append(self._value())
                self._comma(TokenType.R_BRACKET)
            self._place += 1
            return values
        if word.token_type == TokenType.L_BRACE:
            fields: dict[str, Value] = {}
            while not self._is(TokenType.R_BRACE):
                name = self._next().text
                self._take(TokenType.COLON)
                fields[name] = self._value()
                self._comma(TokenType.R_BRACE)
            self._place += 1
            return fields
        _refuse(self._function)

    def _next(self) -> Token:
        if self._place >= len(self._words):
            _refuse(self._function)
        self._place += 1
        return self._words[self._place - 1]

    def _is(self, kind: TokenType, ahead: int = 0) -> bool:
        place = self._place + ahead
        return place < len(self._words) and self._words[place].token_type == kind

    def _take(self, kind: TokenType) -> None:
        if self._next().token_type != kind:
            _refuse(self._function)

    def _comma(self, end: TokenType) -> None:
        if not self._is(end):
            self._take(TokenType.COMMA)


class Planned:
    """A question as it is asked: of a step that was revealed, or as it stands.

    Attributes:
        question: what the guard judges.
    """

    def __init__(self, question: str, plans: Plans | None = None, step: Step | None = None) -> None:
        self.question, self._plans, self._step = question, plans, step

    def answered(self) -> None:
        """Write down that the answer leaves, before it does.

        Raises:
            Refused: that cannot be; then it stays.
        """
        self._finish("")

    def refused(self, code: str) -> None:
        """Write down why there is no answer; the plan is at its end, unless that was not about the question.

        Raises:
            Refused: that cannot be; then the step stays revealed.
        """
        if code not in _MAY_BE_ASKED_AGAIN:
            self._finish(code)

    def _finish(self, code: str) -> None:
        step, plans = self._step, self._plans
        if step is not None and plans is not None:
            self._step = None
            with plans.file() as file:
                file.finish(step, code)


class Plans:
    """The plans of whoever asks a guard.

    Args:
        path: the file of plans; None: the database is in memory, and there is none.
        role: whose policies hold.
        only: whether nothing is answered about records but steps of plans.
        rules: which plans the custodian takes.
    """

    def __init__(self, path: Path | None, *, role: str, only: bool, rules: Callable[[], PlanRules]) -> None:
        self._file = None if path is None else PlanFile(path)
        self._role, self.only, self._rules = role, only, rules

    @contextmanager
    def file(self) -> Iterator[PlanFile]:
        """The file of plans, whose errors become refusals."""
        if self._file is None:
            raise Refused("SDC075", "plans are kept beside a database file, and this database is in memory")
        try:
            yield self._file
        except PlanError as problem:
            raise Refused("SDC075", str(problem)) from None
        except (OSError, SDCError) as problem:
            if isinstance(problem, Refused):
                raise
            raise Refused("SDC076") from None

    def begun(self, query: str, user: str, parameters: Parameters) -> Planned:
        """What is judged in the place of a text, after a step was revealed or a plan opened, if it does that.

        Raises:
            Refused: it does not open.
        """
        call = call_of(query)
        if call is None:
            return Planned(query)
        if parameters:
            raise Refused("SDC021", "a plan beside parameters: write the values")
        asker = Asker(user, self._role)
        if call.function == "sdc_plan_reveal":
            name, trace, statement = call.text("plan"), _bytes_of(call.text("trace")), call.text("statement")
            if call_of(explained(statement) or statement) is not None:
                raise Refused("SDC021", "a step that reveals another one")
            with self.file() as file:
                return Planned(statement, self, file.reveal(asker, name, trace, statement))
        if call.function == "sdc_plan_open":
            sealed, rules = _sealed(call), self._rules()
            with self.file() as file:
                rules.check(sealed)
                file.open(asker, call.text("plan"), sealed)
        return Planned(self.described(call, user))

    def described(self, call: Call, user: str) -> str:
        """The question that has the columns of such a statement, without opening anything."""
        if call.function == "sdc_plan_reveal":
            return call.text("statement")
        if call.function == "sdc_plan_open":
            return rows_of(_OPENED, [(call.text("plan"), "awaiting", 1)]).relation
        with self.file() as file:
            lines = file.lines(Asker(user, self._role))
        name = call.text("plan")
        rows = [shown(line) for line in lines if line["plan"] == name]
        return rows_of(_LOG, rows[-MOST_LINES:], order=["place"]).ordered

    def check(self, planned: Planned, query: str, rewritten: Rewritten) -> None:
        """Refuse a question about records that is no step, where only these are answered.

        Raises:
            Refused: it is none.
        """
        if self.only and planned.question == query and rewritten.policies and explained(query) is None:
            raise Refused("SDC077")


def _bytes_of(text: str) -> bytes:
    """What digits of hex stand for; what is none opens no step, as any wrong trace."""
    try:
        return octets(text.encode(), "trace", LENGTH)
    except (SDCError, UnicodeError):
        return b""


def _sealed(call: Call) -> Sealed:
    """A plan as it is handed over.

    Raises:
        Refused: an argument is not what it has to be.
    """
    lists = []
    for name in ("signatures", "public_keys"):
        given = call.given.get(name)
        values = given if isinstance(given, list) else [given]
        if not values or not all(isinstance(value, str) for value in values):
            _refuse(call.function)
        lists.append([str(value) for value in values])
    if len(lists[0]) != len(lists[1]):
        raise Refused("SDC075", "a signature goes with each public key")
    signatures = [(_hex(key), _hex(signature)) for signature, key in zip(*lists, strict=True)]
    return Sealed(_bytes_of(call.text("t0")), signatures, _binding(call))


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise Refused("SDC075", "a signature or key is not in digits of hex") from None


def _binding(call: Call) -> Binding | None:
    given = call.given.get("binding")
    if given is None:
        return None
    if not isinstance(given, dict) or not isinstance(given.get("steps"), int):
        raise Refused(
            "SDC075", "write binding := {'data': .., 'steps': 3}, with the number of steps and as it was sealed"
        )
    fields = {name: value for name, value in given.items() if name != "steps"}
    try:
        return read_binding(json.dumps(fields), int(str(given["steps"]))) or Binding(steps=int(str(given["steps"])))
    except SDCError as problem:
        raise Refused("SDC075", str(problem)) from None
