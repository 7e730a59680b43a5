-- What Tableau asks of PostgreSQL, in words of our own.

-- about the database
SELECT current_database();

SHOW server_version;

SELECT n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname NOT LIKE 'pg_%' ORDER BY 1;

SELECT n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname = 'public';

-- refused: 25006
CREATE LOCAL TEMPORARY TABLE "#Tableau_1_1_Connect" ("COL" INTEGER) ON COMMIT PRESERVE ROWS;

DROP TABLE IF EXISTS "#Tableau_1_1_Connect";

-- refused: SDC001
SELECT "COL" INTO TEMPORARY TABLE "#Tableau_1_2_CheckSelectInto" FROM (SELECT 1 AS "COL") AS "CHECKTEMP" LIMIT 1;

-- the same as: SELECT 1
SELECT 1 AS "COL";

-- the same as: SELECT region, sum(income) FROM people GROUP BY region
SELECT "people"."region" AS "region", SUM("people"."income") AS "sum:income:ok" FROM "public"."people" "people" GROUP BY 1;

-- the same as: SELECT a.region, a.n, b.s FROM (SELECT region, count(*) AS n FROM people GROUP BY 1) a JOIN (SELECT region, sum(income) AS s FROM people GROUP BY 1) b USING (region)
SELECT "t0"."region" AS "region", "t0"."n" AS "n", "t1"."s" AS "s"
FROM (SELECT "people"."region" AS "region", COUNT(1) AS "n" FROM "public"."people" "people" GROUP BY 1) "t0"
INNER JOIN (SELECT "people"."region" AS "region", SUM("people"."income") AS "s" FROM "public"."people" "people" GROUP BY 1) "t1"
    ON ("t0"."region" IS NOT DISTINCT FROM "t1"."region");

-- the same as: SELECT count(*) FROM people WHERE region = 'North'
SELECT COUNT(1) AS "cnt:people:ok" FROM "public"."people" "people" WHERE ("people"."region" IS NOT DISTINCT FROM 'North')
HAVING (COUNT(1) > 0);

-- the same as: SELECT sex, count(*) FROM people WHERE region IN (SELECT region FROM people GROUP BY region ORDER BY count(*) DESC LIMIT 2) GROUP BY sex
SELECT "people"."sex" AS "sex", COUNT(1) AS "cnt:people:ok" FROM "public"."people" "people"
INNER JOIN (SELECT "people"."region" AS "region", COUNT(1) AS "$__alias__0" FROM "public"."people" "people" GROUP BY 1
    ORDER BY 2 DESC, 1 ASC LIMIT 2) "t0" ON ("people"."region" IS NOT DISTINCT FROM "t0"."region")
GROUP BY 1;

-- the same as: SELECT age // 10 * 10, count(*) FROM people GROUP BY 1
SELECT CAST(FLOOR("people"."age" / 10) * 10 AS INTEGER) AS "Age (bin)", COUNT(1) AS "cnt:people:ok"
FROM "public"."people" "people" GROUP BY 1;

-- the same as: SELECT count(DISTINCT person_id) FROM people
SELECT COUNT(DISTINCT "people"."person_id") AS "ctd:person_id:ok" FROM "public"."people" "people" HAVING (COUNT(1) > 0);

-- refused: SDC040
SELECT "people"."age" AS "age", "people"."income" AS "income" FROM "public"."people" "people";
