"""The questions of `dp.py` by another system, in an environment of its own: started by it, with a file of records.

Prints a line of JSON for each question: the answers of all runs, and seconds of a processor for one of them. Each
system is asked with the epsilon at which its own account of the question says what was agreed.

    python -m venv qrlew && qrlew/bin/pip install pyqrlew==0.9.27 duckdb
    python -m venv smartnoise && smartnoise/bin/pip install smartnoise-sql==1.0.10
    python benchmarks/dp.py --qrlew qrlew/bin/python --smartnoise smartnoise/bin/python
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

Asked = Callable[[str], dict[str, float]]


def main() -> None:
    """Ask a system; the call comes as JSON."""
    system, file, call = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    warnings.simplefilter("ignore")
    ask = {"qrlew": qrlew, "smartnoise": smartnoise}[system](pd.read_csv(file), file, call)
    for name, query in call["questions"].items():
        began = time.process_time()
        try:
            answers = [ask(query) for _ in range(call["runs"])]
        except Exception as problem:  # whatever a system raises, it did not answer
            print(json.dumps({"question": name, "problem": f"{type(problem).__name__}: {problem}"}), flush=True)
            continue
        seconds = (time.process_time() - began) / call["runs"]
        print(json.dumps({"question": name, "answers": answers, "seconds": seconds}), flush=True)


def qrlew(people: pd.DataFrame, file: Path, call: dict[str, Any]) -> Asked:
    """It writes SQL, which DuckDB runs; it reads the schema from SQLite."""
    import duckdb
    import sqlalchemy
    from pyqrlew import Dataset, Dialect

    path = file.with_suffix(".sqlite")
    with sqlite3.connect(path) as con:
        people.to_sql("people", con, if_exists="replace", index=False)
    data = Dataset.from_database(
        "people", sqlalchemy.create_engine(f"sqlite:///{path}"), None, ranges=False, possible_values_threshold=None
    )
    for name, (low, high) in call["bounds"].items():
        data = data.with_range(None, "people", name, float(low), float(high))
    data = data.with_possible_values(None, "people", "region", call["groups"])
    db = duckdb.connect()
    db.execute("CREATE TABLE people AS FROM people")

    def rewritten(query: str, parts: int) -> Any:
        return data.relation(query).rewrite_with_differential_privacy(
            data, [("people", [], "id")], {"epsilon": call["epsilon"] / parts, "delta": call["delta"] / parts},
            max_multiplicity=1.0, max_multiplicity_share=1.0, max_privacy_unit_groups=1,
        )  # fmt: skip

    def ask(query: str) -> dict[str, float]:
        # Each of its releases costs all of what it is given.
        parts = len(rewritten(query, 1).dp_event().to_dict().get("events", [None]))
        sql = rewritten(query, parts).relation().to_query(Dialect.PostgreSql)
        return by_group(db.execute(sql).fetchall())

    return ask


def smartnoise(people: pd.DataFrame, file: Path, call: dict[str, Any]) -> Asked:
    """It asks pandas through SQLite."""
    import snsql

    columns: dict[str, Any] = {
        name: {"name": name, "type": "float", "lower": float(low), "upper": float(high)}
        for name, (low, high) in call["bounds"].items()
    }
    columns |= {"id": {"name": "id", "type": "int", "private_id": True}, "region": {"name": "region", "type": "string"}}
    table = {"rows": len(people), "max_ids": 1, "censor_dims": False, **columns}

    def reader(epsilon: float) -> Any:
        privacy = snsql.Privacy(epsilon=epsilon, delta=call["delta"])
        return snsql.from_df(people, privacy=privacy, metadata={"": {"of": {"people": table}}})

    costs: dict[str, float] = {}

    def ask(query: str) -> dict[str, float]:
        named = query.replace("FROM people", "FROM of.people")
        if query not in costs:
            costs[query] = float(reader(1.0).get_privacy_cost(named)[0])
        return by_group(reader(call["epsilon"] / costs[query]).execute(named)[1:])

    return ask


def by_group(rows: list[Any]) -> dict[str, float]:
    """Of rows of a label and a number, or of one number."""
    return {str(row[0]) if len(row) > 1 else "": float(row[-1]) for row in rows}


if __name__ == "__main__":
    main()
