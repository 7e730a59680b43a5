"""What a question would cost, and how large its noise would be, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from private_numbers import charged
from private_people import REGIONS, made

import sdcduck
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.catalog.audit_reading import read_log
from sdcduck.catalog.cost_files import CostFile
from sdcduck.guard import Guard, Refused
from sdcduck.guard.releases import Releases

pytest.importorskip("opendp")

BY_REGION = "SELECT region, count(*) AS n, avg(income) AS income FROM people GROUP BY region"


@pytest.fixture
def register(tmp_path: Path) -> Path:
    return made(tmp_path / "register", epsilon="1", delta="0", per_question="0.4")


@pytest.fixture
def guard(register: Path) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


def test_what_it_says_is_what_the_question_costs_and_what_its_noise_is(guard: Guard) -> None:
    """For the first question and the one after it; the third is more than is left."""
    for place, query in enumerate((BY_REGION, "SELECT count(*) FROM people WHERE ill")):
        before = guard.dp_preview(query).to_pylist()
        worth = guard.noise(query).to_pylist()
        assert [(row["column"], row["statistic"], row["sd"], row["noise"]) for row in before] == [
            (row["column"], row["statistic"], row["sd"], row["noise"]) for row in worth
        ]
        guard.sql(query)
        (standing,) = guard.sql("SHOW sdc_budget").to_pylist()
        assert standing["questions"] == place + 1
        for row in before:
            assert (row["epsilon"], row["delta"], row["rho"], row["paid"], row["enough"]) == (0.4, 0, None, False, True)
            assert (row["spent"], row["questions_left"]) == (standing["spent"], standing["questions_left"])
    (last,) = guard.dp_preview("SELECT count(*) FROM people WHERE NOT ill").to_pylist()
    assert (last["epsilon"], last["enough"], last["spent"], last["questions_left"]) == (0.4, False, 0.8, 0)


def test_what_was_paid_for_costs_nothing(guard: Guard) -> None:
    """Also in other words for the same numbers."""
    guard.sql(BY_REGION)
    again = guard.dp_preview(f"SELECT n, region FROM ({BY_REGION}) ORDER BY n").to_pylist()
    assert {(row["epsilon"], row["paid"], row["spent"], row["questions_left"]) for row in again} == {(0, True, 0.4, 1)}


def test_with_a_delta_it_says_rho_as_the_ledger_counts_it(tmp_path: Path) -> None:
    register = made(tmp_path / "r", epsilon="1", delta="1e-9", per_question="0.05")
    with closing(sdcduck.open_guard(register)) as guard:
        (before,) = guard.dp_preview("SELECT count(*) FROM people").to_pylist()
        guard.sql("SELECT count(*) FROM people")
        (line,) = [line for line in CostFile(register, "people").lines() if line["kind"] == "charge"]
        assert (line["unit"], line["cost"]) == ("rho", before["rho"])
        (standing,) = guard.sql("SHOW sdc_budget").to_pylist()
        assert before["spent"] == standing["spent"] == pytest.approx(before["epsilon"], rel=1e-6)
        (after,) = guard.dp_preview("SELECT count(*) FROM people").to_pylist()
        assert (after["rho"], after["delta"], after["paid"]) == (0, 1e-9, True)


def test_it_spends_nothing_draws_nothing_and_reads_no_record(
    guard: Guard, register: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is exact would be asked by `_columns`, and noise is added by `_draw`: neither is called."""

    def fails(*_: object) -> None:
        raise AssertionError

    before = CostFile(register, "people").lines()
    for name in ("_draw", "_columns", "_charged", "_kept"):
        monkeypatch.setattr(Releases, name, fails)
    for query in (
        f"FROM sdc_dp_preview('{BY_REGION}')",
        "SELECT sd FROM sdc_dp_preview($$SELECT count(*) FROM people WHERE region = 'n'$$) WHERE sd > 1",
        f"EXPLAIN FROM sdc_dp_preview('{BY_REGION}')",
        f"DESCRIBE FROM sdc_dp_preview('{BY_REGION}')",
        "FROM sdc_dp_preview('SELECT count(*) FROM people WHERE age > $1')",
    ):
        assert guard.sql(query).num_rows
    assert guard.stream(f"FROM sdc_dp_preview('{BY_REGION}')").read_all().num_rows == 3
    assert CostFile(register, "people").lines() == before


def test_it_is_the_same_through_every_door(guard: Guard, register: Path) -> None:
    """As a relation of SQL for the analyst, as a function of SQL for the custodian, and from Python."""
    found = guard.dp_preview(BY_REGION)
    assert guard.sql(f"FROM sdc_dp_preview('{BY_REGION}')").to_pylist() == found.to_pylist()
    described = guard.sql(f"DESCRIBE FROM sdc_dp_preview('{BY_REGION}')").to_pylist()
    guard.close()
    with closing(sdcduck.connect(str(register))) as con:
        custodian = con.sql(f"FROM sdc_dp_preview('{BY_REGION}', login := 'ann')")
        kinds = list(map(str, custodian.types))
        assert custodian.to_arrow_table().to_pylist() == found.to_pylist()
    assert [row["column_type"] for row in described] == kinds


def test_the_log_has_it_as_it_was_asked(register: Path, tmp_path: Path) -> None:
    """It is no question about records: no table, and nothing of its budget of questions."""
    with closing(sdcduck.connect(str(register))) as con:
        con.execute("FROM sdc_question_budget('people', 1)").fetchall()
    query = f"FROM sdc_dp_preview('{BY_REGION}')"
    with closing(sdcduck.open_guard(register, log=AuditLog(tmp_path / "log"))) as guard:
        for _ in range(3):
            guard.sql(query, user="ann")
        assert guard.sql(BY_REGION, user="ann").num_rows == len(REGIONS) + 1
    lines = list(read_log(tmp_path / "log"))
    assert [line["verdict"] for line in lines] == ["answered"] * 4
    assert [(line["query"], line["tables"]) for line in lines[:3]] == [(query, [])] * 3


REFUSED = {
    "FROM sdc_dp_preview('SELECT max(income) FROM people')": "SDC050",
    "FROM sdc_dp_preview('SELECT p.region, count(*) FROM people p JOIN people q USING (region) GROUP BY 1')": "SDC0",
    "FROM sdc_dp_preview('SELECT secret FROM people')": "SDC030",
    "FROM sdc_dp_preview('DROP TABLE people')": "SDC004",
    "FROM sdc_dp_preview('FROM sdc_dp_preview(''SELECT 1'')')": "SDC021",
    "FROM sdc_dp_preview('SELECT 1', 'ann')": "SDC021",
    "FROM sdc_dp_preview('SELECT 1', login := 'ann')": "SDC021",
    "FROM sdc_dp_preview(concat('SELECT ', '1'))": "SDC021",
    "FROM sdc_dp_preview()": "SDC021",
    "SELECT sdc_dp_preview('SELECT 1')": "SDC0",
    "FROM sdc_dp_preview('PIVOT (SELECT region, ill FROM people) ON region USING count(*)')": "SDC005",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_would_not_be_answered_has_no_cost(guard: Guard, register: Path, query: str) -> None:
    with pytest.raises(Refused) as refused:
        guard.sql(query)
    assert refused.value.code.startswith(REFUSED[query])
    assert charged(register) == 0


def test_of_other_methods_it_says_the_noise_and_no_cost(tmp_path: Path) -> None:
    con = sdcduck.connect()
    con.execute(
        "CREATE TABLE t AS SELECT i AS id, 'n' AS region, (i * 15485863) % 100000000 AS record_key FROM range(50) r(i)"
    )
    con.execute("FROM sdc_protect('t', unit := 'id', dimensions := ['region'])").fetchall()
    with closing(sdcduck.guard(con)) as guard:
        (row,) = guard.dp_preview("SELECT count(*) AS n FROM t").to_pylist()
    assert row["sd"] > 0
    assert [row[name] for name in ("epsilon", "rho", "paid", "enough", "spent", "questions_left")] == [None] * 6
    con.close()


def test_without_its_ledger_nothing_is_said(guard: Guard, register: Path) -> None:
    for file in (register.parent / "register.dp").iterdir():
        file.unlink()
    with pytest.raises(Refused, match="SDC082"):
        guard.dp_preview("SELECT count(*) FROM people")
