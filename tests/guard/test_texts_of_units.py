"""The texts of the rows of each unit: what it had, and in which order, as a group like any other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import METHODS, answer, made

import sdcduck
from sdcduck.guard import Guard, Refused

_EACH = "FROM visits GROUP BY id"
EQUAL = [
    f"SELECT k, count(*) FROM (SELECT id, string_agg(DISTINCT diagnosis, ', ' ORDER BY diagnosis) AS k {_EACH}) GROUP BY k",
    f"SELECT k, count(*) FROM (SELECT id, list(DISTINCT diagnosis ORDER BY diagnosis DESC) AS k {_EACH}) GROUP BY k",
    f"SELECT k, count(*) FROM (SELECT id, string_agg(diagnosis, ' > ' ORDER BY day, diagnosis) AS k {_EACH}) GROUP BY k",
    f"SELECT k, count(*) FROM (SELECT id, string_agg(diagnosis ORDER BY day DESC, diagnosis) FILTER (WHERE day < DATE '2024-06-01') AS k {_EACH}) GROUP BY k",
    f"SELECT k, count(*) FROM (SELECT id, array_agg(diagnosis ORDER BY day, diagnosis) FILTER (WHERE month(day) > 6) AS k {_EACH}) GROUP BY k",
    f"SELECT k LIKE 'flu%' AS f, region, count(*), avg(income) FROM patients JOIN (SELECT id, string_agg(diagnosis, ',' ORDER BY day, diagnosis) AS k {_EACH}) USING (id) GROUP BY ALL",
    f"SELECT count(*) FROM (SELECT id {_EACH} HAVING string_agg(DISTINCT diagnosis ORDER BY diagnosis) = 'cold,flu')",
    "SELECT count(*) FROM patients p WHERE (SELECT string_agg(DISTINCT diagnosis, '+' ORDER BY diagnosis) FROM visits v WHERE v.id = p.id) = 'cold+flu'",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


@pytest.mark.parametrize(
    ("query", "code", "detail"),
    [
        (f"SELECT k, count(*) FROM (SELECT id, list(diagnosis) AS k {_EACH}) GROUP BY k", "SDC050", "ORDER BY"),
        (f"SELECT k, count(*) FROM (SELECT id, list(cost ORDER BY day) AS k {_EACH}) GROUP BY k", "SDC050", "texts"),
        (f"SELECT k, count(*) FROM (SELECT id, list(diagnosis ORDER BY cost) AS k {_EACH}) GROUP BY k", "SDC041", "cost"),
        (f"SELECT k, count(*) FROM (SELECT id, list(id ORDER BY day) AS k {_EACH}) GROUP BY k", "SDC050", "texts"),
        (f"SELECT k, count(*) FROM (SELECT id, string_agg(diagnosis || 'x' ORDER BY day) AS k {_EACH}) GROUP BY k", "SDC050", "texts"),
        (f"SELECT k, count(*) FROM (SELECT id, string_agg(diagnosis, '{'x' * 20}' ORDER BY day) AS k {_EACH}) GROUP BY k", "SDC050", ""),
        (f"SELECT k, count(*) FROM (SELECT id, list(DISTINCT diagnosis ORDER BY day) AS k {_EACH}) GROUP BY k", "SDC05", ""),
        ("SELECT k, count(*) FROM (SELECT a.id, list(a.diagnosis ORDER BY a.day) AS k FROM visits a JOIN visits b USING (id) GROUP BY a.id) GROUP BY k", "SDC050", "join"),
        ("SELECT k, count(*) FROM (SELECT id, list(diagnosis ORDER BY day) OVER (PARTITION BY id) AS k FROM visits) GROUP BY k", "SDC050", "OVER (..)"),
        (f"SELECT list(diagnosis ORDER BY day) AS k {_EACH}", "SDC040", ""),
        ("SELECT list(diagnosis ORDER BY day) AS k FROM visits", "SDC05", ""),
    ],
)  # fmt: skip
def test_others_are_refused(noisy: Guard, query: str, code: str, detail: str) -> None:
    with pytest.raises(Refused, match=code) as refused:
        noisy.sql(query)
    assert detail in str(refused.value)


def test_one_set_of_units_has_one_number(noisy: Guard) -> None:
    three = "SELECT count(*) AS n FROM patients WHERE " + " AND ".join(
        f"id IN (SELECT id FROM visits WHERE diagnosis = '{one}')" for one in ("flu", "cold", "cut")
    )
    told = [
        f"SELECT n FROM (SELECT k, count(*) AS n FROM (SELECT id, {form} AS k {_EACH} HAVING id IN (SELECT id FROM patients)) "
        "GROUP BY k) WHERE k = {}"
        for form in ("string_agg(DISTINCT diagnosis ORDER BY diagnosis)", "list(DISTINCT diagnosis ORDER BY diagnosis)")
    ]
    wanted = answer(noisy, three)
    assert [
        answer(noisy, text.format(k))
        for text, k in zip(told, ("'cold,cut,flu'", "['cold', 'cut', 'flu']"), strict=True)
    ] == [
        wanted,
        wanted,
    ]


def test_the_order_of_rows_in_storage_decides_nothing() -> None:
    """Of visits on one day, and of texts that a collation takes for one: the same each time."""
    found = []
    for order in ("ASC", "DESC"):
        with sdcduck.connect(secret="the secret of the tests") as con:
            con.execute(f"""CREATE TABLE visits AS SELECT i % 40 AS id, ['a', 'A', 'b'][1 + i % 3] AS diagnosis, i // 120 AS day
                FROM range(480) t(i) ORDER BY i {order}""")
            con.execute("ALTER TABLE visits ALTER diagnosis TYPE VARCHAR COLLATE NOCASE")
            con.execute("FROM sdc_add_record_key('visits', unit := 'id')").fetchall()
            con.execute(
                f"FROM sdc_protect('visits', unit := 'id', dimensions := ['diagnosis', 'day'], {METHODS['threshold']})"
            ).fetchall()
            guard = sdcduck.open_guard(con)
            texts = [
                f"SELECT k, count(*) FROM (SELECT id, {form} AS k {_EACH}) GROUP BY k"
                for form in (
                    "string_agg(DISTINCT diagnosis)",
                    "string_agg(diagnosis ORDER BY day)",
                    "list(diagnosis ORDER BY day)",
                )
            ]
            found.append([answer(guard, text) for text in texts[:2]])
            with pytest.raises(Refused, match=r"SDC047.*collated here"):
                answer(guard, texts[2])
    assert found[0] == found[1]


@pytest.mark.parametrize("method", METHODS)
def test_a_unit_like_nobody_is_in_no_group(method: str) -> None:
    least = "" if method == "threshold" else ", min_units := 6"
    with made(method) as con:
        con.execute(
            "FROM sdc_protect('visits', unit := 'id', dimensions := ['diagnosis', 'day'], population := 'persons', "
            f"{METHODS[method].replace(':= 1', ':= 3')}{least})"
        ).fetchall()
        guard = sdcduck.open_guard(con)
        con.execute("UPDATE visits SET diagnosis = 'marked' WHERE id = 7")
        texts = [text for text in EQUAL[:5] if method != "rounding" or "avg(" not in text]
        there = [answer(guard, text) for text in texts]
        assert "marked" not in repr(there)
        con.execute("DELETE FROM visits WHERE id = 7")
        assert [[row[0] for row in answer(guard, text)] for text in texts] == [
            [row[0] for row in rows] for rows in there
        ]
