"""Makes register.duckdb: 5 000 people, made up, protected by cell keys, with a user for the gateway.

    SDCDUCK_PASSWORD='a password for ann' python make_register.py

Everything else in this folder asks this file, or a gateway in front of it.
"""

import os
from pathlib import Path

import sdcduck

FILE = Path("register.duckdb")

PEOPLE = """
CREATE TABLE people AS
SELECT
    id AS person_id,
    ['North', 'South', 'East', 'West'][1 + (md5_number('region' || id) % 7)::INTEGER // 2] AS region,
    ['f', 'm'][1 + (md5_number('sex' || id) % 2)::INTEGER] AS sex,
    (18 + md5_number('age' || id) % 70)::INTEGER AS age,
    (900 + md5_number('income' || id) % 4200)::INTEGER AS income
FROM range(1, 5001) units(id)
"""
REGIONS = """
CREATE TABLE regions AS
FROM (VALUES ('North', 'cold', 410), ('South', 'warm', 120), ('East', 'mild', 250), ('West', 'mild', 90))
    regions(region, climate, area)
"""

if FILE.exists():
    raise SystemExit(f"{FILE} is there already")

# In earnest the secret is kept where the data are not: see the tutorial.
con = sdcduck.connect(FILE, secret=sdcduck.new_secret())
con.execute(PEOPLE)
con.execute(REGIONS)
con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
con.execute(
    "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex', 'age'], measures := ['income'])"
).fetchall()
con.execute("FROM sdc_declare_public('regions')").fetchall()
con.execute("FROM sdc_create_user('ann', ?)", [os.environ["SDCDUCK_PASSWORD"]]).fetchall()
con.close()
print(f"{FILE}: people (protected), regions (public), user ann")
