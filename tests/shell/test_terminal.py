"""The shell in a terminal: a pseudo-terminal types, and reads what is drawn."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served_gateway import PASSWORD, Served
from shell_command import COMMAND

pexpect = pytest.importorskip("pexpect", reason="no pseudo-terminals here")
pytest.importorskip("prompt_toolkit")

PROMPT = "sdcduck>"  # the space after it is a movement of the cursor
UP, TAB, CTRL_C, CTRL_D, ENTER = "\x1b[A", "\t", "\x03", "\x04", "\r"
ENDLESS = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.n * b.n + c.n = 7;"
_COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")

Terminal = Callable[..., "pexpect.spawn[str]"]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Opens the shell in a terminal, with a home of its own."""
    opened: list[pexpect.spawn[str]] = []

    def begin(*arguments: object, **environment: str) -> pexpect.spawn[str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "PGPASSWORD")}
        environment = {
            **kept, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(tmp_path / "state"),
            **environment,
        }  # fmt: skip
        child = pexpect.spawn(
            COMMAND[0], [*COMMAND[1:], *map(str, arguments)], env=environment, encoding="utf-8", timeout=60,
            dimensions=(50, 100),
        )  # fmt: skip
        opened.append(child)
        return child

    yield begin
    for child in opened:
        child.close(force=True)


def leave(child: pexpect.spawn[str]) -> None:
    """Ctrl-D, and nothing is wrong."""
    child.expect_exact(PROMPT)
    child.send(CTRL_D)
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_the_prompt_says_what_it_needs(register: Path) -> None:
    program = "import sys; sys.modules['prompt_toolkit'] = None; from sdcduck.cli import main; main()"
    child = pexpect.spawn(COMMAND[0], ["-c", program, "shell", str(register)], encoding="utf-8", timeout=60)
    child.expect_exact("the interactive shell needs the package 'prompt_toolkit': pip install 'sdcduck[shell]'")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 1


def test_a_statement_of_several_lines_and_a_refusal(terminal: Terminal, register: Path) -> None:
    child = terminal(register)
    child.expect_exact("register.duckdb, asked as role analyst, under the guard")
    child.expect_exact("let others ask a gateway")
    child.expect_exact(PROMPT)
    child.send("SELECT region, count(*) AS n" + ENTER)
    child.expect_exact("..>")
    child.send("FROM people GROUP BY region;" + ENTER)
    child.expect_exact("perturbed")
    child.expect_exact("noise of cell keys (people)")
    child.expect(r"\d\.\d{3} s")
    child.expect_exact(PROMPT)
    child.send("SELECT * FROM people;" + ENTER)
    child.expect_exact("Refused, SDC040: unit-level rows in the result.")
    child.expect_exact("Ask for counts and sums")
    leave(child)


def test_history_is_kept_without_passwords(terminal: Terminal, register: Path, tmp_path: Path) -> None:
    child = terminal(register)
    for line in ("SELECT 6 * 7 AS x;", "SELECT 'my password' AS y;"):
        child.expect_exact(PROMPT)
        child.send(line + ENTER)
        child.expect_exact("1 row")
    leave(child)
    kept = tmp_path / "state" / "sdcduck" / "history"
    assert "SELECT 6 * 7" in kept.read_text()
    assert "password" not in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    again = terminal(register)
    again.expect_exact(PROMPT)
    again.send(UP + ENTER)
    again.expect(r"42\s")
    leave(again)


def test_completion(terminal: Terminal, register: Path) -> None:
    child = terminal(register)
    child.expect_exact(PROMPT)
    child.send("SELECT sum(inc")
    child.send(TAB)
    child.expect_exact("ome")
    child.send(") > 0 AS some FROM peo")
    child.send(TAB)
    child.expect_exact("ple")
    child.send(";" + ENTER)
    child.expect_exact("true")
    child.expect_exact(PROMPT)
    child.send(".col" + TAB)
    child.expect_exact("umns")
    child.send(" kin" + TAB)
    child.expect_exact("ds")
    child.send(ENTER)
    child.expect_exact("a_moment")
    leave(child)


def test_ctrl_c_stops_the_query_and_not_the_shell(terminal: Terminal, register: Path) -> None:
    child = terminal(register)
    child.expect_exact(PROMPT)
    child.send(ENDLESS + ENTER)
    child.expect_exact("Ctrl-C stops it")
    child.send(CTRL_C)
    child.expect_exact("cancelled")
    child.expect_exact(PROMPT)
    child.send("SELECT 'half")
    child.send(CTRL_C)
    child.expect_exact(PROMPT)
    child.send("SELECT 6 * 7 AS x;" + ENTER)
    child.expect(r"42\s")
    leave(child)


def test_leaving_by_command_while_a_script_is_stopped_whole(terminal: Terminal, register: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(f"{ENDLESS}\nSELECT 'not reached' AS x;")
    child = terminal(register)
    child.expect_exact(PROMPT)
    child.send(f".read {script}" + ENTER)
    child.expect_exact("Ctrl-C stops it")
    child.send(CTRL_C)
    child.expect_exact("cancelled")
    child.expect_exact(PROMPT)
    child.send(".quit" + ENTER)
    child.expect(pexpect.EOF)
    assert "not reached" not in child.before
    child.wait()
    assert child.exitstatus == 0


def test_a_gateway_asks_for_the_password_and_is_stopped_too(terminal: Terminal, served: Served) -> None:
    pytest.importorskip("psycopg")
    child = terminal("--connect", f"postgresql://ann@127.0.0.1:{served.port}/register")
    child.expect_exact("Password: ")
    child.send(PASSWORD + ENTER)
    child.expect_exact("asked as user ann, through the gateway")
    child.expect_exact(PROMPT)
    child.send("SELECT count(*) FROM peo" + TAB)
    child.expect_exact("ple")
    child.send(";" + ENTER)
    child.expect_exact("noise of cell keys (people)")
    child.expect_exact(PROMPT)
    child.send(ENDLESS + ENTER)
    child.expect_exact("Ctrl-C stops it")
    child.send(CTRL_C)
    child.expect_exact("cancelled")
    child.expect_exact(PROMPT)
    child.send("SELECT 6 * 7 AS x;" + ENTER)
    child.expect(r"42\s")
    leave(child)


@pytest.mark.parametrize("colour", [True, False])
def test_colours_unless_they_are_not_wanted(terminal: Terminal, register: Path, colour: bool) -> None:
    child = terminal(register, **({} if colour else {"NO_COLOR": "1"}))
    child.expect_exact(PROMPT)
    child.send("SELECT region, count(*) AS n FROM people GROUP BY region;" + ENTER)
    child.expect_exact("noise of cell keys (people)")
    assert bool(_COLOUR.search(child.before)) == colour
    leave(child)


def test_a_wide_result_fits_the_terminal(terminal: Terminal, register: Path) -> None:
    child = terminal(register, NO_COLOR="1")
    child.expect_exact(PROMPT)
    child.send("SELECT * FROM kinds;" + ENTER)
    child.expect(r"1 row, 10 columns \((\d+) shown\)")
    assert 1 < int(child.match[1]) < 10
    lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", child.before).splitlines() if line.startswith("│")]
    assert lines
    assert all(len(line) <= 100 for line in lines)
    leave(child)
