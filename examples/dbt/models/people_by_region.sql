-- Counts and sums protected by cell keys, as the guard has them for the same records.
SELECT region, sex, sdc_count(record_key) AS people, sdc_sum(income, record_key) AS income
FROM {{ source('register', 'people') }}
GROUP BY CUBE (region, sex)
