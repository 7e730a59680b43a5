"""The commands of plans: ``sdcduck plan key``, ``seal``, ``certify``, ``reveal`` and ``sql``.

A plan is a file of its analyst, with all traces and questions in it. What leaves it, and when, is up to her: each
``reveal`` tells the next step, and no more.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sdcduck.cli.shell import source_of
from sdcduck.cli.terminal import one_line_errors
from sdcduck.errors import SDCError
from sdcduck.methods.sequence import plans
from sdcduck.methods.sequence.plans import KEY, LENGTH, SALT, SIGNATURE, Binding
from sdcduck.quoting import literal
from sdcduck.shell.shell import Shell
from sdcduck.shell.sources import Source
from sdcduck.shell.statements import command_of, split
from sdcduck.udfs.plan_arguments import octets, read_binding

plan = typer.Typer(
    help="Questions that are fixed before the first is answered, and told one by one.", no_args_is_help=True
)

_Plan = Annotated[Path, typer.Argument(help="The sealed plan, as `sdcduck plan seal` wrote it.", show_default=False)]
_Key = Annotated[
    Path, typer.Option(help="The file with the private key, as `sdcduck plan key` wrote it.", show_default=False)
]


@dataclass(frozen=True)
class _Sealed:
    """What a plan file holds."""

    name: str
    traces: tuple[bytes, ...]
    statements: tuple[str, ...]
    signatures: tuple[tuple[bytes, bytes], ...]
    binding: Mapping[str, str] | None

    @property
    def bound(self) -> Binding | None:
        """What is signed beside the first trace."""
        return read_binding(json.dumps(self.binding), len(self.statements))

    def signed_by(self, key: bytes) -> _Sealed:
        """The same with one more signature."""
        signature = plans.sign(key, plans.message(self.traces[0], self.bound))
        return replace(self, signatures=(*self.signatures, (plans.public_key(key), signature)))

    def opening(self) -> str:
        """The statement that opens it."""
        keys, by = ([part.hex() for part in parts] for parts in zip(*self.signatures, strict=True))
        listed: Callable[[list[str]], str] = lambda texts: f"[{', '.join(map(literal, texts))}]"  # noqa: E731
        bound = ""
        if self.binding is not None:
            fields = ", ".join(f"{literal(name)}: {literal(text)}" for name, text in self.binding.items())
            bound = f", binding := {{{fields}{', ' if fields else ''}'steps': {len(self.statements)}}}"
        return (
            f"FROM sdc_plan_open({literal(self.name)}, t0 := {literal(self.traces[0].hex())}, "
            f"signatures := {listed(by)}, public_keys := {listed(keys)}{bound})"
        )

    def revealing(self, step: int) -> str:
        """The statement that tells a step."""
        trace, statement = self.traces[step].hex(), self.statements[step - 1]
        return f"FROM sdc_plan_reveal({literal(self.name)}, {literal(trace)}, {literal(statement)})"

    def text(self) -> str:
        """As it is written."""
        return json.dumps(
            {
                "plan": self.name,
                "binding": self.binding,
                "signatures": [{"public_key": key.hex(), "signature": by.hex()} for key, by in self.signatures],
                "traces": [trace.hex() for trace in self.traces],
                "statements": self.statements,
            },
            indent=1,
        )


def _read(path: Path) -> _Sealed:
    """A plan file, whole.

    Raises:
        SDCError: it is none, or was changed.
    """
    try:
        given: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = _Sealed(
            str(given["plan"]),
            tuple(octets(trace.encode(), "traces", LENGTH) for trace in given["traces"]),
            tuple(given["statements"]),
            tuple(
                (octets(one["public_key"].encode(), "key", KEY), octets(one["signature"].encode(), "by", SIGNATURE))
                for one in given["signatures"]
            ),
            given["binding"],
        )
        signed = plans.message(found.traces[0], found.bound)
        whole = plans.first_broken(found.traces, found.statements) is None
        if whole and found.signatures and all(plans.is_signed(key, by, signed) for key, by in found.signatures):
            return found
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, SDCError):
        pass
    raise SDCError(f"'{path}' is no sealed plan, or was changed since")


def _key(path: Path) -> bytes:
    try:
        return octets(path.read_text(encoding="ascii").strip().encode(), "key", KEY)
    except (SDCError, UnicodeDecodeError):
        raise SDCError(f"'{path}' holds no private key: 64 digits of hex, as `sdcduck plan key` writes them") from None


def _write(path: Path, text: str, *, force: bool) -> None:
    """Write a file that nobody else reads, whole or not at all."""
    if path.exists() and not force:
        raise SDCError(f"there is a file '{path}' already")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(made, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(made)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@plan.command()
def key(
    file: Annotated[Path, typer.Argument(help="Where the private key is written.", show_default=False)],
) -> None:
    """Make an Ed25519 key; its public half, which others know you by, is shown."""
    with one_line_errors():
        private = secrets.token_bytes(KEY)
        _write(file, private.hex(), force=False)
        typer.echo(plans.public_key(private).hex())


@plan.command()
def seal(
    file: Annotated[Path, typer.Argument(help="SELECT statements with semicolons between them.", show_default=False)],
    key: _Key,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The plan that is written.", show_default="FILE.plan")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the plan is called.", show_default="as FILE")] = None,
    data: Annotated[str | None, typer.Option(help="The data set that it is for.", show_default="any")] = None,
    release: Annotated[str | None, typer.Option(help="The release of these data.", show_default="any")] = None,
    policy: Annotated[str | None, typer.Option(help="The policy that it is asked under.", show_default="any")] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends, as 2026-12-31.", show_default="never")] = None,
) -> None:
    """Fix a list of questions before the first is answered.

    The plan is yours alone: who has it knows all of its questions. With --data, --release, --policy or --expires that
    is signed, too, with the number of questions, and the plan is opened as nothing else.
    """
    with one_line_errors():
        private = _key(key)
        texts = tuple(split(file.read_text(encoding="utf-8")))
        if not texts:
            raise SDCError(f"there is no statement in '{file}'")
        for text in texts:
            if command_of(text) is not None:
                raise SDCError(f"'{text[:40]}' is no question")
        given = {"data": data, "release": release, "policy": policy, "expires": expires}
        bound = {field: value for field, value in given.items() if value is not None}
        blocks = [plans.block(text, step, secrets.token_bytes(SALT)) for step, text in enumerate(texts, 1)]
        made = _Sealed(name or file.stem, tuple(plans.traces(blocks)), texts, (), bound or None).signed_by(private)
        written = output or file.with_name(f"{file.stem}.plan")
        _write(written, made.text(), force=False)
        typer.echo(f"wrote {written}: {len(texts)} questions, sealed by {plans.public_key(private).hex()}")


@plan.command()
def certify(file: _Plan, key: _Key) -> None:
    """Add a signature to a whole plan, as an authority that has read its questions."""
    with one_line_errors():
        private, found = _key(key), _read(file)
        public = plans.public_key(private)
        if public in (known for known, _ in found.signatures):
            raise SDCError("the plan has a signature of this key already")
        _write(file, found.signed_by(private).text(), force=True)
        typer.echo(f"{len(found.statements)} questions, certified by {public.hex()}")


@plan.command()
def reveal(
    file: _Plan,
    register: Annotated[Path | None, typer.Argument(help="A DuckDB file with policies.", show_default=False)] = None,
    who: Annotated[str | None, typer.Option("--as", metavar="USER_OR_ROLE", help="Who asks of the file.")] = None,
    connect: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask a gateway instead: postgresql://user@host:port/database")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="The audit log of a file.")] = None,
) -> None:
    """Tell the next step of a plan, and show its answer; at the first, the plan is opened.

    The exit code is 1 where it is refused, which ends the plan: what was not told stays yours.
    """
    with one_line_errors():
        found, source = _read(file), source_of(register, who, connect, log)
        try:
            done = _last_line(source, found.name)
            if done is None:
                _last_line(source, found.name, asked=found.opening())
                step = 1
            else:
                state, step = done
                if state in ("done", "aborted"):
                    raise SDCError(f"the plan '{found.name}' has ended: {state} at step {step}")
                step += state == "awaiting"
            asking = Shell(source, Console(highlight=False), interactive=False)
            typer.echo(
                f"step {step} of {len(found.statements)}: {' '.join(found.statements[step - 1].split())}", err=True
            )
            asking.run(found.revealing(step))
            if asking.failed:
                raise typer.Exit(1)
        finally:
            source.close()


def _last_line(source: Source, name: str, *, asked: str | None = None) -> tuple[str, int] | None:
    """State and step of the last thing that happened to a plan; None: it was not opened."""
    question = source.question(asked or f"FROM sdc_plan_log({literal(name)})")
    try:
        names = [column for column, _ in question.ask()]
        state, step = names.index("state"), names.index("step")
        last = None
        while (batch := question.read()) is not None:
            if batch.num_rows:
                last = (str(batch.column(state)[-1].as_py()), int(batch.column(step)[-1].as_py()))
        return last
    finally:
        question.close()


@plan.command()
def sql(
    file: _Plan,
    step: Annotated[int, typer.Argument(min=0, help="0 for what opens the plan.", show_default=False)],
) -> None:
    """Write the statement that tells a step, for any client: sdcduck plan sql income.plan 0 | psql .."""
    with one_line_errors():
        found = _read(file)
        if step > len(found.statements):
            raise SDCError(f"the plan has {len(found.statements)} steps")
        typer.echo(f"{found.revealing(step) if step else found.opening()};")
