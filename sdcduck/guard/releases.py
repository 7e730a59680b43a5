"""Numbers that noise is drawn for before there is an answer: charged, drawn once, kept, and put in their place.

A statement under ``method := 'dp'`` is one release of all totals that it needs. Until they are drawn a relation without
rows stands for them in its SQL, so that planning, describing or explaining it reads no record and draws no noise. Then:

1. the charge is written to the ledger of the table and forced to disk, or the question is refused;
2. the exact totals of all groups are worked out, and noise is added to them by OpenDP;
3. the noisy numbers are written there, too, and stand in the query as constants from then on.

The same totals asked for again, in whatever query they stand, are read from the ledger and cost nothing. A question
that was charged and got no answer, since the process died, is not charged again: nobody has seen what was drawn.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from sdcduck.catalog import Policy, Privacy
from sdcduck.catalog.chained_file import ChainBroken, Held, Line, Reached, time_of
from sdcduck.catalog.cost_files import CostFile, period_of
from sdcduck.guard.appearing import OF_GROUPS, Appeared, check_kinds, exact_of_units, groups_that_appeared
from sdcduck.guard.calls import Noised
from sdcduck.guard.costs import (
    Charge,
    Cost,
    Standing,
    check_budget,
    cost_of,
    grid_noise,
    policies_of,
    policy_of,
    standing_of,
    words_of,
)
from sdcduck.guard.data_versions import Version, version_of, written
from sdcduck.guard.forecasts import Forecast, forecast_of
from sdcduck.guard.methods.dp import MOST_AS_DOUBLE, of_many
from sdcduck.guard.passes.reading import read
from sdcduck.guard.question import written_down
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Release, Rewritten
from sdcduck.guard.running import Limited, Parameters, check_parameters
from sdcduck.guard.same_totals import Given, key_of, told_of
from sdcduck.quoting import folded, identifier

_MOST_DRAWN = 200_000
_POSITIONS_OF_ONE = 20
_LONGEST_QUERY = 2_000
_CHANGED = "it is not what was written"
_LONG_AGO = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_ROW = "_sdc_row"

Numbers = list[list[int]]
"""Noisy totals in steps, a list for each column of each block."""


class Found(NamedTuple):
    """What was drawn.

    Attributes:
        numbers: the noisy totals.
        appeared: for each block the groups that appeared of those that nobody may know; None: all groups are known.
    """

    numbers: Numbers
    appeared: list[Appeared | None]


@dataclass
class _Known:
    """What stands in a ledger, as far as it was read.

    Attributes:
        now: the time that it was read at, which is never before that of the last line.
        costs: what was charged and when, each with the login that alone was charged for it; None: all were.
        charged: the keys of questions, each with the login that alone was charged for it; None: all were.
    """

    place: Reached | None = None
    now: datetime.datetime = _LONG_AGO
    costs: list[tuple[datetime.datetime, str | None, Charge]] = field(default_factory=list)
    charged: set[tuple[str, str | None]] = field(default_factory=set)
    drawn: dict[str, Found] = field(default_factory=dict)
    _times: Counter[tuple[str | None, Charge]] = field(default_factory=Counter)
    _of: tuple[datetime.datetime | None, int] = (None, 0)
    """Since when, and how many of the costs, are in it."""

    def has_paid(self, key: str, login: str) -> bool:
        """Whether a question costs whoever asks nothing more."""
        return (key, None) in self.charged or (key, login) in self.charged

    def charges(self, privacy: Privacy, login: str) -> list[Charge]:
        """What counts of what was charged, for whoever asks now.

        Of a login that has a budget of its own, what it was charged, and what all were charged together before. Costs
        that are the same are counted as they come, so that a long ledger takes no longer than a short one.
        """
        since = _period(privacy, self.now)[0]
        if since != self._of[0]:
            self._times, self._of = Counter(), (since, 0)
        for time, own, charge in self.costs[self._of[1] :]:
            if since is None or time >= since:
                self._times[own, charge] += 1
        self._of = since, len(self.costs)
        return [
            replace(charge, times=times)
            for (own, charge), times in self._times.items()
            if privacy.ledger == "policy" or own in (None, login)
        ]


class Releases:
    """Draws the noise of questions.

    Args:
        limited: asks.
        register: the file of the database; None: there is none.
    """

    def __init__(self, limited: Limited, register: Path | None) -> None:
        self._limited, self._register = limited, register
        self._alone = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._counted: dict[tuple[object, ...], int] = {}

    def drawn(
        self, rewritten: Rewritten, parameters: Parameters, query: str, login: str
    ) -> tuple[Rewritten, Parameters]:
        """The question with numbers in it, charged for unless they were drawn before, and the parameters left in it.

        Raises:
            Refused: the budget is spent, or it cannot be known or written down whether it is.
        """
        # What stands nowhere in the query is read by nobody.
        asked = tuple(release for release in rewritten.releases if release.stands_for in rewritten.sql)
        if not asked:
            return rewritten, parameters
        rewritten = replace(rewritten, releases=asked)
        around, within = self._parts(rewritten, parameters)
        policies, cost, key, version = self._cost(rewritten, within)
        self._check_binds(policies[0], key, rewritten.releases, within)
        said = f"{query} -- {written_down(parameters)}" if parameters else query
        found = self._charged(policies, cost, key, said, login)
        if found is None:
            drawn = self._draw(rewritten.releases, cost, within)
            if version.knows_views and self._version(rewritten.releases) != version:
                raise Refused("SDC060", "a public view shows other rows than when the question was charged; ask again")
            found = self._kept(policies[0], key, drawn)
        return _with_numbers(rewritten, found, cost), around or None

    def _parts(self, rewritten: Rewritten, parameters: Parameters) -> tuple[Given, Given]:
        """The parameters of the query around the numbers, and those of the numbers: DuckDB takes none beside those.

        Raises:
            Refused: one has no value, or one that cannot be told from others.
        """
        texts = [_exact_sql(release, None) for release in rewritten.releases]
        if not parameters and not any("$" in text for text in (rewritten.sql, *texts)):
            return {}, {}
        named = parameters if isinstance(parameters, Mapping) else dict(enumerate(parameters or [], 1))
        values = {str(name): value for name, value in named.items()}
        check_parameters(values.values())
        sql = rewritten.sql
        for release in rewritten.releases:
            if release.selects:  # what takes its place has none
                sql = sql.replace(release.stands_for, "SELECT 1")
        around = self._parameters(sql)
        within = {name for text in texts for name in self._parameters(text)}
        if around | within != set(values):
            raise Refused("SDC081", "values for other parameters than there are")
        return {name: values[name] for name in sorted(around)}, {name: values[name] for name in sorted(within)}

    def _check_binds(self, policy: Policy, key: str, releases: Sequence[Release], given: Given) -> None:
        """Refuse what DuckDB would not begin, before it is charged: it looks at no record for WHERE false.

        Raises:
            Refused: types do not go together.
        """
        with self._alone:
            known = self._known.get(folded(policy.name))
            if known is not None and key in known.drawn:
                return
        for text in {_exact_sql(release, None): None for release in releases}:
            self._columns(f"SELECT * FROM ({text}) WHERE false", given)
        for release in releases:
            if release.selects:
                self._kinds(release, given)

    def _parameters(self, sql: str) -> set[str]:
        return set(self._limited.ask(lambda cursor: read(cursor, sql)).parameters())

    def notes(self, rewritten: Rewritten, login: str) -> tuple[str, ...]:
        """What a question costs, and how its table stands, in words; nothing where nothing is drawn.

        Raises:
            Refused: it is not known what was spent.
        """
        if not rewritten.releases:
            return ()
        policies, cost, key, _ = self._cost(rewritten)
        return tuple(self._note(policy, cost, key, login) for policy in policies)

    def _note(self, policy: Policy, cost: Cost, key: str, login: str) -> str:
        with self._alone:
            paid = self._read(policy).has_paid(key, login)
        standing, privacy = self.standing(policy, login), policy.privacy
        alone = f"epsilon {privacy.per_question if cost.gaussian else cost.own:g} alone"
        costs = "nothing, it was paid for before" if paid else f"{alone}, for {words_of(cost)}"
        return (
            f"{policy.name}: the question costs {costs}; epsilon {standing.spent:.4g} of {privacy.epsilon:g} is spent "
            f"(delta {privacy.delta:g}), {standing.left} more questions are free"
        )

    def forecast(self, rewritten: Rewritten, login: str) -> Forecast | None:
        """What a question would cost, and how its table would stand after it; None: nothing is drawn for it.

        Of one with parameters it is not known which were paid for before.

        Raises:
            Refused: it is not known what was spent.
        """
        asked = tuple(release for release in rewritten.releases if release.stands_for in rewritten.sql)
        if not asked:
            return None
        policies, cost, key, _ = self._cost(replace(rewritten, releases=asked))
        found = []
        for policy in policies:
            with self._alone:
                known = self._read(policy)
                paid, charges = known.has_paid(key, login), known.charges(policy.privacy, login)
            found.append(forecast_of(policy, cost, charges, paid=paid))
        # Of several tables the one that is spent first; what one was not charged for is not paid.
        least = min(found, key=lambda one: (one.paid, one.after.left))
        return replace(least, enough=all(one.enough for one in found))

    def until(self, policy: Policy) -> datetime.date | None:
        """The day on which a table has a budget anew; None: it has one for ever."""
        if not policy.privacy.period:
            return None
        with self._alone:
            ends = _period(policy.privacy, self._read(policy).now)[1]
        return None if ends is None else ends.date()

    def standing(self, policy: Policy, login: str) -> Standing:
        """How a table stands, for whoever asks.

        Raises:
            Refused: it is not known what was spent.
        """
        with self._alone:
            charges = self._read(policy).charges(policy.privacy, login)
        return standing_of(charges, policy.privacy)

    # --- What it costs --------------------------------------------------------------------------------------------

    def _cost(self, rewritten: Rewritten, given: Given | None = None) -> tuple[list[Policy], Cost, str, Version]:
        policies, cost = policies_of(rewritten), cost_of(rewritten.releases, policy_of(rewritten).privacy)
        without = next((one.name for one in policies if cost.delta and not one.privacy.of_groups), None)
        if without is not None:
            raise Refused(
                "SDC081",
                f"groups that nobody may know, of '{without}' with others: its policy has nothing of its delta for "
                "them, since none of its dimensions is private",
            )
        declared = [policy.privacy.declared for policy in policies]
        version = self._version(rewritten.releases)
        key = key_of(rewritten.releases, declared, cost.scales, [version.of_data, told_of(given or {})])
        return policies, cost, key, version

    def _version(self, releases: Sequence[Release]) -> Version:
        if self._register is None:
            raise Refused("SDC082", "the database is in no file")
        return version_of(self._limited, self._register, releases)

    # --- The ledger -----------------------------------------------------------------------------------------------

    def _charged(self, policies: Sequence[Policy], cost: Cost, key: str, query: str, login: str) -> Found | None:
        """Write down what it costs, for each table or for none; the numbers, where they were drawn before.

        All ledgers are held at once, in the order of their names, as whoever else asks holds them. A table that was
        charged before this process died is not charged again; nothing is drawn before all were.
        """
        with self._alone, contextlib.ExitStack() as stack:
            held = [stack.enter_context(_Ledger(self._register, policy)) for policy in policies]
            known = [self._learn(*one) for one in zip(policies, held, strict=True)]
            owing = [place for place, one in enumerate(known) if not one.has_paid(key, login)]
            for place in owing:
                _check_budget(known[place], cost, policies[place], login, alone=len(policies) == 1)
            for place in owing:
                self._add(policies[place], held[place], _line(policies[place], cost, key, query, login))
            # What was drawn for one login is what the next one gets, who was charged for it, too: one set, one noise.
            return known[0].drawn.get(key)

    def _kept(self, policy: Policy, key: str, found: Found) -> Found:
        """Write down what was drawn, unless somebody else has drawn meanwhile: there is one answer."""
        with self._alone, _Ledger(self._register, policy) as held:
            known = self._learn(policy, held)
            if key not in known.drawn:
                line: Line = {"kind": "drawn", "key": key, "numbers": found.numbers}
                if any(found.appeared):
                    line["appeared"] = [None if one is None else one._asdict() for one in found.appeared]
                self._add(policy, held, line)
            return known.drawn[key]

    def _read(self, policy: Policy) -> _Known:
        if self._register is None:
            raise Refused("SDC082", "the database is in no file")
        with _Ledger(self._register, policy) as held:
            return self._learn(policy, held)

    def _learn(self, policy: Policy, held: Held) -> _Known:
        """What stands in the ledger, read as far as it was not before."""
        known = self._known.setdefault(folded(policy.name), _Known())
        try:
            known.place, lines = held.lines(known.place)
            for line in lines:
                _note(known, line)
            known.now = held.time()
        except BaseException:
            del self._known[folded(policy.name)]
            raise
        return known

    def _add(self, policy: Policy, held: Held, line: Line) -> None:
        known = self._known[folded(policy.name)]
        known.place = held.append(**line)
        # As it stands there: it counts in the period of its own time.
        _note(known, {**line, "time": known.place.time.isoformat()})

    # --- The noise ------------------------------------------------------------------------------------------------

    def _draw(self, releases: Sequence[Release], cost: Cost, given: Given | None = None) -> Found:
        drawn: Numbers = []
        appeared: list[Appeared | None] = []
        exact: dict[str, list[list[Any]]] = {}
        releases = self._written_for_all(releases)
        for release, appears in zip(releases, cost.appear, strict=True):
            sql = _exact_sql(release, appears)
            if sql not in exact:
                exact[sql] = self._columns(sql, given or {})
            # How many groups there are that nobody may know is a secret, and refuses nothing.
            if appears is not None:
                continue
            # To choose one of many positions takes longer than to add noise.
            each = sum(1 + noised.positions // _POSITIONS_OF_ONE for _, noised in release.columns)
            if each * len(exact[sql][0] if exact[sql] else []) > _MOST_DRAWN:
                raise Refused("SDC081", "very many groups: ask for fewer columns at a time")
        for release, scales, appears in zip(releases, cost.scales, cost.appear, strict=True):
            keys = len(release.keys) if appears is not None else 0
            rows = exact[_exact_sql(release, appears)] or [[] for _ in range(keys + len(release.columns))]
            groups, columns = rows[:keys], rows[keys:]
            known: list[list[int] | None] = [None] * len(columns)
            appeared.append(None)
            if appears is not None:
                at = next(place for place, (name, _) in enumerate(release.columns) if name == release.selects)
                noisy = _noisy(release.columns[at][1], columns[at], scales[at], cost)
                places = [place for place, number in enumerate(noisy) if number >= appears[1]]
                columns = [[column[place] for place in places] for column in columns]
                known[at] = [noisy[place] for place in places]
                groups = [[group[place] for place in places] for group in groups]
                appeared[-1] = Appeared(self._kinds(release, given or {}), groups)
            drawn += [
                _noisy(noised, totals, scale, cost) if before is None else before
                for (_, noised), totals, scale, before in zip(release.columns, columns, scales, known, strict=True)
            ]
        return Found(drawn, appeared)

    def _written_for_all(self, releases: Sequence[Release]) -> Sequence[Release]:
        """Releases whose sums are exact of all records. The numbers are the same: that there are many shows in time."""
        if all(of_many(release.totals) == release.totals for release in releases):
            return releases
        if all(self._most_rows(release) <= MOST_AS_DOUBLE for release in releases):
            return releases
        return [replace(release, totals=of_many(release.totals)) for release in releases]

    def _most_rows(self, release: Release) -> int:
        """How many rows a block is made of at most: of joined tables each may find as many as a unit has."""
        tables = release.tables or (release.policy,)
        version = () if self._register is None else tuple(written(self._register))
        most = max(self._rows(table, version) for table in tables)
        return most * (1 if len(tables) == 1 else release.contributions or 1)

    def _rows(self, table: str, version: Sequence[object]) -> int:
        """The rows of a table, counted once for each state of the data."""
        at: tuple[object, ...] = (table, *version)
        rows = self._counted.get(at) if version else None
        if rows is None:
            rows = int(self._columns(f"SELECT count(*) FROM {identifier(table)}", {})[0][0])
            self._counted = {known: of for known, of in self._counted.items() if known[1:] == at[1:]} | {at: rows}
        return rows

    def _kinds(self, release: Release, given: Given) -> list[str]:
        """The types of the keys of groups that nobody may know.

        Raises:
            Refused: values of one are not kept as texts.
        """
        shown = ", ".join(f'"{key}"' for key in release.keys)
        rows = self._columns(
            f"SELECT column_name, column_type FROM (DESCRIBE SELECT {shown} FROM ({release.totals}))", given
        )
        kinds = dict(zip(*rows, strict=True))
        check_kinds(kinds.values())
        return [kinds[key] for key in release.keys]

    def _columns(self, sql: str, given: Given) -> list[list[Any]]:
        """Whole totals, and of what is chosen the number of records at each position."""

        def ask(cursor: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
            values = {name: given[name] for name in read(cursor, sql).parameters()} if given else None
            return cursor.execute(sql, values).fetchall()

        return [list(column) for column in zip(*self._limited.ask(ask), strict=True)]


class _Ledger:
    """The ledger of a table, held; what is wrong with it is said without what is in it."""

    def __init__(self, register: Path | None, policy: Policy) -> None:
        if register is None:
            raise Refused("SDC082", "the database is in no file")
        self._held = CostFile(register, policy.name).held(make=False)

    def __enter__(self) -> Held:
        try:
            return self._held.__enter__()
        except (ChainBroken, OSError) as problem:
            raise _lost(problem) from None

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        self._held.__exit__(kind, problem, None)
        if isinstance(problem, ChainBroken | OSError):
            raise _lost(problem) from None


def _lost(problem: Exception) -> Refused:
    if isinstance(problem, FileNotFoundError):
        return Refused("SDC082", "the ledger beside the database is gone")
    return Refused("SDC082", _CHANGED if isinstance(problem, ChainBroken) else "")


def _note(known: _Known, line: Line) -> None:
    if line["kind"] in ("charge", OF_GROUPS):
        own = line["login"] if line.get("ledger") == "login" else None
        known.costs.append((time_of(line), own, charge_of(line)))
        known.charged.add((line["key"], own))
    elif line["kind"] == "drawn":
        of = line.get("appeared") or [None] * len(line["numbers"])
        found = Found(line["numbers"], [None if one is None else Appeared(**one) for one in of])
        known.drawn.setdefault(line["key"], found)
    else:
        raise ChainBroken("a line of another kind")


def _period(privacy: Privacy, now: datetime.datetime) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    """When the period of a budget began, and when it ends.

    Raises:
        Refused: a newer sdcduck has declared one that is not known here.
    """
    if privacy.ledger not in ("policy", "login"):
        raise Refused("SDC082", "whose budget it is, is not known")
    try:
        return period_of(privacy.period, now) if privacy.period else (None, None)
    except ValueError:
        raise Refused("SDC082", "of which time the budget is, is not known") from None


def _line(policy: Policy, cost: Cost, key: str, query: str, login: str) -> Line:
    """The line of a charge in the ledger of a table."""
    own: dict[str, Any] = {"ledger": "login"} if policy.privacy.ledger == "login" else {}
    if cost.delta:
        own["delta"] = cost.delta
    if cost.normal:
        own["noise"] = "normal"
    return {
        "kind": OF_GROUPS if cost.delta else "charge", "key": key, "unit": cost.unit, "cost": cost.own,
        "neighbours": policy.privacy.neighbours, "login": login, "query": query[:_LONGEST_QUERY], **own,
    }  # fmt: skip


def _check_budget(known: _Known, cost: Cost, policy: Policy, login: str, *, alone: bool) -> None:
    privacy = policy.privacy
    try:
        check_budget(known.charges(privacy, login), cost, privacy)
    except Refused as refused:
        of = "" if alone else f"of '{policy.name}' "
        anew = _period(privacy, known.now)[1]
        more = "" if anew is None else f"; there is more from {anew:%Y-%m-%d} 00:00 UTC"
        raise Refused(refused.code, f"{of}{refused.detail}{more}") from None


def charge_of(line: Line) -> Charge:
    """What a line of the ledger says that a question has cost."""
    return Charge(
        line["unit"],
        float(line["cost"]),
        line["neighbours"],
        float(line.get("delta", 0)),
        line.get("noise") == "normal",
    )


def _numbered(release: Release) -> str:
    """All groups, in an order that does not come from storage, each with its place in it."""
    order = ", ".join(f'"{key}" NULLS LAST' for key in release.keys)
    return f"SELECT *, row_number() OVER (ORDER BY {order}) AS {_ROW} FROM ({release.cells})"


def _noisy(noised: Noised, totals: Sequence[Any], scale: float, cost: Cost) -> list[int]:
    noise, found = grid_noise(), list[int]()
    if noised.positions:
        found += noise.chosen(totals, noised.positions, -noised.low, noised.high, scale, gaussian=cost.gaussian)
    elif cost.normal:
        found += noise.finely_noisy(totals, scale)
    else:
        found += noise.noisy(totals, scale, gaussian=cost.gaussian)
    return found


def _exact_sql(release: Release, appears: tuple[int, int] | None) -> str:
    """The exact totals of all groups, 0 where nobody is; of groups that nobody may know those with so many units."""
    shown = ", ".join(
        f'coalesce(t."{name}", {"MAP {}" if noised.positions else "0"})'
        f"::{'MAP(INTEGER, BIGINT)' if noised.positions else 'HUGEINT'}"
        for name, noised in release.columns
    )
    if release.selects:
        return exact_of_units(release, shown, 1 if appears is None else appears[0])
    if not release.cells:
        return f"SELECT {shown} FROM ({release.totals}) AS t"
    same = " AND ".join(f'c."{key}" IS NOT DISTINCT FROM t."{key}"' for key in release.keys)
    return (
        f"SELECT {shown} FROM ({_numbered(release)}) AS c LEFT JOIN ({release.totals}) AS t ON {same} ORDER BY c.{_ROW}"
    )


def _with_numbers(rewritten: Rewritten, found: Found, cost: Cost) -> Rewritten:
    """The query with numbers in the place of relations without rows."""
    sql, waiting = rewritten.sql, iter(found.numbers)
    for release, deviations, appeared in zip(rewritten.releases, cost.deviations, found.appeared, strict=False):
        columns = [next(waiting) for _ in release.columns]
        sql = sql.replace(release.stands_for, _constants(release, columns, deviations, appeared))
    return replace(rewritten, sql=sql)


def _constants(
    release: Release, columns: Sequence[Sequence[int]], deviations: Sequence[float | None], appeared: Appeared | None
) -> str:
    written = [
        [_written(total, noised, deviation) for total in totals]
        for (_, noised), totals, deviation in zip(release.columns, columns, deviations, strict=True)
    ]
    names = [name for name, _ in release.columns]
    kinds = ["BIGINT" if noised.statistic == "count" else "DOUBLE" for _, noised in release.columns]
    if appeared is not None:
        return groups_that_appeared(release, appeared, written, kinds)
    if not release.cells:
        shown = [
            f'CAST({values[0]} AS {kind}) AS "{name}"' for values, kind, name in zip(written, kinds, names, strict=True)
        ]
        return f"SELECT {', '.join(shown)}"
    rows = ", ".join(f"({', '.join([str(place), *row])})" for place, row in enumerate(zip(*written, strict=True), 1))
    listed = ", ".join(f'"{name}"' for name in (_ROW, *names))
    shown = [f'c."{key}"' for key in release.keys]
    shown += [f'CAST(v."{name}" AS {kind}) AS "{name}"' for name, kind in zip(names, kinds, strict=True)]
    empty = f"SELECT {', '.join(['NULL'] * (1 + len(names)))} WHERE false"
    return (
        f"SELECT {', '.join(shown)} FROM ({_numbered(release)}) AS c "
        f"JOIN ({f'VALUES {rows}' if rows else empty}) AS v({listed}) ON c.{_ROW} = v.{_ROW}"
    )


def _written(total: int, noised: Noised, deviation: float | None) -> str:
    """A number in SQL, without digits that are noise alone: that is done with it after it was drawn."""
    if noised.statistic == "count":
        return str(total)
    value = noised.first + total * noised.step
    return repr(round(value, 2 - math.floor(math.log10(noised.step if deviation is None else deviation))))
