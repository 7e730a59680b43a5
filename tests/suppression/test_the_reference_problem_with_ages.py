"""A large table of counts of the reference, D8k, with the table of ages published beside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import builders
import pyarrow as pa

import sdcduck

SETS = "(r3, i2), (r2, i2), (i2), (r3), (r2), ()"


def test_the_table_of_ages_makes_nobody_a_singleton(reference_data: Path) -> None:
    """Nearly all cells of one and two records fall apart by age, and who is alone there is alone in no published cell.

    Alone the table has the reference's 254 secondary cells. The one more beside the ages is no protection of singletons:
    without any there is one more as well, as among cells of the same size others come first.
    """
    with sdcduck.connect() as con:
        _, records = builders.big_records(reference_data)
        region, industry = records["r4p"][records["r4"]], records["i3p"][records["i3"]]
        columns = {"r3": region, "r2": records["r3p"][region], "i2": industry, "age": records["age"]}
        con.register("codes", pa.table(columns))
        con.execute("CREATE TABLE people AS FROM codes")
        con.unregister("codes")
        found = {}
        for shown, sets in (("r3, r2, i2", SETS), ("r3, r2, i2, age", f"{SETS}, (age)")):
            for singleton in ("anySum", "none"):
                statuses = con.execute(
                    f"SELECT status FROM sdc_suppress($$SELECT {shown}, count(*) AS n FROM people "
                    f"GROUP BY GROUPING SETS ({sets})$$, max_count := 2, singleton := '{singleton}', improve := false)"
                ).fetchall()
                counted = Counter(status for (status,) in statuses)
                found["age" in shown, singleton] = (counted["primary"], counted["secondary"], len(statuses))
    assert found == {
        (False, "anySum"): (352, 254, 9280),
        (False, "none"): (352, 229, 9280),
        (True, "anySum"): (352, 255, 9290),
        (True, "none"): (352, 230, 9290),
    }
