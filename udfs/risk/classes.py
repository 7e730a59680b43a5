"""Disclosure risk of records: planners behind ``sql/risk_tables.sql``. They check arguments and compose SQL."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Family, Scalar, Session
from sdcduck.methods.risk.individual import class_risk
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import choice, needed, share, struct, whole, wrong
from sdcduck.udfs.compared import check_kinds, kind_of
from sdcduck.udfs.engine_counts import source_of_counts
from sdcduck.udfs.source import Source, refuse_taken, source
from sdcduck.udfs.sums import total

NULLS = ("category", "drop", "match")
_METHODS = ("exact", "approximate")
_MOST_COMBINATIONS = 2000


def class_risks(
    session: Session, records: pa.ChunkedArray, population: pa.ChunkedArray, approximate: pa.ChunkedArray
) -> pa.Array:
    """Risk of each record of a class; the macros have checked all values."""
    how = approximate.unique().to_pylist() == [True]
    return pa.array(class_risk(records.to_numpy(), population.to_numpy(), approximate=how))


def alike(keys: Sequence[str], one: str, other: str) -> str:
    """SQL that two relations have the same keys in a row."""
    return " AND ".join(f"{one}.{identifier(name)} IS NOT DISTINCT FROM {other}.{identifier(name)}" for name in keys)


# --- classes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Classes:
    """The classes of a table: records with the same values of the keys, as SQL.

    Attributes:
        relation: where the records come from.
        keys: the key variables, as they are called there.
        weight: the column of sampling weights, quoted; None: there is none.
        nulls: 'category': NULL is a value; 'drop': records with a NULL are left out; 'skip': and those whose sensitive
            value is NULL; 'match': NULL may be any value.
        alpha: with 'match', what a record with a NULL counts in the classes that it may belong to besides its own.
    """

    relation: Source
    keys: tuple[str, ...]
    weight: str | None
    nulls: str
    alpha: float = 1.0

    @classmethod
    def read(
        cls, session: Session, text: str | None, keys: list[str] | None, nulls: str | None,
        *, weight: str | None = None, taken: Sequence[str] = (), allowed: Sequence[str] = NULLS[:2],
        argument: str = "source", alpha: float | None = 1.0, beside: Sequence[str | None] | None = None,
    ) -> Classes:  # fmt: skip
        """The classes that the arguments describe.

        Args:
            taken: names of the result's columns, which a key must not have.
            allowed: what ``nulls`` may be.
            beside: the sensitive columns of a function that only counts, so that the records may be on an engine; None:
                it reads records.

        Raises:
            SDCError: an unknown column, one named twice, or an argument that is out of range.
        """
        if beside is None or weight is not None:
            relation = source(session.cursor(), text, argument)
        else:
            relation = source_of_counts(session, text, argument, {"keys": keys, "sensitive": beside})
        needed(keys, "keys", "name the columns by which a person could be found")
        names = relation.named(keys, "keys", taken)
        known = choice(nulls, "nulls", allowed)
        part = share(alpha, "alpha", why="what a record with NULL counts where it may belong")
        if part < 1 and known != "match":
            raise SDCError("argument 'alpha' goes with nulls := 'match', where NULL may be any value")
        return cls(relation, names, None if weight is None else relation.number(weight, "weight"), known, part)

    @property
    def columns(self) -> str:
        """The keys, quoted."""
        return ", ".join(identifier(name) for name in self.keys)

    def alike(self, one: str, other: str) -> str:
        """That two relations have the same keys in a row."""
        return alike(self.keys, one, other)

    def records(self) -> str:
        """The records that count, after FROM."""
        if self.nulls not in ("drop", "skip"):
            return self.relation.sql
        known = " AND ".join(f"{identifier(name)} IS NOT NULL" for name in self.keys)
        return f"(FROM {self.relation.sql} WHERE {known})"

    def counted(self) -> str:
        """A query for the classes: keys, ``records``, and ``population``, NULL without weights."""
        weights = "NULL::DOUBLE" if self.weight is None else total(checked_weight(self.weight))
        counts = f"{self.relation.counted} AS records, {weights} AS population"
        plain = f"SELECT {self.columns}, {counts} FROM {self.records()} GROUP BY ALL"
        return plain if self.nulls != "match" else self._matched(plain)

    def _matched(self, plain: str) -> str:
        """Classes that count every record which may have the same values, where NULL may be any."""
        some = " OR ".join(f"{identifier(name)} IS NULL" for name in self.keys)
        agree = " AND ".join(
            f"(c.{name} = d.{name} OR c.{name} IS NULL OR d.{name} IS NULL)" for name in map(identifier, self.keys)
        )
        # Classes without NULL match themselves; only what has one is compared with all. It counts there in part.
        part = "" if self.alpha == 1 else f" * {self.alpha!r}::DOUBLE"
        kind = "BIGINT" if self.alpha == 1 else "DOUBLE"
        return f"""
            WITH _plain AS MATERIALIZED (
                SELECT *, row_number() OVER () AS _place, ({some}) AS _open FROM ({plain})
            ), _more AS (
                SELECT c._place, sum(d.records){part} AS records, {total("d.population")}{part} AS population
                FROM _plain c JOIN (FROM _plain WHERE _open) d ON {agree} AND c._place <> d._place GROUP BY ALL
                UNION ALL
                SELECT c._place, sum(d.records), {total("d.population")}
                FROM (FROM _plain WHERE _open) c JOIN (FROM _plain WHERE NOT _open) d ON {agree} GROUP BY ALL
            ), _added AS (
                SELECT _place, sum(records)::{kind} AS records, sum(population) AS population FROM _more GROUP BY ALL
            )
            SELECT {self.columns}, _plain.records + coalesce(_added.records, 0) AS records,
                _plain.population + coalesce(_added.population, 0) AS population, _plain.records AS _own
            FROM _plain LEFT JOIN _added USING (_place)"""

    @property
    def own(self) -> str:
        """The column with the number of records that have the very values of a class."""
        return "_own" if self.nulls == "match" else "records"


def checked_weight(column: str) -> str:
    """SQL for a sampling weight, an error where it is none."""
    return (
        f"CASE WHEN {column} > 0 AND {column} < 1e18 THEN {column}::DOUBLE "
        "ELSE error('a weight is NULL, not positive or infinite (1e18 or more)') END"
    )


def plan_classes(
    session: Session, text: str | None, keys: list[str] | None, weight: str | None, nulls: str | None,
    alpha: float | None,
) -> str:  # fmt: skip
    """``sdc_classes``."""
    classes = Classes.read(
        session, text, keys, nulls, weight=weight, taken=CLASS_COLUMNS, allowed=NULLS, alpha=alpha, beside=()
    )
    return f"SELECT {classes.columns}, records, population FROM ({classes.counted()})"


def plan_k_anonymity(
    session: Session, text: str | None, keys: list[str] | None, k: int | None, nulls: str | None, alpha: float | None
) -> str:
    """``sdc_k_anonymity``."""
    classes = Classes.read(session, text, keys, nulls, allowed=NULLS, taken=CLASS_COLUMNS, alpha=alpha, beside=())
    return anonymity(classes, whole(k, "k", least=1))


def anonymity(classes: Classes, below: int) -> str:
    """A query for how many records there are, stand alone, or are in classes of fewer than so many."""
    own = classes.own
    return f"""
        SELECT records, classes, k, uniques, uniques / nullif(records, 0) AS share_unique, below_k,
            below_k / nullif(records, 0) AS share_below_k, _mean / nullif(records, 0) AS mean_risk, 1 / k AS max_risk
        FROM (
            SELECT coalesce(sum({own}), 0)::BIGINT AS records, count(*) AS classes, min(records) AS k,
                coalesce(sum({own}) FILTER (records = 1), 0)::BIGINT AS uniques,
                coalesce(sum({own}) FILTER (records < {below}), 0)::BIGINT AS below_k,
                {total(f"{own} / records")} AS _mean
            FROM ({classes.counted()})
        )"""


# --- risk of records -------------------------------------------------------------------------------------------------


def _class_risks(classes: Classes, method: str | None) -> str:
    """A query for the classes with ``risk``; without weights the data are the population."""
    approximate = str(choice(method, "method", _METHODS) == "approximate").lower()
    risk = "1 / records" if classes.weight is None else f"_sdc_class_risk(records, population, {approximate})"
    return f"SELECT *, {risk} AS _risk FROM ({classes.counted()})"


def _risks(classes: Classes, household: str | None, method: str | None) -> str:
    """A query for the records with the class and the risk of each, and of its household."""
    together = "NULL::DOUBLE"
    if household is not None:
        column = classes.relation.column(household, "household")
        # A product depends on the order of its factors, in its last digit.
        members = f"(PARTITION BY {column} ORDER BY risk ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        # Who has no household is one.
        together = f"CASE WHEN {column} IS NULL THEN risk ELSE 1 - product(1 - risk) OVER {members} END"
    return f"""
        SELECT *, {together} AS household_risk
        FROM (
            SELECT r.*, c.records AS class_records, coalesce(c.population, c.records) AS class_population,
                c._risk AS risk
            FROM {classes.records()} r JOIN ({_class_risks(classes, method)}) c ON {classes.alike("r", "c")}
        )"""


def plan_individual_risk(
    session: Session, text: str | None, keys: list[str] | None, weight: str | None, household: str | None,
    threshold: float | None, method: str | None, nulls: str | None, alpha: float | None,
) -> str:  # fmt: skip
    """``sdc_individual_risk``."""
    classes = Classes.read(session, text, keys, nulls, weight=weight, allowed=NULLS, taken=CLASS_COLUMNS, alpha=alpha)
    refuse_taken(classes.relation.columns, _RISK_COLUMNS)
    most = share(threshold, "threshold")
    return f"SELECT *, risk > {most!r}::DOUBLE AS unsafe FROM ({_risks(classes, household, method)})"


def plan_global_risk(
    session: Session, text: str | None, keys: list[str] | None, weight: str | None, household: str | None,
    threshold: float | None, method: str | None, nulls: str | None, alpha: float | None,
) -> str:  # fmt: skip
    """``sdc_global_risk``: from the classes, or from the records where households count."""
    most = share(threshold, "threshold")
    classes = Classes.read(
        session, text, keys, nulls, weight=weight, allowed=NULLS, taken=CLASS_COLUMNS, alpha=alpha,
        beside=() if household is None else None,
    )  # fmt: skip
    return overall_risk(classes, most, household, method)


def overall_risk(classes: Classes, most: float, household: str | None = None, method: str | None = "exact") -> str:
    """A query for the risk of all records together; unsafe are those with more than so much."""
    if household is None:
        rows = (
            f"SELECT {classes.own} AS _n, records AS _f, _risk, NULL::DOUBLE AS _together "
            f"FROM ({_class_risks(classes, method)})"
        )
    else:
        inner = Classes(
            Source(classes.relation.text, f"(SELECT {_only(classes, household)} FROM {classes.records()})",
                   classes.relation.columns),
            classes.keys, classes.weight, classes.nulls, classes.alpha,
        )  # fmt: skip
        rows = (
            "SELECT 1 AS _n, class_records AS _f, risk AS _risk, household_risk AS _together "
            f"FROM ({_risks(inner, household, method)})"
        )
    return f"""
        SELECT records, expected, expected / nullif(records, 0) AS risk, max_risk, unsafe,
            unsafe / nullif(records, 0) AS share_unsafe, uniques, household_expected,
            household_expected / nullif(records, 0) AS household_risk
        FROM (
            SELECT coalesce(sum(_n), 0)::BIGINT AS records, {total("_n * _risk")} AS expected, max(_risk) AS max_risk,
                coalesce(sum(_n) FILTER (_risk > {most!r}::DOUBLE), 0)::BIGINT AS unsafe,
                coalesce(sum(_n) FILTER (_f = 1), 0)::BIGINT AS uniques, {total("_n * _together")} AS household_expected
            FROM ({rows})
        )"""


def _only(classes: Classes, household: str) -> str:
    """The columns that a risk needs: others may be many, or be called like those of the result."""
    wanted = [*map(identifier, classes.keys), classes.relation.column(household, "household")]
    return ", ".join(dict.fromkeys([*wanted, *([classes.weight] if classes.weight else [])]))


def plan_unsafe_combinations(
    session: Session, text: str | None, keys: list[str] | None, k: int | None, max_size: int | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_unsafe_combinations``: every subset of the keys is a window over the classes."""
    classes = Classes.read(session, text, keys, nulls, taken=CLASS_COLUMNS, beside=())
    return rare_combinations(classes, whole(k, "k", least=1), whole(max_size, "max_size", least=1))


def rare_combinations(classes: Classes, below: int, max_size: int) -> str:
    """A query for how many records are in combinations of so few, by key and number of keys."""
    most = min(max_size, len(classes.keys))
    subsets = [subset for size in range(1, most + 1) for subset in combinations(range(len(classes.keys)), size)]
    if len(subsets) > _MOST_COMBINATIONS:
        raise SDCError(f"more than {_MOST_COMBINATIONS} combinations of keys: take fewer keys, or a smaller max_size")
    sums = ", ".join(
        f"sum(records) OVER (PARTITION BY {', '.join(identifier(classes.keys[place]) for place in subset)}) < {below} "
        f"AS _rare{number}"
        for number, subset in enumerate(subsets)
    )
    figures = " UNION ALL ".join(
        f"SELECT {literal(name)} AS variable, {size} AS dimension, coalesce(sum(records) FILTER ("
        + " OR ".join(f"_rare{n}" for n, subset in enumerate(subsets) if len(subset) == size and place in subset)
        + "), 0)::BIGINT AS unsafe, coalesce(sum(records), 0)::BIGINT AS records FROM _flagged"
        for place, name in enumerate(classes.keys)
        for size in range(1, most + 1)
    )
    return f"""
        WITH _flagged AS MATERIALIZED (SELECT records, {sums} FROM ({classes.counted()}))
        SELECT variable, dimension::BIGINT AS dimension, unsafe, unsafe / nullif(records, 0) AS share
        FROM ({figures}) ORDER BY dimension, unsafe DESC, variable"""


# --- marketer risk ---------------------------------------------------------------------------------------------------


def _paired(session: Session, inner: Classes, external: str | None) -> str:
    """A query for the classes of the released records: keys, ``_f`` records, ``_there`` in the identified file.

    ``_there`` is NULL without such a file.
    """
    own = f"SELECT {inner.columns}, records AS _f FROM ({inner.counted()})"
    if external is None:
        return f"SELECT *, NULL::BIGINT AS _there FROM ({own})"
    outer = Classes.read(session, external, list(inner.keys), inner.nulls, argument="external", beside=())
    check_kinds({"internal": inner.relation, "external": outer.relation}, inner.keys, "keys")
    alike = " AND ".join(
        f"i.{identifier(one)} IS NOT DISTINCT FROM e.{identifier(other)}"
        for one, other in zip(inner.keys, outer.keys, strict=True)
    )
    return f"SELECT i.*, coalesce(e.records, 0) AS _there FROM ({own}) i LEFT JOIN ({outer.counted()}) e ON {alike}"


def _marketer(paired: str, k: int) -> str:
    """The measures over classes with ``_f`` and ``_there``: columns of ``sdc_marketer_risk``."""
    limit = f"1 / {k} + 1e-12"  # a mean of ninths may come out above a ninth in its last digit
    return f"""
        SELECT records, classes, invalid, invalid / nullif(records, 0) AS share_invalid, im, cem, orem, arem,
            100 * (im - cem) / im AS reduction_cem, 100 * (im - orem) / im AS reduction_orem,
            100 * (im - arem) / im AS reduction_arem, k, 1 / k AS max_prosecutor, 1 / _journalist AS max_journalist,
            uniques / nullif(records, 0) AS share_unique, below_k / nullif(records, 0) AS share_below_k,
            im <= {limit} AS im_acceptable, cem <= {limit} AS cem_acceptable, orem <= {limit} AS orem_acceptable,
            arem <= {limit} AS arem_acceptable
        FROM (
            SELECT coalesce(_records, 0) AS records, classes, k, _journalist, uniques, below_k,
                CASE WHEN _known > 0 THEN _records - _valid END AS invalid, classes / _records AS im,
                _filled / _records AS cem, _found / nullif(_valid, 0) AS orem,
                CASE WHEN _known > 0 THEN coalesce(_found, 0) / _records END AS arem
            FROM (
                SELECT sum(_f)::BIGINT AS _records, count(*) AS classes, count(_there) AS _known,
                    coalesce(sum(_f) FILTER (_f <= _there), 0)::BIGINT AS _valid,
                    {total("_f / greatest(_there, _f)", "_there IS NOT NULL")} AS _filled,
                    {total("_f / _there", "_f <= _there")} AS _found,
                    min(_f) AS k, min(greatest(_there, _f)) FILTER (_there IS NOT NULL) AS _journalist,
                    coalesce(sum(_f) FILTER (_f = 1), 0)::BIGINT AS uniques,
                    coalesce(sum(_f) FILTER (_f < {k}), 0)::BIGINT AS below_k
                FROM ({paired})
            )
        )"""


def plan_marketer_risk(
    session: Session, internal: str | None, external: str | None, keys: list[str] | None, k: int | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_marketer_risk``."""
    inner = Classes.read(session, internal, keys, nulls, taken=_MARKETER, argument="internal", beside=())
    return _marketer(_paired(session, inner, external), whole(k, "k", least=1))


def plan_marketer_risk_classes(
    session: Session, internal: str | None, external: str | None, keys: list[str] | None, nulls: str | None
) -> str:
    """``sdc_marketer_risk_classes``."""
    inner = Classes.read(session, internal, keys, nulls, taken=_MARKETER, argument="internal", beside=())
    return f"""
        SELECT {inner.columns}, _f AS records, _there AS population, _f <= _there AS valid, 1 / _f AS risk_im,
            1 / CASE WHEN _there IS NOT NULL THEN greatest(_there, _f) END AS risk_cem,
            CASE WHEN _f <= _there THEN 1 / _there END AS risk_orem
        FROM ({_paired(session, inner, external)})"""


def plan_policy_risk(
    session: Session, internal: str | None, external: str | None, policies: str | None, k: int | None,
    date: str | None, as_of: list[datetime.date] | None, nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_policy_risk``: the same measures for every policy, and for the file as it was at each date."""
    example = "{'coarse': ['county'], 'fine': ['county', 'age']}"
    given = needed(struct(policies, "policies", example), "policies", f"name lists of columns: {example}")
    least = whole(k, "k", least=1)
    if (date is None) != (as_of is None):
        raise SDCError("arguments 'date' and 'as_of' go together: a column, and the dates up to which the file goes")
    days: list[datetime.date | None] = [None] if as_of is None else list(as_of)
    if as_of is not None and (not as_of or None in as_of):
        raise wrong("as_of", "hold dates")
    if date is not None:  # which records are left depends on the day
        relation = source(session.cursor(), internal, "internal")
        relation.column(date, "date")
        if not str(kind_of(relation.type_of(date))).startswith("instant"):
            raise wrong("date", f"name a column of dates or timestamps: '{date}' is none")
    parts = []
    for name, columns in given.items():
        if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
            raise SDCError(f"policy '{name}' must be a list of columns")
        for day in days:
            text = str(internal)
            if day is not None:
                until = f"{relation.column(date, 'date')}::DATE <= DATE '{day:%Y-%m-%d}'"
                text = f"(FROM {relation.sql} WHERE {until})"
            inner = Classes.read(session, text, columns, nulls, taken=_MARKETER, argument="internal", beside=())
            measures = _marketer(_paired(session, inner, external), least)
            at = "NULL::DATE" if day is None else f"DATE '{day:%Y-%m-%d}'"
            parts.append(f"SELECT {literal(name)} AS policy, {at} AS as_of, * FROM ({measures})")
    return " UNION ALL ".join(parts) + " ORDER BY as_of, im, policy"


CLASS_COLUMNS = ("records", "population")
_RISK_COLUMNS = ("class_records", "class_population", "risk", "household_risk", "unsafe")
_MARKETER = ("records", "population", "valid", "risk_im", "risk_cem", "risk_orem")

FAMILY = Family(
    name="risk",
    stored=("risk.sql",),
    temporary=("risk_tables.sql",),
    planners=(
        *planners(
            plan_classes,
            plan_k_anonymity,
            plan_individual_risk,
            plan_global_risk,
            plan_unsafe_combinations,
            plan_marketer_risk,
            plan_marketer_risk_classes,
            plan_policy_risk,
        ),
    ),
    scalars=(Scalar("_sdc_class_risk", ("DOUBLE", "DOUBLE", "BOOLEAN"), "DOUBLE", class_risks),),
)
