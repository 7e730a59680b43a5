"""Texts by SQL: the example by hand, a seeded world, masks, and bad input."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest

CLEAR = [("P1", "anna rome chess"), ("P2", "bob rome sailing"), ("P3", "carl oslo chess")]
MASKED = [("P2", "*** rome sailing"), ("P1", "*** rome chess"), ("P3", "*** *** chess"), ("P1", "*** *** ***")]


def store(con: duckdb.DuckDBPyConnection, name: str, rows: list[tuple[str | None, str | None]]) -> None:
    con.register(
        "made",
        pa.table(
            {
                "person": pa.array([row[0] for row in rows], pa.string()),
                "text": pa.array([row[1] for row in rows], pa.string()),
            }
        ),
    )
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM made")
    con.unregister("made")


def risk(con: duckdb.DuckDBPyConnection, more: str = "") -> dict[str, object]:
    result = con.execute(f"FROM sdc_text_risk('released', 'background'{more})")
    return dict(zip([column[0] for column in result.description or ()], result.fetchall()[0], strict=True))


def told(con: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    return con.execute(
        "SELECT text, predicted, score, score - margin, true_rank, in_background, reidentified "
        "FROM sdc_text_risk_documents('released', 'background') ORDER BY score DESC, text"
    ).fetchall()


def test_the_example_by_hand(lasting: duckdb.DuckDBPyConnection) -> None:
    store(lasting, "background", CLEAR)
    store(lasting, "released", MASKED)
    found = risk(lasting)
    assert (found["n"], found["risk"], found["cap"], found["random_guess"]) == (4, 0.5, 1, pytest.approx(1 / 3))
    assert told(lasting) == [
        ("*** rome sailing", "P2", pytest.approx(0.7824, abs=1e-4), pytest.approx(0.3135, abs=1e-4), 1, True, True),
        ("*** rome chess", "P1", pytest.approx(0.7324, abs=1e-4), pytest.approx(0.3349, abs=1e-4), 1, True, True),
        ("*** *** chess", "P1", pytest.approx(0.5179, abs=1e-4), pytest.approx(0.4736, abs=1e-4), 2, True, False),
        ("*** *** ***", None, 0, 0, None, True, False),
    ]


def test_the_scores_are_those_of_scikit_learn(lasting: duckdb.DuckDBPyConnection) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    chance = np.random.default_rng(5)
    texts = [" ".join(f"w{word}" for word in chance.zipf(1.4, 30) if word < 500) for _ in range(60)]
    store(lasting, "background", [(f"p{place % 20}", text) for place, text in enumerate(texts[:40])])
    store(lasting, "released", [(f"p{place}", text) for place, text in enumerate(texts[40:])])
    model = TfidfVectorizer(token_pattern=r"\w+")
    cosines = (model.fit_transform(texts[:40]) @ model.transform(texts[40:]).T).toarray()
    best = cosines.reshape(2, 20, 20).max(axis=0)  # documents 0 and 20 are of the same person
    found = lasting.execute(
        "SELECT person, predicted, score, true_rank FROM sdc_text_risk_documents('released', 'background')"
    ).fetchall()
    for person, predicted, score, rank in found:
        mine = best[:, int(person[1:])]
        assert score == pytest.approx(mine.max(), abs=1e-12)
        assert predicted == f"p{mine.argmax()}"
        assert rank == 1 + (mine > mine[int(person[1:])]).sum()


# A world of persons, each with facts; abstracts name some of them.

JOBS, HOBBIES = [f"job{i}" for i in range(8)], [f"hobby{i}" for i in range(10)]


def world(seed: int, people: int) -> tuple[list[tuple[str, str]], list[dict[str, list[str]]], float]:
    """Texts in clear, the facts of 50 abstracts, and what an attacker can expect who has job and hobby alone."""
    chance = np.random.default_rng(seed)

    filler = [
        "was",
        "born",
        "in",
        "the",
        "year",
        "and",
        "city",
        "of",
        "worked",
        "as",
        "likes",
        "played",
        "married",
    ]  # what sentences have around facts
    background, abstracts, kinds = [], [], []
    for person in range(people):
        name, year, town = (
            [f"first{person}", f"last{person}"],
            f"{chance.integers(1950, 1995)}",
            f"city{chance.integers(40)}",
        )
        job, hobbies = JOBS[chance.integers(8)], [HOBBIES[one] for one in chance.choice(10, 2, replace=False)]
        films = [f"film{one}" for one in chance.choice(400, 6, replace=False)]
        facts = [*name, year, town, job, *hobbies, *films, f"spouse{person}", *filler]
        background.append((f"p{person}", " ".join(chance.permutation(facts))))
        kinds.append((job, hobbies))
        if person < 50:
            abstracts.append(
                {"names": name, "places": [year, town], "films": films[:2], "rest": [job, hobbies[0]], "filler": filler}
            )
    alike = [sum(job == kinds[one][0] and kinds[one][1][0] in hobbies for job, hobbies in kinds) for one in range(50)]
    return background, abstracts, float(np.mean(1 / np.array(alike)))


def released(abstracts: list[dict[str, list[str]]], level: int) -> list[tuple[str, str]]:
    kinds = ["names", "places", "films", "rest", "filler"]
    return [
        (f"p{person}", " ".join("***" if place < level and kind != "filler" else word for place, kind in enumerate(kinds) for word in facts[kind]))
        for person, facts in enumerate(abstracts)
    ]  # fmt: skip


@pytest.mark.parametrize(("people", "classifier", "worlds"), [(50, "nn", 5), (500, "nn", 5), (50, "linear", 1)])
def test_masking_names_dates_and_places_does_not_stop_the_attack(
    lasting: duckdb.DuckDBPyConnection, people: int, classifier: str, worlds: int
) -> None:
    store(
        lasting,
        "names",
        [(None, word) for person in range(people) for word in (f"first{person} last{person}", f"spouse{person}")]
        + [(None, f"city{i}") for i in range(40)],
    )
    last, expected = [], []
    for seed in range(worlds):
        background, abstracts, exact = world(seed, people)
        store(lasting, "background", background)
        levels = []
        for level in range(5):
            store(lasting, "released", released(abstracts, level))
            levels.append(
                risk(
                    lasting,
                    f", classifier := '{classifier}', rules := ['year'], gazetteer := '(SELECT text FROM names)'",
                )["risk"]
            )
        assert levels[0] >= 0.98
        assert levels[2] >= 0.95
        assert all(after <= before + 0.03 for before, after in pairwise(levels))
        assert levels[4] <= 1 / people + 0.06
        last.append(levels[3])
        expected.append(exact)
    if worlds == 5:
        assert np.mean(last) == pytest.approx(np.mean(expected), abs=0.05)


def test_who_has_no_background_is_not_found(lasting: duckdb.DuckDBPyConnection) -> None:
    background, abstracts, _ = world(1, 50)
    store(lasting, "background", background[10:])
    store(lasting, "released", released(abstracts, 0))
    found = risk(lasting)
    assert (found["risk"], found["cap"]) == (0.8, 0.8)
    assert found["ci_low"] < 0.8 < found["ci_high"]
    assert sum(not row[5] for row in told(lasting)) == 10


def test_odd_documents(lasting: duckdb.DuckDBPyConnection) -> None:
    store(
        lasting,
        "background",
        [("a", "one two"), ("b", "one two"), ("c", "three " * 100_000), (None, "four"), ("d", None), ("e", "")],
    )
    store(
        lasting,
        "released",
        [
            ("a", "one two"),
            ("c", "three"),
            ("c", "THREE [PERSON]"),
            ("e", ""),
            ("x", None),
            (None, "three"),
            ("d", "four"),
            ("a", "unheard of"),
        ],
    )
    found = risk(lasting)
    assert (found["n"], found["n_null"], found["reidentified"], found["random_guess"]) == (6, 2, 2, 0.25)
    by_text = {row[0]: row[1:] for row in told(lasting) if row[0] is not None}
    assert by_text["one two"][:1] == (None,)  # two persons are equally near
    assert by_text["THREE [PERSON]"][:2] == ("c", 1)
    assert by_text["four"][4] is False
    assert by_text["unheard of"][:2] == (None, 0)
    store(lasting, "released", [])
    assert (risk(lasting)["n"], risk(lasting)["risk"]) == (0, None)
    store(lasting, "released", [("a", "one")])
    store(lasting, "background", [])
    assert (risk(lasting)["risk"], risk(lasting)["cap"], risk(lasting)["random_guess"]) == (0, 0, None)
    store(lasting, "background", [("a", "one")])
    assert "fewer than two persons" in str(risk(lasting)["warning"])


# Masks.


def masked(con: duckdb.DuckDBPyConnection, text: str, more: str) -> str:
    store(con, "notes", [("a", text)])
    return str(con.execute(f"SELECT text FROM sdc_text_mask('notes', {more})").fetchall()[0][0])


@pytest.mark.parametrize(("rule", "text", "wanted"), [
    ("email", "to a.b@example.co.uk, please", "to [EMAIL], please"),
    ("url", "see https://example.org/x?y=1 now", "see [URL] now"),
    ("iban", "DE89 3704 0044 0532 0130 00.", "[IBAN]."),
    ("card", "4111 1111 1111 1111!", "[CARD]!"),
    ("date", "1971-03-02, 2.3.1971 and 3/2/71", "[DATE], [DATE] and [DATE]"),
    ("phone", "call +41 44 123 45 67 today", "call [PHONE] today"),
    ("year", "in 1971, not 19711", "in [YEAR], not 19711"),
    ("postcode", "CH-8001 and 10115", "[POSTCODE] and [POSTCODE]"),
    ("number", "aged 41, 2.5 m", "aged [NUMBER], [NUMBER] m"),
])  # fmt: skip
def test_rules(lasting: duckdb.DuckDBPyConnection, rule: str, text: str, wanted: str) -> None:
    assert masked(lasting, text, f"rules := ['{rule}']") == wanted


def test_lists_of_names(lasting: duckdb.DuckDBPyConnection) -> None:
    names = "gazetteer := '(SELECT ''anna maria rossi'' AS name, ''Zürich'' AS town UNION ALL SELECT ''Anna'', NULL)'"
    assert masked(lasting, "ANNA Maria-Rossi of ZÜRICH; Annabel; Maria", names) == "*** ***-*** of ***; Annabel; Maria"
    assert masked(lasting, "anna maria", names) == "*** maria"
    store(lasting, "notes", [("a", "chess and x"), ("b", "chess and y"), ("b", "y y"), ("c", None), ("d", "")])
    rare = lasting.execute("SELECT text FROM sdc_text_mask('notes', person := 'person', min_persons := 2)").fetchall()
    assert sorted(map(str, (row[0] for row in rare))) == ["", "*** ***", "None", "chess and ***", "chess and ***"]


def test_recall(lasting: duckdb.DuckDBPyConnection) -> None:
    asked = "SELECT r.tp, r.fn, r.recall FROM (SELECT sdc_text_mask_recall({}, {}, {}) AS r)"
    terms = "['Anna', 'Rossi', 'New York', 'Oslo', '']"
    assert lasting.execute(asked.format("'Anna Rossi, New-York.'", "'*** Rossi, ***.'", terms)).fetchall() == [
        (2, 1, pytest.approx(2 / 3))
    ]
    assert lasting.execute(asked.format("'Annabel'", "'Annabel'", terms)).fetchall() == [(0, 0, None)]
    assert lasting.execute(asked.format("NULL", "NULL", terms)).fetchall()[0][2] is None


REFUSED = {
    "sdc_text_risk('notes', 'nobody')": "unknown table 'nobody'",
    "sdc_text_risk('notes', 'notes', person := 'who')": "unknown column 'who'",
    "sdc_text_risk('notes', 'notes', text := 'number')": "argument 'text' must name a column of texts",
    "sdc_text_risk('notes', 'notes', classifier := 'knn')": "argument 'classifier' must be 'nn' or 'linear'",
    "sdc_text_risk('notes', '(FROM notes LIMIT 1)', classifier := 'linear')": "needs documents of two persons",
    "sdc_text_risk('notes', 'notes', rules := ['mail'])": "argument 'rules' must hold",
    "sdc_text_risk_documents('(SELECT *, 1 AS score FROM notes)', 'notes')": "a column called 'score' is also one of the result",
    "sdc_text_mask('notes')": "nothing would be masked",
    "sdc_text_mask('notes', min_persons := 2)": "needs 'person'",
    "sdc_text_mask('notes', min_persons := 0)": "argument 'min_persons' must be a whole number",
    "sdc_text_mask('notes', gazetteer := 'nobody')": "unknown table 'nobody'",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(lasting: duckdb.DuckDBPyConnection, call: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE notes AS SELECT 'a' AS person, 'secret' AS text, 1 AS number")
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM {call}").fetchall()
    assert REFUSED[call] in str(raised.value)
    assert "secret" not in str(raised.value)
