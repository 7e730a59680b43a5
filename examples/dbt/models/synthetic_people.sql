-- Records of nobody, for whoever tries a program out.
SELECT * FROM sdc_synth_records(
    '(SELECT region, sex, age, income FROM {{ source("register", "people") }})',
    smoothing := 'density', seed := 20260401
)
