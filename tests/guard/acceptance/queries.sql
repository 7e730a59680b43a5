-- What analysts and BI tools write. A heading begins with --|, a query with the line -- and what it does.

--| Counting

-- a table
SELECT region, sex, count(*) AS n FROM people GROUP BY region, sex ORDER BY region, sex;

-- everybody
SELECT count(*) AS n FROM people;

-- FROM first
FROM people SELECT region, count(*) AS n GROUP BY region;

-- keys by number
SELECT region, sex, count(*) FROM people GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2;

-- GROUP BY ALL, ORDER BY ALL
SELECT region, sex, count(*) AS n FROM people GROUP BY ALL ORDER BY ALL;

-- units
SELECT region, count(DISTINCT person_id) AS persons FROM people GROUP BY region;

-- those with a value
SELECT region, count(income) AS with_income, count(*) AS n FROM people GROUP BY region;

-- values that occur
SELECT DISTINCT region, sex FROM people ORDER BY ALL;

-- how many values occur
SELECT count(DISTINCT region) AS regions FROM people;

-- how many values occur in each group
SELECT region, count(*) AS n, count(DISTINCT age // 20) AS bands FROM people GROUP BY region ORDER BY bands DESC, region;

-- how many values occur, with subtotals
SELECT region, count(DISTINCT sex) AS sexes FROM people GROUP BY ROLLUP (region);

-- FILTER
SELECT region, count(*) FILTER (WHERE sex = 'f') AS women, count(*) FILTER (sex = 'm') AS men FROM people GROUP BY region;

-- count_if
SELECT region, count_if(age >= 65) AS old FROM people GROUP BY region;

-- HAVING
SELECT region, sex, count(*) AS n FROM people GROUP BY region, sex HAVING count(*) > 100;

-- top n
SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY n DESC, region LIMIT 2;

-- LIMIT with a percentage
SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY n DESC LIMIT 50%;

-- dates and intervals
SELECT count(*) AS n FROM people WHERE month >= DATE '2023-12-01' - INTERVAL 6 MONTH;

-- two conditions in one row
SELECT count(*) AS n FROM people WHERE (region, sex) IN (('North', 'f'), ('South', 'm'));

-- conditions of many kinds
SELECT count(*) FROM people WHERE age BETWEEN 20 AND 59 AND region IN ('North', 'South') AND sex <> 'm' AND region LIKE '%th' AND month >= DATE '2023-03-01';

-- IS NOT NULL, IS NOT DISTINCT FROM
SELECT count(*) FROM people WHERE region IS NOT NULL AND sex IS NOT DISTINCT FROM 'f';

-- the condition that BI tools begin with
SELECT region, count(*) AS n FROM people WHERE 1 = 1 AND sex = 'f' GROUP BY region;

-- a probe for the columns
SELECT * FROM people LIMIT 0;

-- another probe for the columns
SELECT * FROM (SELECT * FROM people) AS t WHERE 1 = 0;

-- a preview
SELECT * FROM people LIMIT 10;

--| Groups that are computed

-- quarters
SELECT date_trunc('quarter', month) AS quarter, count(*) AS n FROM people GROUP BY quarter ORDER BY quarter;

-- year and month
SELECT year(month) AS y, extract(month FROM month) AS m, count(*) AS n FROM people GROUP BY y, m ORDER BY y, m;

-- month as text
SELECT strftime(month, '%Y-%m') AS ym, count(*) AS n FROM people GROUP BY ym;

-- days of the week
SELECT extract(dow FROM month) AS day, count(*) AS n FROM people GROUP BY day ORDER BY day;

-- days of the week, and how many values occur on each
SELECT extract(dow FROM month) AS day, count(DISTINCT region) AS regions, count(*) AS n FROM people GROUP BY day ORDER BY day;

-- a place in a text, logarithms, roots, bits
SELECT position('o' IN region) AS place, floor(log10(age + 1)) AS digits, round(sqrt(age)) AS root, age & 1 AS odd, count(*) AS n FROM people GROUP BY ALL;

-- bins
SELECT age // 20 * 20 AS from_age, count(*) AS n FROM people GROUP BY from_age ORDER BY from_age;

-- bins by floor
SELECT floor(age / 20) * 20 AS from_age, count(*) AS n FROM people GROUP BY 1 ORDER BY 1;

-- bins as BI tools write them
SELECT CAST(FLOOR((age - 0.0) / 20.0) * 20.0 + 0.0 AS INTEGER) AS bin, COUNT(*) AS n FROM people GROUP BY 1;

-- CASE buckets
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS life, count(*) AS n FROM people GROUP BY life;

-- CASE of a value
SELECT CASE sex WHEN 'f' THEN 'women' ELSE 'men' END AS who, count(*) AS n FROM people GROUP BY ALL;

-- IF
SELECT if(sex = 'f', 'women', 'men') AS who, count(*) AS n FROM people GROUP BY who;

-- IF, COALESCE, concatenation
SELECT coalesce(region, 'unknown') || '/' || if(sex = 'f', 'women', 'men') AS cell, count(*) AS n FROM people GROUP BY cell;

-- a condition as a group
SELECT age >= 60 AS old, count(*) AS n FROM people GROUP BY old;

-- initials
SELECT upper(left(region, 1)) AS initial, count(*) AS n FROM people GROUP BY initial;

-- a part of a text
SELECT split_part(region, 'o', 1) AS before, count(*) AS n FROM people GROUP BY before ORDER BY before;

-- a pattern
SELECT count(*) AS n FROM people WHERE regexp_matches(region, '^N') OR region SIMILAR TO 'S.*';

-- a part of a text by a pattern
SELECT regexp_extract(region, '^(.)', 1) AS first, regexp_replace(region, '[aeou]', '_', 'g') AS r, count(*) AS n FROM people GROUP BY ALL;

-- texts put together and padded
SELECT concat_ws('-', region, lpad(age::VARCHAR, 3, '0')) AS cell, count(*) AS n FROM people GROUP BY cell;

-- years since
SELECT year(age(DATE '2024-06-01', month)) AS years, count(*) AS n FROM people GROUP BY years;

-- seconds, and a time zone
SELECT epoch(month) AS e, date_trunc('month', month::TIMESTAMP AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo') AS m, count(*) AS n FROM people GROUP BY ALL;

-- one of a list, by ANY
SELECT count(*) AS n FROM people WHERE region = ANY(ARRAY['North', 'South']);

-- none of a list, by ALL
SELECT count(*) AS n FROM people WHERE region <> ALL(ARRAY['North', 'South']);

-- one of a list, by SOME, and not all of one
SELECT count(*) AS n FROM people WHERE region = SOME(['North', 'South']) AND age <> ANY([10, 20]);

-- above all of a list, below one
SELECT sex, count(*) AS n FROM people WHERE age > ALL(ARRAY[10, 20]) AND age <= ANY([30, 50]) GROUP BY sex;

--| Sums, means, shares

-- sums and means
SELECT region, sum(income) AS total, avg(income) AS mean FROM people GROUP BY region;

-- a mean of all
SELECT avg(income) AS mean FROM people;

-- sum over count
SELECT region, sum(income) / count(income) AS mean FROM people GROUP BY region;

-- rounded means
SELECT region, round(avg(income), 1) AS mean FROM people GROUP BY region;

-- shares by CASE
SELECT region, 100.0 * sum(CASE WHEN sex = 'f' THEN 1 ELSE 0 END) / count(*) AS share FROM people GROUP BY region;

-- shares by avg of a condition
SELECT region, avg(CASE WHEN sex = 'f' THEN 1.0 ELSE 0.0 END) AS share FROM people GROUP BY region;

-- shares by avg of a cast
SELECT region, avg((sex = 'f')::INTEGER) AS share FROM people GROUP BY region;

-- sums of a condition
SELECT region, sum((sex = 'f')::INTEGER) AS women FROM people GROUP BY region;

-- sum of 1
SELECT region, sum(1) AS n FROM people GROUP BY region;

-- shares of a total
SELECT region, count(*) AS n, count(*) * 100.0 / sum(count(*)) OVER () AS percent FROM people GROUP BY region;

-- shares of a total by a subquery
SELECT region, count(*) * 1.0 / (SELECT count(*) FROM people) AS share FROM people GROUP BY region;

-- a mean under a condition
SELECT avg(income) FILTER (WHERE sex = 'f') - avg(income) FILTER (WHERE sex = 'm') AS gap FROM people;

-- a mean by CASE
SELECT region, avg(CASE WHEN sex = 'f' THEN income END) AS women FROM people GROUP BY region;

-- sums in thousands
SELECT region, sum(income / 1000) AS thousands FROM people GROUP BY region;

-- sums of COALESCE
SELECT region, sum(coalesce(income, 0)) AS total FROM people GROUP BY region;

-- median, variance
SELECT region, median(income) AS middle, stddev(income) AS spread FROM people GROUP BY region;

-- several quantiles at once
SELECT region, quantile_cont(income, [0.25, 0.5, 0.75]) AS quartiles FROM people GROUP BY region;

-- minima and maxima
SELECT min(income), max(income) FROM people;

-- the range of a dimension
SELECT min(age) AS youngest, max(age) AS oldest, count(1) AS n FROM people;

-- the range of a dimension in each group
SELECT region, min(month) AS first, max(month) FILTER (sex = 'f') AS last FROM people GROUP BY region;

-- one value or a star, as BI tools show dimensions
SELECT sex, CASE WHEN min(region) = max(region) THEN min(region) ELSE '*' END AS region FROM people GROUP BY sex;

-- sums of a measure times a figure
SELECT region, sum(income * (1 + age / 100)) AS x FROM people GROUP BY region;

-- the mean age
SELECT region, avg(age) AS mean_age FROM people GROUP BY region;

-- pivot by CASE
SELECT region, sum(CASE WHEN sex = 'f' THEN income ELSE 0 END) AS f, sum(CASE WHEN sex = 'm' THEN income ELSE 0 END) AS m FROM people GROUP BY region ORDER BY region;

-- NULLIF and COALESCE around numbers
SELECT region, coalesce(sum(income) / nullif(count(*), 0), 0) AS mean FROM people GROUP BY region;

-- the spread of a dimension
SELECT region, stddev(age) AS spread, var_pop(age) AS variance FROM people GROUP BY region;

-- a correlation of dimensions
SELECT sex, corr(age, month(month)) AS r FROM people GROUP BY sex;

-- a measure over a dimension
SELECT regr_slope(income, age) AS slope, regr_intercept(income, age) AS start FROM people;

-- the most frequent value
SELECT region, mode(sex) AS most FROM people GROUP BY region;

-- whether any, whether all
SELECT region, bool_or(age >= 60) AS any_old, bool_and(age >= 18) AS all_adult FROM people GROUP BY region;

-- a list of the values that occur
SELECT region, string_agg(DISTINCT sex, ', ' ORDER BY sex) AS sexes, list(DISTINCT age // 20 ORDER BY age // 20) AS bands FROM people GROUP BY region;

--| Subtotals

-- ROLLUP
SELECT region, sex, count(*) AS n FROM people GROUP BY ROLLUP (region, sex) ORDER BY ALL;

-- CUBE with GROUPING
SELECT region, sex, grouping(region) AS all_regions, grouping(region, sex) AS which, count(*) AS n FROM people GROUP BY CUBE (region, sex);

-- GROUPING SETS
SELECT region, sex, count(*) AS n, sum(income) AS income FROM people GROUP BY GROUPING SETS ((region), (sex), ());

-- labels of subtotals
SELECT CASE WHEN grouping(region) = 1 THEN 'all' ELSE region END AS region, count(*) AS n FROM people GROUP BY ROLLUP (region);

-- COALESCE as label of the total
SELECT coalesce(region, 'all') AS place, count(*) AS n FROM people GROUP BY ROLLUP (region);

-- a total by UNION
SELECT region, count(*) AS n FROM people GROUP BY region UNION ALL SELECT 'all', count(*) FROM people ORDER BY n DESC;

-- a share as dbplyr writes it
SELECT region, SUM(CASE WHEN (sex = 'f') THEN 1.0 WHEN NOT (sex = 'f') THEN 0.0 END) AS females, AVG(CASE WHEN (sex = 'f') THEN 1.0 WHEN NOT (sex = 'f') THEN 0.0 END) AS share FROM people GROUP BY region;

-- a sum of some, as dbplyr writes it
SELECT region, SUM(CASE WHEN (sex = 'f') THEN income WHEN NOT (sex = 'f') THEN 0.0 END) AS x FROM people GROUP BY region;

-- an approximate number of values
SELECT sex, approx_count_distinct(region) AS n FROM people GROUP BY sex;

-- rows behind mutate and filter, as dbplyr writes them
SELECT region, COUNT(*) AS n FROM (SELECT people.*, CASE WHEN (age >= 60.0) THEN 'old' WHEN NOT (age >= 60.0) THEN 'young' END AS life FROM people) q01 WHERE (life = 'old') GROUP BY region;

-- the largest series, as Superset asks for them
SELECT DATE_TRUNC('WEEK', month) AS __timestamp, sex AS sex, COUNT(*) AS count FROM people JOIN (SELECT sex AS sex__, COUNT(*) AS mme_inner__ FROM people GROUP BY sex ORDER BY mme_inner__ DESC LIMIT 5) AS series_limit ON sex = sex__ GROUP BY DATE_TRUNC('WEEK', month), sex ORDER BY count DESC LIMIT 10000;

-- groups of a table with a sign in its name, as Power BI asks for them
select "$Table"."region" as "region", "$Table"."sex" as "sex", count("$Table"."person_id") as "a0" from "main"."people" "$Table" group by "region", "sex";

-- an index against the first month
SELECT month, count(*) AS n, count(*) * 1.0 / first_value(count(*)) OVER (ORDER BY month) AS index_ FROM people GROUP BY month;

-- a funnel of units
WITH f AS (SELECT person_id, bool_or(ward = 'eyes') AS eyes, bool_or(ward = 'surgery') AS surgery FROM stays GROUP BY person_id) SELECT count(*) AS everybody, count(*) FILTER (WHERE eyes) AS first_step, count(*) FILTER (WHERE eyes AND surgery) AS second_step FROM f;

-- a cohort by months since the first stay
WITH first_stay AS (SELECT person_id, min(month) AS cohort FROM stays GROUP BY person_id) SELECT cohort, date_diff('month', cohort, s.month) AS period, count(DISTINCT s.person_id) AS persons FROM stays s JOIN first_stay f ON s.person_id = f.person_id GROUP BY 1, 2 ORDER BY 1, 2;

-- ORDER BY inside of aggregates
SELECT region, count(income ORDER BY income) AS n, sum(income ORDER BY age DESC) AS x, count(DISTINCT sex ORDER BY sex) AS sexes FROM people GROUP BY region;

-- a mean as NUMERIC, rounded
SELECT region, round(avg(income)::numeric, 2) AS mean, count(*)::numeric(10, 2) AS n FROM people GROUP BY region;

-- shares as NUMERIC
SELECT region, round((count(*)::numeric / sum(count(*)) OVER ()) * 100, 2) AS percent FROM people GROUP BY region;

-- days of another time zone, as Looker writes them
SELECT DATE_TRUNC('month', (month::timestamp AT TIME ZONE 'UTC') AT TIME ZONE 'Europe/Berlin') AS "people.month", count(*) AS n FROM people GROUP BY 1 ORDER BY 1 DESC LIMIT 500;

--| Missing values

-- how many are missing
SELECT region, count(*) - count(income) AS missing FROM people GROUP BY region;

-- those with a missing value
SELECT count(*) FILTER (WHERE income IS NULL) AS missing FROM people;

--| Over released numbers

-- running totals
SELECT month, count(*) AS n, sum(count(*)) OVER (ORDER BY month) AS until FROM people GROUP BY month ORDER BY month;

-- running totals with a frame
SELECT month, sum(n) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS three FROM (SELECT month, count(*) AS n FROM people GROUP BY month);

-- running totals by the short form of a frame
SELECT month, sum(n) OVER (ORDER BY month ROWS UNBOUNDED PRECEDING) AS until FROM (SELECT month, count(*) AS n FROM people GROUP BY month);

-- a change to the month before
SELECT month, count(*) AS n, count(*) - lag(count(*)) OVER (ORDER BY month) AS change FROM people GROUP BY month;

-- QUALIFY
SELECT region, age, count(*) AS n FROM people GROUP BY region, age QUALIFY row_number() OVER (PARTITION BY region ORDER BY count(*) DESC, age) <= 2;

-- ranks with a named window
SELECT region, count(*) AS n, rank() OVER w AS place FROM people GROUP BY region WINDOW w AS (ORDER BY count(*) DESC);

-- median of cells
SELECT median(n), max(n), min(n), stddev(n) FROM (SELECT region, age, count(*) AS n FROM people GROUP BY ALL);

-- the largest cell of each region
SELECT region, arg_max(age, n * 100 + age) AS age, max(n) AS n FROM (SELECT region, age, count(*) AS n FROM people GROUP BY ALL) GROUP BY region;

-- a list of cells
SELECT region, string_agg(sex || ': ' || n, ', ' ORDER BY sex) AS cells FROM (SELECT region, sex, count(*) AS n FROM people GROUP BY ALL) GROUP BY region;

-- WITH, and a ratio of two tables
WITH women AS (SELECT region, count(*) AS n FROM people WHERE sex = 'f' GROUP BY region), men AS (SELECT region, count(*) AS n FROM people WHERE sex = 'm' GROUP BY region) SELECT region, women.n * 1.0 / men.n AS ratio FROM women JOIN men USING (region);

-- a WITH of records
WITH adults AS (SELECT * FROM people WHERE age >= 20) SELECT region, count(*) AS n, sum(income) AS income FROM adults GROUP BY region;

-- a WITH used twice
WITH t AS (SELECT region, count(*) AS n FROM people GROUP BY region) SELECT region, n, n * 1.0 / (SELECT sum(n) FROM t) AS share FROM t;

-- a WITH of a WITH
WITH a AS (SELECT region, sex, age // 40 AS half FROM people), b AS (SELECT region, half, count(*) AS n FROM a GROUP BY region, half) SELECT half, max(n) FROM b GROUP BY half;

-- regions above the mean
WITH t AS (SELECT region, count(*) AS n FROM people GROUP BY region) SELECT region FROM t WHERE n > (SELECT avg(n) FROM t);

-- EXCLUDE
SELECT * EXCLUDE (sex) FROM (SELECT region, sex, count(*) AS n FROM people GROUP BY ALL);

-- REPLACE
SELECT * REPLACE (n / 10 AS n) FROM (SELECT region, count(*) AS n FROM people GROUP BY ALL);

-- COLUMNS
SELECT region, max(COLUMNS(* EXCLUDE (region))) FROM (SELECT region, sex, count(*) AS n, sum(income) AS income FROM people GROUP BY ALL) GROUP BY region;

-- COLUMNS over the measures of records
SELECT region, sum(COLUMNS(['income'])) FROM people GROUP BY region;

-- COLUMNS by a pattern
SELECT region, round(avg(COLUMNS('(in).*')), 1) AS 'mean_\1' FROM people GROUP BY region;

-- PIVOT over released numbers
PIVOT (SELECT region, sex, count(*) AS n FROM people GROUP BY ALL) ON sex IN ('f', 'm') USING sum(n) GROUP BY region;

-- PIVOT in FROM
FROM (SELECT region, sex, count(*) AS n FROM people GROUP BY ALL) PIVOT (sum(n) FOR sex IN ('f', 'm'));

-- PIVOT of two columns with two numbers
PIVOT (SELECT region, sex, age >= 60 AS old, count(*) AS n, sum(income) AS income FROM people GROUP BY ALL) ON sex IN ('f', 'm'), old IN (false, true) USING sum(n) AS n, sum(income) AS income GROUP BY region;

-- PIVOT over records
PIVOT people ON sex IN ('f', 'm') USING count(*) GROUP BY region;

-- PIVOT without a list of values
PIVOT people ON sex USING count(*) GROUP BY region;

-- a sorted PIVOT
SELECT * FROM (PIVOT people ON region IN ('North', 'South') USING count(*) AS n GROUP BY age) ORDER BY north_n DESC, age LIMIT 3;

-- UNPIVOT in FROM
SELECT what, max(amount) AS largest FROM (SELECT region, count(*) AS n, count(*) FILTER (sex = 'f') AS women FROM people GROUP BY region) UNPIVOT (amount FOR what IN (n, women)) GROUP BY what;

-- UNPIVOT
UNPIVOT (SELECT region, count(*) AS n, sum(income) AS income FROM people GROUP BY region) ON n, income INTO NAME what VALUE amount;

-- UNPIVOT of columns side by side
UNPIVOT (SELECT region, count(*) AS n, count(*) FILTER (sex = 'f') AS women, count(DISTINCT age) AS ages, count(DISTINCT sex) AS sexes FROM people GROUP BY region) ON (n, women) AS people, (ages, sexes) AS values INTO NAME what VALUE a, b;

-- UNPIVOT of all columns but one
UNPIVOT (SELECT region, count(*) AS n, count(*) FILTER (sex = 'f') AS women FROM people GROUP BY region) ON COLUMNS(* EXCLUDE (region)) INTO NAME what VALUE a;

-- a sample of cells
SELECT count(*) AS cells FROM (SELECT region, age, count(*) AS n FROM people GROUP BY ALL) TABLESAMPLE reservoir(5 ROWS);

-- a sample of records
SELECT count(*) AS n FROM people TABLESAMPLE 10%;

-- DISTINCT over released numbers
SELECT DISTINCT n > 100 AS large FROM (SELECT region, sex, count(*) AS n FROM people GROUP BY ALL);

-- EXCEPT
SELECT region FROM regions EXCEPT SELECT region FROM people GROUP BY region;

-- a name used again in the same SELECT
SELECT region, count(*) AS n, n * 2 AS twice FROM people GROUP BY region;

-- all of a table in brackets, as BI tools do
SELECT "t"."region" AS "region", SUM("t"."n") AS "sum_n" FROM (SELECT region, count(*) AS n FROM people GROUP BY region) AS "t" GROUP BY "t"."region" ORDER BY "sum_n" DESC LIMIT 1000;

-- records in brackets, as BI tools do
SELECT "q"."region" AS "region", COUNT(*) AS "COUNT(*)" FROM (SELECT * FROM people) AS "q" WHERE "q"."sex" = 'f' GROUP BY "q"."region" ORDER BY "COUNT(*)" DESC LIMIT 1000;

-- all months, those of nobody too
SELECT m.month, coalesce(n, 0) AS n FROM range(DATE '2023-01-01', DATE '2024-01-01', INTERVAL 1 MONTH) m(month)
LEFT JOIN (SELECT month, count(*) AS n FROM people WHERE month < DATE '2023-10-01' GROUP BY month) p ON p.month = m.month ORDER BY m.month;

-- numbers one to five
SELECT i, i * n AS times FROM generate_series(1, 5) s(i), (SELECT count(*) AS n FROM people) p ORDER BY i;

-- distributions of cells
SELECT histogram(n // 50) AS h, entropy(n) AS e, mad(n) AS m, approx_quantile(n, 0.5) AS q FROM (SELECT region, age, count(*) AS n FROM people GROUP BY ALL);

-- a regression of cells
SELECT regr_count(n, age) AS k, regr_sxy(n, age) AS sxy, regr_slope(n, age) AS slope, weighted_avg(n, age) AS w FROM (SELECT age, count(*) AS n FROM people GROUP BY age);

-- texts of numbers
SELECT format('{}: {:>6}', region, n) AS f, printf('%05d', n) AS p, lpad(region, 8, '.') AS l, concat_ws('/', region, n) AS c FROM (SELECT region, count(*) AS n FROM people GROUP BY region);

-- bars
SELECT region, bar(n, 0, 500, 20) AS b, repeat('*', n // 50) AS r FROM (SELECT region, count(*) AS n FROM people GROUP BY region);

-- a series as long as a number
SELECT region, i FROM (SELECT region, count(*) AS n FROM people GROUP BY region) c, range(c.n // 100) t(i);

-- all months between the first and the last
SELECT unnest(generate_series(min(month), max(month), INTERVAL 1 MONTH)) AS m FROM people;

-- LATERAL
SELECT c.region, l.double FROM (SELECT region, count(*) AS n FROM people GROUP BY region) c, LATERAL (SELECT c.n * 2 AS double) l;

-- the two largest of each region, by LATERAL
WITH c AS (SELECT region, age, count(*) AS n FROM people GROUP BY ALL) SELECT r.region, t.age, t.n FROM regions r, LATERAL (SELECT age, n FROM c WHERE c.region = r.region ORDER BY n DESC, age LIMIT 2) t;

-- LATERAL over records
SELECT r.region, l.n FROM regions r, LATERAL (SELECT count(*) AS n FROM people p WHERE p.region = r.region) l;

-- WITH RECURSIVE
WITH RECURSIVE tens AS (SELECT 0 AS age UNION ALL SELECT age + 10 FROM tens WHERE age < 100), c AS (SELECT age, count(*) AS n FROM people GROUP BY age) SELECT age, coalesce(n, 0) AS n FROM tens LEFT JOIN c USING (age);

-- WITH RECURSIVE over answers
WITH RECURSIVE c AS (SELECT age, count(*) AS n FROM people GROUP BY age), t AS (SELECT 0 AS age, 0 AS until UNION ALL SELECT t.age + 10, (t.until + c.n)::INT FROM t JOIN c ON c.age = t.age) SELECT age, until FROM t;

-- WITH RECURSIVE over records
WITH RECURSIVE t AS (SELECT 0 AS a UNION ALL SELECT t.a + (SELECT count(*) FROM people WHERE age = 10) FROM t WHERE t.a < 1000) SELECT a FROM t;

-- subtotals in the order of what they are of
SELECT sex, region, count(*) AS n FROM people GROUP BY ROLLUP (sex, region) ORDER BY grouping(sex), CASE WHEN grouping(sex) = 0 THEN region END;

--| With public tables

-- joins in brackets
SELECT zone, count(*) AS n FROM (people INNER JOIN regions ON people.region = regions.region)
INNER JOIN zones ON regions.climate = zones.climate GROUP BY zone;

-- JOIN USING
SELECT climate, count(*) AS n FROM people JOIN regions USING (region) GROUP BY climate;

-- LEFT JOIN with aliases
SELECT r.climate, sum(p.income) AS income FROM people AS p LEFT JOIN regions AS r ON p.region = r.region GROUP BY r.climate;

-- the public table first
SELECT r.climate, count(*) AS n FROM regions r JOIN people p ON p.region = r.region GROUP BY r.climate;

-- numbers joined to a public table
SELECT r.region, r.population, n * 1000.0 / r.population AS rate FROM regions r LEFT JOIN (SELECT region, count(*) AS n FROM people GROUP BY region) t USING (region);

-- two public tables
SELECT z.zone, count(*) AS n FROM people p JOIN regions r ON p.region = r.region JOIN zones z ON r.climate = z.climate GROUP BY z.zone;

-- a condition on a public column in JOIN
SELECT count(*) AS n FROM people p JOIN regions r ON p.region = r.region AND r.climate = 'cold';

-- a cumulative table
SELECT x, count(*) AS n, sum(income) AS income FROM people JOIN (VALUES (30), (50), (70)) t(x) ON age < x GROUP BY x ORDER BY x;

-- ASOF JOIN
SELECT rate, count(*) AS n FROM people ASOF JOIN (VALUES (DATE '2023-01-01', 2), (DATE '2023-09-01', 3)) r(since, rate) ON month >= since GROUP BY rate;

-- a join in WHERE
SELECT r.climate, count(*) AS n FROM people p, regions r WHERE p.region = r.region GROUP BY r.climate;

-- a filtered public table
SELECT climate, count(*) AS n FROM people JOIN (SELECT region, climate FROM regions WHERE climate <> 'mild') r USING (region) GROUP BY climate;

-- IN of a public table
SELECT count(*) FROM people WHERE region IN (SELECT region FROM regions WHERE climate = 'cold');

-- EXISTS in a public table
SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM regions r WHERE r.region = p.region AND r.climate = 'cold');

-- only the regions with most people
SELECT sex, count(*) AS n FROM people WHERE region IN (SELECT region FROM people GROUP BY region ORDER BY count(*) DESC, region LIMIT 2) GROUP BY sex;

-- the same as Superset writes it
SELECT sex, count(*) AS n FROM people JOIN (SELECT region AS region__, count(*) AS mme_inner__ FROM people GROUP BY region ORDER BY mme_inner__ DESC, region LIMIT 2) AS series_limit ON region = region__ GROUP BY sex;

-- SEMI JOIN
SELECT sex, count(*) AS n FROM people SEMI JOIN (SELECT region FROM regions WHERE climate = 'cold') USING (region) GROUP BY sex;

-- ANTI JOIN
SELECT sex, count(*) AS n FROM people p ANTI JOIN regions r ON p.region = r.region AND r.climate = 'cold' GROUP BY sex;

-- the largest groups, as a filter
SELECT sex, count(*) AS n FROM people WHERE EXISTS (SELECT 1 FROM (SELECT people.region AS region, sum(1) AS measure FROM people GROUP BY people.region ORDER BY measure DESC, people.region LIMIT 2) t0 WHERE (people.region = t0.region) OR (people.region IS NULL AND t0.region IS NULL)) GROUP BY sex;

-- whether something is missing
SELECT region FROM people WHERE region IS NULL LIMIT 1;

-- NOT EXISTS
SELECT count(*) AS n FROM people p WHERE NOT EXISTS (SELECT 1 FROM regions r JOIN zones z USING (climate) WHERE r.region = p.region AND z.zone = 'polar');

-- EXISTS by an inequality
SELECT count(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM regions r WHERE r.population > p.age);

-- IN of two columns
SELECT count(*) AS n FROM people WHERE (region, sex) IN (SELECT region, 'f' AS sex FROM regions WHERE climate = 'cold');

-- IN, or something else
SELECT count(*) AS n FROM people WHERE sex = 'f' OR region IN (SELECT region FROM cold_regions);

-- SEMI JOIN of numbers
SELECT region, n FROM (SELECT region, count(*) AS n FROM people GROUP BY region) SEMI JOIN cold_regions USING (region);

-- SEMI JOIN of a public table to records
SELECT region FROM regions SEMI JOIN people USING (region);

-- a list of VALUES
SELECT label, count(*) AS n FROM people JOIN (VALUES ('f', 'women'), ('m', 'men')) v(code, label) ON people.sex = v.code GROUP BY label;

-- zeros for groups that are empty, by LEFT JOIN of records
SELECT r.region, count(p.person_id) AS n FROM regions r LEFT JOIN people p ON p.region = r.region AND p.age >= 60 GROUP BY r.region;

-- RIGHT JOIN of public rows to records
SELECT climate, count(p.person_id) AS n, sum(p.income) AS income FROM people p RIGHT JOIN regions r USING (region) GROUP BY climate;

-- a number beside each public row by a correlated subquery
SELECT region, (SELECT count(*) FROM people p WHERE p.region = r.region) * 1000.0 / population AS rate FROM regions r;

-- public rows with records
SELECT climate FROM regions r WHERE EXISTS (SELECT 1 FROM people p WHERE p.region = r.region AND p.age >= 60);

-- a value looked up in a public table
SELECT (SELECT climate FROM regions r WHERE r.region = p.region) AS climate, count(*) AS n FROM people p GROUP BY 1;

-- a public list in CASE
SELECT CASE WHEN region IN (SELECT region FROM cold_regions) THEN 'cold' ELSE 'other' END AS where_, count(*) AS n FROM people GROUP BY ALL;

-- a public number in FILTER
SELECT sex, count(*) FILTER (WHERE age > (SELECT avg(population) / 1000 FROM regions)) AS n FROM people GROUP BY sex;

-- the largest regions and all others
SELECT CASE WHEN region IN (SELECT region FROM people GROUP BY region ORDER BY count(*) DESC, region LIMIT 2) THEN region ELSE 'other' END AS place, count(*) AS n FROM people GROUP BY 1;

-- records compared with the number of their group
SELECT sex, count(*) AS n FROM people p WHERE age * 4 < (SELECT count(*) FROM people q WHERE q.region = p.region) GROUP BY sex;

-- records joined to the numbers of their group
WITH t AS (SELECT region, count(*) AS n FROM people GROUP BY region) SELECT n >= 200 AS large, sex, count(*) AS persons FROM people JOIN t USING (region) GROUP BY ALL;

-- the equality of a join in both sides of OR
SELECT climate, count(*) AS n FROM people p, regions r WHERE (p.region = r.region AND r.climate = 'cold') OR (p.region = r.region AND p.sex = 'f') GROUP BY climate;

-- zeros for groups that are empty
SELECT r.region, coalesce(t.n, 0) AS n FROM regions r LEFT JOIN (SELECT region, count(*) AS n FROM people WHERE age >= 60 GROUP BY region) t ON t.region = r.region;

-- a view of records
SELECT region, count(*) AS n, avg(income) AS mean FROM women GROUP BY region;

-- a public view
SELECT * FROM cold_regions;

-- pairs of records
SELECT count(*) FROM people a JOIN people b ON a.region = b.region AND a.sex <> b.sex;

-- a number of each group by a correlated subquery
SELECT region, (SELECT count(*) FROM people q WHERE q.region = p.region) AS n FROM people p GROUP BY region;

--| What each unit has

-- stays again within three months
SELECT a.ward, count(*) AS again FROM stays a JOIN stays b ON b.person_id = a.person_id AND b.month > a.month AND b.month <= a.month + INTERVAL 3 MONTH GROUP BY a.ward;

-- who has, and who has not, a stay since
SELECT p.region, count(DISTINCT p.person_id) AS persons, count(DISTINCT s.person_id) AS again FROM people p LEFT JOIN stays s ON s.person_id = p.person_id AND (s.month >= '2023-10-01' OR s.ward = 'eyes') GROUP BY p.region;

-- patients by how many stays they have
SELECT n, count(*) AS patients FROM (SELECT person_id, count(*) AS n FROM stays GROUP BY person_id) GROUP BY n;

-- and everybody else
SELECT region, coalesce(n, 0) AS stays, count(*) AS persons FROM people LEFT JOIN (SELECT person_id, count(*) AS n FROM stays GROUP BY person_id) USING (person_id) GROUP BY ALL;

-- how often a patient comes
SELECT avg(n) AS mean, sum(n) AS stays FROM (SELECT person_id, count(*) AS n FROM stays GROUP BY person_id);

-- how often everybody comes
SELECT region, avg(coalesce(n, 0)) AS mean FROM people LEFT JOIN (SELECT person_id, count(*) AS n FROM stays GROUP BY person_id) USING (person_id) GROUP BY region;

-- how often in one ward, by a condition in ON
SELECT n, count(*) AS persons FROM (SELECT p.person_id, count(s.ward) AS n FROM people p LEFT JOIN stays s ON s.person_id = p.person_id AND s.ward = 'eyes' GROUP BY p.person_id ORDER BY n) GROUP BY n ORDER BY n;

-- more often than the mean
SELECT count(*) AS patients FROM (SELECT person_id FROM stays GROUP BY person_id HAVING count(*) > (SELECT count(*) / count(DISTINCT person_id) FROM stays));

-- by the month of the first stay
SELECT date_trunc('month', first) AS cohort, datediff('month', first, month) AS later, count(DISTINCT person_id) AS patients FROM stays JOIN (SELECT person_id, min(month) AS first FROM stays GROUP BY person_id) USING (person_id) GROUP BY ALL;

-- GROUP BY the unit where each has one row
SELECT region, count(*) AS persons, sum(income) AS income FROM (SELECT person_id, any_value(region) AS region, sum(income) AS income FROM people GROUP BY person_id HAVING max(age) >= 20) GROUP BY region;

-- who came more often
SELECT count(*) FILTER (WHERE n > 1) / count(*) AS share FROM (SELECT count(*) AS n FROM stays GROUP BY person_id);

-- only those, by HAVING
SELECT count(*) AS patients FROM (SELECT person_id FROM stays GROUP BY person_id HAVING count(*) > 1);

-- the first stay of each
WITH firsts AS (SELECT person_id, min(month) AS first FROM stays GROUP BY person_id) SELECT first, count(*) AS patients FROM firsts GROUP BY first;

-- what the first was
SELECT first_ward, count(*) AS patients FROM (SELECT person_id, arg_min(ward, month) AS first_ward FROM stays GROUP BY person_id) GROUP BY ALL;

-- months since the first
SELECT datediff('month', first, month) AS months, count(*) AS stays FROM stays JOIN (SELECT person_id, min(month) AS first FROM stays GROUP BY person_id) USING (person_id) GROUP BY months;

-- who was where
SELECT surgery, eyes, count(*) AS patients FROM (SELECT person_id, bool_or(ward = 'surgery') AS surgery, count_if(ward = 'eyes') > 0 AS eyes FROM stays GROUP BY person_id) GROUP BY ALL;

-- in how many places
SELECT wards, count(*) AS patients, sum(days) AS days FROM (SELECT person_id, count(DISTINCT ward) AS wards, sum(days) AS days FROM stays GROUP BY person_id) GROUP BY wards;

-- what a patient comes to
SELECT avg(days) AS mean FROM (SELECT person_id, sum(days) AS days FROM stays GROUP BY person_id);

-- the median patient
SELECT region, median(days) AS days FROM (SELECT person_id, region, sum(days) AS days FROM stays JOIN people USING (person_id) GROUP BY person_id, region) GROUP BY region;

-- patients of a ward, each once
SELECT ward, count(*) AS patients FROM (SELECT DISTINCT person_id, ward FROM stays) GROUP BY ward;

-- the busiest month of each
SELECT most, count(*) AS patients FROM (SELECT person_id, max(n) AS most FROM (SELECT person_id, month, count(*) AS n FROM stays GROUP BY ALL) GROUP BY person_id) GROUP BY most;

-- the first stay of each, with all that is known of it
SELECT ward, count(*) AS patients, sum(days) AS days FROM (FROM stays QUALIFY row_number() OVER (PARTITION BY person_id ORDER BY month, ward) = 1) GROUP BY ward;

-- by the number of the stay
WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY person_id ORDER BY month, ward) AS nth FROM stays) SELECT nth, avg(days) AS mean FROM numbered GROUP BY nth;

-- months between two stays
SELECT gap, count(*) AS n FROM (SELECT datediff('month', lag(month) OVER (PARTITION BY person_id ORDER BY month), month) AS gap FROM stays) WHERE gap IS NOT NULL GROUP BY gap;

-- from one ward to the next
SELECT ward, next, count(*) AS n FROM (SELECT ward, lead(ward) OVER w AS next FROM stays WINDOW w AS (PARTITION BY person_id ORDER BY month, ward)) GROUP BY ALL;

-- back within three months
SELECT ward, count(*) FILTER (WHERE month < before + INTERVAL 3 MONTH) / count(*) AS share FROM (SELECT ward, month, lag(month) OVER (PARTITION BY person_id ORDER BY month) AS before FROM stays) GROUP BY ward;

-- those who came more often, beside each stay
SELECT ward, count(*) AS stays, count(DISTINCT person_id) AS patients FROM (SELECT *, count(*) OVER (PARTITION BY person_id) AS n FROM stays) WHERE n > 1 GROUP BY ward;

-- the first stay of each by DISTINCT ON
SELECT ward, count(*) AS patients FROM (SELECT DISTINCT ON (person_id) * FROM stays ORDER BY person_id, month, ward) GROUP BY ward;

-- the ward of the first stay
SELECT ward, count(*) AS patients FROM (SELECT first(ward ORDER BY month, ward) AS ward FROM stays GROUP BY person_id) GROUP BY ward;

-- the first stay by a correlated subquery
SELECT ward, count(*) AS n FROM stays s WHERE month = (SELECT min(month) FROM stays t WHERE t.person_id = s.person_id) GROUP BY ward;

-- how often each came by a correlated subquery
SELECT region, n, count(*) AS persons FROM (SELECT region, (SELECT count(*) FROM stays s WHERE s.person_id = p.person_id) AS n FROM people p) GROUP BY ALL;

-- who came more often by a correlated subquery
SELECT sex, avg(income) AS mean FROM people p WHERE (SELECT count(*) FROM stays s WHERE s.person_id = p.person_id AND ward <> 'eyes') > 1 GROUP BY sex;

-- a later stay by EXISTS
SELECT ward, count(*) AS n FROM stays s WHERE EXISTS (FROM stays t WHERE t.person_id = s.person_id AND t.month > s.month) GROUP BY ward;

-- a place among all records
SELECT place // 100 AS hundred, count(*) FROM (SELECT row_number() OVER (ORDER BY month) AS place FROM stays) GROUP BY hundred;

-- units that are in another table
SELECT region, count(*) AS n FROM people WHERE person_id IN (SELECT person_id FROM stays WHERE ward = 'eyes') GROUP BY region;

-- units that are not in another table
SELECT region, avg(income) AS mean FROM people WHERE person_id NOT IN (SELECT person_id FROM stays) GROUP BY region;

-- a record in another table
SELECT sex, count(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM stays s WHERE s.person_id = p.person_id AND s.ward = 'eyes') GROUP BY sex;

-- no record in another table
SELECT sex, count(*) AS n FROM people p WHERE NOT EXISTS (FROM stays s WHERE s.person_id = p.person_id) GROUP BY sex;

-- a semi-join of records
SELECT ward, sum(days) AS days FROM stays SEMI JOIN women USING (person_id) GROUP BY ward;

-- an anti-join of records
SELECT count(*) AS n FROM people ANTI JOIN stays ON people.person_id = stays.person_id;

-- LEFT JOIN .. IS NULL
SELECT region, count(*) AS n FROM people p LEFT JOIN stays s ON p.person_id = s.person_id WHERE s.person_id IS NULL GROUP BY region;

-- who was there, as a group
SELECT person_id IN (SELECT person_id FROM stays) AS patient, count(*) AS n FROM people GROUP BY patient;

-- who was there, in FILTER and CASE
SELECT region, count(*) FILTER (WHERE EXISTS (FROM stays s WHERE s.person_id = p.person_id AND s.ward = 'eyes')) AS eyes, sum(CASE WHEN person_id NOT IN (SELECT person_id FROM stays) THEN 1 ELSE 0 END) AS never FROM people p GROUP BY region;

-- who was there, as a column
SELECT patient, sex, avg(income) AS mean FROM (SELECT sex, income, EXISTS (FROM stays s WHERE s.person_id = p.person_id) AS patient FROM people p) GROUP BY ALL;

-- several of these, put together
SELECT region, count(*) AS n FROM people WHERE NOT (person_id IN (SELECT person_id FROM stays WHERE ward = 'eyes') OR age < 30) AND (sex = 'f' OR person_id = ANY (SELECT person_id FROM stays)) GROUP BY region;

-- two tables by USING in a WITH, joined to a third
WITH seen AS (SELECT person_id, region, ward FROM people JOIN stays USING (person_id)) SELECT region, count(*) AS n FROM seen SEMI JOIN women USING (person_id) GROUP BY region;

-- units of two sets
SELECT region, count(*) AS n FROM people WHERE person_id IN (SELECT person_id FROM stays WHERE ward = 'eyes' INTERSECT SELECT person_id FROM stays WHERE ward = 'surgery') GROUP BY region;

-- which wards, in one text
SELECT wards, count(*) AS persons FROM (SELECT person_id, string_agg(DISTINCT ward, ', ' ORDER BY ward) AS wards FROM stays GROUP BY person_id) GROUP BY wards;

-- the way from ward to ward
SELECT way, count(*) AS persons FROM (SELECT person_id, list(ward ORDER BY month, ward) AS way FROM stays GROUP BY person_id) GROUP BY way;

-- both sides of two sets of units
WITH a AS (SELECT person_id, ward FROM stays WHERE month < '2023-07-01' GROUP BY person_id, ward), b AS (SELECT person_id, ward FROM stays WHERE month >= '2023-07-01' GROUP BY person_id, ward) SELECT sum(CASE WHEN b.person_id IS NULL THEN 1 ELSE 0 END) AS before, sum(CASE WHEN a.person_id IS NULL THEN 1 ELSE 0 END) AS after, sum(CASE WHEN a.person_id = b.person_id THEN 1 ELSE 0 END) AS both FROM a FULL OUTER JOIN b ON a.person_id = b.person_id AND a.ward = b.ward;

-- figures of units of both sides
SELECT coalesce(a.n, 0) AS eyes, coalesce(b.n, 0) AS surgery, count(*) AS persons FROM (SELECT person_id, count(*) AS n FROM stays WHERE ward = 'eyes' GROUP BY person_id) a FULL JOIN (SELECT person_id, count(*) AS n FROM stays WHERE ward = 'surgery' GROUP BY person_id) b USING (person_id) GROUP BY 1, 2;

-- everybody, and the days that some have
SELECT region, count(*) AS n, sum(days) AS days FROM stays s RIGHT JOIN people p ON p.person_id = s.person_id GROUP BY region;

-- everybody, behind a public table
SELECT climate, count(*) AS n FROM regions r RIGHT JOIN people p ON p.region = r.region GROUP BY climate;

-- UNION ALL of records
SELECT what, count(*) AS n, count(DISTINCT person_id) AS persons FROM (SELECT person_id, ward AS what FROM stays UNION ALL SELECT person_id, 'everybody' FROM people) GROUP BY what;

-- each patient
SELECT person_id, count(*) AS n FROM stays GROUP BY person_id;

-- the first patients
SELECT count(*) AS n FROM (SELECT person_id FROM stays GROUP BY person_id ORDER BY count(*) DESC LIMIT 10);

-- those whose largest measure is large
SELECT count(*) AS n FROM (SELECT person_id FROM stays GROUP BY person_id HAVING max(days) > 8);

-- by what a measure comes to
SELECT days, count(*) FROM (SELECT person_id, sum(days) AS days FROM stays GROUP BY person_id) GROUP BY days;

--| Values without a table

-- VALUES alone
VALUES (1, 'a'), (2, 'b') ORDER BY 1 DESC LIMIT 1;

-- VALUES in a WITH, joined to records
WITH labels(region, label) AS (VALUES ('North', 'N'), ('South', 'S')) SELECT label, count(*) AS n FROM people JOIN labels USING (region) GROUP BY label;

-- columns of VALUES by the names that they have
SELECT t.col0, count(*) AS n FROM people JOIN (VALUES ('North'), ('South')) t ON region = t.col0 GROUP BY t.col0;

-- all columns but one that is not there
SELECT * EXCLUDE (no_such) FROM regions;

--| Parameters

-- by place
SELECT count(*) FROM people WHERE region = ? AND age >= ?;

-- by name
SELECT sex, count(*) AS n FROM people WHERE region = $region GROUP BY sex;

-- in a group
SELECT age >= $1 AS old, count(*) AS n FROM people GROUP BY old;

-- in a list without blanks
SELECT count(*) FROM people WHERE region IN (?,?) AND sex <> '$1,$2';

--| Measures that are worked out, and bands of them

-- a measure less a constant
SELECT region, sum(income - 1000) AS x, avg(income / 12) AS monthly FROM people GROUP BY region;

-- measures of two tables added up
SELECT region, sum(income - 10 * days) AS x FROM people JOIN stays USING (person_id) GROUP BY region;

-- a measure worked out in a subquery
SELECT region, sum(monthly) AS x FROM (SELECT region, income / 12 AS monthly FROM people) GROUP BY region;

-- one worked out in WITH, by dimensions
WITH t AS (SELECT region, income * (1 - age / 100) AS net FROM people) SELECT region, sum(net) AS x FROM t GROUP BY region;

-- a logarithm
SELECT region, sum(ln(income)) AS x, exp(avg(ln(income))) AS geometric FROM people GROUP BY region;

-- absolute values
SELECT sum(abs(income)) AS x FROM people;

-- a root and a square
SELECT region, sum(sqrt(income)) AS x, sum(income * income) AS y FROM people GROUP BY region;

-- CASE of a measure
SELECT CASE WHEN income < 2000 THEN 'low' WHEN income < 4000 THEN 'middle' ELSE 'high' END AS band, count(*) AS n FROM people GROUP BY band;

-- a measure from a border on
SELECT region, count(*) AS n, sum(income) AS x FROM people WHERE income >= 2000 GROUP BY region;

-- a measure between two borders
SELECT sex, count(*) FILTER (WHERE income BETWEEN 2000 AND 3999) AS n FROM people GROUP BY sex;

-- what is above a border
SELECT region, sum(CASE WHEN income >= 2000 THEN income - 2000 ELSE 0 END) AS x FROM people GROUP BY region;

-- another border than those that are declared
SELECT count(*) AS n FROM people WHERE income >= 2500;

-- a part of a measure
SELECT sum(greatest(income - 2500, 0)) AS x FROM people;

-- a measure less another where there is one
SELECT region, sum(income - coalesce(days, 0)) AS x FROM people LEFT JOIN stays USING (person_id) GROUP BY region;

-- what is known first
SELECT sum(coalesce(income, days)) AS x, avg(coalesce(income, days)) AS y FROM people JOIN stays USING (person_id);

-- several measures in one column
SELECT what, sum(v) AS x FROM (SELECT region AS what, income AS v FROM people UNION ALL SELECT ward, days FROM stays) GROUP BY what;

-- a measure beside 0
SELECT region, sum(a) AS a, sum(b) AS b FROM (SELECT region, income AS a, 0 AS b FROM people UNION ALL SELECT ward, 0, days FROM stays) GROUP BY region;

--| Values that are published, and answers beside records

-- whether there are such records
SELECT EXISTS (SELECT 1 FROM people WHERE age > 60) AS some, 'North' IN (SELECT region FROM people) AS north;

-- values of two tables
SELECT region FROM people UNION SELECT ward FROM stays;

-- values that only one has
SELECT month FROM people EXCEPT SELECT month FROM stays;

-- the sum of different values
SELECT region, sum(DISTINCT age) AS x, avg(DISTINCT age) AS y FROM people GROUP BY region;

-- the mean length of a text
SELECT sex, avg(strlen(region)) AS x FROM people GROUP BY sex;

-- an answer of one row beside records
SELECT region, count(*) AS n FROM people CROSS JOIN (SELECT max(age) - 20 AS old FROM people) t WHERE age > old GROUP BY region;

-- parameters in a WITH
WITH p AS (SELECT 30 AS low, 50 AS high) SELECT region, count(*) AS n FROM people, p WHERE age BETWEEN low AND high GROUP BY region;

-- the interval that a value lies in
SELECT label, count(*) AS n FROM people JOIN (VALUES (0, 18, 'child'), (18, 65, 'adult'), (65, 200, 'old')) b(low, high, label) ON age >= low AND age < high GROUP BY label;

-- a list of values in VALUES
SELECT region, count(*) AS n FROM people WHERE region IN (VALUES ('North'), ('South')) GROUP BY region;

-- how many pairs of values occur
SELECT count(DISTINCT (region, sex)) AS pairs FROM people;

-- groups of records that are found in a public table, several times
SELECT DISTINCT sex FROM people p, (SELECT 'North' AS r UNION ALL SELECT 'North') x WHERE p.region = x.r;

-- a join in brackets with a name
SELECT region, count(*) AS n FROM (people JOIN (SELECT person_id, ward FROM stays) s USING (person_id)) AS q GROUP BY region;
--| What there is

-- the tables
SHOW TABLES;

-- the tables with their columns
SHOW ALL TABLES;

-- the columns of a table, and what they are for
DESCRIBE people;

-- the same by SHOW
SHOW people;

-- the columns of an answer
DESCRIBE SELECT region, count(*) AS n FROM people GROUP BY region;

-- the columns as programs ask for them
PRAGMA table_info('people');

-- the columns by DuckDB's catalog
SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'people' ORDER BY column_index;

-- the columns by information_schema
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people' ORDER BY ordinal_position;

-- a summary of all records
SUMMARIZE people;

-- a summary of some
SUMMARIZE SELECT age, income FROM people WHERE sex = 'f';

-- a summary of an answer
SUMMARIZE SELECT region, count(*) AS n FROM people GROUP BY region;

-- a part of a summary
SELECT column_name, q50, count FROM (SUMMARIZE people) WHERE column_name <> 'person_id';

-- a table that nobody may see
DESCRIBE record_keys;
