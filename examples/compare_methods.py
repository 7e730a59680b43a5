"""Ten ways to protect the same tables of incomes: what each gives away, and what it loses.

The comparison of Geyer, Tent, Reiffert and Giessing (2022), on a population that is made up here: persons in states,
districts, municipalities and grid cells, with a total income (x0) and its twelve components. The table to be published
has, for each of the 13 incomes, counts and sums by size class of the total income, at every level of the geography.

python compare_methods.py [persons] [picture.svg]        needs: pip install 'sdcduck[synthesis]'
"""

from __future__ import annotations

import sys

import duckdb
import numpy as np
import pyarrow as pa

import sdcduck
from sdcduck.pictures import Picture, risk_utility

PERSONS = 20_000
SECRET = "a secret of the custodian"
INCOMES = [f"x{j}" for j in range(13)]
PARTS = INCOMES[1:]
LEVELS = ("grid", "municipality", "district", "state", "country")
LIMITS = (4_000, 9_000, 15_000, 22_000, 30_000, 42_000, 60_000, 100_000, 250_000, 600_000)
"""Where the size classes of the total income end."""
FOLLOW = 7
"""So many components nearly follow from household, job and the scale of a person's income; the rest from nothing."""
SHARES = (0.08, 0.065, 0.05, 0.04, 0.03)
"""Of the persons that have each of the others."""
RICH, TAIL, OFTEN = 0.06, 2.0, 5.0
"""So many persons are rich, with incomes of a Pareto law, and have the rare kinds of income so many times as often as
all do: as in tax records, few persons make up much of the sums."""
BOUND = 100_000
"""What a component of an income is taken for at most, where its noise hangs on that; of the total the last limit is."""
RELEASES = 10
"""Of the methods that change a part of the records: what the one or the other part loses differs much by chance."""


def population(persons: int, seed: int = 2022) -> pa.Table:
    """Persons with skewed incomes, more of them in some municipalities than in others."""
    chance = np.random.default_rng(seed)
    municipalities = max(4, persons // 1500)
    size = chance.lognormal(0, 0.4, municipalities)
    municipality = chance.choice(municipalities, persons, p=size / size.sum())
    district = municipality // 4
    household, job = chance.integers(0, 3, persons), chance.choice(3, persons, p=[0.7, 0.1, 0.2])
    scale = chance.lognormal(10, 0.7, persons) * (1 + 0.15 * (municipality % 3))
    rich = chance.random(persons) < RICH
    scale *= np.where(rich, 3 * (1 + chance.pareto(TAIL, persons)), 1)
    often = np.where(rich, OFTEN, (1 - OFTEN * RICH) / (1 - RICH))
    columns: dict[str, object] = {
        "person": np.arange(persons),
        "state": district // 2,
        "district": district,
        "municipality": municipality,
        "grid": municipality * 12 + chance.integers(0, 12, persons),
        "household": household,
        "job": job,
    }
    total = np.zeros(persons)
    for j in range(len(PARTS)):
        if j < FOLLOW:
            usual = (household * j + job + j) % 4 < (4, 3, 3, 3, 2, 2, 2)[j]
            has, weight, spread = chance.random(persons) < np.where(usual, 0.99, 0.004), 0.7 / (j + 1) ** 1.5, 0.12
        else:
            has, weight, spread = chance.random(persons) < often * SHARES[j - FOLLOW], 0.15, 1.2
        columns[f"x{j + 1}"] = amount = np.where(has, np.rint(scale * weight * chance.lognormal(0, spread, persons)), 0)
        total += amount
    columns["x0"] = np.maximum(total - np.rint(0.1 * scale * chance.random(persons)), 0)
    return pa.table(columns)


SIZE_CLASS = " + ".join(f"(x0 >= {limit})::INTEGER" for limit in LIMITS)
LARGEST = f"list_position([{', '.join(PARTS)}], greatest({', '.join(PARTS)}))"

SWAP = """
    sdc_record_swap('persons', household := 'person', hierarchy := ['state', 'district', 'municipality', 'grid'],
        similar := ['household', 'job', 'largest'], keys := ['size_class'], k := 3,
        swaprate := 0.1, seed := {}, return_swapped_id := true)
"""
SYNTHESISE = f"""
    SELECT * REPLACE ({SIZE_CLASS} AS size_class) FROM sdc_synth_records('(FROM flagged)',
        columns := {[*PARTS, "x0"]}, {{}})
"""
# Wider areas than the grid cell would tell the trees nothing more.
PREDICTORS = ["grid", "household", "job", "largest", "size_class"]
KNOWN = {name: [*PREDICTORS, *PARTS[:place]] for place, name in enumerate([*PARTS, "x0"])}


def cells(records: str, counted: str = "count(*)", summed: str = "sum(value)") -> str:
    """The tables of one set of records: of every income, at every level, by size class."""
    tables = [
        f"SELECT variable || ' ' || '{level}' AS what, {area} AS area, size_class, {counted} AS n, {summed} AS x "
        "FROM long GROUP BY ALL"
        for level, area in zip(LEVELS, (*LEVELS[:-1], "0"), strict=True)
    ]
    return f"""
        WITH long AS (
            SELECT * FROM (UNPIVOT (FROM {records}) ON {", ".join(INCOMES)} INTO NAME variable VALUE value)
            WHERE value <> 0
        )
        {" UNION ALL ".join(tables)}
    """


def make_tables(con: duckdb.DuckDBPyConnection, persons: int) -> None:
    """The original tables, and those of the methods that change all cells or all records."""
    con.register("made", population(persons))
    con.execute(f"""
        CREATE TABLE persons AS
        SELECT *, {SIZE_CLASS} AS size_class, {LARGEST} AS largest, sdc_record_key(person) AS record_key FROM made
    """)
    con.execute("SELECT count(*) FROM sdc_store_ptable('counts', '(FROM sdc_ptable(D := 5, V := 2))')")
    con.execute(f"CREATE TABLE original AS {cells('persons')}")
    noise = "p_large := 0.1, p_small := 0.2, fp := 5000, q := 4"
    perturbed = cells("persons", "sdc_count(record_key, ptable := 'counts')", f"sdc_sum(value, record_key, {noise})")
    con.execute(f"CREATE TABLE ckm AS {perturbed}")
    con.execute("""
        CREATE TABLE ckm_mbs AS SELECT ckm.* REPLACE (sdc_mbs(ckm.x, original.n, ckm.n) AS x)
        FROM ckm JOIN original USING (what, area, size_class)
    """)
    private(con)
    microaggregate(con)
    con.execute("CREATE TABLE flagged AS SELECT * EXCLUDE (record_key), false AS swapped FROM persons")
    synthesise(con, "synth", f"predictors := {KNOWN}, seed := 1")
    without = {name: [other for other in known if other != "size_class"] for name, known in KNOWN.items()}
    synthesise(con, "synth_no_class", f"predictors := {without}, seed := 1")


def private(con: duckdb.DuckDBPyConnection) -> None:
    """The tables of differential privacy: a question for each level, of a count and a sum of each income.

    The noise is normal and as large as a guard would draw it; it follows from a hash here, so that it comes out again.
    """
    within = ", ".join(f"least({name}, {LIMITS[-1] if name == 'x0' else BOUND}) AS {name}" for name in INCOMES)
    con.execute(f"CREATE TABLE bounded AS SELECT * REPLACE ({within}) FROM persons")
    (noise,) = con.execute(f"SELECT sdc_dp_sigma(1, 1e-8, sqrt(2 * {2 * len(INCOMES)}))").fetchone() or (0.0,)
    chance = "(md5_number_lower(concat_ws(' ', '{}', what, area, size_class)) % 1000003 + 1)::DOUBLE / 1000004"
    size, turn, other = (chance.format(which) for which in ("size", "turn", "other"))
    noise = f"{noise!r}::DOUBLE"
    far = f"{noise} * sqrt(-2 * ln({size}))"
    con.execute(f"""
        CREATE TABLE dp AS SELECT what, area, size_class, greatest(round(n + {far} * cos(2 * pi() * {turn})), 0) AS n,
            x + if(what LIKE 'x0 %', {LIMITS[-1]}, {BOUND}) * {noise}
                * sqrt(-2 * ln({other})) * sin(2 * pi() * {turn}) AS x
        FROM ({cells("bounded")})
    """)


def microaggregate(con: duckdb.DuckDBPyConnection) -> None:
    """The tables of records with means for incomes: of all incomes together, and of each by itself where it is had."""
    had = ", ".join(f"nullif({name}, 0) AS {name}" for name in INCOMES)
    for name, call in (
        ("shared", f"'persons', {INCOMES}, k := 3, by := ['size_class'], id := 'person'"),
        (
            "shared_each",
            f"'(SELECT * REPLACE ({had}) FROM persons)', {[[name] for name in INCOMES]}, k := 5, by := ['district'], "
            "id := 'person', nulls := 'keep'",
        ),
    ):
        con.execute(f"CREATE TABLE {name}_records AS FROM sdc_microaggregate({call})")
        con.execute(f"CREATE TABLE {name} AS {cells(f'{name}_records')}")


def make_release(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    """The tables of the methods that change a part of the records, one of many that they might make."""
    con.execute(f"CREATE OR REPLACE TABLE swapped AS FROM {SWAP.format(seed)}")
    con.execute(f"CREATE OR REPLACE TABLE trs AS {cells('swapped')}")
    con.execute("""
        CREATE OR REPLACE TABLE flagged AS SELECT p.* EXCLUDE (record_key), s.swapped_with IS NOT NULL AS swapped
        FROM persons p JOIN swapped s USING (person)
    """)
    for name, part in (
        ("synth_swap", "subset := 'swapped'"),
        ("synth_half", "subset := 'swapped', share := 0.5"),
        ("synth_rand", "share := 0.1"),
    ):
        synthesise(con, name, f"predictors := {KNOWN}, {part}, seed := {seed}")


def synthesise(con: duckdb.DuckDBPyConnection, name: str, arguments: str) -> None:
    """The table of synthetic records."""
    con.execute(f"CREATE OR REPLACE TABLE {name}_records AS {SYNTHESISE.format(arguments)}")
    con.execute(f"CREATE OR REPLACE TABLE {name} AS {cells(f'{name}_records')}")


METHODS = {
    "ckm": "CKM", "ckm_mbs": "CKM, mean before sum", "shared_each": "MDAV, each income", "shared": "MDAV, all incomes",
    "trs": "TRS", "synth_rand": "Synth(Rand)", "synth_half": "Synth(Half)", "synth_swap": "Synth(Swap)",
    "synth": "Synth", "synth_no_class": "Synth, no size class", "dp": "DP",
}  # fmt: skip
NOT_DRAWN = ("Synth, no size class", "MDAV, each income", "CKM, mean before sum")
"""More than eight methods are too many colours."""
AT_EDGE = "DP (beyond the edge)"
PARTIAL = ("trs", "synth_rand", "synth_half", "synth_swap")


def measured(table: str) -> str:
    """A query for the measures of one table, by income and level."""
    return f"""
        SELECT {list(METHODS).index(table)} AS place, '{METHODS[table]}' AS method,
            split_part(level, ' ', 1) AS variable, split_part(level, ' ', 2) AS level, U, U_single, R_pert, R, hellinger
        FROM sdc_table_risk_utility('original', '{table}', dimensions := ['what', 'area', 'size_class'], value := 'x',
            protected_value := 'x', by := 'what')
    """


def measure(con: duckdb.DuckDBPyConnection, releases: int = RELEASES) -> None:
    """The table `measures`: of each method, income and level, means over the releases."""
    tables = [table for table in METHODS if table not in PARTIAL]
    con.execute(f"CREATE TABLE single AS {' UNION ALL '.join(map(measured, tables))}")
    for seed in range(1, releases + 1):
        make_release(con, seed)
        con.execute(f"INSERT INTO single {' UNION ALL '.join(map(measured, PARTIAL))}")
    con.execute("""
        CREATE TABLE measures AS
        SELECT place, method, variable, level, avg(COLUMNS(* EXCLUDE (place, method, variable, level)))
        FROM single GROUP BY ALL ORDER BY ALL
    """)


FIGURES = """
    SELECT method, avg(U), avg(hellinger), avg(R_pert), avg(U_single), avg(R) FROM measures
    WHERE level = 'grid' AND (variable IN ({})) GROUP BY place, method ORDER BY place
"""


def figures(con: duckdb.DuckDBPyConnection) -> str:
    """Means over incomes in the tables by grid cell: those that follow from what is known, and those that do not."""
    lines = []
    for what, some in (("x0 to x7", INCOMES[: FOLLOW + 1]), ("x8 to x12", INCOMES[FOLLOW + 1 :])):
        lines.append(f"{what:21} |    U | Hellinger | R_pert | U_single |    R")
        lines.append("----------------------+------+-----------+--------+----------+-----")
        for method, *numbers in con.execute(FIGURES.format(str(some)[1:-1])).fetchall():
            U, hellinger, R_pert, U_single, R = (f"{number:.{2 if number < 10 else 0}f}" for number in numbers)
            lines.append(f"{method:21} | {U:>4} | {hellinger:>9} | {R_pert:>6} | {U_single:>8} | {R:>4}")
        lines.append("")
    return "\n".join(lines)


def draw(con: duckdb.DuckDBPyConnection, persons: int) -> Picture:
    """The map of risk and utility. Differential privacy is far to the right, and stands at the edge."""
    shown = f"FROM measures WHERE level IN ('grid', 'municipality') AND method NOT IN {NOT_DRAWN}"
    edge = f"(SELECT max(U) FROM ({shown}) WHERE method <> 'DP')"
    at_edge = f"CASE method WHEN 'DP' THEN '{AT_EDGE}' ELSE method END AS method, least(U, {edge}) AS U"
    return risk_utility(
        con, f"(SELECT * REPLACE ({at_edge}) FROM ({shown}) ORDER BY level, place)", panel="level",
        title=f"{persons:,} persons, 13 incomes by size class: what each method gives away and loses",
    )  # fmt: skip


def main() -> None:
    persons = int(sys.argv[1]) if len(sys.argv) > 1 else PERSONS
    file = sys.argv[2] if len(sys.argv) > 2 else "comparison.svg"
    con = sdcduck.connect(secret=SECRET)
    con.execute("SET enable_progress_bar = false")
    make_tables(con, persons)
    measure(con)
    print(figures(con))
    print(f"wrote {draw(con, persons).save(file)}")


if __name__ == "__main__":
    main()
