"""An analyst's notebook in ibis: expressions on a register, answered by the guard.

python examples/ibis_guarded.py                                            # on a small register made up here
python examples/ibis_guarded.py register.duckdb                            # on a file with policies
python examples/ibis_guarded.py sdcduck://ann:password@host:5432/register  # through a gateway
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import ibis
from ibis import _

import sdcduck
from sdcduck.guard import Refused


def make_register(file: Path) -> None:
    """What a custodian does once: records with keys, and what may be asked about them."""
    with sdcduck.connect(file, secret="the secret of the examples") as con:
        con.execute("""
            CREATE TABLE people AS
            SELECT id AS person_id, ['North', 'South', 'East'][1 + id * 7 % 11 // 4] AS region,
                ['f', 'm'][1 + id % 2] AS sex, (20 + id * 7 % 60)::INTEGER AS age,
                (1200 + id * 7919 % 2600)::INTEGER AS income
            FROM range(1, 1001) units(id)""")
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        con.execute("""
            FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex', 'age'],
                measures := ['income'])""").fetchall()


def main(source: str) -> None:
    """Ask, calculate with the answers, and be refused."""
    con = sdcduck.ibis.connect(source)
    people = con.table("people")

    print("Persons and their incomes by region and sex")
    table = people.group_by("region", "sex").agg(n=_.count(), mean=_.income.mean().round())
    print(table.order_by("region", "sex").to_pandas().to_string(index=False))

    print("\nThe ages of the regions, asked once and kept")
    bands = people.group_by("region", band=_.age // 20 * 20).agg(n=_.count()).cache()
    shares = bands.group_by("region").mutate(share=(_.n / _.n.sum()).round(3))
    print(shares.order_by("region", "band").to_pandas().to_string(index=False))

    print("\nWith a table of one's own")
    sides = ibis.memtable({"region": ["North", "South", "East"], "side": ["coast", "coast", "inland"]})
    print(
        people.join(sides, "region")
        .group_by("side")
        .agg(n=_.count())
        .order_by("side")
        .to_pandas()
        .to_string(index=False)
    )

    print("\nAnd what is not answered")
    for expression in (people.limit(3), people.income.max(), people.filter(_.income > 3000).count()):
        try:
            expression.execute()
        except Refused as refused:
            print(refused)
    con.disconnect()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            make_register(Path(folder) / "register.duckdb")
            main(str(Path(folder) / "register.duckdb"))
