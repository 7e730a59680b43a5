"""The three questions of every report, answered in a sentence each before the figures.

A verdict never says more than was measured: what nobody looked at is not known, and is not good. The limits stand here
and in ``docs/assessment.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import cast

from sdcduck.report.cells import Report
from sdcduck.report.html import rounded

FOUND, LEARNED, USEFUL = "Could somebody be found?", "Could something be learned?", "Is it still useful?"
_QUESTIONS_OF = {
    "rules": FOUND, "re-identification": FOUND, "copies": FOUND, "attributes": LEARNED, "attacks": FOUND,
    "utility": USEFUL,
}  # fmt: skip
_EQUAL, _INFERRED = "share of records that equal an original", "inference, risk over the control"
_MORE_COPIES = 0.02  # of the records, over the share in other people
_BETTER_THAN_GUESSING = 0.05  # in what the keys tell, over the baseline
_LITTLE_LOST, _MUCH_LOST = 0.02, 0.10  # of the accuracy that another sample of the same size would have
_MOST_SHOWN, _FEW_SHOWN = 0.9, 0.5  # of the cells of a publication


@dataclass(frozen=True)
class Verdict:
    """The answer to one question.

    Attributes:
        question: one of the three.
        mark: 'good', 'care', 'bad' or 'unknown', which decide the colour.
        answer: a word or three.
        sentence: why.
    """

    question: str
    mark: str
    answer: str
    sentence: str


def verdicts(found: Iterable[Verdict]) -> str:
    """The verdicts as HTML; the words say what the colours say."""
    items = "\n".join(
        f'<li class="{one.mark}"><strong>{escape(one.question)} {escape(one.answer)}.</strong> '
        f"{escape(one.sentence)}</li>"
        for one in found
    )
    return f'<h2>In short</h2>\n<ul class="verdicts">\n{items}\n</ul>'


@dataclass(frozen=True)
class Row:
    """A row of ``sdc_assess``."""

    section: str
    measure: str
    about: str | None
    value: float | None
    low: float | None
    high: float | None
    baseline: float | None
    baseline_is: str | None
    warning: str | None
    function: str

    @property
    def failed(self) -> bool:
        """Whether it could not be measured."""
        return self.value is None and self.warning is not None and self.warning.startswith("not measured")


def of_release(rows: Sequence[Row], *, keys: bool, sensitive: bool, holdout: bool, masked: bool) -> tuple[Verdict, ...]:
    """The verdicts on a release, from the rows of ``sdc_assess`` and what it was given.

    Args:
        masked: its records are those of the originals, so that a class of theirs is one of people.
    """
    missing = [] if holdout else ["no holdout was given, so nobody knows how near is too near"]
    failed = {question: sorted({row.function for row in rows if row.failed and _question(row) == question})
              for question in (FOUND, LEARNED, USEFUL)}  # fmt: skip
    found = missing + ([] if keys else ["no keys were named"]) + _not_measured(failed[FOUND])
    measured = {row.measure for row in rows if row.value is not None}
    if _EQUAL not in measured and not failed[FOUND]:
        found.append("copies were not counted")
    learned = missing + ([] if keys and sensitive else ["no keys and sensitive columns were named"])
    learned += _not_measured(failed[LEARNED])
    if _INFERRED not in measured and not learned:
        learned.append("no inference was tried")
    return (
        _risk(FOUND, _signs_of_finding(rows), [], found),
        _risk(LEARNED, *_signs_of_learning(rows, masked=masked), learned),
        _usefulness(rows, _not_measured(failed[USEFUL])),
    )


def _question(row: Row) -> str:
    if row.section == "attacks" and row.measure.startswith("inference"):
        return LEARNED
    return LEARNED if row.function in ("sdc_l_diversity", "sdc_t_closeness") else _QUESTIONS_OF.get(row.section, "")


def _not_measured(functions: Sequence[str]) -> list[str]:
    return [f"{', '.join(functions)} could not be measured"] if functions else []


def _risk(question: str, signs: Sequence[str], hints: Sequence[str], missing: Sequence[str]) -> Verdict:
    if signs:
        return Verdict(question, "bad", "There are signs of it", _sentence([*signs, *hints]))
    if hints:
        return Verdict(question, "care", "Perhaps", _sentence([*hints, *missing]))
    if missing:
        return Verdict(question, "unknown", "Not known", f"Nothing was seen, but {'; '.join(missing)}.")
    return Verdict(
        question, "good", "No sign of it", "No measure below is worse than it is for people who are not in the data."
    )


def _signs_of_finding(rows: Sequence[Row]) -> list[str]:
    signs = []
    for row in rows:
        if row.value is None:
            continue
        if row.measure == _EQUAL:
            other = 0.0 if row.baseline is None else row.baseline
            if row.baseline is not None and row.value > other + _MORE_COPIES:
                signs.append(
                    f"{_percent(row.value)} of the records equal an original, and {_percent(other)} of others do"
                )
        elif row.measure == "share closer to the originals than to the holdout" and _is_above(row):
            signs.append(f"{_percent(row.value)} are closer to an original than to other people, by chance a half")
        elif row.measure == "share of original uniques that are unique here too":
            if row.baseline is not None and row.value > row.baseline + _MORE_COPIES:
                signs.append(f"{_percent(row.value)} of the unique people are unique here too")
        elif row.section == "attacks" and _question(row) == FOUND and row.measure.endswith("risk over the control"):
            if (row.low or 0) > 0:
                signs.append(f"an attack works ({row.measure.removesuffix(', risk over the control')})")
        elif row.measure == "largest share closer to the originals, over subsets of columns" and _is_above(row):
            signs.append(f"in {row.about} the records are closer to the originals than to other people")
    return signs + _broken_rules(rows)


def _is_above(row: Row) -> bool:
    """Whether the interval of a share excludes its baseline."""
    return row.low is not None and row.baseline is not None and row.low > row.baseline


def _broken_rules(rows: Sequence[Row]) -> list[str]:
    return [
        f"the rule {row.measure} is not kept"
        for row in rows
        if row.section == "rules" and not row.failed and row.warning is not None
    ]


def _signs_of_learning(rows: Sequence[Row], *, masked: bool) -> tuple[list[str], list[str]]:
    """What is a sign, and what may be no more than that columns are associated."""
    signs: list[str] = []
    hints: list[str] = []
    for row in rows:
        if row.value is None:
            continue
        if row.measure == _INFERRED and (row.low or 0) > 0:
            signs.append(f"{row.about} is inferred better of those in the data than of other people")
        elif row.measure.endswith("(DCAP)") and row.value > (row.baseline or 0) + _BETTER_THAN_GUESSING:
            hints.append(
                f"the keys tell {row.about} of {_percent(row.value)}, guessing of {_percent(row.baseline or 0)}"
            )
        elif row.measure == "share of records in classes of one value" and row.value > 0:
            (signs if masked else hints).append(
                f"{_percent(row.value)} of the records are in classes with one value of {row.about}"
            )
    return signs, hints


def _usefulness(rows: Sequence[Row], missing: Sequence[str]) -> Verdict:
    known = {row.measure: row for row in rows if row.section == "utility" and row.value is not None}
    for ways in ("2 columns", "1 column"):
        row = known.get(f"accuracy of tables of {ways}, mean")
        if row is not None:
            break
    else:
        why = "; ".join(missing) or "no table was compared"
        return Verdict(USEFUL, "unknown", "Not known", f"{why[0].upper()}{why[1:]}.")
    best = 1.0 if row.baseline is None else row.baseline
    lost = best - cast("float", row.value)
    mark, answer = (
        ("good", "Yes") if lost <= _LITTLE_LOST else ("care", "In part") if lost <= _MUCH_LOST else ("bad", "Hardly")
    )
    of_sample = f"tables of {ways} are {_percent(row.value)} accurate, those of another sample {_percent(best)}"
    more = f"; {'; '.join(missing)}" if missing else ""
    return Verdict(USEFUL, "care" if missing and mark == "good" else mark, answer, _sentence([of_sample + more]))


def of_publication(report: Report) -> tuple[Verdict, ...]:
    """The verdicts on a publication."""
    forced = sum(table.count("forced") for table in report.tables)
    hidden = sum(table.count("primary") + table.count("secondary") for table in report.tables)
    cells = sum(len(table.cells) for table in report.tables)
    if not report.counts_looked_at:
        found = Verdict(
            FOUND,
            "unknown",
            "Not known",
            "No rule looks at small counts: max_count, min_contributors or k_disclosure does.",
        )
    elif forced:
        found = Verdict(
            FOUND, "care", "Look at these", f"{forced:,} cells are published by order, whatever the rules say of them."
        )
    else:
        found = Verdict(FOUND, "good", "Not by these rules", "No cell that a rule marks is published.")
    shown = (cells - hidden) / cells if cells else 0.0
    mark, answer = (
        ("good", "Yes") if shown >= _MOST_SHOWN else ("care", "In part") if shown >= _FEW_SHOWN else ("bad", "Hardly")
    )
    sentence = f"{_percent(shown)} of {cells:,} cells are shown."
    return found, _learned(report, hidden), Verdict(USEFUL, mark, answer, sentence)


def _learned(report: Report, hidden: int) -> Verdict:
    if not hidden:
        return Verdict(LEARNED, "unknown", "Not known", "No cell is suppressed: all depends on whether the rules fit.")
    if report.exact is None or report.narrow is None:
        sentence = "No interval of a suppressed number was computed: audit=True (--audit) does."
        return Verdict(LEARNED, "unknown", "Not known", sentence)
    if report.exact:
        return Verdict(
            LEARNED, "bad", "Yes", f"{report.exact:,} suppressed numbers follow exactly from published ones."
        )
    if report.narrow:
        return Verdict(
            LEARNED, "bad", "Yes", f"{report.narrow:,} suppressed numbers are known more closely than the rules want."
        )
    return Verdict(
        LEARNED, "good", "Not from this publication alone",
        "The audit found no suppressed number that is known more closely than the rules want.",
    )  # fmt: skip


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{rounded(100 * share)} %"


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."
