-- Output checking: the record of outputs, and what is pure SQL.

CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.outputs (
    name VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    checked VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    cells BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    review BIGINT NOT NULL,
    why VARCHAR,
    fingerprint VARCHAR NOT NULL,
    submitted_by VARCHAR NOT NULL,
    submitted_at TIMESTAMP NOT NULL,
    exception VARCHAR,
    decision VARCHAR,
    decided_by VARCHAR,
    decided_at TIMESTAMP,
    reason VARCHAR
);
ALTER TABLE sdc.outputs ADD COLUMN IF NOT EXISTS replaces VARCHAR;

--| sdc_outputs() -> TABLE
--| The outputs that were checked: what came of it, who asked, and who decided.
--|
--| `releasable` is true for what passed and was not rejected, and for what was approved.
--|
--| @column name VARCHAR: of the output
--| @column kind VARCHAR: the function that checked it
--| @column status VARCHAR: 'pass'; 'review': somebody has to look; 'fail'
--| @column cells BIGINT: cells, statistics or models in it
--| @column failed BIGINT: those that fail
--| @column review BIGINT: those that somebody has to look at
--| @column why VARCHAR: the rules that they fail
--| @column submitted_by VARCHAR: who asked
--| @column submitted_at TIMESTAMP: when, UTC
--| @column exception VARCHAR: why it should go though it does not pass
--| @column decision VARCHAR: 'approve' or 'reject'; NULL: nobody has decided
--| @column decided_by VARCHAR: who decided
--| @column decided_at TIMESTAMP: when, UTC
--| @column reason VARCHAR: why
--| @column releasable BOOLEAN: whether it may go
--| @column checked VARCHAR: the call of the check
--| @column fingerprint VARCHAR: SHA-256 of the call and of what it said of every cell: the same check on the same data gives the same
--| @column replaces VARCHAR: the fingerprint of what was submitted under this name before, where it was something else
--| @example
--| SELECT name, status, decision, releasable FROM sdc_outputs();
--| @output
--| name | status | decision | releasable
--| -----+--------+----------+-----------
--| @source this project; ideas of ACRO (Green, Ritchie and Smith 2021)
CREATE OR REPLACE MACRO sdc_outputs() AS TABLE
    SELECT name, kind, status, cells, failed, review, why, submitted_by, submitted_at, exception, decision, decided_by,
        decided_at, reason, coalesce(decision = 'approve', status = 'pass') AS releasable, checked, fingerprint, replaces
    FROM sdc.outputs ORDER BY submitted_at, name;

--| sdc_check_regression(observations, parameters, min_df := 10, saturated := false) -> TABLE
--| Whether the coefficients of a regression may leave: it needs degrees of freedom.
--|
--| A model with nearly as many parameters as records gives the records away. One of categories only, with all interactions,
--| is a table of means in other words: check that table.
--|
--| @arg observations BIGINT: records that were fitted
--| @arg parameters BIGINT: coefficients, with the constant
--| @arg min_df BIGINT: residual degrees of freedom that are enough, at least 2
--| @arg saturated BOOLEAN: whether all regressors are categories with all of their interactions
--| @column observations BIGINT: records
--| @column parameters BIGINT: coefficients
--| @column df BIGINT: residual degrees of freedom
--| @column status VARCHAR: 'pass', 'review' (saturated) or 'fail'; 'fail' where a number is missing
--| @column why VARCHAR: the rule
--| @example
--| FROM sdc_check_regression(120, 4);
--| @output
--| observations | parameters |  df | status |  why
--| -------------+------------+-----+--------+-----
--|          120 |          4 | 116 | pass   | NULL
--| @source Griffiths et al. (2019), Handbook on Statistical Disclosure Control for Outputs
CREATE OR REPLACE MACRO sdc_check_regression(observations, parameters, min_df := 10, saturated := false) AS TABLE
    SELECT observations::BIGINT AS observations, parameters::BIGINT AS parameters,
        observations::BIGINT - parameters::BIGINT AS df,
        CASE
            WHEN min_df < 2 THEN error('sdc_check_regression: argument ''min_df'' must be at least 2')
            WHEN (observations::BIGINT - parameters::BIGINT >= min_df AND parameters::BIGINT > 0) IS NOT TRUE THEN 'fail'
            WHEN saturated IS NOT FALSE THEN 'review'
            ELSE 'pass' END AS status,
        CASE
            WHEN (observations::BIGINT - parameters::BIGINT >= min_df AND parameters::BIGINT > 0) IS NOT TRUE
                THEN 'degrees of freedom'
            WHEN saturated IS NOT FALSE THEN 'saturated: check it as a table' END AS why;
