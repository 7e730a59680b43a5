"""Copies, replicated uniques and inferred attributes: worked examples, public data, and the R package synthpop."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcduck

# The worked example of Little, Elliot and Allmendinger's measures.
EXAMPLE = """
    CREATE OR REPLACE TABLE o (k1 VARCHAR, k2 VARCHAR, t VARCHAR); CREATE OR REPLACE TABLE x AS FROM o;
    INSERT INTO o VALUES ('a','x','P'), ('a','x','P'), ('a','y','Q'), ('b','x','Q'), ('b','x','P'), ('b','y','Q'),
        ('c','x','R'), ('c','x','R');
    INSERT INTO x VALUES ('a','x','P'), ('a','x','P'), ('a','x','P'), ('a','y','P'), ('b','x','Q'), ('b','y','Q'),
        ('b','y','R'), ('d','x','R')"""


def one(con: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    result = con.execute(sql)
    names = [column[0] for column in result.description]
    (row,) = result.fetchall()
    return dict(zip(names, row, strict=True))


def test_worked_example(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(EXAMPLE)
    found = one(con, "FROM sdc_tcap('o', 'x', keys := ['k1', 'k2'], sensitive := ['t'])")
    assert (found["hits"], found["correct"], found["tcap"], found["baseline"]) == (5, 3, 0.6, 0.34375)
    assert found["marginal_tcap"] == pytest.approx(0.3904761905, abs=1e-10)
    assert found["recall"] == 5 / 8
    # P is most frequent in the synthetic data: right for ax, ax and one of bx.
    assert found["modal_baseline"] == pytest.approx(3 / 5)
    assert found["lift"] == pytest.approx(0)
    assert found["tcap_not_modal"] == pytest.approx(1 / 2)  # a y Q is said to be P, b x Q is right
    assert one(con, "FROM sdc_tcap('o', 'x', keys := ['k1', 'k2'], sensitive := ['t'], weighting := 'synthetic')")[
        "tcap"
    ] == pytest.approx(0.7)
    found = one(con, "FROM sdc_disclosure('o', 'x', keys := ['k1', 'k2'], sensitive := ['t'])")
    wanted = {
        "tcap": 0.6, "disco": 3 / 8, "is_share": 6 / 8, "dcap": 3.5 / 8, "dcap_match": 3.5 / 6, "tcap_match": 3 / 6,
        "dis": 5 / 8, "dorig": 6 / 8, "baseline": 0.34375, "modal_baseline": 3 / 8,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)
    found = one(con, "FROM sdc_replicated_uniques('o', 'x')")
    assert (found["uniques_original"], found["uniques_synthetic"], found["replicated"]) == (4, 5, 2)
    assert found["cells"] == 3 * 2 * 3


@pytest.fixture(scope="module")
def fair() -> Iterator[duckdb.DuckDBPyConnection]:
    """Data that come with statsmodels: even rows ``o``, odd rows ``x``, and all of them."""
    datasets = pytest.importorskip("statsmodels.api").datasets

    con = sdcduck.connect()
    everything = datasets.fair.load_pandas().data
    con.register("frame", everything)
    con.execute("CREATE TABLE everything AS SELECT row_number() OVER () - 1 AS place, * FROM frame")
    con.execute("CREATE TABLE o AS SELECT * EXCLUDE (place) FROM everything WHERE place % 2 = 0")
    con.execute("CREATE TABLE x AS SELECT * EXCLUDE (place) FROM everything WHERE place % 2 = 1")
    con.execute("ALTER TABLE everything DROP place")
    con.unregister("frame")
    yield con
    con.close()


KEYS = ["age", "yrs_married", "children", "educ", "occupation", "occupation_husb"]


@pytest.mark.parametrize(
    ("size", "target", "wanted", "uniques"),
    [
        (3, "religious", (39, 16, 0.41025641, 0.30850302, 0.14714943, 0.50000000, 0.00502670, 0.99245994, 0.31133687, 0.00942507), (22, 22, 7)),
        (5, "religious", (351, 135, 0.38461538, 0.30850302, 0.11006897, 0.36720557, 0.04241282, 0.87778825, 0.27766931, 0.16870877), (386, 374, 87)),
        (6, "rate_marriage", (715, 265, 0.37062937, 0.32938485, 0.06150252, 0.36611722, 0.08325479, 0.69682689, 0.24424104, 0.40496387), (1001, 961, 208)),
    ],
)  # fmt: skip
def test_public_data(
    fair: duckdb.DuckDBPyConnection, size: int, target: str, wanted: tuple[float, ...], uniques: tuple[int, ...]
) -> None:
    given = f"'o', 'x', keys := {KEYS}, sensitive := ['{target}']"
    found = one(fair, f"FROM sdc_tcap({given}, key_sizes := [{size}])")
    by_synthetic = one(fair, f"FROM sdc_tcap({given}, key_sizes := [{size}], weighting := 'synthetic')")
    whole = one(fair, f"FROM sdc_disclosure('o', 'x', keys := {KEYS[:size]}, sensitive := ['{target}'])")
    figures = [found[name] for name in ("hits", "correct", "tcap", "baseline", "marginal_tcap")]
    figures += [by_synthetic["tcap"], *(whole[name] for name in ("disco", "is_share", "dcap", "dorig"))]
    assert figures == pytest.approx(wanted, abs=1e-8)
    assert [round(whole[name] * 3183) for name in ("uio", "uis", "repu")] == list(uniques)
    again = one(fair, f"FROM sdc_replicated_uniques('o', 'x', keys := {KEYS[:size]})")
    assert (again["uniques_original"], again["uniques_synthetic"], again["replicated"]) == uniques


def test_half_a_sample_of_public_data(fair: duckdb.DuckDBPyConnection) -> None:
    for size, target, hits, correct, marginal, disco in (
        (3, "religious", 46, 40, 0.81153627, 0.00628338), (5, "religious", 908, 656, 0.59899567, 0.10304744),
        (6, "rate_marriage", 2027, 1542, 0.64322496, 0.24222432),
    ):  # fmt: skip
        found = one(fair, f"FROM sdc_tcap('everything', 'o', keys := {KEYS[:size]}, sensitive := ['{target}'])")
        assert (found["hits"], found["correct"]) == (hits, correct)
        assert found["marginal_tcap"] == pytest.approx(marginal, abs=1e-8)
        assert found["correct"] / found["originals"] == pytest.approx(disco, abs=1e-8)


def test_uniques_and_cells_of_public_data(fair: duckdb.DuckDBPyConnection) -> None:
    columns = [row[0] for row in fair.execute("DESCRIBE everything").fetchall()][:8]
    wanted = {
        2: (30, 30, 1),
        3: (210, 130, 19),
        4: (1260, 415, 105),
        5: (5040, 1017, 353),
        6: (30240, 2219, 1227),
        7: (181440, 3431, 2346),
        8: (1088640, 4829, 3942),
    }
    for size, (cells, occupied, uniques) in wanted.items():
        found = one(fair, f"FROM sdc_replicated_uniques('everything', 'x', keys := {columns[:size]})")
        assert (found["cells"], found["uniques_original"]) == (cells, uniques)
        assert found["p0"] == pytest.approx(100 * (cells - occupied) / cells)
        assert found["p1"] == pytest.approx(100 * uniques / 6366)
        # Whoever draws anew from the table itself hits some 37 per cent of the uniques.
        assert one(
            fair,
            f"SELECT ru_saturated / p1 AS r FROM sdc_replicated_uniques('everything', '(FROM everything)', keys := {columns[:size]})",
        )["r"] == pytest.approx(0.3679, abs=1e-4)


MEASURES = {
    "UiO": "uio", "UiS": "uis", "UiOiS": "uiois", "repU": "repu", "Dorig": "dorig", "Dsyn": "dsyn", "DiSCO": "disco",
    "DiSDiO": "disdio", "iS": "is_share", "DiS": "dis", "baseCAPd": "baseline", "CAPd": "cap_original", "CAPs": "weap",
    "DCAP": "dcap", "TCAP": "tcap_match",
}  # fmt: skip
"""Names of synthpop, which has per cent, and ours."""


@pytest.fixture(scope="module")
def synthpop(reference_data: Path) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, Any]]]:
    folder = reference_data / "synthpop"
    con = sdcduck.connect()
    for name, file in (
        ("original", "SD2011_12vars"),
        ("cart", "syn_cart"),
        ("parametric", "syn_parametric"),
        ("sample", "syn_sample"),
    ):
        if (folder / f"{file}.csv.gz").is_file():
            con.execute(f"CREATE TABLE {name} AS FROM read_csv('{folder}/{file}.csv.gz', nullstr := ['', 'NA'])")
    yield con, json.loads((folder / "index.json").read_text())["results"]
    con.close()


@pytest.mark.parametrize("method", ["cart", "sample"])
def test_replicated_uniques_as_synthpop_counts_them(
    synthpop: tuple[duckdb.DuckDBPyConnection, dict[str, Any]], method: str
) -> None:
    con, results = synthpop
    wanted = [row[0] for row in results[f"replicated_uniques_{method}"]["res_tab"]]
    found = one(con, f"FROM sdc_replicated_uniques('original', '{method}')")
    names = ("uniques_original", "uniques_synthetic", "uniques_found", "replicated")
    assert [found[name] for name in names] == wanted


@pytest.mark.parametrize("method", ["cart", "sample"])
def test_disclosure_as_synthpop_counts_it(
    synthpop: tuple[duckdb.DuckDBPyConnection, dict[str, Any]], method: str
) -> None:
    con, results = synthpop
    for target, figures in results[f"disclosure_{method}"]["targets"].items():
        found = one(
            con,
            f"FROM sdc_disclosure('original', '{method}', keys := ['sex', 'age', 'region', 'placesize'], sensitive := ['{target}'])",
        )
        theirs = {**figures["ident"], **figures["attrib"], **figures["allCAPs"]}
        assert {name: 100 * found[ours] for name, ours in MEASURES.items()} == pytest.approx(
            {name: theirs[name] for name in MEASURES}, abs=1e-6
        ), target


@pytest.mark.parametrize("method", ["cart", "sample"])
@pytest.mark.parametrize("keys", [["sex", "agegr", "region"], ["sex", "edu", "marital", "placesize"]])
def test_disclosure_of_few_categories_as_synthpop_counts_it(
    synthpop: tuple[duckdb.DuckDBPyConnection, dict[str, Any]], method: str, keys: list[str]
) -> None:
    con, results = synthpop
    figures = results[f"disclosure_cat_{method}"]
    found = one(
        con, f"FROM sdc_disclosure('original', '{method}', keys := {keys}, sensitive := ['{figures['target']}'])"
    )
    kinds = figures["keysets"]["_".join(keys)]
    theirs = {**kinds["ident"], **kinds["attrib"], **kinds["allCAPs"]}
    assert {name: 100 * found[ours] for name, ours in MEASURES.items()} == pytest.approx(
        {name: theirs[name] for name in MEASURES}, abs=1e-6
    )


def test_deterministic_figures_of_the_original(synthpop: tuple[duckdb.DuckDBPyConnection, dict[str, Any]]) -> None:
    con, _ = synthpop
    keys = "keys := ['sex', 'age', 'region', 'placesize']"
    for target, dorig, baseline in (("ls", 58.46, 29.81), ("marital", 79.24, 43.07), ("income", 51.38, 5.00)):
        found = one(con, f"FROM sdc_disclosure('original', 'original', {keys}, sensitive := ['{target}'])")
        assert 100 * found["dorig"] == pytest.approx(dorig, abs=0.005)
        assert 100 * found["baseline"] == pytest.approx(baseline, abs=0.006)
        assert 100 * found["uio"] == pytest.approx(48.38)
        assert (found["tcap"], found["disco"]) == (1.0, pytest.approx(found["dorig"]))


@pytest.fixture(scope="module")
def kept() -> Iterator[duckdb.DuckDBPyConnection]:
    """One connection for all examples of a property."""
    connection = sdcduck.connect()
    yield connection
    connection.close()


_VALUE = st.sampled_from(["a", "b", None])
_ROWS = st.lists(st.tuples(_VALUE, _VALUE, st.sampled_from([1, 2, None])), max_size=14)


def fill(con: duckdb.DuckDBPyConnection, original: list[Any], synthetic: list[Any]) -> None:
    """The tables po and px."""
    con.execute("CREATE OR REPLACE TABLE po (a VARCHAR, b VARCHAR, t INTEGER); CREATE OR REPLACE TABLE px AS FROM po")
    for table, records in (("po", original), ("px", synthetic)):
        if records:
            con.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", records)


@settings(max_examples=40, deadline=None)
@given(original=_ROWS, synthetic=_ROWS)
def test_the_figures_are_those_of_the_definitions(
    kept: duckdb.DuckDBPyConnection, original: list[Any], synthetic: list[Any]
) -> None:
    con = kept
    fill(con, original, synthetic)
    o, x = Counter(original), Counter(synthetic)
    oq, xq = Counter(row[:2] for row in original), Counter(row[:2] for row in synthetic)
    values = {q: {row[2] for row in x if row[:2] == q} for q in xq}
    risky = {q: next(iter(those)) for q, those in values.items() if len(those) == 1}
    hits, correct = sum(oq[q] for q in risky), sum(o[(*q, t)] for q, t in risky.items())
    n = len(original)
    found = one(con, "FROM sdc_disclosure('po', 'px', keys := ['a', 'b'], sensitive := ['t'])")
    targets = Counter(row[2] for row in original)
    wanted = {
        "tcap": correct / hits if hits else 0.0, "dis": hits / n if n else None, "disco": correct / n if n else None,
        "is_share": sum(oq[q] for q in xq) / n if n else None,
        "dcap": sum(x[cell] / xq[cell[:2]] * count for cell, count in o.items() if xq[cell[:2]]) / n if n else None,
        "weap": sum(count**2 / xq[cell[:2]] for cell, count in x.items()) / len(synthetic) if synthetic else None,
        "repu": sum(oq[q] == 1 == xq[q] for q in oq) / n if n else None,
        "baseline": sum((count / n) ** 2 for count in targets.values()) if n else None,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)
    if n:
        assert found["tcap"] + 1e-12 >= (found["tcap_match"] or 0) >= found["disco"] - 1e-12
        assert found["disco"] <= found["is_share"] + 1e-12
    matches = one(con, "FROM sdc_identical_matches('po', 'px')")
    assert matches["matches"] == sum(count for row, count in x.items() if row in o)
    assert matches["matches_of_uniques"] == sum(count for row, count in x.items() if o[row] == 1)
    assert matches["originals_matched"] == sum(count for row, count in o.items() if row in x)


def test_classes_that_do_not_quite_agree(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT 1 AS k, i < 6 AS t FROM range(10) r(i); CREATE TABLE x AS SELECT 1 AS k, i < 8 AS t FROM range(10) r(i)"
    )
    given = "'o', 'x', keys := ['k'], sensitive := ['t']"
    assert one(con, f"SELECT hits, correct FROM sdc_tcap({given})") == {"hits": 0, "correct": 0}
    assert one(con, f"SELECT hits, correct, tcap FROM sdc_tcap({given}, tau := 0.8)") == {
        "hits": 10,
        "correct": 6,
        "tcap": 0.6,
    }
    assert one(con, f"SELECT tcap FROM sdc_tcap({given}, tau := 0.8, weighting := 'synthetic')") == {"tcap": 0.6}


@settings(max_examples=40, deadline=None)
@given(original=_ROWS, synthetic=_ROWS, tau=st.sampled_from([0.3, 0.5, 0.7, 1.0]))
def test_the_records_behind_the_measures(
    kept: duckdb.DuckDBPyConnection, original: list[Any], synthetic: list[Any], tau: float
) -> None:
    fill(kept, original, synthetic)
    shared = f"'po', 'px', keys := ['a', 'b'], tau := {tau}, sensitive"
    figures = one(kept, f"FROM sdc_tcap({shared} := ['t'])")
    shares = one(kept, f"FROM sdc_disclosure({shared} := ['t'])")
    found = kept.execute(f"FROM sdc_tcap_records({shared} := 't')").fetchall()
    assert sorted(map(str, (row[:3] for row in found))) == sorted(map(str, original))
    by_keys = {row[:2]: Counter(other[2] for other in synthetic if other[:2] == row[:2]) for row in original}
    hits = right = modal_right = 0
    for a, b, value, matches, cap, agreement, guess, hit, correct, modal_correct in found:
        counts = by_keys[a, b]
        assert matches == counts.total()
        assert cap == (counts[value] / matches if matches else None)
        assert agreement == (max(counts.values()) / matches if matches else None)
        assert hit == (matches > 0 and max(counts.values()) >= tau * matches - 1e-9)
        # Of values that are equally frequent the first is taken, NULL last.
        wanted = min(counts, key=lambda one: (-counts[one], one is None, one or 0)) if hit else None
        assert guess == (None if wanted is None else str(wanted))
        assert correct == (wanted == value if hit else None)
        hits, right, modal_right = hits + hit, right + bool(correct), modal_right + (hit and modal_correct)
    assert (figures["hits"], figures["correct"]) == (hits, right)
    assert figures["modal_baseline"] == (modal_right / hits if hits else None)
    if original:
        assert shares["dcap"] == pytest.approx(sum(row[4] or 0 for row in found) / len(found))


def test_what_everybody_knows_is_flagged(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE o AS SELECT i % 40 AS place, CASE WHEN i % 40 < 20 THEN 'child' ELSE 'adult' END AS age,
            CASE WHEN i % 40 < 20 THEN 'pupil' ELSE 'job ' || i % 7 END AS job, i % 40 = 3 AS ill, i AS number
        FROM range(400) r(i)""")
    found = one(con, "FROM sdc_disclosure('o', 'o', keys := ['place', 'age'], sensitive := ['ill'])")
    assert (found["flag_1way"], found["marginal_tcap"]) == (True, 1.0)
    found = one(con, "FROM sdc_disclosure('o', 'o', keys := ['age'], sensitive := ['job'])")
    assert found["flag_2way"]
    assert "common knowledge" in found["warning"]
    assert (
        "group it" in one(con, "FROM sdc_disclosure('o', 'o', keys := ['place'], sensitive := ['number'])")["warning"]
    )
    assert one(con, "SELECT warning FROM sdc_disclosure('o', 'o', keys := ['age'], sensitive := ['place'])") == {
        "warning": None
    }


def test_nobody_hit_is_below_the_baseline(con: duckdb.DuckDBPyConnection) -> None:
    """TCAP is 0 then, which says as much as in `sdc_sample_curve`; of the synthetic records there is no mean."""
    con.execute("CREATE TABLE o AS SELECT i % 3 AS k, i // 3 % 2 AS t FROM range(12) r(i)")
    for function in ("sdc_tcap", "sdc_disclosure"):
        found = one(con, f"FROM {function}('o', 'o', keys := ['k'], sensitive := ['t'])")
        assert (found["tcap"], found["baseline"], found["marginal_tcap"]) == (0.0, 0.5, -1.0), function
    found = one(con, "FROM sdc_tcap('o', 'o', keys := ['k'], sensitive := ['t'], weighting := 'synthetic')")
    assert (found["tcap"], found["marginal_tcap"]) == (None, None)


def test_a_baseline_of_one_leaves_nothing_to_learn(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT i % 3 AS k, 'same' AS t FROM range(9) r(i)")
    found = one(con, "FROM sdc_tcap('o', 'o', keys := ['k'], sensitive := ['t'])")
    assert (found["tcap"], found["baseline"], found["marginal_tcap"], found["lift"], found["tcap_not_modal"]) == (
        1.0,
        1.0,
        None,
        0.0,
        None,
    )


def test_replicated_uniques_beside_those_of_a_holdout(fair: duckdb.DuckDBPyConnection) -> None:
    keys = f"keys := {KEYS}"
    found = one(
        fair,
        f"FROM sdc_replicated_uniques('(FROM o LIMIT 1500)', '(FROM o LIMIT 1500)', '(FROM x LIMIT 1500)', {keys})",
    )
    assert found["ru"] == found["p1"]
    assert 0 < found["ru_holdout"] < found["p1"] / 4
    assert found["lift"] == found["ru"] - found["ru_holdout"]
    half = one(
        fair,
        f"FROM sdc_replicated_uniques('(FROM o LIMIT 1500)', '(FROM o LIMIT 750)', {keys}, denominator := 'synthetic')",
    )
    assert half["ru"] == pytest.approx(100 * half["replicated"] / 750)
    assert half["ru_holdout"] is None


def test_nothing_in_the_tables(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o (k INTEGER, t VARCHAR)")
    assert one(con, "FROM sdc_identical_matches('o', 'o', 'o')")["share"] is None
    assert one(con, "FROM sdc_replicated_uniques('o', 'o', 'o')")["ru"] is None
    assert one(con, "FROM sdc_replicated_uniques('(SELECT 1 AS k)', 'o', keys := ['k'])")["ru_saturated"] == 0
    assert one(con, "FROM sdc_tcap('o', 'o', keys := ['k'], sensitive := ['t'])")["hits"] == 0
    assert one(con, "FROM sdc_disclosure('o', 'o', keys := ['k'], sensitive := ['t'])")["disco"] is None


def test_nan_is_null_and_types_may_differ(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE a AS SELECT 'NaN'::DOUBLE AS k, 'x' AS t; CREATE TABLE b AS SELECT NULL::DECIMAL(4,1) AS k, 'x'::ENUM('x') AS t"
    )
    assert one(con, "FROM sdc_identical_matches('a', 'b')")["matches"] == 1
    assert one(con, "FROM sdc_tcap('a', 'b', keys := ['k'], sensitive := ['t'])")["correct"] == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_tcap('o', 'x', sensitive := ['t'])", "argument 'keys' must name the columns"),
        ("sdc_tcap('o', 'x', keys := ['k1'])", "argument 'sensitive' must name the columns"),
        ("sdc_tcap('o', 'x', keys := ['k1'], sensitive := ['K1'])", "both a key and sensitive"),
        ("sdc_tcap('o', 'x', keys := ['k9'], sensitive := ['t'])", "unknown column 'k9'"),
        ("sdc_tcap('o', 'x', keys := ['k1'], sensitive := ['t'], tau := 0)", "argument 'tau'"),
        ("sdc_tcap('o', 'x', keys := ['k1'], sensitive := ['t'], weighting := 'both')", "argument 'weighting'"),
        ("sdc_tcap('o', 'x', keys := ['k1'], sensitive := ['t'], key_sizes := [2])", "from 1 to 1"),
        (
            "sdc_tcap('o', '(SELECT 1 AS k1, t FROM x)', keys := ['k1'], sensitive := ['t'])",
            "VARCHAR in 'original' and INTEGER in 'synthetic'",
        ),
        ("sdc_tcap_records('o', 'x', keys := ['k1'])", "argument 'sensitive' must name the column"),
        ("sdc_tcap_records('o', 'x', keys := ['k1'], sensitive := 'K1')", "both a key and sensitive"),
        ("sdc_tcap_records('o', 'x', keys := ['k1'], sensitive := 't9')", "unknown column 't9'"),
        (
            "sdc_tcap_records('(SELECT *, 1 AS cap FROM o)', 'x', keys := ['k1'], sensitive := 't')",
            "a column called 'cap' is also one of the result",
        ),
        ("sdc_disclosure('o', 'x', keys := ['k1', 'k1'], sensitive := ['t'])", "twice"),
        ("sdc_disclosure('o', 'y', keys := ['k1'], sensitive := ['t'])", "unknown table 'y'"),
        ("sdc_replicated_uniques('o', 'x', denominator := 'all')", "argument 'denominator'"),
        ("sdc_replicated_uniques('o', 'x', '(SELECT 1 AS z)')", "no column in common"),
        ("sdc_identical_matches('o', NULL)", "argument 'synthetic' must name a table"),
    ],
)
def test_what_cannot_be_counted_is_said(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(EXAMPLE)
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM {call}").fetchall()


def test_tables_of_public_data_as_published(synthpop: tuple[duckdb.DuckDBPyConnection, dict[str, Any]]) -> None:
    """Cells, empty cells and uniques of the tables S3, S5 and S7 of Raab (2022), where NULL is a value."""
    con, _ = synthpop
    cut = "(SELECT sex, width_bucket, placesize, edu, socprof, grouped, marital FROM (SELECT *, {}, {} FROM original))".format(
        "CASE WHEN age < 28 THEN 1 WHEN age < 42 THEN 2 WHEN age < 54 THEN 3 WHEN age < 64 THEN 4 ELSE 5 END AS width_bucket",
        "CASE WHEN income = -8 THEN -8 WHEN income < 860 THEN 1 WHEN income < 1200 THEN 2 WHEN income < 1500 THEN 3 "
        "WHEN income < 2000 THEN 4 WHEN income IS NOT NULL THEN 5 END AS grouped",
    )
    columns = ["sex", "width_bucket", "placesize", "edu", "socprof", "grouped", "marital"]
    for size, cells, uniques, p1, p0 in (
        (3, 60, 0, 0, 0),
        (5, 3000, 337, 6.74, 68.23),
        (7, 147000, 1792, 35.84, 98.20),
    ):
        found = one(con, f"FROM sdc_replicated_uniques('{cut}', '{cut}', keys := {columns[:size]})")
        assert (found["cells"], found["uniques_original"]) == (cells, uniques)
        assert (found["p1"], found["p0"]) == pytest.approx((p1, p0), abs=0.005)


def test_more_keys_never_make_the_original_less_disclosive(fair: duckdb.DuckDBPyConnection) -> None:
    shares = [
        one(fair, f"SELECT dorig FROM sdc_disclosure('o', 'x', keys := {KEYS[:size]}, sensitive := ['religious'])")[
            "dorig"
        ]
        for size in range(1, 7)
    ]
    assert shares == sorted(shares)


def test_keys_that_say_nothing_attribute_as_the_marginal_does(con: duckdb.DuckDBPyConnection) -> None:
    """Targets dealt out again among the synthetic records: of keys that one of them has, the baseline is right as often."""
    con.execute("""
        CREATE TABLE o AS SELECT hash(i) % 300 AS k1, hash(3 * i) % 20 AS k2, ['a', 'a', 'a', 'b', 'b', 'c'][1 + (hash(5 * i) % 6)::INTEGER] AS t
        FROM range(20000) r(i);
        CREATE TABLE x AS SELECT hash(7 * i) % 300 AS k1, hash(11 * i) % 20 AS k2, ['a', 'a', 'a', 'b', 'b', 'c'][1 + (hash(13 * i) % 6)::INTEGER] AS t
        FROM range(6000) r(i);
        CREATE TABLE single AS FROM x QUALIFY count(*) OVER (PARTITION BY k1, k2) = 1""")
    found = one(con, "FROM sdc_tcap('o', 'single', keys := ['k1', 'k2'], sensitive := ['t'])")
    assert found["hits"] > 3000
    error = (found["baseline"] * (1 - found["baseline"]) / found["hits"]) ** 0.5
    assert abs(found["tcap"] - found["baseline"]) < 4 * error
    assert abs(found["marginal_tcap"]) < 4 * error / (1 - found["baseline"])
    # With all records somewhat more: classes of several that agree are mostly of the most frequent value.
    assert one(con, "FROM sdc_tcap('o', 'x', keys := ['k1', 'k2'], sensitive := ['t'])")["tcap"] > found["tcap"]


@settings(max_examples=12, deadline=None)
@given(original=_ROWS, synthetic=_ROWS)
def test_relabelling_and_order_change_no_attribution(
    kept: duckdb.DuckDBPyConnection, original: list[Any], synthetic: list[Any]
) -> None:
    con = kept
    fill(con, original, synthetic)
    for table in ("po", "px"):
        con.execute(
            f"CREATE OR REPLACE TABLE other_{table} AS SELECT 7 - t AS t, md5(b) AS b, 'k' || a AS a FROM {table} ORDER BY random()"
        )
    for call in (
        "sdc_disclosure('{}po', '{}px', keys := ['a', 'b'], sensitive := ['t'])",
        "sdc_tcap('{}po', '{}px', keys := ['a', 'b'], sensitive := ['t'])",
        "sdc_replicated_uniques('{}po', '{}px', keys := ['a', 'b', 't'])",
    ):
        there, renamed = (one(con, "FROM " + call.format(prefix, prefix)) for prefix in ("", "other_"))
        # The modal guess names the first in order of several most frequent values, which renaming changes.
        ties = ("modal_baseline", "lift", "tcap_not_modal", "warning", "ci_low", "ci_high")
        keep = [name for name in there if name not in ties]
        assert [there[name] for name in keep] == pytest.approx([renamed[name] for name in keep]), call
        marginal = there.get("marginal_tcap")
        assert marginal is None or marginal <= 1 + 1e-12
