"""The guard in Python: ordinary SQL over register.duckdb, answered as Arrow tables."""

import sdcduck
from sdcduck.guard import Refused

guard = sdcduck.open_guard("register.duckdb", role="analyst", seconds=30)

answer = guard.sql("""
    SELECT climate, count(*) AS people, avg(income) AS income
    FROM people JOIN regions USING (region)
    GROUP BY climate
    ORDER BY climate
""")
print(answer.to_pandas())

# What each column is made of.
explained = guard.explain("SELECT region, count(*) AS n FROM people GROUP BY region")
for column in explained.columns:
    print(column.name, "is", column.kind)

# A refusal says what to write instead.
try:
    guard.sql("SELECT max(income) FROM people")
except Refused as refused:
    print(refused)
