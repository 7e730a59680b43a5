"""Disclosure risk of records: planners behind ``sql/risk_tables.sql``. They check arguments and compose SQL."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import duckdb
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Family, Scalar, Session
from sdcduck.methods.risk.individual import class_risk
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import choice, needed, number, share, struct, whole, wrong
from sdcduck.udfs.compared import check_kinds, kind_of
from sdcduck.udfs.source import Source, refuse_taken, source
from sdcduck.udfs.sums import total

NULLS = ("category", "drop", "match")
_NULLS_OF_VALUES = ("category", "drop", "skip")
_METHODS = ("exact", "approximate")
_MOST_COMBINATIONS = 2000
_ORDERED = ("INT", "DECIMAL", "DOUBLE", "FLOAT", "DATE", "TIME")


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
    """

    relation: Source
    keys: tuple[str, ...]
    weight: str | None
    nulls: str

    @classmethod
    def read(
        cls, cursor: duckdb.DuckDBPyConnection, text: str | None, keys: list[str] | None, nulls: str | None,
        *, weight: str | None = None, taken: Sequence[str] = (), allowed: Sequence[str] = NULLS[:2],
        argument: str = "source",
    ) -> Classes:  # fmt: skip
        """The classes that the arguments describe.

        Args:
            taken: names of the result's columns, which a key must not have.
            allowed: what ``nulls`` may be.

        Raises:
            SDCError: an unknown column, one named twice, or an argument that is out of range.
        """
        relation = source(cursor, text, argument)
        needed(keys, "keys", "name the columns by which a person could be found")
        names = relation.named(keys, "keys", taken)
        known = choice(nulls, "nulls", allowed)
        return cls(relation, names, None if weight is None else relation.number(weight, "weight"), known)

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
        counts = f"count(*) AS records, {weights} AS population"
        plain = f"SELECT {self.columns}, {counts} FROM {self.records()} GROUP BY ALL"
        return plain if self.nulls != "match" else self._matched(plain)

    def _matched(self, plain: str) -> str:
        """Classes that count every record which may have the same values, where NULL may be any."""
        some = " OR ".join(f"{identifier(name)} IS NULL" for name in self.keys)
        agree = " AND ".join(
            f"(c.{name} = d.{name} OR c.{name} IS NULL OR d.{name} IS NULL)" for name in map(identifier, self.keys)
        )
        # Classes without NULL match themselves; only what has one is compared with all.
        return f"""
            WITH _plain AS MATERIALIZED (
                SELECT *, row_number() OVER () AS _place, ({some}) AS _open FROM ({plain})
            ), _more AS (
                SELECT c._place, sum(d.records)::BIGINT AS records, sum(d.population) AS population
                FROM _plain c JOIN (FROM _plain WHERE _open) d ON {agree} AND c._place <> d._place GROUP BY ALL
                UNION ALL
                SELECT c._place, sum(d.records)::BIGINT, sum(d.population)
                FROM (FROM _plain WHERE _open) c JOIN (FROM _plain WHERE NOT _open) d ON {agree} GROUP BY ALL
            ), _added AS (
                SELECT _place, sum(records)::BIGINT AS records, sum(population) AS population FROM _more GROUP BY ALL
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
    session: Session, text: str | None, keys: list[str] | None, weight: str | None, nulls: str | None
) -> str:
    """``sdc_classes``."""
    classes = Classes.read(session.cursor(), text, keys, nulls, weight=weight, taken=CLASS_COLUMNS, allowed=NULLS)
    return f"SELECT {classes.columns}, records, population FROM ({classes.counted()})"


def plan_k_anonymity(
    session: Session, text: str | None, keys: list[str] | None, k: int | None, nulls: str | None
) -> str:
    """``sdc_k_anonymity``."""
    classes = Classes.read(session.cursor(), text, keys, nulls, allowed=NULLS, taken=CLASS_COLUMNS)
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


# --- sensitive values ------------------------------------------------------------------------------------------------


def _values(classes: Classes, sensitive: str | None) -> str:
    """A query for how often each class has each value: keys, ``_value``, ``_n``."""
    column = classes.relation.column(sensitive, "sensitive")
    if column in map(identifier, classes.keys):
        raise wrong("sensitive", "name another column than 'keys'")
    known = f"WHERE {column} IS NOT NULL" if classes.nulls == "skip" else ""
    return f"SELECT {classes.columns}, {column} AS _value, count(*) AS _n FROM {classes.records()} {known} GROUP BY ALL"


def _diversity(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, c: float | None,
    nulls: str | None,
) -> tuple[Classes, str]:  # fmt: skip
    classes = Classes.read(session.cursor(), text, keys, nulls, taken=_DIVERSITY, allowed=_NULLS_OF_VALUES)
    return classes, diversity(classes.keys, _values(classes, sensitive), number(c, "c", above=0))


def diversity(keys: Sequence[str], values: str, times: float) -> str:
    """A query for the diversity of each class: keys, ``records``, and the three measures.

    Args:
        values: a query for how often each class has each value: keys, ``_value``, ``_n``.
        times: the c of recursive diversity.
    """
    by = ", ".join(map(identifier, keys))
    # The most frequent value has to have less than c times as many records as those from the l-th on have together.
    # What they have shrinks as l grows, so l is the number of values for which it is enough.
    return f"""
        SELECT {by}, sum(_n)::BIGINT AS records, count(*) AS distinct_l,
            exp(ln(sum(_n)) - {total("_n * ln(_n)")} / sum(_n)) AS entropy_l,
            count(*) FILTER (_most < {times!r}::DOUBLE * _tail) AS recursive_l
        FROM (
            SELECT {by}, _n, max(_n) OVER (PARTITION BY {by}) AS _most,
                sum(_n) OVER (PARTITION BY {by} ORDER BY _n ROWS UNBOUNDED PRECEDING) AS _tail
            FROM ({values})
        ) GROUP BY {by}"""


def plan_l_diversity_classes(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, c: float | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_l_diversity_classes``."""
    return _diversity(session, text, keys, sensitive, c, nulls)[1]


def plan_l_diversity(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, c: float | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_l_diversity``: the worst class."""
    by_class = _diversity(session, text, keys, sensitive, c, nulls)[1]
    return f"""
        SELECT records, classes, distinct_l, entropy_l, recursive_l, homogeneous,
            homogeneous / nullif(records, 0) AS share_homogeneous
        FROM (
            SELECT coalesce(sum(records), 0)::BIGINT AS records, count(*) AS classes, min(distinct_l) AS distinct_l,
                min(entropy_l) AS entropy_l, min(recursive_l) AS recursive_l,
                coalesce(sum(records) FILTER (distinct_l = 1), 0)::BIGINT AS homogeneous
            FROM ({by_class})
        )"""


# The distance between the two distribution functions from a value of the class to its next, times the ranks.
_PIECE = """
    CASE WHEN _first THEN _before / _total ELSE 0 END
    + _mine / _all * ((_pass - _rank + 1) - (_next - 1 - _pass))
    + ((_then - _until) - (_until - _before)) / _total"""


def _closeness(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, ordered: bool | None,
    nulls: str | None,
) -> str:  # fmt: skip
    classes = Classes.read(session.cursor(), text, keys, nulls, taken=_CLOSENESS, allowed=_NULLS_OF_VALUES)
    values = _values(classes, sensitive)
    if ordered is None:
        ordered = is_ordered(classes.relation.type_of(str(sensitive)))
    return closeness(classes.keys, values, ordered=ordered)


def is_ordered(sql_type: str) -> bool:
    """Whether the order of the values of a type counts, unless told otherwise."""
    return any(word in sql_type for word in _ORDERED) and not sql_type.endswith("]")


def closeness(keys: Sequence[str], values: str, *, ordered: bool) -> str:
    """A query for the distance of each class from all records: keys, ``records``, ``distance``.

    Args:
        values: a query for how often each class has each value: keys, ``_value``, ``_n``.
        ordered: whether the order of the values counts; none is NULL then.
    """
    by = ", ".join(map(identifier, keys))
    sizes = f"SELECT {by}, sum(_n)::BIGINT AS _all FROM _values GROUP BY ALL"
    shown = ", ".join(f"v.{identifier(name)}" for name in keys)
    if not ordered:
        # Half the sum of all differences is the sum of the positive ones, which only values of the class can have.
        return f"""
            WITH _values AS MATERIALIZED ({values}),
            _whole AS (
                SELECT _value AS _known, sum(_n) / (SELECT sum(_n) FROM _values) AS _share FROM _values GROUP BY ALL
            )
            SELECT {shown}, any_value(_all) AS records, {total("greatest(_n / _all - _share, 0)")} AS distance
            FROM _values v JOIN ({sizes}) c ON {alike(keys, "v", "c")}
            JOIN _whole ON _value IS NOT DISTINCT FROM _known GROUP BY ALL"""
    # Between two values of the class its distribution function is flat, and that of the whole climbs: the distance
    # there is a difference of sums, once it is known where the one passes the other (`_pass`).
    return f"""
        WITH _values AS MATERIALIZED ({values}),
        _whole AS MATERIALIZED (
            SELECT *, sum(_below) OVER (ORDER BY _rank ROWS UNBOUNDED PRECEDING)::HUGEINT AS _sums
            FROM (
                SELECT _known, row_number() OVER (ORDER BY _known) AS _rank,
                    sum(_n) OVER (ORDER BY _known ROWS UNBOUNDED PRECEDING)::HUGEINT AS _below
                FROM (SELECT CASE WHEN _value IS NULL THEN error('a sensitive value is NULL: take nulls := ''skip'', '
                    || 'or ordered := false') ELSE _value END AS _known, sum(_n) AS _n FROM _values GROUP BY ALL)
            )
        ),
        _end AS (SELECT max(_rank) AS _ranks, max(_below) AS _total, max(_sums) - max(_below) AS _last FROM _whole),
        _steps AS (
            SELECT {by}, _rank, _sums - _below AS _before,
                sum(_n) OVER (PARTITION BY {by}) AS _all,
                sum(_n) OVER (PARTITION BY {by} ORDER BY _rank ROWS UNBOUNDED PRECEDING)::HUGEINT AS _mine,
                lead(_rank) OVER (PARTITION BY {by} ORDER BY _rank) AS _next,
                lead(_sums - _below) OVER (PARTITION BY {by} ORDER BY _rank) AS _then
            FROM _values JOIN _whole ON _value = _known
        ),
        _flat AS (
            SELECT {by}, _all, _rank, _before, _mine, coalesce(_next, _ranks) AS _next, coalesce(_then, _last) AS _then,
                _ranks, _total, _mine * _total // _all AS _level,
                row_number() OVER (PARTITION BY {by} ORDER BY _rank) = 1 AS _first
            FROM _steps, _end
        ),
        _passed AS (
            SELECT _flat.*, least(greatest(coalesce(p._rank, 0), _flat._rank - 1), _next - 1) AS _pass,
                CASE WHEN coalesce(p._rank, 0) < _flat._rank THEN _before
                    WHEN p._rank >= _next THEN _then ELSE p._sums END AS _until
            FROM _flat ASOF LEFT JOIN _whole p ON _flat._level >= p._below
        )
        SELECT {by}, any_value(_all)::BIGINT AS records,
            coalesce({total(_PIECE)} / nullif(any_value(_ranks) - 1, 0), 0) AS distance
        FROM _passed GROUP BY {by}"""


def plan_t_closeness_classes(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, ordered: bool | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_t_closeness_classes``."""
    return _closeness(session, text, keys, sensitive, ordered, nulls)


def plan_t_closeness(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, ordered: bool | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_t_closeness``: the class that is farthest from the whole."""
    by_class = _closeness(session, text, keys, sensitive, ordered, nulls)
    return f"""
        SELECT coalesce(sum(records), 0)::BIGINT AS records, count(*) AS classes, max(distance) AS t,
            {total("records * distance")} / sum(records) AS mean_distance
        FROM ({by_class})"""


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
    threshold: float | None, method: str | None, nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_individual_risk``."""
    classes = Classes.read(session.cursor(), text, keys, nulls, weight=weight, allowed=NULLS, taken=CLASS_COLUMNS)
    refuse_taken(classes.relation.columns, _RISK_COLUMNS)
    most = share(threshold, "threshold")
    return f"SELECT *, risk > {most!r}::DOUBLE AS unsafe FROM ({_risks(classes, household, method)})"


def plan_global_risk(
    session: Session, text: str | None, keys: list[str] | None, weight: str | None, household: str | None,
    threshold: float | None, method: str | None, nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_global_risk``: from the classes, or from the records where households count."""
    most = share(threshold, "threshold")
    classes = Classes.read(session.cursor(), text, keys, nulls, weight=weight, allowed=NULLS, taken=CLASS_COLUMNS)
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
            classes.keys, classes.weight, classes.nulls,
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
    classes = Classes.read(session.cursor(), text, keys, nulls, taken=CLASS_COLUMNS)
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


def _paired(cursor: duckdb.DuckDBPyConnection, inner: Classes, external: str | None) -> str:
    """A query for the classes of the released records: keys, ``_f`` records, ``_there`` in the identified file.

    ``_there`` is NULL without such a file.
    """
    own = f"SELECT {inner.columns}, records AS _f FROM ({inner.counted()})"
    if external is None:
        return f"SELECT *, NULL::BIGINT AS _there FROM ({own})"
    outer = Classes.read(cursor, external, list(inner.keys), inner.nulls, argument="external")
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
    cursor = session.cursor()
    inner = Classes.read(cursor, internal, keys, nulls, taken=_MARKETER, argument="internal")
    return _marketer(_paired(cursor, inner, external), whole(k, "k", least=1))


def plan_marketer_risk_classes(
    session: Session, internal: str | None, external: str | None, keys: list[str] | None, nulls: str | None
) -> str:
    """``sdc_marketer_risk_classes``."""
    cursor = session.cursor()
    inner = Classes.read(cursor, internal, keys, nulls, taken=_MARKETER, argument="internal")
    return f"""
        SELECT {inner.columns}, _f AS records, _there AS population, _f <= _there AS valid, 1 / _f AS risk_im,
            1 / CASE WHEN _there IS NOT NULL THEN greatest(_there, _f) END AS risk_cem,
            CASE WHEN _f <= _there THEN 1 / _there END AS risk_orem
        FROM ({_paired(cursor, inner, external)})"""


def plan_policy_risk(
    session: Session, internal: str | None, external: str | None, policies: str | None, k: int | None,
    date: str | None, as_of: list[datetime.date] | None, nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_policy_risk``: the same measures for every policy, and for the file as it was at each date."""
    cursor = session.cursor()
    example = "{'coarse': ['county'], 'fine': ['county', 'age']}"
    given = needed(struct(policies, "policies", example), "policies", f"name lists of columns: {example}")
    least = whole(k, "k", least=1)
    if (date is None) != (as_of is None):
        raise SDCError("arguments 'date' and 'as_of' go together: a column, and the dates up to which the file goes")
    relation = source(cursor, internal, "internal")
    days: list[datetime.date | None] = [None] if as_of is None else list(as_of)
    if as_of is not None and (not as_of or None in as_of):
        raise wrong("as_of", "hold dates")
    if date is not None:
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
            inner = Classes.read(cursor, text, columns, nulls, taken=_MARKETER, argument="internal")
            measures = _marketer(_paired(cursor, inner, external), least)
            at = "NULL::DATE" if day is None else f"DATE '{day:%Y-%m-%d}'"
            parts.append(f"SELECT {literal(name)} AS policy, {at} AS as_of, * FROM ({measures})")
    return " UNION ALL ".join(parts) + " ORDER BY as_of, im, policy"


CLASS_COLUMNS = ("records", "population")
_DIVERSITY = ("records", "distinct_l", "entropy_l", "recursive_l")
_CLOSENESS = ("records", "distance")
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
            plan_l_diversity,
            plan_l_diversity_classes,
            plan_t_closeness,
            plan_t_closeness_classes,
            plan_individual_risk,
            plan_global_risk,
            plan_unsafe_combinations,
            plan_marketer_risk,
            plan_marketer_risk_classes,
            plan_policy_risk,
        ),
    ),
    scalars=(Scalar("_sdc_class_risk", ("BIGINT", "DOUBLE", "BOOLEAN"), "DOUBLE", class_risks),),
)
