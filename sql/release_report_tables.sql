-- The report of a release: it asks the functions of risk and utility (a temporary macro of a connection with sdcduck).

--| sdc_report(original, release, holdout := NULL, keys := [], targets := [], columns := [], seed := NULL) -> TABLE
--| Who could be found in a release, what could be learned, what was lost: every measure that applies, with its baseline.
--|
--| It asks the functions of risk and utility one after the other: with `keys` how special records are, with `keys` and
--| `targets` what the keys tell of the targets, copies and closest records in any case, and what tables, columns and
--| correlations lost. `holdout` is what makes copies and distances mean something: records of the same population that the
--| release was not made from. What a function refuses is a row without a value that says why. `sdcduck.assess` and
--| `sdcduck assess` write the same as a page with pictures.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg release VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg holdout VARCHAR: as `original`: records that the release was not made from; NULL: there are none
--| @arg keys VARCHAR[]: what somebody may know of a person; []: nothing is asked that needs keys
--| @arg targets VARCHAR[]: what nobody should learn
--| @arg columns VARCHAR[]: the columns to be compared; []: all that every table has
--| @arg seed BIGINT: of what is random in the measures; NULL: 0
--| @column section VARCHAR: 're-identification', 'copies', 'attributes' or 'utility'
--| @column measure VARCHAR: what was measured
--| @column about VARCHAR: of which table, column or columns; NULL: of the whole
--| @column value DOUBLE: the number; NULL where it is not defined or could not be measured
--| @column low DOUBLE: lower end of its confidence interval, where it has one
--| @column high DOUBLE: upper end
--| @column baseline DOUBLE: the same number where nothing was disclosed, or nothing lost
--| @column baseline_is VARCHAR: what the baseline is
--| @column warning VARCHAR: what makes the number misleading, or why there is none; NULL: nothing that was seen
--| @column function VARCHAR: the function that says more
--| @example
--| SELECT section, measure, about, round(value, 2) AS value, round(baseline, 2) AS baseline, baseline_is
--| FROM sdc_report('people', '(FROM people WHERE person_id > 3)', keys := ['region', 'sex'], targets := ['age'])
--| WHERE section <> 'utility';
--| @source Each function names its own
CREATE OR REPLACE TEMP MACRO sdc_report(
    original, release, holdout := NULL, keys := [], targets := [], columns := [], seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_report(
        original::VARCHAR, release::VARCHAR, holdout::VARCHAR, keys::VARCHAR[], targets::VARCHAR[], "columns"::VARCHAR[],
        seed::VARCHAR));
