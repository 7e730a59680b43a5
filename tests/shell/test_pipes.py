"""The shell without a terminal: what it prints, where, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from served_gateway import PASSWORD, ROWS, Served
from shell_command import COMMAND

from sdcduck.catalog.audit_reading import read_log
from sdcduck.shell.completion import completions

Run = Callable[..., Any]
GROUPS = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region"


@pytest.fixture(params=["file", "gateway"])
def ask(request: pytest.FixtureRequest, run: Run, register: Path) -> Run:
    """Asks the same data, as the same user, through both doors."""
    if request.param == "file":
        return lambda *arguments, **rest: run(register, "--as", "ann", *arguments, **rest)
    pytest.importorskip("psycopg")
    served: Served = request.getfixturevalue("served")
    url = f"postgresql://ann@127.0.0.1:{served.port}/register"
    return lambda *arguments, **rest: run("--connect", url, *arguments, PGPASSWORD=PASSWORD, **rest)


def test_a_box_says_what_its_columns_are(ask: Run) -> None:
    done = ask("-c", GROUPS)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert [word for word in lines[1].split() if word != "│"] == ["region", "n"]
    assert [word for word in lines[3].split() if word != "│"] == ["group", "perturbed"]
    noise = "noise: n sd 1.41, at most 5"
    assert lines[-3:] == ["3 rows", "perturbed: noise of cell keys (people)", noise]
    assert "\x1b" not in done.stdout


def test_a_refusal_has_its_code_and_advice_and_the_rest_is_asked(ask: Run) -> None:
    done = ask(text=f"SELECT * FROM people;\n{GROUPS};\n")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Refused, SDC040: unit-level rows in the result.",
        "  Ask for counts and sums: SELECT .., count(*) .. GROUP BY ..",
        "  In statement 1 of 2: SELECT * FROM people",
    ]
    assert "North" in done.stdout


def test_a_preview_is_marked_and_said(ask: Run) -> None:
    done = ask("-c", "SELECT region, income FROM people LIMIT 2")
    assert "│ made up │ made up │" in done.stdout
    assert "rows of 'made_up', which are made up" in done.stderr
    assert done.returncode == 0


def test_commands(ask: Run) -> None:
    done = ask(text=f".tables\n.columns people\n.explain {GROUPS}\nEXPLAIN {GROUPS};\n.mode\n.timer on\n.timer off\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "│ people  │ 5       │ protected: counts and sums only │" in done.stdout
    assert "secrets" not in done.stdout
    assert "measure: sum and avg" in done.stdout
    assert done.stdout.count("│ n      │ perturbed: cell_key of people │ standard deviation 1.41") == 2
    assert done.stdout.endswith("box\n")
    refused = ask("-c", ".explain SELECT max(income) FROM people")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        1, "Refused, SDC050: an aggregate that shows single units (max; write quantile_cont(income, 0.95)).",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (".tabels", "unknown command '.tabels'; did you mean 'tables'? (.help lists them)"),
        (".columns peple", "unknown table 'peple'; did you mean 'people'?"),
        (".columns", ".columns needs something: .columns TABLE"),
        (".tables x", ".tables takes nothing"),
        (".mode xml", "unknown mode 'xml'; there are: 'box', 'csv', 'json', 'line', 'markdown'"),
        (".maxrows many", ".maxrows takes a number of rows, or 0 for all"),
        (".timer maybe", ".timer takes on or off"),
        (".explain", "nothing was asked yet: write the query after the command"),
        (".read nowhere.sql", "'nowhere.sql': No such file or directory"),
    ],
)
def test_wrong_commands(run: Run, register: Path, line: str, said: str) -> None:
    done = run(register, "--as", "ann", text=f"{line}\nSELECT 42 AS n;")
    assert (done.returncode, done.stderr) == (1, f"{said}\n")
    assert "42" in done.stdout


def test_other_forms_have_every_row(ask: Run) -> None:
    query = "SELECT n, CASE WHEN n % 2 = 1 THEN 'a,\"' || n END AS odd, n / 4 AS part FROM numbers WHERE n < 20000 ORDER BY n"
    rows = list(csv.reader(io.StringIO(ask(text=f".mode csv\n{query};").stdout)))
    assert len(rows) == 20001
    assert (rows[0], rows[1], rows[2]) == (["n", "odd", "part"], ["0", "", "0.0"], ["1", 'a,"1', "0.25"])
    found = json.loads(ask(text=f".mode json\n{query};").stdout)
    assert len(found) == 20000
    assert found[1] == {"n": 1, "odd": 'a,"1', "part": 0.25}
    assert ask(text=".mode json\nSELECT n FROM numbers WHERE n < 0;").stdout == "[]\n"
    assert ask(text=f".mode markdown\n{GROUPS};").stdout.splitlines()[:3] == [
        "| region | n |",
        "|---|---:|",
        "| East | 997 |",
    ]
    lines = ask(text=f".mode line\n{GROUPS};").stdout.splitlines()
    assert lines[:3] == ["region = East", "     n = 997", ""]


def test_the_end_of_a_name_says_the_form_of_a_file(ask: Run, tmp_path: Path) -> None:
    for name in ("a.csv", "a.JSON", "a.md", "a.txt"):
        assert ask(text=f".once {name}\n{GROUPS};").returncode == 0
    assert (tmp_path / "a.csv").read_text().splitlines()[:2] == ["region,n", "East,997"]
    assert json.loads((tmp_path / "a.JSON").read_text())[0] == {"region": "East", "n": 997}
    assert (tmp_path / "a.md").read_text().startswith("| region | n |")
    assert (tmp_path / "a.txt").read_text().startswith("┌───")
    done = ask(text=f".mode json\n.output b.csv\n{GROUPS};\n.output\nSELECT 1 AS a;")
    assert (tmp_path / "b.csv").read_text().startswith("region,n\n")
    assert done.stdout == '[{"a":1}]\n'


def test_a_parquet_file_has_values_of_their_types(ask: Run, tmp_path: Path) -> None:
    query = (
        "SELECT a_bool, an_int, a_double, a_decimal, a_text, a_date, a_moment, nothing, INTERVAL 3 DAY AS wait, "
        "[1, NULL] AS two, 'f26e8cef-d368-467c-831f-b4cb7d382316'::UUID AS id, DATE '0044-03-15 (BC)' AS ides, "
        "TIMESTAMP '0044-03-15 (BC) 10:00:00.5' AS stabbed FROM kinds"
    )
    done = ask(text=f".once kinds.parquet\n{query};\n.once all.parquet\nFROM numbers ORDER BY n;")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with duckdb.connect() as con:
        assert con.execute(f"SELECT count(*), sum(n) FROM '{tmp_path}/all.parquet'").fetchall() == [
            (ROWS, ROWS * (ROWS - 1) // 2)
        ]
        kinds = f"FROM '{tmp_path}/kinds.parquet'"
        assert con.execute(f"SELECT * EXCLUDE (ides, stabbed) {kinds}").fetchall()[0][:-1] == (
            True, 8, 1.5, Decimal("12.345"), "grün", date(2020, 2, 29), datetime(2020, 2, 29, 12, 30, 1, 500_000), None,
            timedelta(3), [1, None],
        )  # fmt: skip
        assert con.execute(f"SELECT id::VARCHAR, ides::VARCHAR, stabbed::VARCHAR {kinds}").fetchall() == [
            ("f26e8cef-d368-467c-831f-b4cb7d382316", "0044-03-15 (BC)", "0044-03-15 (BC) 10:00:00.5")
        ]


def test_an_empty_result_in_parquet_has_its_columns(ask: Run, tmp_path: Path) -> None:
    assert ask(text=".once none.parquet\nSELECT * FROM kinds WHERE an_int < 0;").returncode == 0
    with duckdb.connect() as con:
        described = dict(row[:2] for row in con.execute(f"DESCRIBE FROM '{tmp_path}/none.parquet'").fetchall())
        assert con.execute(f"SELECT count(*) FROM '{tmp_path}/none.parquet'").fetchall() == [(0,)]
    assert (described["a_text"], described["a_big"], described["a_date"]) == ("VARCHAR", "BIGINT", "DATE")


def test_what_parquet_is_not_for(ask: Run, tmp_path: Path) -> None:
    done = ask(text=f".mode parquet\n.output x.parquet\n{GROUPS};")
    assert done.stderr.splitlines() == [
        "Parquet goes into a file: .once FILE.parquet", "a Parquet file has one result only: .once x.parquet",
    ]  # fmt: skip
    assert "East" in done.stdout
    assert not (tmp_path / "x.parquet").exists()


def test_files_that_are_not_there_are_named(ask: Run) -> None:
    done = ask(text=".once no/where.csv\n.read none.sql")
    assert done.stderr.splitlines() == [
        "'no/where.csv': No such file or directory",
        "'none.sql': No such file or directory",
    ]


def test_statements_about_tables_are_commands_of_the_shell(ask: Run) -> None:
    assert ask("-c", "SHOW TABLES;").stdout == ask("-c", ".tables").stdout
    assert (
        ask("-c", "DESCRIBE people").stdout == ask("-c", "desc people;").stdout == ask("-c", ".columns people").stdout
    )
    assert "unknown table 'peple'; did you mean 'people'?" in ask("-c", "DESCRIBE peple").stderr


def test_words_of_other_shells(ask: Run) -> None:
    assert ask(text="help").stdout == ask(text=".help").stdout
    done = ask(text="COPY (SELECT 1) TO 'x.csv';\n\\d people\nquit\nSELECT 1 AS a;")
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "COPY is not answered: .once FILE.csv or .once FILE.parquet writes the next result to a file",
        "commands begin with a point here, not with a backslash (.help lists them)",
    ]


def test_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    (tmp_path / "ask.sql").touch()
    typed = f"{tmp_path}/a"
    assert completions(f".read {typed}", f".read {typed}", []) == (
        typed, [(f"{tmp_path}/answers/", ""), (f"{tmp_path}/ask.sql", "")],
    )  # fmt: skip
    assert completions(".once no/where", ".once no/where", []) == ("no/where", [])


def test_numbers_of_any_size(ask: Run) -> None:
    largest = 2**127 - 1
    done = ask(text=f".mode csv\nSELECT {largest}::HUGEINT AS a UNION ALL SELECT 1 ORDER BY a;")
    assert (done.stdout, done.stderr) == (f"a\n1\n{largest}\n", "")


def test_texts_of_a_csv_are_no_formulas(ask: Run) -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x")', "a=1", " =1", "-"]
    listed = ", ".join(
        f"({place}, " + " || ".join(f"chr({ord(sign)})" for sign in text) + ")" for place, text in enumerate(texts)
    )
    done = ask(text=f".mode csv\nSELECT w.t FROM (VALUES {listed}) w(i, t) ORDER BY w.i;")
    rows = list(csv.reader(io.StringIO(done.stdout, newline="")))
    assert [text for (text,) in rows[1:]] == [
        f"'{text}" if text.startswith(tuple("=+-@\t\r")) else text for text in texts
    ]
    plain = ask(
        text='.mode csv\nSELECT -1 AS "=a", -1.5 AS "-b", CAST(-1 AS DOUBLE) AS c, CAST(NULL AS VARCHAR) AS d, -2 * INTERVAL 1 DAY AS e;'
    )
    assert plain.stdout == "'=a,'-b,c,d,e\n-1,-1.5,-1.0,,'-2 days\n"


def test_long_results_are_cut_in_the_middle(ask: Run) -> None:
    done = ask(text="SELECT n FROM numbers ORDER BY n;\n.maxrows 3\nSELECT n FROM numbers ORDER BY n;")
    first, second = done.stdout.split("200000 rows (40 shown)")
    assert ("│     19 │" in first, "│     20 │" in first, "│ 199979 │" in first, "│ 199980 │" in first) == (
        True,
        False,
        False,
        True,
    )
    assert [line.strip("│ ") for line in second.splitlines()[5:-2]] == ["0", "1", "·", "·", "·", "199999"]
    assert "200000 rows (3 shown)" in second
    whole = ask(text=".maxrows 0\nSELECT n FROM numbers WHERE n < 50 ORDER BY n;").stdout
    assert whole.endswith("\n50 rows\n")
    assert [f"│ {n} │" in whole.replace("  ", "") for n in (19, 20, 30, 49)] == [True] * 4


def test_results_go_to_files(run: Run, register: Path, tmp_path: Path) -> None:
    (tmp_path / "script.sql").write_text(
        f".mode csv\n{GROUPS};\n-- done\n.once once.csv\nSELECT 1 AS a;\nSELECT 2 AS b;"
    )
    done = run(register, "--as", "ann", text=".output all.txt\n.read script.sql\n.output\nSELECT 3 AS c;")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "c\n3\n")
    assert (tmp_path / "once.csv").read_text() == "a\n1\n"
    assert (tmp_path / "all.txt").read_text() == "region,n\nEast,997\nNorth,1000\nSouth,1002\nb\n2\n"
    (tmp_path / "round.sql").write_text(".read round.sql\n")
    assert "too deep" in run(register, "--as", "ann", "-c", ".read round.sql").stderr


def test_withheld_numbers_are_crosses_and_every_method_has_its_word(run: Run, methods: Path) -> None:
    done = run(methods, "--as", "zoe", text="".join(
        f"SELECT kind, count(*) AS n FROM {table} GROUP BY CUBE (kind) ORDER BY kind;" if table != "rounded"
        else f"SELECT kind, count(*) AS n FROM {table} GROUP BY kind;"
        for table in ("published", "large", "rounded", "noisy")
    ))  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "exact: what follows from the publication (published); ×: withheld" in done.stdout
    assert "rounded: rounded (rounded)" in done.stdout
    assert "perturbed: noise of cell keys (noisy)" in done.stdout
    published = done.stdout.split("rows")[0]
    assert "│ A       │      × │" in published
    assert "│ NULL    │     40 │" in published  # a total: NULL of a group is no withheld number
    computed = run(methods, "--as", "zoe", "-c", "SELECT count(*) + 0 AS n FROM large WHERE kind = 'A'").stdout
    assert ("NULL" in computed, "×" in computed) == (True, False)


def test_who_asks(run: Run, methods: Path) -> None:
    query = "SELECT kind, count(*) AS n FROM rounded GROUP BY kind"
    nobody = run(methods, "-c", query)
    assert nobody.returncode == 1
    assert nobody.stderr.splitlines()[0] == "sdcduck: asked as role analyst, under the guard; --as names another"
    assert "Refused, SDC020: an unknown table ('rounded'; there are: 'large', 'noisy', 'published')" in nobody.stderr
    for name in ("zoe", "special", "Special"):
        assert run(methods, "--as", name, "-c", query).returncode == 0
    wrong = run(methods, "--as", "zoo", "-c", query)
    assert (wrong.returncode, wrong.stderr) == (1, "sdcduck: unknown user or role 'zoo'; did you mean 'zoe'?\n")


def test_the_audit_log_names_the_user(run: Run, methods: Path, tmp_path: Path) -> None:
    run(methods, "--as", "zoe", "--log", "asked.jsonl", "-c", "SELECT count(*) FROM noisy; SELECT * FROM noisy")
    asked = read_log(tmp_path / "asked.jsonl")
    assert [(line["user"], line["role"], line["verdict"]) for line in asked] == [
        ("zoe", "special", "answered"), ("zoe", "special", "SDC040"),
    ]  # fmt: skip


def test_what_runs_is_shown_on_a_file_only(run: Run, register: Path, served: Served) -> None:
    pytest.importorskip("psycopg")
    assert "_sdc_stepped_count(" in run(register, "--as", "ann", "-c", f".rewrite {GROUPS}").stdout
    outside = run("--connect", served.url, "-c", f".rewrite {GROUPS}")
    assert (outside.returncode, outside.stdout) == (1, "")
    assert "a gateway does not show what runs" in outside.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a file, or --connect with the address of a gateway"),
        (("x.duckdb", "--connect", "postgresql://ann@localhost/x"), "give a file, or --connect"),
        (("nowhere.duckdb",), "there is no file 'nowhere.duckdb'"),
        (("--connect", "postgresql://ann@localhost/x", "--as", "bob"), "--as, --log and --records go with a file"),
        (("--connect", "postgresql://ann@127.0.0.1:1/x"), "connection failed"),
        (("--connect", "nonsense"), "the address of a gateway begins with postgresql:// or sdcduck://"),
        (("--connect", "HOST:5432/register"), "the address of a gateway begins with postgresql:// or sdcduck://"),
        (("--connect", "sdcduck://ann@localhost:54x/register"), "with a port between 1 and 65535"),
    ],
)  # fmt: skip
def test_wrong_ways_in(run: Run, arguments: tuple[str, ...], said: str) -> None:
    pytest.importorskip("psycopg")
    done = run(*arguments, "-c", "SELECT 1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sdcduck: ")
    assert said in done.stderr


def test_what_is_not_installed_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    done = run("--connect", "postgresql://ann@localhost/x", "-c", "SELECT 1")
    assert (done.returncode, done.stderr) == (
        1, "sdcduck: --connect needs the package 'psycopg': pip install 'sdcduck[shell]'\n",
    )  # fmt: skip


def test_passwords_of_a_gateway(run: Run, served: Served) -> None:
    pytest.importorskip("psycopg")
    url = f"postgresql://ann@127.0.0.1:{served.port}/register"
    assert "password authentication failed" in run("--connect", url, "-c", "SELECT 1", PGPASSWORD="wrong").stderr
    assert "no password" in run("--connect", url, "-c", "SELECT 1", PGPASSWORD="").stderr
    for address in (url, url.replace("postgresql", "sdcduck")):  # as ibis takes it, too
        assert "42" in run("--connect", address, "-c", "SELECT 42 AS a", PGPASSWORD=PASSWORD).stdout


def test_what_steers_a_terminal_is_written_out(run: Run, register: Path) -> None:
    done = run(register, "--as", "ann", "-c", "SELECT 'a' || chr(27) || '[2J' || chr(10) || 'b' AS x")
    assert "│ a\\x1b[2J\\nb │" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(register: Path) -> None:
    shell = subprocess.Popen(
        [*COMMAND, str(register), "--as", "ann", "-c", ".mode csv\nSELECT a.n, b.twice FROM numbers a, numbers b"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert shell.stdout is not None
    assert shell.stderr is not None
    assert shell.stdout.readline().startswith(b"n,twice")
    shell.stdout.close()
    assert shell.stderr.read() == b""
    shell.stderr.close()
    assert shell.wait(60) == 0


def test_ctrl_c_ends_a_script(register: Path) -> None:
    endless = "SELECT * FROM people; SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.n * b.n + c.n = 7"
    # What runs in the background, as these tests may, has its children ignore Ctrl-C.
    shell = subprocess.Popen(
        [*COMMAND, str(register), "--as", "ann", "-c", f"{endless}; SELECT 'not reached' AS x"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert shell.stderr is not None
    assert shell.stderr.readline().startswith(b"Refused, SDC040")
    shell.send_signal(signal.SIGINT)
    output, said = shell.communicate(timeout=60)
    assert (shell.returncode, b"not reached" in output, b"Traceback" in said) == (130, False, False)
