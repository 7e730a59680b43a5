-- Of the real people whom region, sex, age and income single out, at most one in fifty has a synthetic twin.
SELECT uniques_original, replicated
FROM sdc_replicated_uniques(
    '{{ source("register", "people") }}', '{{ ref("synthetic_people") }}', keys := ['region', 'sex', 'age', 'income']
)
WHERE replicated > 0.02 * uniques_original
