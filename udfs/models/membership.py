"""Who was in the data of a model: planners behind ``sql/models_tables.sql``."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import checkpoint, reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.models.membership import alike, fitted, membership, membership_by_components
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import needed, share, whole, wrong
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.dp.bounded import pairs_of
from sdcduck.udfs.dp.pca import vectors_of
from sdcduck.udfs.source import Source, shared_columns, source

Floats = NDArray[np.float64]

_MOST_PERMUTATIONS = 100_000
_FEW_FALSE = 1000
_SCALING = "{'income': [30000, 20000], ..}"


@dataclass(frozen=True)
class _Two:
    """Members and others."""

    members: Source
    others: Source
    id: str | None

    @classmethod
    def read(cls, session: Session, members: str | None, others: str | None, key: str | None) -> _Two:
        cursor = session.cursor()
        found = cls(source(cursor, members, "members"), source(cursor, others, "nonmembers"), key)
        if key is not None:
            check_kinds({"members": found.members, "nonmembers": found.others}, [key], "id")
        return found

    def check_apart(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """That nobody is in both.

        Raises:
            SDCError: somebody is.
        """
        if self.id is None:
            return
        one, other = self.members.column(self.id, "id"), self.others.column(self.id, "id")
        row = first_row(
            cursor,
            f"SELECT (SELECT count(*) FROM {self.others.sql} WHERE {other} IN (SELECT {one} FROM {self.members.sql})), "
            f"(SELECT count(*) FROM {self.members.sql} WHERE {one} IS NULL) "
            f"+ (SELECT count(*) FROM {self.others.sql} WHERE {other} IS NULL)",
        )
        if row is not None and row[1]:
            raise wrong("id", "tell who each record is", "some are NULL")
        if row is not None and row[0]:
            raise SDCError(f"{row[0]} of the non-members are members, too (argument 'id'): nobody may be both")


def _several(members: int, others: int) -> None:
    for number, name in ((members, "members"), (others, "nonmembers")):
        if not number:
            raise SDCError(f"'{name}' has no records: an attack needs both members and non-members")


def plan_membership_risk(
    session: Session, members: str | None, nonmembers: str | None, score: str | None, key: str | None,
    confidence: float | None, permutations: int | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_membership_risk``: of scores that stand in a column."""
    two = _Two.read(session, members, nonmembers, key)
    for one in (two.members, two.others):
        one.number(score, "score")
    level = share(confidence, "confidence", zero=False, one=False)
    times = whole(permutations, "permutations", least=0, most=_MOST_PERMUTATIONS)
    start = whole(seed, "seed", least=0)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            two.check_apart(cursor)
            sides = [_scores(cursor, one, score) for one in (two.members, two.others)]
        _several(*map(len, sides))
        told = membership(sides[0], sides[1], level, times, start, checkpoint())
        return pa.table(
            {
                "members": [len(sides[0])], "nonmembers": [len(sides[1])], "auc": [told.auc],
                "ci_low": _number(told.low), "ci_high": _number(told.high), "advantage": [told.curve.advantage()],
                "tpr_at_0_1_percent": [told.curve.true_positives(0.001)],
                "tpr_at_1_percent": [told.curve.true_positives(0.01)],
                "auc_permuted": _number(told.permuted.mean() if times else np.nan),
                "advantage_permuted": _number(told.permuted_advantage.mean() if times else np.nan),
                "p_value": _number(told.p_value if times else np.nan),
                "warning": pa.array([_warning(told.auc, len(sides[1]))], pa.string()),
            }
        )  # fmt: skip

    return Rows(make)


def _number(value: float) -> pa.Array:
    return pa.array([value], pa.float64(), from_pandas=True)


def _warning(auc: float, others: int) -> str | None:
    told = []
    if others < _FEW_FALSE:
        told.append(f"with fewer than {_FEW_FALSE} non-members, 0.1 per cent of false positives is none at all")
    if auc < 0.5:
        told.append("the score is lower for members: give it with a minus, as for a loss")
    return "; ".join(told) or None


def _scores(cursor: duckdb.DuckDBPyConnection, one: Source, score: str | None) -> Floats:
    """In order, so that the draws do not depend on where records are stored."""
    column = one.number(score, "score")
    found = cursor.sql(f"SELECT {column}::DOUBLE AS s FROM {one.sql} ORDER BY s").to_arrow_table()["s"]
    values: Floats = found.combine_chunks().to_numpy(zero_copy_only=False).astype(np.float64)
    if np.isnan(values).any():
        raise SDCError(f"a score of {one.described} is NULL or NaN: leave such records out in a query")
    return values


@dataclass(frozen=True)
class _Read:
    """Records that are complete, in standard units; how many were not, and columns that have no units."""

    members: Floats
    others: Floats
    names: tuple[str, ...]
    warnings: tuple[str, ...]


def plan_pca_membership(
    session: Session, members: str | None, nonmembers: str | None, columns: list[str] | None, k: int | None,
    loadings: str | None, scaling: str | None, key: str | None, confidence: float | None, permutations: int | None,
    seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_pca_membership``: by components of the members, or by those that are released."""
    two = _Two.read(session, members, nonmembers, key)
    # Who somebody is says nothing about him.
    out = [key] if key is not None else []
    names = shared_columns({"members": two.members, "nonmembers": two.others}, columns, leaving_out=out)
    for name in names:
        two.members.number(name, "columns")
        two.others.number(name, "columns")
    most = None if k is None else whole(k, "k", least=1, most=len(names))
    released = None if loadings is None else source(session.cursor(), loadings, "loadings")
    for name in ("component", "column_name", "loading") if released is not None else ():
        released.column(name, "loadings")  # type: ignore[union-attr]
    units = pairs_of(names, scaling, "scaling", _SCALING)
    for name, (_, sd) in units.items():
        if not sd > 0:
            raise wrong("scaling", f"have a standard deviation above 0 for column '{name}'", "[mean, sd]")
    level = share(confidence, "confidence", zero=False, one=False)
    times = whole(permutations, "permutations", least=0, most=_MOST_PERMUTATIONS)
    start = whole(seed, "seed", least=0)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            two.check_apart(cursor)
            read = _standard(cursor, two, names, units, released is not None)
            rows = [] if released is None else cursor.execute(
                f"SELECT component, column_name, loading FROM {released.sql} ORDER BY component"
            ).fetchall()  # fmt: skip
        values, vectors = fitted(read.members)
        warnings = list(read.warnings)
        if released is not None:
            vectors = vectors_of(rows, read.names)
        elif ((values[:-1] - values[1:])[values[1:] > 0] <= 1e-9 * values[0]).any():
            warnings.append("some eigenvalues are equal: which components come first is not determined")
        kept = min(most or max(1, len(read.names) - 1), len(vectors), len(read.names))
        told = membership_by_components(
            read.members, read.others, vectors[:kept], level, times, start, shown_checkpoint()
        )
        explained = np.cumsum(((read.members @ vectors[:kept].T) ** 2).sum(axis=0)) / (read.members**2).sum()
        return pa.table(
            {
                "k": np.arange(1, kept + 1), "auc": told.auc, "ci_low": _numbers(told.low),
                "ci_high": _numbers(told.high), "auc_max": told.largest, "auc_max_permuted": _numbers(told.permuted),
                "p_value": _numbers(told.p_value if times else np.full(kept, np.nan)), "explained": explained,
                "warning": pa.array(["; ".join(warnings) or None] * kept, pa.string()),
            }
        )  # fmt: skip

    return Rows(make)


def _numbers(values: Floats) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)


def _standard(
    cursor: duckdb.DuckDBPyConnection, two: _Two, names: tuple[str, ...], units: dict[str, tuple[float, float]],
    released: bool,
) -> _Read:  # fmt: skip
    sides = [_complete(cursor, one, names) for one in (two.members, two.others)]
    _several(*(len(records) for records, _ in sides))
    (members, gone), (others, gone_too) = sides
    warnings = []
    if gone + gone_too:
        warnings.append(f"{gone + gone_too} records with NULL, NaN or infinite values were left out")
    centre, deviation = members.mean(axis=0), members.std(axis=0)
    for place, name in enumerate(names):
        if name in units:
            centre[place], deviation[place] = units[name]
    # What is the same for all differs from its mean by rounding.
    varies = deviation > 1e-12 * np.abs(members).max(axis=0)
    if not varies.all():
        constant = [name for name, there in zip(names, varies, strict=True) if not there]
        if released:
            raise SDCError(f"column '{constant[0]}' is the same in all members: say its units by 'scaling'")
        warnings.append(f"the same in all members, and left out: {', '.join(constant)}")
    if not varies.any():
        raise SDCError("all columns are the same in all members: there are no components")
    same = alike(members, others)
    if same and two.id is None:
        warnings.append(f"{same} non-members are the same as a member in all columns: nobody may be both")
    found = [(records[:, varies] - centre[varies]) / deviation[varies] for records in (members, others)]
    kept = tuple(name for name, there in zip(names, varies, strict=True) if there)
    return _Read(found[0], found[1], kept, tuple(warnings))


def _complete(cursor: duckdb.DuckDBPyConnection, one: Source, names: tuple[str, ...]) -> tuple[Floats, int]:
    """The records without gaps, in an order that does not come from storage, and how many others there are."""
    shown = ", ".join(f"{one.number(name, 'columns')}::DOUBLE AS {identifier(f'c{i}')}" for i, name in enumerate(names))
    table = cursor.sql(f"SELECT {shown} FROM {one.sql} ORDER BY ALL").to_arrow_table()
    needed(names, "columns", "name columns of numbers")
    values = np.column_stack([table[f"c{i}"].to_numpy().astype(np.float64) for i in range(len(names))])
    whole_ones = np.isfinite(values).all(axis=1)
    return values[whole_ones], int((~whole_ones).sum())


PLANNERS = planners(plan_membership_risk, plan_pca_membership)
