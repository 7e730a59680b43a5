-- sdcduck shell register.duckdb < questions.sql
-- sdcduck shell --connect postgresql://ann@127.0.0.1:5432/register < questions.sql
.tables
.columns people
SELECT region, count(*) AS n, avg(income) AS income FROM people GROUP BY region ORDER BY region;
.explain
.mode csv
WITH by_region AS (SELECT region, count(*) AS n FROM people GROUP BY region)
SELECT region, climate, n, n / area AS density FROM by_region JOIN regions USING (region) ORDER BY region;
