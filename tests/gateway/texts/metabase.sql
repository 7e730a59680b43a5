-- What Metabase asks of PostgreSQL, of the same relations with the same functions, in words of our own.
-- A line with -- says what becomes of the statements after it: answered, the same as another, or refused with a code.

-- about the database
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;

SHOW timezone;

SELECT s.nspname, k.typname FROM pg_type k JOIN pg_namespace s ON s.oid = k.typnamespace
WHERE k.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e);

SELECT "s"."nspname" AS "schema", "r"."relname" AS "name",
    CASE "r"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' ELSE NULL END AS "type",
    "t"."description" AS "description", "counted"."n_live_tup" AS "estimated_row_count"
FROM "pg_catalog"."pg_class" AS "r" INNER JOIN "pg_catalog"."pg_namespace" AS "s" ON "r"."relnamespace" = "s"."oid"
LEFT JOIN "pg_catalog"."pg_description" AS "t"
    ON ("r"."oid" = "t"."objoid") AND ("t"."objsubid" = 0) AND ("t"."classoid" = 'pg_class'::regclass)
LEFT JOIN "pg_stat_user_tables" AS "counted"
    ON ("s"."nspname" = "counted"."schemaname") AND ("r"."relname" = "counted"."relname")
WHERE ("r"."relnamespace" = "s"."oid") AND ("s"."nspname" !~ '^pg_') AND ("s"."nspname" <> 'information_schema')
    AND r.relkind in ('r', 'p', 'v', 'f', 'm') AND ("s"."nspname" IN ('public'))
ORDER BY "type" ASC, "schema" ASC, "name" ASC;

with rights as (
    select NULL as role, t.schemaname as schema, t.called as table,
        pg_catalog.has_any_column_privilege(current_user,
            '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.called, '"', '""') || '"', 'update') as update,
        pg_catalog.has_any_column_privilege(current_user,
            '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.called, '"', '""') || '"', 'select') as select,
        pg_catalog.has_any_column_privilege(current_user,
            '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.called, '"', '""') || '"', 'insert') as insert,
        pg_catalog.has_table_privilege(current_user,
            '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.called, '"', '""') || '"', 'delete') as delete
    from (select schemaname, tablename as called from pg_catalog.pg_tables
        union select schemaname, viewname as called from pg_catalog.pg_views
        union select schemaname, matviewname as called from pg_catalog.pg_matviews) t
    where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'
        and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
select t.* from rights t;

SELECT "f"."column_name" AS "name",
    CASE WHEN "f"."udt_schema" IN ('public', 'pg_catalog') THEN FORMAT('%s', "f"."udt_name")
        ELSE FORMAT('"%s"."%s"', "f"."udt_schema", "f"."udt_name") END AS "database-type",
    "f"."ordinal_position" - 1 AS "database-position", "f"."table_schema" AS "table-schema", "f"."table_name" AS "table-name",
    "keys"."column_name" IS NOT NULL AS "pk?",
    COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST("f"."table_schema" AS TEXT), CAST("f"."table_name" AS TEXT)) AS REGCLASS) AS OID),
        "f"."ordinal_position") AS "field-comment",
    (("column_default" IS NULL) OR (LOWER("column_default") = 'null')) AND ("is_nullable" = 'NO')
        AND NOT ((("column_default" IS NOT NULL) AND ("column_default" LIKE '%nextval(%')) OR ("is_identity" <> 'NO')) AS "database-required"
FROM "information_schema"."columns" AS "f"
LEFT JOIN (SELECT "c"."table_schema", "c"."table_name", "k"."column_name" FROM "information_schema"."table_constraints" AS "c"
    INNER JOIN "information_schema"."key_column_usage" AS "k" ON ("c"."constraint_name" = "k"."constraint_name")
        AND ("c"."table_schema" = "k"."table_schema") AND ("c"."table_name" = "k"."table_name")
    WHERE "c"."constraint_type" = 'PRIMARY KEY') AS "keys"
    ON ("f"."table_schema" = "keys"."table_schema") AND ("f"."table_name" = "keys"."table_name")
        AND ("f"."column_name" = "keys"."column_name")
WHERE f.table_schema !~ '^information_schema|catalog_history|pg_' AND ("f"."table_schema" IN ('public'))
UNION ALL
SELECT "a"."attname" AS "name", FORMAT('%s', "k"."typname") AS "database-type", "a"."attnum" - 1 AS "database-position",
    "s"."nspname" AS "table-schema", "r"."relname" AS "table-name", FALSE AS "pk?", NULL AS "field-comment",
    FALSE AS "database-required"
FROM "pg_catalog"."pg_class" AS "r" INNER JOIN "pg_catalog"."pg_namespace" AS "s" ON "s"."oid" = "r"."relnamespace"
INNER JOIN "pg_catalog"."pg_attribute" AS "a" ON "a"."attrelid" = "r"."oid"
INNER JOIN "pg_catalog"."pg_type" AS "k" ON "k"."oid" = "a"."atttypid"
WHERE ("r"."relkind" = 'm') AND ("a"."attnum" >= 1)
ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC;

SELECT "ns"."nspname" AS "fk-table-schema", "one"."relname" AS "fk-table-name", "a"."attname" AS "fk-column-name",
    "other_ns"."nspname" AS "pk-table-schema", "other"."relname" AS "pk-table-name", "b"."attname" AS "pk-column-name"
FROM "pg_constraint" AS "c" INNER JOIN "pg_class" AS "one" ON "c"."conrelid" = "one"."oid"
INNER JOIN "pg_namespace" AS "ns" ON "c"."connamespace" = "ns"."oid"
INNER JOIN "pg_attribute" AS "a" ON "c"."conrelid" = "a"."attrelid"
INNER JOIN "pg_class" AS "other" ON "c"."confrelid" = "other"."oid"
INNER JOIN "pg_namespace" AS "other_ns" ON "other"."relnamespace" = "other_ns"."oid"
INNER JOIN "pg_attribute" AS "b" ON "c"."confrelid" = "b"."attrelid"
WHERE ns.nspname !~ '^information_schema|catalog_history|pg_' AND ("c"."contype" = 'f'::char)
    AND ("a"."attnum" = ANY(c.conkey)) AND ("b"."attnum" = ANY(c.confkey)) AND ("ns"."nspname" IN ('public'))
ORDER BY "fk-table-schema" ASC, "fk-table-name" ASC;

SELECT "found"."table-schema", "found"."table-name",
    TRIM(BOTH '"' FROM "pg_catalog"."pg_get_indexdef"("found"."number", "found"."pos", FALSE)) AS "field-name"
FROM (SELECT "s"."nspname" AS "table-schema", "r"."relname" AS "table-name", "x"."oid" AS "number",
        ("information_schema"._pg_expandarray("i"."indkey"))."n" AS "pos"
    FROM "pg_catalog"."pg_class" AS "r" INNER JOIN "pg_catalog"."pg_namespace" AS "s" ON "r"."relnamespace" = "s"."oid"
    INNER JOIN "pg_catalog"."pg_index" AS "i" ON "r"."oid" = "i"."indrelid"
    INNER JOIN "pg_catalog"."pg_class" AS "x" ON "x"."oid" = "i"."indexrelid"
    WHERE ("pg_catalog"."pg_get_expr"("i"."indpred", "i"."indrelid") IS NULL) AND ("s"."nspname" IN ('public'))) AS "found"
WHERE "found"."pos" = 1;

-- the same as: SELECT 1
select 1 AS select;

-- the same as: SELECT region, count(*) FROM people GROUP BY region
SELECT "public"."people"."region" AS "region", COUNT(*) AS "count" FROM "public"."people"
GROUP BY "public"."people"."region" ORDER BY "public"."people"."region" ASC;

-- the same as: SELECT region, count(*), sum(income) FROM people WHERE sex = 'f' AND age >= 30 GROUP BY region
SELECT "source"."region" AS "region", COUNT(*) AS "count", SUM("source"."income") AS "sum"
FROM (SELECT "public"."people"."region" AS "region", "public"."people"."income" AS "income", "public"."people"."sex" AS "sex",
        "public"."people"."age" AS "age" FROM "public"."people"
    WHERE ("public"."people"."sex" = 'f') AND ("public"."people"."age" >= 30)) AS "source"
GROUP BY "source"."region" ORDER BY "source"."region" ASC;

-- the same as: SELECT quantile_cont(income, 0.5) FROM people
SELECT PERCENTILE_CONT(0.5) within group (order by "public"."people"."income") AS "median" FROM "public"."people";

-- a preview
SELECT "public"."people"."region" AS "region", "public"."people"."income" AS "income" FROM "public"."people" LIMIT 2000;

-- refused: SDC040
SELECT "public"."people"."region" AS "region", "public"."people"."income" AS "income" FROM "public"."people"
WHERE "public"."people"."region" = 'North';

-- refused: SDC045
SELECT SUBSTRING("public"."people"."region", 1, 1234) AS "substring" FROM "public"."people" LIMIT 10000;
