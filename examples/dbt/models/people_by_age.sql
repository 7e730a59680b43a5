-- Exact counts. Those of one to four people are left out, and those that would tell them.
SELECT region, sex, age, n, status
FROM sdc_suppress('
    SELECT region, sex, age, count(*) AS n
    FROM {{ source("register", "people") }} WHERE age >= 84
    GROUP BY GROUPING SETS ((region, sex, age), (region, sex), (age), ())
', max_count := 4)
