"""The plans that were opened, in a file beside the database: which step each is at, and what came of every step.

A plan (`sdcduck.methods.sequence.plans`) goes from step to step and nowhere else:

    opened -> step 1 -> step 2 .. -> done         and from anywhere -> aborted, which is the end

A step is *revealed* first, then its question is asked, then it is *answered* or the plan *aborted*; each is a line of a
file that all guards share (`ChainedFile`). What a plan is at follows from the lines alone, so that a process that dies
leaves nothing half done: a step that was revealed, and whose answer was never written down, may be revealed once more,
by the same trace and text. No line has a question's text.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sdcduck.catalog.audit_files import text_of_line
from sdcduck.catalog.chained_file import ChainedFile, Held, Line, Reached
from sdcduck.errors import SDCError
from sdcduck.methods.sequence import plans
from sdcduck.methods.sequence.plans import Binding

MOST_OPEN = 1000
"""Plans of a login that have not ended."""
MOST_BYTES = 256_000_000
"""Of the lines of a login."""
_LONGEST_NAME = 200
_AWAITING, _RUNNING, _DONE, _ABORTED = "awaiting", "revealed", "done", "aborted"

WHY = {
    "trace": "the trace opens no step of this plan: it was changed, or is that of another step",
    "text": "the text of the question is not the one that was sealed",
    "order": "a step was revealed before the one before it was answered",
    "steps": "it has another number of steps than was signed",
    "expired": "its time is over",
}
"""Why a plan is aborted, where it is not that its question was refused."""


class PlanError(SDCError):
    """A plan that does not go on."""


@dataclass(frozen=True)
class Asker:
    """Whose a plan is: nobody else sees it."""

    login: str
    role: str


@dataclass(frozen=True)
class Sealed:
    """A plan as it is handed over.

    Attributes:
        head: T_0.
        signatures: public keys and signatures.
        binding: what it is for, if that is signed, too.
    """

    head: bytes
    signatures: Sequence[tuple[bytes, bytes]]
    binding: Binding | None = None


@dataclass(frozen=True)
class Plan:
    """What is known of a plan.

    Attributes:
        state: awaiting, revealed, done or aborted.
        step: that is awaited or was revealed last.
        trace: the last one that was told.
        text: SHA-256 of the question that was revealed last.
        last: whether that is the end of it.
        run: which of several times that this step was revealed.
        steps: that it has, where they are signed.
        expires: seconds since 1970; None: never.
        why: it was aborted.
    """

    name: str
    state: str
    step: int
    trace: bytes
    text: str = ""
    last: bool = False
    run: str = ""
    steps: int | None = None
    expires: int | None = None
    why: str = ""

    @property
    def ended(self) -> bool:
        """Whether no step is opened any more."""
        return self.state in (_DONE, _ABORTED)


@dataclass(frozen=True)
class Step:
    """A step that was revealed, and whose question may be asked."""

    asker: Asker
    plan: str
    step: int
    last: bool
    run: str


def plan_file_beside(database: Path) -> Path:
    """Where the plans of a database are."""
    return database.with_name(database.name + ".plans")


@dataclass
class _Read:
    """What the lines say up to a place."""

    reached: Reached | None = None
    plans: dict[tuple[Asker, str], Plan] = field(default_factory=dict)
    heads: set[tuple[str, bytes]] = field(default_factory=set)
    bytes: Counter[str] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)

    def line(self, line: Line) -> None:
        """One more line."""
        asker, name = Asker(line["login"], line["role"]), line["plan"]
        plan, now = self.plans.get((asker, name)), line["state"]
        if plan is None:
            plan = Plan(name, now, 1, bytes.fromhex(line["trace"]), steps=line["steps"], expires=line["expires"])
            self.heads.add((asker.login, plan.trace))
            self.running[asker.login] += 1
        elif now == _RUNNING:
            trace = bytes.fromhex(line["trace"])
            plan = replace(plan, state=now, trace=trace, text=line["text"], last=line["last"], run=line["run"])
        elif now == _AWAITING:
            plan = replace(plan, state=now, step=plan.step + 1)
        else:
            plan = replace(plan, state=now, why=line["rule"])
            self.running[asker.login] -= 1
        self.plans[asker, name] = plan
        self.bytes[asker.login] += len(text_of_line(line))


class PlanFile(ChainedFile):
    """The file of plans; any number of processes may have it, and threads use one.

    Args:
        path: of the file; it is made when the first plan is opened.
        clock: tells the time.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], datetime] | None = None) -> None:
        super().__init__(Path(path), "the file of plans", clock=clock)
        self._read = _Read()

    def open(self, asker: Asker, name: str, sealed: Sealed) -> Plan:
        """Open a plan that is signed as it has to be.

        Raises:
            PlanError: it is not opened.
            OSError: that could not be written.
        """
        if not name.strip() or len(name) > _LONGEST_NAME:
            raise PlanError(f"a plan has a name of 1 to {_LONGEST_NAME} characters")
        if len(sealed.head) != plans.LENGTH:
            raise PlanError(f"the trace of step 0 has {plans.LENGTH} bytes")
        signed = plans.message(sealed.head, sealed.binding)
        if not sealed.signatures or not all(plans.is_signed(key, by, signed) for key, by in sealed.signatures):
            raise PlanError("a signature is not that of its key on this plan and what it is for")
        bound = sealed.binding
        with self._read_to_its_end(make=True) as held:
            if bound is not None and bound.expires is not None and held.time().timestamp() >= bound.expires:
                raise PlanError(WHY["expired"])
            if (asker, name) in self._read.plans:
                raise PlanError(f"there is a plan '{name}' already; a plan is opened once")
            if (asker.login, sealed.head) in self._read.heads:
                raise PlanError("this plan was opened before, under another name or role; a plan is opened once")
            if self._read.running[asker.login] >= MOST_OPEN:
                raise PlanError(f"at most {MOST_OPEN} plans of a login are open at a time")
            self._refuse_full(asker)
            self._write(
                held, asker, name, _AWAITING, 0, trace=sealed.head.hex(),
                keys=[key.hex() for key, _ in sealed.signatures], steps=None if bound is None else bound.steps,
                expires=None if bound is None else bound.expires,
            )  # fmt: skip
            return self._read.plans[asker, name]

    def reveal(self, asker: Asker, name: str, trace: bytes, statement: str) -> Step:
        """Open the next step, whose question may be asked then.

        Raises:
            PlanError: it does not open, and the plan is aborted; or there is no such plan, or it has ended.
            OSError: that could not be written.
        """
        with self._read_to_its_end() as held:
            plan = self._plan(asker, name)
            if plan.ended:
                raise PlanError(f"the plan '{name}' has ended: {_ending(plan)}")
            self._refuse_full(asker)
            text = plans.hash_of_text(statement).hex()
            rule, last = _judged(plan, trace, text, held.time())
            told = {"trace": trace.hex() if len(trace) == plans.LENGTH else "", "text": text}
            if rule:
                self._write(held, asker, name, _ABORTED, plan.step, rule=rule, **told)
                raise PlanError(f"the plan '{name}' is aborted at step {plan.step}: {WHY[rule]}")
            run = secrets.token_hex(8)
            self._write(held, asker, name, _RUNNING, plan.step, last=last, run=run, **told)
            return Step(asker, name, plan.step, last, run)

    def finish(self, step: Step, refused: str = "") -> None:
        """Write down what came of the question of a step, before its answer leaves.

        Args:
            refused: the code of the refusal, which ends the plan; empty: it is answered.

        Raises:
            PlanError: the step was revealed once more since, or the plan aborted, and this answer is nobody's.
            OSError: that could not be written.
        """
        with self._read_to_its_end() as held:
            plan = self._plan(step.asker, step.plan)
            if plan.state != _RUNNING or plan.run != step.run:
                raise PlanError(f"step {step.step} of the plan '{step.plan}' was revealed once more, or it was aborted")
            state = _ABORTED if refused else _DONE if step.last else _AWAITING
            self._write(held, step.asker, step.plan, state, step.step, rule=refused, text=plan.text)

    def plan(self, asker: Asker, name: str) -> Plan:
        """What is known of a plan.

        Raises:
            PlanError: there is none of that name.
        """
        with self._read_to_its_end():
            return self._plan(asker, name)

    def lines(self, asker: Asker | None = None) -> list[Line]:
        """What happened to the plans of somebody, or of all, in its order.

        Raises:
            ChainBroken: the file was changed.
        """
        return [line for line in super().lines() if asker is None or Asker(line["login"], line["role"]) == asker]

    def _plan(self, asker: Asker, name: str) -> Plan:
        plan = self._read.plans.get((asker, name))
        if plan is None:
            raise PlanError(f"there is no plan '{name}' of yours")
        return plan

    def _refuse_full(self, asker: Asker) -> None:
        if self._read.bytes[asker.login] > MOST_BYTES:
            raise PlanError("more than that of plans is not kept of a login")

    @contextlib.contextmanager
    def _read_to_its_end(self, *, make: bool = False) -> Iterator[Held]:
        """The file, which nobody else writes now."""
        with contextlib.ExitStack() as opened:
            try:
                held = opened.enter_context(self.held(make=make))
            except FileNotFoundError:
                if self._read.reached is not None:
                    self.refuse_gone()
                raise PlanError("no plan was opened here") from None
            self._read_on(held)
            yield held

    def _read_on(self, held: Held) -> None:
        reached, lines = held.lines(self._read.reached)
        try:
            for line in lines:
                self._read.line(line)
        except (KeyError, ValueError, TypeError):
            self._read = _Read()
            self.refuse_changed()
        self._read.reached = reached

    def _write(self, held: Held, asker: Asker, plan: str, state: str, step: int, **more: Any) -> None:
        """Append a line, on disk before it returns; or leave all as it was."""
        held.append(login=asker.login, role=asker.role, plan=plan, state=state, step=step, **more)
        self._read_on(held)


def _judged(plan: Plan, trace: bytes, text: str, now: datetime) -> tuple[str, bool]:
    """Why a step does not open, if so, and whether it is the last one."""
    if plan.expires is not None and now.timestamp() >= plan.expires:
        return "expired", False
    if len(trace) != plans.LENGTH:
        return "trace", False
    if plan.state == _RUNNING:
        again = trace == plan.trace
        return ("order" if not again else "" if text == plan.text else "text"), plan.last
    found = plans.opened(plan.trace, trace)
    if not plans.is_block(found, plan.step):
        return "trace", False
    if plans.hash_in(found).hex() != text:
        return "text", False
    last = plans.is_last(found, trace)
    if plan.steps is not None and last != (plan.step == plan.steps):
        return "steps", last
    return "", last


def _ending(plan: Plan) -> str:
    if plan.state == _DONE:
        return "all of its steps were answered"
    return f"it was aborted at step {plan.step}, {WHY.get(plan.why, f'since its question was refused ({plan.why})')}"


def shown(line: Mapping[str, Any]) -> tuple[str, int, str, str | None, str | None, str | None]:
    """What everybody is shown of a line: time, step, state, rule, and SHA-256 of the trace and of the question."""
    trace, text = line.get("trace"), line.get("text")
    hashed = hashlib.sha256(bytes.fromhex(trace)).hexdigest() if trace else None
    time = str(line["time"]).removesuffix("+00:00")
    return time, line["step"], line["state"], line.get("rule") or None, hashed, text or None
