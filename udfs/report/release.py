"""Everything that is known of a release in one tidy table: the planner behind ``sql/release_report_tables.sql``.

The report measures nothing itself: it asks the functions that apply, one after the other, and keeps what they answer in
one form. A function that cannot answer is a row that says why, so that nothing is missing without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.quoting import literal
from sdcduck.udfs.compared import Compared
from sdcduck.udfs.source import is_number, shared_columns

_COLUMNS = {
    "section": "VARCHAR", "measure": "VARCHAR", "about": "VARCHAR", "value": "DOUBLE", "low": "DOUBLE",
    "high": "DOUBLE", "baseline": "DOUBLE", "baseline_is": "VARCHAR", "warning": "VARCHAR", "function": "VARCHAR",
}  # fmt: skip
_MOST_TARGETS = 20
_MOST_SPECIAL_KEYS = 12


@dataclass(frozen=True)
class Measure:
    """One row of the report, as SQL over the columns that a function answers with."""

    name: str
    value: str
    about: str = "NULL"
    low: str = "NULL"
    high: str = "NULL"
    baseline: str = "NULL"
    baseline_is: str = ""
    warning: str = "NULL"

    def struct(self) -> str:
        """The row, as a STRUCT."""
        return (
            f"{{'measure': {_text(self.name)}, 'about': ({self.about})::VARCHAR, 'value': ({self.value})::DOUBLE, "
            f"'low': ({self.low})::DOUBLE, 'high': ({self.high})::DOUBLE, 'baseline': ({self.baseline})::DOUBLE, "
            f"'baseline_is': CASE WHEN ({self.baseline}) IS NOT NULL THEN {literal(self.baseline_is)} END, "
            f"'warning': ({self.warning})::VARCHAR}}"
        )


def _text(name: str) -> str:
    """A name is SQL if it is made of the answer, in parentheses; else it is itself."""
    return name if name.startswith("(") else literal(name)


@dataclass(frozen=True)
class Part:
    """What one function contributes.

    Attributes:
        section: of the report.
        function: what is asked.
        call: the relation that it answers with.
        measures: rows made of each row of the answer, or of all of them where they are aggregates.
        about: what is said if it cannot answer.
    """

    section: str
    function: str
    call: str
    measures: tuple[Measure, ...]
    about: str | None = None

    def query(self) -> str:
        """SQL of the rows."""
        rows = ", ".join(measure.struct() for measure in self.measures)
        return f"SELECT unnest(rows, recursive := true) FROM (SELECT [{rows}] AS rows FROM {self.call})"


@dataclass(frozen=True)
class _Release:
    """The arguments, as SQL."""

    original: str
    release: str
    holdout: str | None
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    columns: tuple[str, ...]
    seed: int
    id: str | None
    rules: str | None
    measures: tuple[str, ...]

    @property
    def both(self) -> str:
        return f"{literal(self.original)}, {literal(self.release)}"

    @property
    def held_out(self) -> str:
        return "NULL" if self.holdout is None else literal(self.holdout)

    def parts(self) -> Iterator[Part]:
        """What is asked, in the order of the report."""
        if self.rules is not None:
            yield self._rules(self.rules)
        if self.keys:
            yield from self._re_identification()
        yield from self._copies()
        if self.keys:
            yield from self._attributes()
        if self.holdout is not None:
            yield from self._attacks()
        if self.id is not None:
            yield from self._records()
        yield from self._utility()

    def _rules(self, rules: str) -> Part:
        """A row a rule; what needs to know more than the report does is not checked, and says so."""
        given = (
            f"{literal(self.release)}, {_names(self.keys)}, {literal(rules)}, measures := {_names(self.measures)}, "
            f"original := {literal(self.original)}"
        )
        return Part(
            "rules", "sdc_check_records", f"sdc_check_records({given})",
            (Measure("(rule)", "value", "about", baseline="threshold", baseline_is="the threshold of the rule",
                     warning="message"),), rules,
        )  # fmt: skip

    def _re_identification(self) -> Iterator[Part]:
        section, keys = "re-identification", _names(self.keys)
        for which, table in (("original", self.original), ("release", self.release)):
            about = literal(which)
            yield Part(
                section, "sdc_k_anonymity", f"sdc_k_anonymity({literal(table)}, {keys})",
                (
                    Measure("smallest class (k)", "k", about),
                    Measure("share of uniques", "share_unique", about),
                    Measure("mean risk, if it is known who is in the data", "mean_risk", about),
                ), which,
            )  # fmt: skip
        if 2 <= len(self.keys) <= _MOST_SPECIAL_KEYS:
            yield Part(
                section, "sdc_suda_contributions", f"sdc_suda_contributions({literal(self.release)}, {keys})",
                (Measure("part in what makes records special, per cent", "contribution", "variable"),), "release",
            )  # fmt: skip
        for target in self.targets:
            about = literal(target)
            call = f"{literal(self.release)}, {keys}, {about}"
            yield Part(
                section, "sdc_l_diversity", f"sdc_l_diversity({call})",
                (
                    Measure("fewest values in a class (l)", "distinct_l", about),
                    Measure("share of records in classes of one value", "share_homogeneous", about),
                ), target,
            )  # fmt: skip
            yield Part(
                section, "sdc_t_closeness", f"sdc_t_closeness({call})",
                (Measure("farthest class (t)", "t", about),), target,
            )  # fmt: skip

    def _copies(self) -> Iterator[Part]:
        section = "copies"
        compared = f"{self.both}, {self.held_out}, columns := {_names(self.columns)}"
        yield Part(
            section, "sdc_identical_matches", f"sdc_identical_matches({compared})",
            (
                Measure("share of records that equal an original", "share", baseline="baseline",
                        baseline_is="of the holdout", warning="warning"),
                Measure("records that equal a unique original", "matches_of_uniques"),
                Measure("share of originals with a copy", "share_of_originals"),
            ),
        )  # fmt: skip
        of = "max({}) FILTER (part = '{}')"
        yield Part(
            section, "sdc_dcr", f"sdc_dcr({compared})",
            tuple(
                Measure(name, of.format(column, "synthetic"), baseline=of.format(column, "holdout"),
                        baseline_is="of the holdout", warning=warning)
                for name, column, warning in (
                    ("distance to the closest original, 5 % quantile", "q05", of.format("warning", "synthetic")),
                    ("distance to the closest original, median", "median", "NULL"),
                    ("share at distance 0", "zero_share", "NULL"),
                    ("closest over second closest, 5 % quantile", "nndr_q05", "NULL"),
                )
            ),
        )  # fmt: skip
        if self.holdout is not None:
            yield Part(
                section, "sdc_holdout_share",
                f"(FROM sdc_holdout_share({self.both}, {self.held_out}, columns := {_names(self.columns)}) "
                "WHERE part = 'synthetic')",
                (
                    Measure("share closer to the originals than to the holdout", "share", low="low", high="high",
                            baseline="expected", baseline_is="by chance", warning="warning"),
                ),
            )  # fmt: skip
        if self.keys:
            yield Part(
                section, "sdc_replicated_uniques",
                f"sdc_replicated_uniques({self.both}, {self.held_out}, {_names(self.keys)})",
                (
                    Measure("share of original uniques that are unique here too", "ru / 100",
                            baseline="ru_holdout / 100", baseline_is="of the holdout", warning="warning"),
                ),
            )  # fmt: skip

    def _attributes(self) -> Iterator[Part]:
        if not self.targets:
            return
        yield Part(
            "attributes", "sdc_disclosure",
            f"sdc_disclosure({self.both}, {_names(self.keys)}, {_names(self.targets)})",
            (
                Measure("told rightly where all records with the keys agree (TCAP)", "tcap", "target",
                        baseline="baseline", baseline_is="by the marginal distribution", warning="warning"),
                Measure("told rightly by a draw among records with the keys (DCAP)", "dcap", "target",
                        baseline="modal_baseline", baseline_is="by always guessing the most frequent value"),
                Measure("share of originals with a value disclosed rightly (DiSCO)", "disco", "target"),
            ),
        )  # fmt: skip

    def _attacks(self) -> Iterator[Part]:
        """Those that have a control; without one nobody knows what their rates mean."""
        section, columns, seed = "attacks", _names(self.columns), f"seed := {self.seed}"
        rate = Measure(
            "{}, success", "attack_rate", low="attack_low", high="attack_high", baseline="modal_rate",
            baseline_is="by always guessing the most frequent value",
        )  # fmt: skip
        risk = Measure("{}, risk over the control", "risk", low="risk_low", high="risk_high", warning="warning")
        asked: list[tuple[str, str, str, str | None]] = [
            (f"singling out, {mode}", "sdc_attack_singling_out", f"columns := {columns}, mode := '{mode}'", None)
            for mode in ("univariate", "multivariate")[: len(self.columns)]
        ]
        if len(self.keys) > 1:
            halves = f"[{_names(self.keys[::2])}, {_names(self.keys[1::2])}]"
            asked.append(("linking halves of the keys", "sdc_attack_linkability", f"keys := {halves}", None))
        for target in self.targets if self.keys else ():
            given = f"sensitive := {literal(target)}, keys := {_names(self.keys)}"
            asked.append(("inference", "sdc_attack_inference", given, target))
        for name, function, given, about in asked:
            yield Part(
                section, function, f"{function}({self.both}, {self.held_out}, {given}, {seed})",
                tuple(
                    replace(one, name=one.name.format(name), about="NULL" if about is None else literal(about))
                    for one in (risk, rate)
                ), about,
            )  # fmt: skip
        if len(self.columns) > 2:
            yield Part(
                section, "sdc_dcr_subsets",
                f"(FROM sdc_dcr_subsets({self.both}, {self.held_out}, columns := {columns}, {seed}) WHERE largest)",
                (
                    Measure("largest share closer to the originals, over subsets of columns", "share",
                            "array_to_string(columns, ' x ')", low="corrected_low", high="corrected_high",
                            baseline="expected", baseline_is="by chance", warning="warning"),
                ),
            )  # fmt: skip

    def _records(self) -> Iterator[Part]:
        """What masking has done to each record, and so to the columns: the release has the same ones."""
        section, function = "records", "sdc_mask_loss"
        call = f"{function}({self.both}, {_names(self.columns)}, id := {literal(str(self.id))})"
        yield Part(
            section, function, call,
            (
                Measure("share of values that changed", "changed / n", "column_name"),
                Measure("share of values that are gone", "suppressed / n", "column_name"),
            ),
        )  # fmt: skip
        yield Part(
            section, function, f"(FROM {call} WHERE il IS NOT NULL)",
            (
                Measure("information loss, per cent", "il", "column_name"),
                Measure("standard deviation", "sd_protected", "column_name", baseline="sd_original",
                        baseline_is="of the originals"),
            ),
        )  # fmt: skip

    def _utility(self) -> Iterator[Part]:
        section, columns = "utility", _names(self.columns)
        for ways in (1, 2):
            if ways > len(self.columns):
                return
            yield Part(
                section, "sdc_accuracy",
                f"sdc_accuracy({self.both}, {columns}, ways := {ways}, holdout := {self.held_out})",
                (
                    Measure(f"accuracy of tables of {ways} column{'s' if ways > 1 else ''}, mean", "accuracy",
                            baseline="1 - tvd_expected", baseline_is="of another sample", warning="warning"),
                    Measure(f"least accuracy of a table of {ways}", "1 - tvd_max", "worst"),
                ),
            )  # fmt: skip
        yield Part(
            section, "sdc_utility_profile",
            f"sdc_utility_profile({self.both}, {columns}, seed := {self.seed})",
            (
                Measure("(family || ': ' || measure)", "value", "column_names", baseline="target",
                        baseline_is="of a right synthesis", warning="warning"),
            ),
        )  # fmt: skip
        yield Part(
            section, "sdc_synth_correlations", f"sdc_synth_correlations({self.both}, {columns})",
            (
                Measure("correlation that changed most", "max(abs(difference))",
                        "max_by(variable || ' x ' || with_variable, abs(difference))"),
            ),
        )  # fmt: skip


def _names(names: Sequence[str]) -> str:
    return f"[{', '.join(map(literal, names))}]::VARCHAR[]"


def plan_assess(
    session: Session, original: str | None, release: str | None, holdout: str | None, keys: Sequence[str] | None,
    sensitive: Sequence[str] | None, columns: Sequence[str] | None, seed: int | None, id: str | None, rules: str | None,
) -> Rows:  # fmt: skip
    """``sdc_assess``: the arguments are checked while binding, the functions asked when the statement runs."""
    tables = {"original": original, "release": release, "holdout": holdout}
    cursor = session.cursor()
    compared = Compared.read(cursor, tables, columns, leaving_out=id)
    if id:
        for table in compared.tables.values():
            table.column(id, "id")
    known = shared_columns(compared.tables, keys, "keys") if keys else ()
    wanted = shared_columns(compared.tables, sensitive, "sensitive") if sensitive else ()
    both = sorted({*known} & {*wanted})
    if both:
        raise SDCError(f"column '{both[0]}' cannot be both a key and sensitive")
    if len(wanted) > _MOST_TARGETS:
        raise SDCError(f"{len(wanted)} sensitive columns are too many for one report: name at most {_MOST_TARGETS}")
    for name, table in compared.tables.items():
        counted = cursor.execute(f"SELECT count(*) FROM (FROM {table.sql} LIMIT 1)").fetchall()
        if counted == [(0,)]:
            raise SDCError(f"argument '{name}': there are no records")
    asked = _Release(
        compared.tables["original"].text, compared.tables["release"].text,
        None if holdout is None else compared.tables["holdout"].text, known, wanted, compared.names, seed or 0,
        id or None, None if rules is None else catalog.rule_set(cursor, rules).name,
        tuple(name for name in compared.names if name not in known and _is_measured(compared, name)),
    )  # fmt: skip
    return Rows(lambda: _report(session, tuple(asked.parts())))


def _is_measured(compared: Compared, name: str) -> bool:
    """Whether a column has numbers in the originals and in the release."""
    return all(is_number(table.type_of(name)) for table in compared.tables.values())


def _report(session: Session, parts: Sequence[Part]) -> pa.Table:
    """All rows; asked one after the other, because each takes all cores."""
    check = shown_checkpoint()
    rows: dict[str, list[object]] = {name: [] for name in _COLUMNS}
    for done, part in enumerate(parts):
        for row in _asked(session, part, partial(check, done, len(parts))):
            for name, value in zip(_COLUMNS, (part.section, *row, part.function), strict=True):
                rows[name].append(value)
    check(len(parts), len(parts))
    kinds = {name: pa.float64() if kind == "DOUBLE" else pa.string() for name, kind in _COLUMNS.items()}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in rows.items()})


def _asked(session: Session, part: Part, check: Callable[[], None]) -> list[tuple[object, ...]]:
    """The rows of one part."""
    check()
    with closing(reads(session.cursor())) as cursor:
        try:
            return cursor.execute(part.query()).fetchall()
        except duckdb.Error as problem:
            check()  # nobody is told that an interrupted statement measured nothing
            said = _in_our_words(str(problem), part.function)
            return [(part.function, part.about, None, None, None, None, None, f"not measured: {said}")]


def _in_our_words(problem: str, function: str) -> str:
    """What the function says; what the database says is for other readers, and may hold a value."""
    _, ours, said = (problem.splitlines() or [""])[0].partition(f"{function}: ")
    if not ours or "Error:" in said:
        return f"the database could not compute it for these columns; {function} by itself says why"
    return said


FAMILY = Family(
    name="release_report",
    temporary=("release_report_tables.sql",),
    planners=(*planners(plan_assess),),
)
