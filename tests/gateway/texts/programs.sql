-- What JDBC, Django, peewee, Sequelize, TypeORM and pgcli send beside their questions, and poolers between two clients.

-- about the database
SET client_min_messages TO warning; SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE;

SET ROLE NONE;

RESET ALL;

RESET SESSION AUTHORIZATION;

SELECT * FROM current_schema();

SELECT v.version FROM version() AS v(version);

SELECT * FROM current_setting('server_version_num');

SELECT 'lower'::regproc::oid, 'people'::regclass::oid, typinput::regproc::oid FROM pg_type LIMIT 1;

SELECT i.relname, ARRAY(SELECT pg_get_indexdef(x.indexrelid, k + 1, TRUE) FROM generate_subscripts(x.indkey, 1) AS k ORDER BY k)
FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid;

SELECT name, array_agg(attname ORDER BY place) FROM (SELECT c.relname AS name, one.*, a.attname
    FROM (SELECT * FROM pg_index i, unnest(i.indkey, i.indoption) WITH ORDINALITY each(key, option, place)) one
    JOIN pg_class c ON c.oid = one.indexrelid JOIN pg_attribute a ON a.attrelid = one.indrelid AND a.attnum = one.key) found
GROUP BY name;

SELECT word FROM (SELECT regexp_split_to_table(prosrc, '\W+') AS word, count(1) FROM pg_proc GROUP BY word) w ORDER BY w.count;

-- the same as: SELECT * FROM (VALUES (1), (2)) v(column1)
VALUES (1),(2);

-- the same as: SELECT count(*) FROM people WHERE region IN ('North', 'South')
SELECT count(*) FROM people WHERE region = ANY('{North,South}'::text[]);

-- the same as: SELECT count(*) FROM people WHERE region NOT IN ('North', 'South')
SELECT count(*) FROM people WHERE region <> ALL(ARRAY['North', 'South']);

-- the same as: SELECT [quantile_cont(income, 0.25), quantile_cont(income, 0.75)] FROM people
SELECT percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY income) FROM public.people;

-- a preview
SELECT * FROM people LIMIT 1;

-- the same as: SELECT count(*) FROM people WHERE age >= 30
SELECT count(*) FROM people WHERE age >= ANY(ARRAY[30, 40]);

-- the same as: SELECT DISTINCT 1 FROM people WHERE region = 'North'
SELECT 1 AS "a" FROM "people" WHERE "people"."region" = 'North' LIMIT 1;

-- refused: SDC045
SELECT "people"."region" AS "a" FROM "people" WHERE "people"."region" = 'North' LIMIT 21;
