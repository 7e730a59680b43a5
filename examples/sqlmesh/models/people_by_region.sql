MODEL (
  name main.people_by_region,
  kind FULL,
  columns (region VARCHAR, sex VARCHAR, people BIGINT, income DOUBLE),
  audits (not_empty)
);

SELECT region, sex, sdc_count(record_key) AS people, sdc_sum(income, record_key) AS income
FROM register.main.people
GROUP BY CUBE (region, sex)
