"""Encrypted questions by SQL: CPU seconds of prototypes, of the vote in clear and of the encrypted one.

Nothing fails because of a clock.

python benchmarks/encrypted.py            a million records
python benchmarks/encrypted.py --quick    a hundred thousand
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

import sdcduck

MADE = """
CREATE OR REPLACE TABLE people AS SELECT kind, 3 * kind + hash(i, 1) % 1000 / 200 AS a,
    hash(i, 2) % 1000 / 100 - kind AS b, hash(i, 3) % 1000 / 500 + kind % 2 AS c, hash(i, 4) % 1000 / 500 AS d
FROM (SELECT i, i % 4 AS kind FROM range({count}) r(i))"""
BOUNDS = "{'a': [0, 14], 'b': [-3, 10], 'c': [0, 3], 'd': [0, 2]}"
STATEMENTS = {
    "40 prototypes (means)": "CREATE OR REPLACE TABLE refs AS FROM sdc_prototypes('people', 'kind', n := 40)",
    "40 prototypes (evenly spaced)": "FROM sdc_prototypes('people', 'kind', n := 40, method := 'spaced')",
    "10,000 questions in clear": "SELECT avg((predicted = kind)::INTEGER) FROM sdc_he_knn_simulate('refs', "
    "'(FROM people LIMIT 10000)', 'kind', ['a', 'b', 'c', 'd'])",
    "10 prototypes": "CREATE OR REPLACE TABLE few AS FROM sdc_prototypes('people', 'kind', n := 10)",
    "a pair of keys": "CREATE OR REPLACE TABLE keys AS FROM sdc_he_knn_keygen()",
    "the evaluation key, stored": "CREATE OR REPLACE TABLE public AS FROM keys WHERE part = 'evaluation'",
    "a question, encrypted": "CREATE OR REPLACE TABLE asked AS FROM "
    "sdc_he_knn_encrypt('(SELECT 1 AS n, a, b, c, d FROM people LIMIT 1)', "
    f"'keys', 'n', bounds := {BOUNDS})",
    "its answer, 10 reference rows": "CREATE OR REPLACE TABLE answers AS FROM "
    "sdc_he_knn_predict('few', 'asked', 'public', 'kind', "
    f"['a', 'b', 'c', 'd'], bounds := {BOUNDS})",
    "the answer, decrypted": "FROM sdc_he_knn_decrypt('answers', 'keys')",
}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundred thousand records")
    count = 100_000 if parser.parse_args().quick else 1_000_000
    table = Table("", "seconds", "CPU seconds", title=f"{count:,} records")
    with sdcduck.connect() as con:
        con.execute(MADE.format(count=count))
        for what, statement in STATEMENTS.items():
            began, used = time.perf_counter(), time.process_time()
            con.execute(statement).fetchall()
            table.add_row(what, f"{time.perf_counter() - began:.1f}", f"{time.process_time() - used:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
