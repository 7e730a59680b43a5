-- What Looker asks of PostgreSQL, in words of our own.

-- about the database
SHOW server_version;

SELECT current_schema();

-- refused: 25006
CREATE TABLE looker_scratch.connection_reg_r3 (key VARCHAR(255));

-- the same as: SELECT region, count(DISTINCT person_id) FROM people GROUP BY region
SELECT people.region AS "people.region", COUNT(DISTINCT people.person_id) AS "people.count" FROM public.people AS people
GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY;

-- the same as: SELECT region, sum(income), count(*) FROM people WHERE sex = 'f' AND age >= 20 AND age < 60 GROUP BY region
SELECT people.region AS "people.region", COALESCE(SUM(people.income), 0) AS "people.total_income", COUNT(*) AS "people.count"
FROM public.people AS people WHERE (people.sex) = 'f' AND ((( people.age ) >= ((20)) AND ( people.age ) < ((60))))
GROUP BY 1 HAVING NOT (COUNT(*) IS NULL) ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY;

-- the same as: SELECT CASE WHEN age < 30 THEN '0' WHEN age < 60 THEN '1' ELSE '2' END, CASE WHEN age < 30 THEN 'Below 30' WHEN age < 60 THEN '30 to 59' ELSE '60 or Above' END, count(*) FROM people GROUP BY 1, 2
SELECT CASE WHEN people.age < 30 THEN '0' WHEN people.age >= 30 AND people.age < 60 THEN '1' WHEN people.age >= 60 THEN '2'
    ELSE '3' END AS "people.age_tier__sort_",
    CASE WHEN people.age < 30 THEN 'Below 30' WHEN people.age >= 30 AND people.age < 60 THEN '30 to 59'
    WHEN people.age >= 60 THEN '60 or Above' ELSE 'Undefined' END AS "people.age_tier", COUNT(*) AS "people.count"
FROM public.people AS people GROUP BY 1, 2 ORDER BY 1 FETCH NEXT 500 ROWS ONLY;

-- the same as: SELECT TO_CHAR(DATE_TRUNC('month', a_moment), 'YYYY-MM'), count(*) FROM kinds GROUP BY 1
SELECT (TO_CHAR(DATE_TRUNC('month', kinds.a_moment ), 'YYYY-MM')) AS "kinds.a_month", COUNT(*) AS "kinds.count"
FROM public.kinds AS kinds GROUP BY (DATE_TRUNC('month', kinds.a_moment )) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY;

-- the same as: SELECT region, count(*) FROM people WHERE region IN (SELECT region FROM people GROUP BY region ORDER BY count(*) DESC LIMIT 2) GROUP BY region
WITH top AS (SELECT people.region AS region, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM public.people GROUP BY 1)
SELECT top.region AS "top.region", COUNT(*) AS "people.count" FROM public.people AS people
INNER JOIN top ON people.region = top.region WHERE top.place <= 2 GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY;

-- the same as: SELECT sex, region, count(*), dense_rank() OVER (ORDER BY sex) FROM people GROUP BY sex, region
SELECT * FROM (SELECT *, DENSE_RANK() OVER (ORDER BY CASE WHEN "people.sex" IS NULL THEN 1 ELSE 0 END, "people.sex") AS column_rank
FROM (SELECT people.sex AS "people.sex", people.region AS "people.region", COUNT(*) AS "people.count"
FROM public.people AS people GROUP BY 1, 2) ww) bb WHERE column_rank <= 16384;

-- refused: SDC045
SELECT people.person_id AS "people.person_id", people.income AS "people.income" FROM public.people AS people
ORDER BY 1 FETCH NEXT 500 ROWS ONLY;
