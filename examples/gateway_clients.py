"""psycopg, SQLAlchemy and pandas in front of a gateway (sdcduck serve register.duckdb).

python gateway_clients.py postgresql://ann:PASSWORD@127.0.0.1:5432/register
"""

import sys

import pandas as pd
import psycopg
import sqlalchemy

url = sys.argv[1]

# psycopg: parameters, and a refusal that is an error like any other.
with psycopg.connect(url, autocommit=True) as con:
    rows = con.execute(
        "SELECT region, count(*) FROM people WHERE age < %s GROUP BY region ORDER BY region", [40]
    ).fetchall()
    print(rows)
    try:
        con.execute("SELECT * FROM people")
    except psycopg.Error as problem:
        print(problem.diag.message_primary)

# SQLAlchemy: the tables it finds, and a query made of them.
engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
tables = sqlalchemy.MetaData()
tables.reflect(engine)
print(sorted(tables.tables))
people = tables.tables["people"]
query = (
    sqlalchemy.select(people.c.sex, sqlalchemy.func.count().label("n")).group_by(people.c.sex).order_by(people.c.sex)
)
with engine.connect() as con:
    print(con.execute(query).fetchall())

# pandas: a data frame.
frame = pd.read_sql(
    "SELECT age // 10 * 10 AS band, count(*) AS n, avg(income) AS income FROM people GROUP BY band ORDER BY band",
    engine,
)
print(frame)
engine.dispose()
