MODEL (
  name main.people_by_age,
  kind FULL,
  columns (region VARCHAR, sex VARCHAR, age INTEGER, n BIGINT, status VARCHAR),
  audits (not_empty)
);

SELECT region, sex, age, n, status
FROM sdc_suppress(
  'SELECT region, sex, age, count(*) AS n FROM register.main.people WHERE age >= 84
   GROUP BY GROUPING SETS ((region, sex, age), (region, sex), (age), ())',
  max_count := 4
)
