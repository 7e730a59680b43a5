"""The verdicts of reports: what is a sign, what is a hint, and that nothing is called good that nobody looked at."""

from __future__ import annotations

import pytest

from sdcduck.errors import SDCError
from sdcduck.report.html import rounded, said
from sdcduck.report.verdicts import Row, of_release
from sdcduck.udfs.report.release import _in_our_words

EQUAL = "share of records that equal an original"
INFERRED = "inference, risk over the control"
CLOSER = "share closer to the originals than to the holdout"
ACCURATE = "accuracy of tables of 2 columns, mean"


def row(section: str, measure: str, value: float | None, baseline: float | None = None, **more: object) -> Row:
    given = {
        "about": None,
        "low": None,
        "high": None,
        "baseline_is": None,
        "warning": None,
        "function": "sdc_x",
        **more,
    }
    return Row(section=section, measure=measure, value=value, baseline=baseline, **given)  # type: ignore[arg-type]


def marks(
    *rows: Row, keys: bool = True, sensitive: bool = True, holdout: bool = True, masked: bool = False
) -> list[str]:
    rows = (*rows, *(one for one in LOOKED_AT if one.measure not in {row.measure for row in rows}))
    return [one.mark for one in of_release(rows, keys=keys, sensitive=sensitive, holdout=holdout, masked=masked)]


LOOKED_AT = (row("copies", EQUAL, 0.1, 0.1), row("attacks", INFERRED, 0.0, low=-0.1))
FINE = row("utility", ACCURATE, 0.97, 0.98)


@pytest.mark.parametrize(
    ("found", "mark"),
    [
        (row("copies", EQUAL, 0.16, 0.15), "good"),
        (row("copies", EQUAL, 0.43, 0.15), "bad"),
        (row("copies", CLOSER, 0.55, 0.5, low=0.49), "good"),
        (row("copies", CLOSER, 0.55, 0.5, low=0.51), "bad"),
        (row("copies", "share of original uniques that are unique here too", 0.2, 0.1), "bad"),
        (row("attacks", "singling out, univariate, risk over the control", 0.1, low=0.01), "bad"),
        (row("attacks", "singling out, univariate, risk over the control", 0.1, low=-0.01), "good"),
        (row("attacks", "largest share closer to the originals, over subsets of columns", 0.6, 0.5, low=0.55), "bad"),
        (row("rules", "k", 2.0, 3.0, warning="k is too small"), "bad"),
        (row("copies", "sdc_dcr", None, warning="not measured: too few records", function="sdc_dcr"), "unknown"),
    ],
)
def test_could_somebody_be_found(found: Row, mark: str) -> None:
    assert marks(found, FINE) == [mark, "good", "good"]


@pytest.mark.parametrize("missing", ["keys", "sensitive", "holdout"])
def test_what_was_not_looked_at_is_not_good(missing: str) -> None:
    found = marks(FINE, **{missing: False})
    assert found[1] == "unknown"
    assert found[0] == ("good" if missing == "sensitive" else "unknown")


def test_could_something_be_learned() -> None:
    inferred = row("attacks", "inference, risk over the control", 0.2, low=0.1, about="income")
    assert marks(inferred, FINE) == ["good", "bad", "good"]
    told = row("attributes", "told rightly by a draw among records with the keys (DCAP)", 0.4, 0.2, about="income")
    assert marks(told, FINE) == ["good", "care", "good"]
    one_value = row(
        "re-identification", "share of records in classes of one value", 0.1, about="income", function="sdc_l_diversity"
    )
    assert marks(one_value, FINE)[1] == "care"
    assert marks(one_value, FINE, masked=True)[1] == "bad"


@pytest.mark.parametrize(("value", "mark"), [(0.99, "good"), (0.961, "good"), (0.95, "care"), (0.87, "bad")])
def test_is_it_still_useful(value: float, mark: str) -> None:
    assert marks(row("utility", ACCURATE, value, 0.98))[2] == mark


def test_nothing_measured_is_not_known() -> None:
    found, learned, useful = of_release([], keys=True, sensitive=True, holdout=True, masked=False)
    assert (found.mark, learned.mark) == ("unknown", "unknown")
    assert (useful.answer, useful.sentence) == ("Not known", "No table was compared.")


def test_an_error_of_the_database_is_not_shown() -> None:
    ours = "Invalid Input Error: sdc_dcr: there are no numbers\n\nLINE 1: FROM"
    theirs = "Conversion Error: Could not convert string 'Ann Miller' to INT32"
    assert _in_our_words(ours, "sdc_dcr") == "there are no numbers"
    for problem in (theirs, f"Invalid Input Error: sdc_dcr: {theirs}", ""):
        assert _in_our_words(problem, "sdc_dcr").startswith("the database could not compute it")
        assert said(Exception(problem)) is None
    assert said(Exception(ours)) == "there are no numbers"
    assert said(SDCError("no columns")) == "no columns"


def test_large_numbers_have_no_exponents() -> None:
    assert [rounded(value) for value in (1234567.89, 9999.4, 0.00012345, -0.0, 5.0)] == [
        "1,234,568",
        "9,999",
        "0.0001234",
        "0",
        "5",
    ]
