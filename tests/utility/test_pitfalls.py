"""How single numbers mislead: the claims of Drechsler (2022) on a survey that is made up, and four syntheses of it.

The extract of the Current Population Survey is not public in a form that could be had here, and the figures of the paper
depend on it: one-variable ratios of over 260 and of 7.66, whole-file ratios of 39.76 and 6.06. What must come out again is
which measure prefers which file. That five groups may hide a lost spike is in ``test_measures.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

import sdcduck

NAMES = ["sex", "race", "marital", "education", "age", "social", "tax", "income"]
CATEGORIES = NAMES[:4]
NUMBERS = NAMES[4:]
Table = dict[str, np.ndarray]


def logistic(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def survey(stream: np.random.Generator, n: int = 5000) -> Table:
    """Heads of households: skewed incomes, a property tax that many do not pay, social security that few have."""
    age = np.clip(np.rint(stream.gamma(9, 5, n) + 8), 15, 90)
    sex = (stream.random(n) < 0.45).astype(float)
    education = stream.choice(4, n, p=[0.2, 0.4, 0.25, 0.15]).astype(float)
    marital = np.where(stream.random(n) < logistic((age - 30) / 12), stream.choice(4, n, p=[0.7, 0.15, 0.1, 0.05]), 4)
    race = (stream.random(n) < 0.15).astype(float)
    income = np.exp(9.3 + 0.35 * education + 0.3 * (marital == 0) + 0.02 * (age - 45) - 0.0006 * (age - 45) ** 2
                    + stream.normal(0, 0.8, n)) + 1  # fmt: skip
    owns = stream.random(n) < logistic(-2 + 0.03 * age + 0.4 * (income > 30_000))
    tax = np.where(owns, np.exp(stream.normal(6.5, 1.1, n)), 0)
    retired = stream.random(n) < logistic((age - 64) * 1.5)
    social = np.where(retired, np.exp(stream.normal(9, 0.4, n)), 0)
    return dict(zip(NAMES, (sex, race, marital.astype(float), education, age, np.rint(social), np.rint(tax), np.rint(income)),
                    strict=True))  # fmt: skip


def design(table: Table, names: list[str], root: bool) -> np.ndarray:
    columns = [np.ones(len(table["sex"]))]
    for name in names:
        values = table[name]
        if name in CATEGORIES:
            columns += [(values == level).astype(float) for level in range(1, 5)]
        else:
            columns.append(np.cbrt(values) if root else values / 1000)
    return np.column_stack(columns)


def drawn_category(real: Table, made: Table, name: str, before: list[str], stream: np.random.Generator) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e6, max_iter=300)
    scale = np.maximum(np.abs(design(real, before, False)).max(axis=0), 1e-9)
    model.fit(design(real, before, False) / scale, real[name])
    chances = model.predict_proba(design(made, before, False) / scale).cumsum(axis=1)
    places = (stream.random(len(chances))[:, None] > chances).sum(axis=1)
    return np.asarray(model.classes_[np.minimum(places, len(model.classes_) - 1)])


def synthesised(real: Table, stream: np.random.Generator, *, root: bool, stages: bool) -> Table:
    """One variable after the other: normal regressions and logistic ones.

    Args:
        root: regressions are of cube roots.
        stages: whether there is anything at all is drawn before how much there is.
    """
    n = len(real["sex"])
    made = {"sex": stream.choice(real["sex"], n)}
    for place, name in enumerate(NAMES[1:], start=1):
        before = NAMES[:place]
        if name in CATEGORIES:
            made[name] = drawn_category(real, made, name, before, stream)
            continue
        positive = np.ones(n, bool)
        kept = positive
        if stages and name in ("social", "tax"):
            some = {**real, name: (real[name] > 0).astype(float)}
            positive = drawn_category(some, made, name, before, stream) > 0
            kept = real[name] > 0
        x, y = design(real, before, root)[kept], real[name][kept]
        y = np.cbrt(y) if root else y
        beta, *_ = np.linalg.lstsq(x, y, rcond=None)
        spread = np.sqrt(((y - x @ beta) ** 2).sum() / (len(y) - np.linalg.matrix_rank(x)))
        values = design(made, before, root) @ beta + stream.normal(0, spread, n)
        made[name] = np.where(positive, np.rint(values**3 if root else values), 0)
    return made


@pytest.fixture(scope="module")
def files() -> Iterator[duckdb.DuckDBPyConnection]:
    pytest.importorskip("sklearn")
    con = sdcduck.connect(secret="the secret of the tests")
    stream = np.random.default_rng(2022)
    real = survey(stream)
    made = {
        "o": real, "naive": synthesised(real, stream, root=False, stages=False),
        "rooted": synthesised(real, stream, root=True, stages=False),
        "staged": synthesised(real, stream, root=True, stages=True),
    }  # fmt: skip
    for name, table in made.items():
        con.register("held", {column: values.astype(np.int64) for column, values in table.items()})
        con.execute(f"CREATE TABLE {name} AS FROM held")
    con.unregister("held")
    con.execute(f"CREATE TABLE cart AS FROM sdc_synth_records('o', visit := {NAMES}, seed := 7)")
    yield con
    con.close()


FILES = ("naive", "rooted", "staged", "cart")


def columns_of(con: duckdb.DuckDBPyConnection, name: str) -> dict[str, tuple[float, float, int]]:
    """By variable: the ratio over five groups, the distance of the distribution functions, negative values."""
    rows = con.execute(
        f"SELECT column_name, pmse_ratio, ks, negative FROM sdc_utility_columns('o', '{name}', columns := {NUMBERS})"
    ).fetchall()
    return {row[0]: row[1:] for row in rows}


def ratio(con: duckdb.DuckDBPyConnection, name: str, more: str = "") -> float | None:
    found = con.execute(f"SELECT pmse_ratio FROM sdc_pmse('o', '{name}', categorical := {CATEGORIES}{more})").fetchone()
    assert found is not None
    return None if found[0] is None else float(found[0])


def test_a_logistic_model_prefers_the_file_with_the_worst_margins(files: duckdb.DuckDBPyConnection) -> None:
    naive, rooted = columns_of(files, "naive"), columns_of(files, "rooted")
    assert naive["income"][0] > 100 > rooted["income"][0]
    assert naive["income"][2] > 100 > rooted["income"][2]
    main = {name: ratio(files, name) for name in ("naive", "rooted")}
    assert main["naive"] is not None
    assert main["rooted"] is not None
    assert main["naive"] < 3
    assert main["rooted"] > 5 * main["naive"]
    warning = files.execute(f"SELECT warning FROM sdc_pmse('o', 'naive', categorical := {CATEGORIES})").fetchone()
    assert warning is not None
    assert "blind to the shape of" in warning[0]


def test_a_large_tree_sees_no_difference_where_margins_see_much(files: duckdb.DuckDBPyConnection) -> None:
    large = ", model := 'tree', ccp_alpha := 1e-7, permutations := 6, seed := 1"
    found = {name: ratio(files, name, large) for name in FILES}
    assert found["naive"] == pytest.approx(found["rooted"], rel=0.2)
    # Trees rank the synthesis by trees before all regressions, the logistic model one of these before it.
    assert found["cart"] == min(found.values())  # type: ignore[type-var]
    assert min(FILES, key=lambda name: ratio(files, name) or 0) != "cart"


def test_a_small_tree_has_no_ratio_at_all(files: duckdb.DuckDBPyConnection) -> None:
    found = files.execute(
        f"SELECT pmse, pmse_ratio, no_split, warning FROM sdc_pmse('o', 'naive', categorical := {CATEGORIES}, model := 'tree', "
        "ccp_alpha := 0.01, permutations := 5, seed := 1)"
    ).fetchone()
    assert found is not None
    assert found[0] > 0.1
    assert found[1:3] == (None, 5)
    assert "no permuted tree has a split" in found[3]


def test_a_column_of_zeros_has_groups_of_equal_width(files: duckdb.DuckDBPyConnection) -> None:
    # Over three quarters of the heads have no social security: quantiles collapse to fewer than three groups.
    (share,) = files.execute("SELECT avg((social = 0)::INTEGER) FROM o").fetchone()  # type: ignore[misc]
    assert share > 0.75
    assert columns_of(files, "staged")["social"][0] < 10 < 1000 < columns_of(files, "rooted")["social"][0]


def test_regressions_may_rank_the_files_in_another_order(files: duckdb.DuckDBPyConnection) -> None:
    def outcomes(name: str) -> tuple[float, float]:
        log = "(SELECT ln(greatest(income, 1)) AS income, sex, education, age FROM {})"
        rows = files.execute(
            "SELECT avg(cio), avg(abs(z)) FROM sdc_utility_regression($o, $s, outcome := 'income', "
            "predictors := ['sex', 'education', 'age'], categorical := ['sex', 'education'])",
            {"o": log.format("o"), "s": log.format(name)},
        ).fetchone()
        assert rows is not None
        return rows[0], rows[1]

    found = {name: outcomes(name) for name in FILES}
    assert found["naive"][0] == min(cio for cio, _ in found.values())
    assert found["naive"][1] == max(masd for _, masd in found.values())
    assert found["cart"][0] > 2 * found["naive"][0]


def test_the_profile_never_has_one_number_alone(files: duckdb.DuckDBPyConnection) -> None:
    rows = files.execute(
        f"SELECT measure, warning FROM sdc_utility_profile('o', 'naive', categorical := {CATEGORIES}, permutations := 3, seed := 1)"
    ).fetchall()
    assert len(rows) > 3
    said = " ".join(warning or "" for _, warning in rows)
    assert "models disagree by a factor of more than 3" in said
    assert "income" in said
