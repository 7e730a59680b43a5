"""What a model adds to what can be guessed: by hand, where it must be found, where there is nothing, and on public data."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from effort import times

from sdcduck.methods.models.forests import votes
from sdcduck.methods.models.scores import by_shares, guessed, predicted

HAND = {("a", 1): (40, 10), ("a", 0): (10, 40), ("b", 1): (30, 30), ("b", 0): (20, 20)}
"""By what is known and what the model says, how many are M and F."""


def by_attack(con: duckdb.DuckDBPyConnection, arguments: str) -> dict[str, dict[str, Any]]:
    result = con.execute(f"FROM sdc_attribute_inference({arguments})")
    names = [column[0] for column in result.description]
    return {row[0]: dict(zip(names, row, strict=True)) for row in result.fetchall()}


def test_the_hand_example(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE people (z VARCHAR, said INTEGER, s VARCHAR)")
    for (z, said), numbers in HAND.items():
        for s, number in zip("MF", numbers, strict=True):
            con.execute(f"INSERT INTO people SELECT '{z}', {said}, '{s}' FROM range({number})")
    found = by_attack(con, "'people', 'people', sensitive := 's', keys := ['z'], prediction := 'said', repeats := 2")
    assert found["random"]["accuracy"] == 0.5
    assert found["random"]["recall_macro"] == 0.5
    assert found["baseline"]["accuracy"] == pytest.approx(0.5)
    assert found["black_box"]["accuracy"] == pytest.approx(0.65)
    assert found["black_box"]["gain"] == pytest.approx(0.15)
    assert found["black_box"]["gain_over"] == "baseline"
    assert found["baseline"]["gain"] == pytest.approx(0)
    assert "true record" in found["black_box"]["warning"]
    # Without the model: what the records alone tell.
    assert list(by_attack(con, "'people', 'people', sensitive := 's', keys := ['z'], repeats := 1")) == [
        "random",
        "baseline",
    ]


def test_what_being_in_the_training_data_costs(con: duckdb.DuckDBPyConnection) -> None:
    """The model knows what is sensitive of its members by heart; of others it says what comes to it."""
    con.execute(
        "CREATE TABLE asked AS SELECT i % 2 = 0 AS inside, hash(i) % 3 AS z, hash(i + 7) % 2 AS s, "
        "CASE WHEN i % 2 = 0 THEN hash(i + 7) % 2 ELSE hash(i + 99) % 2 END AS said FROM range(800) r(i)"
    )
    arguments = "sensitive := 's', keys := ['z'], prediction := 'said', repeats := 3, trees := 10"
    query = (
        "SELECT people, attack, gain_over, round(gain, 9), ci_low, ci_high, recall_gain FROM sdc_attribute_inference"
    )
    found = con.execute(f"{query}('asked', {arguments}, member := 'inside')").fetchall()
    rows = {row[:2]: row for row in found}
    assert len(rows) == len(found) == 7
    for people, of in (("members", ""), ("others", "NOT ")):
        alone = con.execute(f"{query}('(SELECT * EXCLUDE inside FROM asked WHERE {of}inside)', {arguments})").fetchall()
        assert [rows[people, row[1]][1:] for row in alone] == [row[1:] for row in alone]
    _, _, over, more, low, high, recall = rows["membership", "black_box"]
    assert over == "others"
    assert more == pytest.approx(rows["members", "black_box"][3] - rows["others", "black_box"][3], abs=1e-8)
    assert recall == pytest.approx(rows["members", "black_box"][6] - rows["others", "black_box"][6])
    assert 0.25 < low < more < high
    # One repetition has no interval.
    once = con.execute(f"{query}('asked', {arguments.replace('repeats := 3', 'repeats := 1')}, member := 'inside')")
    assert once.fetchall()[-1][4:6] == (None, None)


def test_scores_are_those_of_scikit_learn() -> None:
    from sklearn import metrics

    chance = np.random.default_rng(1)
    for _ in range(5):
        truth, guess = chance.integers(0, 4, 60), chance.integers(1, 6, 60)
        found = guessed(truth, guess)
        assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, guess))
        assert found.precision == pytest.approx(metrics.precision_score(truth, guess, average="macro", zero_division=0))
        assert found.recall == pytest.approx(metrics.recall_score(truth, guess, average="macro", zero_division=0))
        true, score = chance.random(60) < 0.4, np.round(chance.random(60), 1)
        one = predicted(true, score, score > 0.5)
        assert (one.auc, one.mcc, one.f1) == pytest.approx(
            (
                metrics.roc_auc_score(true, score),
                metrics.matthews_corrcoef(true, score > 0.5),
                metrics.f1_score(true, score > 0.5),
            )
        )


def test_random_guesses() -> None:
    shares = np.repeat([0, 1, 2, 3], [380, 356, 160, 103])
    # The shares of the example add up to .999, so that those of 999 people are by a thousandth larger.
    assert by_shares(shares, shares).accuracy == pytest.approx(0.3073 * (1000 / 999) ** 2, abs=1e-4)
    # Whatever the shares, one in |S| is found of each.
    assert by_shares(shares, np.array([0, 1, 2, 3])).recall == pytest.approx(0.25)
    # Of a value that the attacker never saw, nobody.
    assert by_shares(np.array([0, 0]), np.array([0, 1])).recall == 0.5


def test_the_forest_guesses_as_that_of_scikit_learn() -> None:
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    data, target = load_iris(return_X_y=True)
    data = data.astype(np.float32)
    half = np.arange(150) % 2 == 0
    ours = votes(data[half], target[half].astype(np.int64), data[~half], 100, 1, 1, lambda: None)
    theirs = RandomForestClassifier(random_state=0).fit(data[half], target[half]).predict_proba(data[~half])
    assert ours.sum(axis=1) == pytest.approx(np.ones(75))
    assert np.abs(ours - theirs).max() < 0.2
    assert np.abs(ours - theirs).mean() < 0.02
    again = votes(data[half], target[half].astype(np.int64), data[~half], 100, 1, 3, lambda: None)
    assert (ours == again).all()


def stored(con: duckdb.DuckDBPyConnection, name: str, columns: list[str], rows: Any) -> None:
    """Numbers as a table."""
    con.register("rows", pa.table(dict(zip(columns, rows.T, strict=True))))
    con.execute(f"CREATE TABLE {name} AS FROM rows")
    con.unregister("rows")


def made_up(con: duckdb.DuckDBPyConnection, *, leaks: bool) -> None:
    """A thousand of the attacker and as many victims, and what a tree of one split says of them."""
    from sklearn.tree import DecisionTreeClassifier

    chance = np.random.default_rng(4)
    s, normals = chance.integers(0, 2, 4000), chance.normal(size=(4000, 3))
    y = s ^ (chance.random(4000) < 0.1) if leaks else chance.integers(0, 2, 4000)
    given = np.column_stack([s, normals]) if leaks else normals
    said = DecisionTreeClassifier(max_depth=1).fit(given[:2000], y[:2000]).predict(given)
    rows = np.column_stack([s, normals, said])
    stored(con, "made", ["s", "a", "b", "c", "said", "part"], np.column_stack([rows, np.arange(4000) // 1000]))


CALL = "'(FROM made WHERE part = 2)', '(FROM made WHERE part = 3)', sensitive := 's', keys := ['a', 'b', 'c'], prediction := 'said', repeats := {}, trees := {}"


def test_what_must_be_detected(con: duckdb.DuckDBPyConnection) -> None:
    made_up(con, leaks=True)
    found = by_attack(con, CALL.format(1, 20))
    assert found["baseline"]["accuracy"] <= 0.55
    assert found["black_box"]["accuracy"] >= 0.99
    assert (found["baseline"]["accuracy_sd"], found["baseline"]["ci_low"]) == (None, None)


def test_the_negative_control(con: duckdb.DuckDBPyConnection) -> None:
    made_up(con, leaks=False)
    halves = CALL.format(times(5, 10), times(20, 100)).replace("part = 2)', '(FROM made WHERE part = 3)", "part > 1)")
    found = by_attack(con, halves)
    assert abs(found["black_box"]["gain"]) <= 0.03


def fair(con: duckdb.DuckDBPyConnection) -> None:
    """Survey data that come with statsmodels, in an order that says nothing, and what a tree says that knows half of them."""
    datasets = pytest.importorskip(
        "statsmodels.api", reason="statsmodels, which has these data, is not installed"
    ).datasets
    frame = datasets.fair.load_pandas().data
    con.register("frame", frame)
    con.execute(
        "CREATE TABLE fair AS SELECT * EXCLUDE (affairs), (affairs > 0)::INTEGER AS y, row_number() OVER () * 7919 % 6367 % 2 AS outside FROM frame"
    )
    con.unregister("frame")


@pytest.mark.long
@pytest.mark.parametrize(
    ("sensitive", "inside", "outside"),
    [
        ("religious", (0.321, 0.343, 0.396, 0.389), (0.306, 0.338, 0.388, 0.374)),
        ("occupation", (0.308, 0.515, 0.534, 0.537), (0.301, 0.499, 0.522, 0.523)),
    ],
)
def test_a_survey(
    con: duckdb.DuckDBPyConnection, sensitive: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    # The model is a tree with leaves of 5, fitted to half of the women, or to synthetic records of theirs: five halves.
    from sklearn.tree import DecisionTreeClassifier

    fair(con)
    columns = [row[0] for row in con.execute("DESCRIBE fair").fetchall()][:-1]
    keys = [name for name in columns[:8] if name != sensitive]
    everybody = np.array(con.execute("SELECT * EXCLUDE (outside) FROM fair ORDER BY ALL").fetchall(), dtype=float)
    found = []
    for seed in range(5):
        data = everybody[np.random.default_rng(seed).permutation(len(everybody))]
        half = data[: len(data) // 2]
        con.execute("DROP TABLE IF EXISTS half; DROP TABLE IF EXISTS asked")
        stored(con, "half", columns, half)
        made = np.array(
            con.execute(f"FROM sdc_synth_records('half', seed := {seed}) ORDER BY ALL").fetchall(), dtype=float
        )
        trees = [DecisionTreeClassifier(min_samples_leaf=5, random_state=seed) for _ in range(2)]
        said = [
            tree.fit(rows[:, :8], rows[:, 8]).predict(data[:, :8])
            for tree, rows in zip(trees, (half, made), strict=True)
        ]
        place = np.arange(len(data)) >= len(half)
        stored(con, "asked", [*columns, "real", "made", "outside"], np.column_stack([data, *said, place]))
        for part in (0, 1):
            call = f"'(FROM asked WHERE outside = {part})', sensitive := '{sensitive}', keys := {keys}, repeats := 1, seed := {seed}"
            real, fake = (by_attack(con, f"{call}, prediction := '{name}'") for name in ("real", "made"))
            found.append([*(real[attack]["accuracy"] for attack in real), fake["black_box"]["accuracy"]])
    for part, wanted in enumerate((inside, outside)):
        mean = np.mean(found[part::2], axis=0)
        assert mean == pytest.approx(wanted, abs=0.03)
        assert mean[0] < mean[1] < min(mean[2:])
        assert abs(mean[2] - mean[3]) < 0.03


@pytest.mark.long
def test_training_on_synthetic_records_of_a_survey(con: duckdb.DuckDBPyConnection) -> None:
    fair(con)
    columns = ", ".join(row[0] for row in con.execute("DESCRIBE fair").fetchall()[:-1])
    con.execute(
        f"CREATE TABLE made AS FROM sdc_synth_records('(SELECT {columns} FROM fair WHERE outside = 0 ORDER BY ALL)', "
        "unique_copies := true, seed := 5)"
    )
    call = f"'(SELECT {columns} FROM fair WHERE outside = 0)', 'made', '(SELECT {columns} FROM fair WHERE outside = {{}})', 'y', models := ['tree']"
    outside, inside = (
        [row[0] for row in con.execute(f"SELECT auc FROM sdc_tstr({call.format(part)})").fetchall()] for part in (1, 0)
    )
    assert outside == pytest.approx([0.664, 0.657], abs=0.03)
    assert inside == pytest.approx([0.881, 0.734], abs=0.03)
    assert abs(outside[0] - outside[1]) < 0.03


def test_any_columns_and_any_threads(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE mixed AS SELECT CASE WHEN i % 7 > 0 THEN 'city' || i % 5 END AS place, DATE '2020-01-01' + i::INTEGER AS day, "
        "i % 2 = 0 AS flag, CASE WHEN i % 3 > 0 THEN 1e300 * i END AS wild, chr(65 + i::INTEGER % 30) AS many, "
        "(i % 5)::VARCHAR AS s, i % 4 AS said FROM range(200) r(i)"
    )
    call = "'mixed', sensitive := 's', prediction := 'said', repeats := 2, trees := 8, seed := 3"
    found = by_attack(con, call)
    assert found["baseline"]["accuracy"] > found["random"]["accuracy"]
    con.execute("SET threads = 1")
    con.execute("CREATE OR REPLACE TABLE mixed AS FROM mixed ORDER BY many, day DESC")
    assert by_attack(con, call) == found
    assert by_attack(con, call.replace("seed := 3", "seed := 4")) != found


def test_every_kind_of_model(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT i % 10 AS x, 'k' || i % 3 AS k, CASE WHEN i % 10 > 5 THEN 'yes' ELSE 'no' END AS y FROM range(90) r(i)"
    )
    con.execute("CREATE TABLE s AS SELECT * REPLACE (CASE WHEN x > 3 THEN 'yes' ELSE 'no' END AS y) FROM o")
    kinds = ["random", "naive_bayes", "tree", "forest", "extra_trees", "knn", "logistic"]
    call = f"FROM sdc_tstr('o', 's', 'o', 'y', models := {kinds}, seed := 2)"
    rows = con.execute(call).fetchall()
    assert [row[:3] for row in rows] == [(kind, trained, 90) for kind in kinds for trained in ("original", "synthetic")]
    for kind, trained, _, auc, mcc, f1, accuracy, warning in rows:
        assert warning is None
        if kind in ("tree", "forest", "extra_trees") and trained == "original":
            assert (auc, mcc, f1, accuracy) == (1, 1, 1, 1)
        elif kind == "random":
            assert abs(auc - 0.5) < 0.2
        elif trained == "synthetic":
            assert accuracy == pytest.approx(0.8, abs=0.06)
    assert con.execute(call).fetchall() == rows
    # The other value is looked for: everything is the other way round, but what is symmetric.
    no = con.execute(
        "SELECT auc, mcc, f1 FROM sdc_tstr('o', 's', 'o', 'y', models := 'tree', positive := 'no')"
    ).fetchall()
    assert no[0] == (1, 1, 1)


def test_where_nothing_can_be_learned(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT i AS x, i > 4 AS y FROM range(9) r(i)")
    rows = con.execute(
        "SELECT trained_on, auc, warning FROM sdc_tstr('o', '(FROM o WHERE y)', 'o', 'y', models := ['tree'])"
    ).fetchall()
    assert rows[1] == ("synthetic", None, "all of these records have the same outcome: nothing can be learned")
    rows = con.execute(
        "SELECT auc, accuracy, warning FROM sdc_tstr('o', 'o', '(FROM o WHERE y)', 'y', models := ['naive_bayes'])"
    ).fetchall()
    assert rows[0][::2] == (None, "all of the holdout has the same outcome")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_attribute_inference('p')", "'sensitive' must name the column"),
        ("sdc_attribute_inference('p', sensitive := 'z')", "unknown column 'z'"),
        ("sdc_attribute_inference('p', 'q', sensitive := 's')", "unknown table 'q'"),
        ("sdc_attribute_inference('p', sensitive := 's', keys := ['s'])", "cannot be among the keys"),
        ("sdc_attribute_inference('p', sensitive := 's', keys := ['k'], prediction := 'k')", "cannot be among the keys"),
        ("sdc_attribute_inference('p', sensitive := 's', prediction := 's')", "cannot be both"),
        ("sdc_attribute_inference('p', sensitive := 's', keys := ['k', 'k'])", "names column 'k' twice"),
        ("sdc_attribute_inference('p', sensitive := 'one', keys := ['k'])", "has one value only"),
        ("sdc_attribute_inference('p', sensitive := 'hole', keys := ['k'])", "holds NULL"),
        ("sdc_attribute_inference('p', sensitive := 'id', keys := ['k'])", "more than 100 values"),
        ("sdc_attribute_inference('(FROM p LIMIT 3)', sensitive := 's', keys := ['k'])", "too few records"),
        ("sdc_attribute_inference('p', '(FROM p WHERE id < 0)', sensitive := 's', keys := ['k'])", "too few records"),
        ("sdc_attribute_inference('p', sensitive := 's', member := 'one')", "it needs 'prediction'"),
        ("sdc_attribute_inference('p', 'p', sensitive := 's', prediction := 'k', member := 'id')", "leaves out 'victims'"),
        ("sdc_attribute_inference('p', sensitive := 's', prediction := 'k', member := 'id')", "must name a BOOLEAN column"),
        ("sdc_attribute_inference('p', sensitive := 's', prediction := 'k', member := 's')", "cannot be anything else"),
        ("sdc_attribute_inference('(SELECT *, id = 1 AS m FROM p)', sensitive := 's', keys := ['k'], prediction := 'one', member := 'm')", "at least 4 members"),
        ("sdc_attribute_inference('(SELECT *, CASE WHEN id > 1 THEN id > 5 END AS m FROM p)', sensitive := 's', keys := ['k'], prediction := 'one', member := 'm')", "holds NULL"),
        ("sdc_attribute_inference('p', sensitive := 's', repeats := 0)", "'repeats' must be a whole number"),
        ("sdc_attribute_inference('p', sensitive := 's', trees := 0)", "'trees' must be a whole number"),
        ("sdc_attribute_inference('p', sensitive := 's', confidence := 95)", "95 per cent is 0.95"),
        ("sdc_attribute_inference('p', sensitive := 's', seed := -1)", "'seed' must be"),
        ("sdc_attribute_inference('p', sensitive := 's', keys := ['wild'])", "infinite values"),
        ("sdc_attribute_inference('p', '(SELECT * REPLACE (''x'' AS k) FROM p)', sensitive := 's', keys := ['k'])", "is BIGINT in 'attacker' and VARCHAR in 'victims'"),
        ("sdc_tstr('p', 'p', NULL, 's')", "'holdout' must name a table"),
        ("sdc_tstr('p', 'p', 'p')", "'outcome' must name the column"),
        ("sdc_tstr('p', 'p', 'p', 's', columns := ['s'])", "cannot be predicted by itself"),
        ("sdc_tstr('p', 'p', 'p', 's', columns := ['k'], models := ['svm'])", "'models' must hold 'random'"),
        ("sdc_tstr('p', 'p', 'p', 's', columns := ['k'], models := [])", "'models' must name some of"),
        ("sdc_tstr('p', 'p', 'p', 'id', columns := ['k'])", "say which one 'positive' is"),
        ("sdc_tstr('p', 'p', 'p', 's', columns := ['k'], positive := 'maybe')", "'positive' must be a value of column 's'"),
        ("sdc_tstr('p', 'p', 'p', 'hole', columns := ['k'])", "holds NULL"),
        ("sdc_tstr('p', '(FROM p WHERE id < 0)', 'p', 's', columns := ['k'])", "one of the tables has no records"),
        ("sdc_tstr('p', 'p', 'p', 's', columns := ['k'], seed := 5000000000)", "'seed' must be"),
    ],
)  # fmt: skip
def test_wrong_arguments(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE p AS SELECT i AS id, i % 3 AS k, i % 2 AS s, 7 AS one, CASE WHEN i > 3 THEN i % 2 END AS hole, "
        "CASE WHEN i = 1 THEN 'inf'::DOUBLE ELSE i END AS wild FROM range(150) r(i)"
    )
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM {call}").fetchall()


@pytest.mark.parametrize("positive", ["1", "1.0", " 1 "])
def test_a_positive_number(con: duckdb.DuckDBPyConnection, positive: str) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS x, i % 3 AS y FROM range(60) r(i)")
    rows = con.execute(
        f"SELECT f1 FROM sdc_tstr('p', 'p', 'p', 'y', positive := '{positive}', models := ['random'])"
    ).fetchall()
    assert rows[0] == rows[1]
