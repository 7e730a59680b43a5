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
--| @column section VARCHAR: 're-identification', 'copies', 'attributes', 'attacks' (with a holdout only) or 'utility'
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
--| @output
--| section           | measure                                                   | about    | value | baseline | baseline_is
--| ------------------+-----------------------------------------------------------+----------+-------+----------+-------------------------------------------
--| re-identification | smallest class (k)                                        | original |   1.0 |     NULL | NULL
--| re-identification | share of uniques                                          | original |  0.17 |     NULL | NULL
--| re-identification | mean risk, if it is known who is in the data              | original |   0.5 |     NULL | NULL
--| re-identification | smallest class (k)                                        | release  |   1.0 |     NULL | NULL
--| re-identification | share of uniques                                          | release  |  0.44 |     NULL | NULL
--| re-identification | mean risk, if it is known who is in the data              | release  |  0.67 |     NULL | NULL
--| re-identification | part in what makes records special, per cent              | region   | 100.0 |     NULL | NULL
--| re-identification | part in what makes records special, per cent              | sex      | 100.0 |     NULL | NULL
--| re-identification | fewest values in a class (l)                              | age      |   1.0 |     NULL | NULL
--| re-identification | share of records in classes of one value                  | age      |  0.44 |     NULL | NULL
--| re-identification | farthest class (t)                                        | age      |   0.5 |     NULL | NULL
--| copies            | share of records that equal an original                   | NULL     |   1.0 |     NULL | NULL
--| copies            | records that equal a unique original                      | NULL     |   9.0 |     NULL | NULL
--| copies            | share of originals with a copy                            | NULL     |  0.75 |     NULL | NULL
--| copies            | distance to the closest original, 5 % quantile            | NULL     |   0.0 |     NULL | NULL
--| copies            | distance to the closest original, median                  | NULL     |   0.0 |     NULL | NULL
--| copies            | share at distance 0                                       | NULL     |   1.0 |     NULL | NULL
--| copies            | closest over second closest, 5 % quantile                 | NULL     |   0.0 |     NULL | NULL
--| copies            | share of original uniques that are unique here too        | NULL     |  0.17 |     NULL | NULL
--| attributes        | told rightly where all records with the keys agree (TCAP) | age      |  0.57 |     0.08 | by the marginal distribution
--| attributes        | told rightly by a draw among records with the keys (DCAP) | age      |   0.5 |     0.08 | by always guessing the most frequent value
--| attributes        | share of originals with a value disclosed rightly (DiSCO) | age      |  0.33 |     NULL | NULL
--| @source Each function names its own
CREATE OR REPLACE TEMP MACRO sdc_report(
    original, release, holdout := NULL, keys := [], targets := [], columns := [], seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_report(
        original::VARCHAR, release::VARCHAR, holdout::VARCHAR, keys::VARCHAR[], targets::VARCHAR[], "columns"::VARCHAR[],
        seed::VARCHAR));
