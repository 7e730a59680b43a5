"""Programs that cannot be started here, Power BI, Tableau, DBeaver and R: questions of the kind that they ask.

To connect and to look around they ask the catalog; the statements here ask the same of it, of the same relations with the
same functions, in words of our own. Each is answered, or refused with a code, and the session goes on; what asks about the
database itself never comes to the data.
"""

from __future__ import annotations

from typing import Any

import pytest
from served_gateway import Served

psycopg = pytest.importorskip("psycopg")

TYPES_WITH_ELEMENTS = """
    SELECT spaces.nspname AS space, kinds.oid, kinds.typname, kinds.typrelid, kinds.typbasetype,
        CASE WHEN receives.proname = 'array_recv' THEN 'array' ELSE kinds.typtype END AS kind,
        CASE WHEN receives.proname = 'array_recv' THEN kinds.typelem WHEN kinds.typtype = 'r' THEN ranges.rngsubtype
            WHEN kinds.typtype = 'm' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = kinds.oid) ELSE 0 END AS of_oid
    FROM pg_type kinds
    INNER JOIN pg_namespace spaces ON kinds.typnamespace = spaces.oid
    INNER JOIN pg_proc receives ON kinds.typreceive = receives.oid
    LEFT JOIN pg_class rows_of ON kinds.typrelid = rows_of.oid
    LEFT JOIN pg_range ranges ON kinds.oid = ranges.rngtypid
    LEFT JOIN pg_type element ON kinds.typelem = element.oid
    LEFT JOIN pg_class rows_of_element ON element.typrelid = rows_of_element.oid
    WHERE kinds.typtype IN ('b', 'd', 'e', 'm', 'r') OR (rows_of.relkind = 'c' AND kinds.typtype = 'c')
        OR (kinds.typtype = 'p' AND kinds.typname IN ('void', 'record', 'unknown'))
        OR (receives.proname = 'array_recv' AND (element.typtype IN ('b', 'd', 'e', 'r') OR rows_of_element.relkind = 'c'))
    ORDER BY CASE WHEN receives.proname = 'array_recv' THEN 1 ELSE 0 END, kinds.oid"""
TYPES_TWICE_NESTED = """
    SELECT n.nspname, inside.oid, inside.typname, inside.kind, inside.typnotnull, inside.element, inside.typcategory
    FROM (
        SELECT one.*, two.typname AS of_name, CASE WHEN three.proname = 'array_recv' THEN 'a' ELSE two.typtype END AS of_kind
        FROM (
            SELECT t.oid, t.typname, t.typnamespace, t.typnotnull, t.typcategory, c.relkind,
                CASE WHEN p.proname = 'array_recv' THEN 'a' ELSE t.typtype END AS kind,
                CASE WHEN p.proname = 'array_recv' THEN t.typelem WHEN t.typtype = 'd' THEN t.typbasetype
                    WHEN t.typtype = 'r' THEN r.rngsubtype END AS element
            FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid LEFT JOIN pg_proc p ON p.oid = t.typreceive
            LEFT JOIN pg_range r ON r.rngtypid = t.oid
        ) one LEFT JOIN pg_type two ON two.oid = one.element LEFT JOIN pg_proc three ON three.oid = two.typreceive
    ) inside JOIN pg_namespace n ON n.oid = inside.typnamespace
    WHERE inside.kind IN ('b', 'e', 'r', 'm', 'd') OR (inside.kind = 'c' AND inside.relkind = 'c')
        OR (inside.kind = 'a' AND (inside.of_kind IN ('b', 'e') OR inside.of_name IN ('record', 'void')))
    ORDER BY CASE inside.kind WHEN 'c' THEN 1 WHEN 'a' THEN 2 ELSE 0 END, 2"""
NPGSQL = [
    "SELECT version()", TYPES_WITH_ELEMENTS, TYPES_TWICE_NESTED,
    "SELECT t.oid, a.attname, a.atttypid FROM pg_attribute a, pg_class c, pg_type t WHERE c.oid = t.typrelid AND "
    "a.attrelid = c.oid AND c.relkind = 'c' AND t.typtype = 'c' AND a.attnum >= 1 AND a.attisdropped = false ORDER BY 1, a.attnum",
    "SELECT t.oid, e.enumlabel FROM pg_type t JOIN pg_enum e ON t.oid = e.enumtypid ORDER BY t.oid, e.enumsortorder",
    "DISCARD ALL", "CLOSE ALL", "UNLISTEN *", "SELECT pg_is_in_recovery()", "SHOW default_transaction_read_only",
]  # fmt: skip

POWER_BI = [
    "select character_set_name from information_schema.character_sets",
    "select table_name, table_schema, table_type from INFORMATION_SCHEMA.TABLES\r\n"
    "where not table_schema in ('pg_catalog', 'information_schema')\r\norder by 2, 1",
    "select column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length,\r\n"
    "    numeric_precision, numeric_scale, case data_type when 'DOUBLE' then 2 else 10 end as radix\r\n"
    "from INFORMATION_SCHEMA.COLUMNS where table_name = 'people' and table_schema = 'public' order by 2",
    "select parent.column_name, child.table_schema, child.table_name, child.column_name, child.ordinal_position\r\n"
    "from (select distinct constraint_name, constraint_schema, unique_constraint_name, unique_constraint_schema\r\n"
    "    from INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS) link\r\n"
    "join INFORMATION_SCHEMA.KEY_COLUMN_USAGE child on child.constraint_name = link.constraint_name\r\n"
    "join INFORMATION_SCHEMA.KEY_COLUMN_USAGE parent on parent.constraint_name = link.unique_constraint_name\r\n"
    "where parent.table_name = 'people' and parent.ordinal_position = child.ordinal_position order by 3, 5",
    "select c.constraint_schema || '.' || c.constraint_name as name, k.column_name, k.ordinal_position,\r\n"
    "    c.constraint_type = 'PRIMARY KEY' as is_primary\r\nfrom INFORMATION_SCHEMA.TABLE_CONSTRAINTS c\r\n"
    "join INFORMATION_SCHEMA.KEY_COLUMN_USAGE k on k.constraint_name = c.constraint_name and k.table_name = c.table_name\r\n"
    "where c.constraint_type in ('UNIQUE', 'PRIMARY KEY') and c.table_name = 'people' order by 1, 3",
]

ODBC = [
    "SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isolation",
    "select oid, typbasetype from pg_type where typname = 'lo'",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "select nspname from pg_namespace n, pg_class c where c.relnamespace=n.oid and c.oid='people'::regclass",
]

DBEAVER = [
    "SET extra_float_digits = 3",
    "SET application_name = 'DBeaver 25.2.0 - Main <register>'",
    "SHOW search_path",
    "SELECT current_schema(), session_user",
    "SELECT version()",
    "SELECT d.oid, d.* FROM pg_catalog.pg_database d WHERE d.datname = 'register'",
    "SELECT d.oid, d.* FROM pg_catalog.pg_database d WHERE NOT d.datistemplate AND d.datallowconn ORDER BY 2",
    "SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'",
    "SELECT string_agg(word, ' ') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{select,from,where}'::text[])",
    "SELECT s.oid, s.*, t.description FROM pg_catalog.pg_namespace s LEFT JOIN pg_catalog.pg_description t "
    "ON t.classoid = 'pg_namespace'::regclass AND t.objoid = s.oid AND t.objsubid = 0 ORDER BY s.nspname",
    "SELECT k.oid, k.*, r.relkind, format_type(nullif(k.typbasetype, 0), k.typtypmod) AS base, t.description "
    "FROM pg_catalog.pg_type k LEFT JOIN pg_catalog.pg_class r ON k.typrelid = r.oid LEFT JOIN pg_catalog.pg_type e "
    "ON k.typelem = e.oid LEFT JOIN pg_catalog.pg_description t ON t.objoid = k.oid "
    "WHERE (r.relkind = 'c' OR r.relkind IS NULL) AND (e.typcategory IS NULL OR e.typcategory != 'C')",
    "SELECT r.oid, r.*, t.description, pg_catalog.pg_get_partkeydef(r.oid) AS parts, "
    "pg_catalog.pg_get_expr(r.relpartbound, r.oid) AS part FROM pg_catalog.pg_class r LEFT JOIN pg_catalog.pg_description t "
    "ON t.classoid = 'pg_class'::regclass AND t.objoid = r.oid AND t.objsubid = 0 "
    "WHERE r.relkind NOT IN ('c', 'i', 'I') AND r.relnamespace = 2200",
    "SELECT r.relname, a.*, pg_catalog.pg_get_expr(v.adbin, v.adrelid, true) AS otherwise, t.description, x.objid "
    "FROM pg_catalog.pg_class r JOIN pg_catalog.pg_attribute a ON r.oid = a.attrelid LEFT JOIN pg_catalog.pg_attrdef v "
    "ON v.adnum = a.attnum AND v.adrelid = a.attrelid LEFT JOIN pg_catalog.pg_description t ON t.objoid = r.oid "
    "AND t.objsubid = a.attnum LEFT JOIN pg_depend x ON x.refobjid = a.attrelid AND x.refobjsubid = a.attnum "
    "AND x.deptype = 'i' WHERE r.oid = 16384 AND NOT a.attisdropped ORDER BY a.attnum",
    "SELECT o.oid, o.*, r.relname, f.relnamespace, t.description, CASE o.contype WHEN 'c' THEN "
    "substring(pg_get_constraintdef(o.oid), 7) END AS checked FROM pg_catalog.pg_constraint o JOIN pg_catalog.pg_class r "
    "ON o.conrelid = r.oid LEFT JOIN pg_catalog.pg_class f ON o.confrelid = f.oid LEFT JOIN pg_catalog.pg_description t "
    "ON t.classoid = 'pg_constraint'::regclass AND t.objoid = o.oid WHERE o.conrelid = 16384 ORDER BY 1",
    "SELECT i.*, i.indkey AS places, r.relname, r.relam, r.reltablespace, whole.relname, t.description, "
    "pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS some, pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS made, "
    "pg_catalog.pg_relation_size(i.indexrelid) AS bytes, pg_catalog.pg_stat_get_numscans(i.indexrelid) AS scans "
    "FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class whole ON i.indrelid = whole.oid JOIN pg_catalog.pg_class r "
    "ON i.indexrelid = r.oid LEFT JOIN pg_catalog.pg_description t ON t.objoid = i.indexrelid "
    "WHERE i.indrelid = 16384 ORDER BY whole.relname, r.relname",
]

R = [
    "SELECT oid, typname FROM pg_type",
    "SELECT oid FROM pg_type WHERE typname IN ('int8', 'bool')",
    "SET datestyle to 'iso, mdy'",
    "SELECT table_name FROM INFORMATION_SCHEMA.tables WHERE table_schema <> 'pg_catalog' "
    "AND table_schema = ANY(current_schemas(true)) ORDER BY 1",
    "SELECT count(*) > 0 FROM INFORMATION_SCHEMA.tables WHERE table_schema = ANY(current_schemas(true)) "
    "AND table_name = 'people'",
    "SELECT column_name FROM INFORMATION_SCHEMA.columns WHERE table_name = 'people' ORDER BY ordinal_position",
]
TABLEAU = [
    "SELECT current_database()", "SHOW server_version", "SHOW lc_collate", "SHOW client_encoding", "SET TIME ZONE 'UTC'",
    "SELECT n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname NOT LIKE 'pg_%' ORDER BY 1",
    "SELECT datname FROM pg_database WHERE datallowconn ORDER BY datname",
    "SELECT n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname = 'public'",
]  # fmt: skip
METABASE = [
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    "SHOW TRANSACTION ISOLATION LEVEL",
    "SELECT current_database() AS place, nspname FROM pg_catalog.pg_namespace WHERE nspname !~ '^pg_toast' AND "
    "(nspname !~ '^pg_temp_' OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_toast_temp_', 'pg_temp_')) "
    "ORDER BY nspname",
]
ASKED_OF_THE_DATABASE = {
    "Npgsql": NPGSQL,
    "Power BI": POWER_BI, "psqlODBC": ODBC, "DBeaver": DBEAVER, "R": R, "Metabase": METABASE, "Tableau": TABLEAU,
}  # fmt: skip


def connected(served: Served) -> Any:
    return psycopg.connect(**served.options, autocommit=True)


@pytest.mark.parametrize("program", ASKED_OF_THE_DATABASE)
def test_what_is_asked_about_the_database_is_answered_without_the_data(served: Served, program: str) -> None:
    with connected(served) as con:
        before = len(served.asked())
        for statement in ASKED_OF_THE_DATABASE[program]:
            for simple in (True, False):
                if simple or ";" not in statement:
                    found = (
                        con.pgconn.exec_(statement.encode())
                        if simple
                        else con.execute(statement, prepare=True).pgresult
                    )
                    assert not found.error_message, (statement, found.error_message)
        assert served.asked()[before:] == []


BY_REGION = "SELECT region, {} FROM people GROUP BY region"


@pytest.mark.parametrize(
    ("sent", "plain"),
    [
        # Power BI, DirectQuery
        ('select "_"."region",\r\n    "_"."a0"\r\nfrom \r\n(\r\n    select "rows"."region" as "region",\r\n        '
         'sum("rows"."income") as "a0"\r\n    from \r\n    (\r\n        select "region",\r\n            "income"\r\n        from '
         '"public"."people" "$Table"\r\n    ) "rows"\r\n    group by "region"\r\n) "_"\r\nwhere not "_"."a0" is null\r\nlimit 1000001',
         BY_REGION.format("sum(income)")),
        ('select count(1) as "a0"\r\nfrom "public"."people" "$Table"\r\nwhere "$Table"."sex" = \'f\'',
         "SELECT count(*) FROM people WHERE sex = 'f'"),
        ('select "rows"."region" as "region",\r\n    count(1) as "a0"\r\nfrom \r\n(\r\n    select "_"."region"\r\n    from '
         '"public"."people" "_"\r\n    where ("_"."sex" = \'m\' and "_"."sex" is not null) and "_"."age" >= 30\r\n) "rows"\r\n'
         'group by "region"\r\nlimit 1000001',
         "SELECT region, count(*) FROM people WHERE sex = 'm' AND age >= 30 GROUP BY region"),
        # Tableau
        ('SELECT "people"."region" AS "region",\n  SUM("people"."income") AS "sum:income:ok"\nFROM "public"."people" "people"\n'
         "GROUP BY 1", BY_REGION.format("sum(income)")),
        ('SELECT COUNT(1) AS "cnt:people:ok",\n  "people"."region" AS "region"\nFROM "public"."people" "people"\nGROUP BY 2\n'
         "HAVING (COUNT(1) > 0)", "SELECT count(*), region FROM people GROUP BY region"),
        ('SELECT CAST("people"."region" AS TEXT) AS "region",\n  AVG(CAST("people"."income" AS DOUBLE PRECISION)) AS '
         '"avg:income:ok"\nFROM "public"."people" "people"\nWHERE (("people"."age" >= 30) AND ("people"."age" <= 60))\nGROUP BY 1',
         "SELECT region, avg(income) FROM people WHERE age BETWEEN 30 AND 60 GROUP BY region"),
        ('SELECT "people"."region" AS "region"\nFROM "public"."people" "people"\n  INNER JOIN (\n  SELECT "people"."region" AS '
         '"region",\n  SUM("people"."income") AS "$__alias__0"\n  FROM "public"."people" "people"\n  GROUP BY 1\n  ORDER BY 2 DESC\n'
         '  LIMIT 2\n) "t0" ON ("people"."region" = "t0"."region")\nGROUP BY 1',
         "SELECT region FROM people GROUP BY region ORDER BY sum(income) DESC LIMIT 2"),
        # DBeaver, R with dplyr, Metabase
        ("SELECT count(*) FROM (SELECT region, count(*) AS n FROM people GROUP BY region) dbvrcnt", "SELECT 3"),
        ('SELECT "region", COUNT(*) AS "n"\nFROM "people"\nGROUP BY "region"', BY_REGION.format("count(*)")),
        ('SELECT "region", SUM("income") AS "s"\nFROM (\n  SELECT "people".*\n  FROM "people"\n  WHERE ("age" > 30.0)\n) AS "q01"\n'
         'GROUP BY "region"', "SELECT region, sum(income) FROM people WHERE age > 30 GROUP BY region"),
        ('SELECT "public"."people"."region" AS "region", COUNT(*) AS "count" FROM "public"."people" GROUP BY '
         '"public"."people"."region" ORDER BY "public"."people"."region" ASC', BY_REGION.format("count(*)")),
    ],
)  # fmt: skip
def test_questions_are_answered_as_if_they_were_written_plainly(served: Served, sent: str, plain: str) -> None:
    with connected(served) as con:
        found = [sorted(con.execute(text).fetchall(), key=repr) for text in (sent, plain)]
        assert found[0] == found[1] != []


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        # Tableau finds out whether it may have temporary tables
        ('CREATE TEMPORARY TABLE "#Tableau_5_1_Connect" (\n  "COL" INTEGER\n  ) ', "25006"),
        ('CREATE LOCAL TEMPORARY TABLE "#Tableau_5_2" (\n"X" integer\n) ON COMMIT PRESERVE ROWS', "25006"),
        ('SELECT "COL" INTO TEMPORARY TABLE "#Tableau_5_3_CheckSelectInto" FROM (SELECT 1 AS "COL") AS "CHECKTEMP" LIMIT 1', "SDC001"),
        ('INSERT INTO "#Tableau_5_2" ("X") VALUES (1)', "25006"),
        ('DROP TABLE "#Tableau_5_3_CheckSelectInto"', "25006"),
        # an extract, an import, a look at records
        ('SELECT "people"."age" AS "age",\n  "people"."income" AS "income"\nFROM "public"."people" "people"', "SDC040"),
        ('select "$Table"."person_id" as "person_id",\r\n    "$Table"."region" as "region"\r\nfrom "public"."people" "$Table"', "SDC040"),
        ('SELECT MAX("people"."income") AS "max:income:ok"\nFROM "public"."people" "people"\nHAVING (COUNT(1) > 0)', "SDC050"),
        ("SELECT pg_catalog.pg_read_file('/etc/passwd')", "SDC010"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("within", [False, True])
def test_what_is_refused_leaves_a_session_that_answers(served: Served, sent: str, code: str, within: bool) -> None:
    with connected(served) as con:
        if within:
            con.execute("BEGIN")
        for _ in range(2):
            with pytest.raises(psycopg.Error) as caught:
                con.execute(sent)
            assert code in (caught.value.sqlstate, str(caught.value)[:6])
            if within:
                con.execute("ROLLBACK")
                con.execute("BEGIN")
        assert con.execute("SELECT count(*) > 0 FROM people").fetchone() == (True,)


def test_the_columns_of_a_table_are_told_without_its_records(served: Served) -> None:
    with connected(served) as con:
        for sent in (
            'SELECT * FROM "public"."people" "people" LIMIT 0',
            'SELECT *\nFROM "people" AS "q01"\nWHERE (0 = 1)',
            'select * from "public"."people" where 1=0',
        ):
            found = con.execute(sent)
            assert [column.name for column in found.description] == ["person_id", "region", "sex", "age", "income"]
            assert found.fetchall() == []
