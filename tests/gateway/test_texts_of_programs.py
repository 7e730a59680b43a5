"""Files of statements in `texts/`: what programs send, each answered or refused as the line before it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from served_gateway import Served

psycopg = pytest.importorskip("psycopg")

TEXTS = sorted(Path(__file__).with_name("texts").glob("*.sql"))
_EXPECTED = re.compile(r"-- (about the database|a preview|the same as: .+|refused: \w{5,6})\n")


def statements_of(text: str) -> list[tuple[str, str]]:
    """Each statement with what is expected of it."""
    found, expected = [], ""
    for paragraph in text.strip().split("\n\n"):
        if said := _EXPECTED.match(paragraph):
            expected, paragraph = said[1], paragraph[said.end() :]
        if not paragraph.startswith("--"):
            assert expected, paragraph
            found.append((expected, paragraph.removesuffix(";")))
    return found


CASES = [
    pytest.param(expected, statement, id=f"{path.stem}-{place}")
    for path in TEXTS
    for place, (expected, statement) in enumerate(statements_of(path.read_text()), 1)
]


@pytest.mark.parametrize(("expected", "statement"), CASES)
def test_each_is_answered_or_refused_as_expected(served: Served, expected: str, statement: str) -> None:
    with psycopg.connect(**served.options, autocommit=True) as con:
        said: list[str] = []
        con.add_notice_handler(lambda notice: said.append(notice.message_primary))
        before = len(served.asked())
        found = con.pgconn.exec_(statement.encode())
        asked = served.asked()[before:]
        if expected.startswith("refused"):
            code = expected.removeprefix("refused: ")
            assert (
                code in found.error_message.decode()
                or code == found.error_field(psycopg.pq.DiagnosticField.SQLSTATE).decode()
            )
            assert con.execute("SELECT 1").fetchone() == (1,)
            return
        assert found.error_message == b"", statement
        if expected == "about the database":
            assert asked == []  # it never came to the data
        elif expected == "a preview":
            assert "made up" in said[0]
            assert found.ntuples > 0
        else:
            plain = con.execute(expected.removeprefix("the same as: ")).fetchall()
            assert sorted(con.execute(statement).fetchall(), key=repr) == sorted(plain, key=repr) != []
        if ";" not in statement:
            con.execute(statement, prepare=True)  # and with the messages of drivers


def test_every_program_has_questions_and_refusals() -> None:
    assert {path.stem for path in TEXTS} == {"grafana", "looker", "metabase", "power_bi", "programs", "tableau"}
    for path in TEXTS:
        kinds = {expected.partition(":")[0] for expected, _ in statements_of(path.read_text())}
        assert kinds >= {"about the database", "the same as", "refused"}
