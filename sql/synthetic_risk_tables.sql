-- What synthetic records give away of the original ones.

--| sdc_identical_matches(original, synthetic, holdout := NULL, columns := []) -> TABLE
--| How many synthetic records equal an original one, and how many records of a holdout do: the baseline.
--|
--| With few columns of few values equal records are unavoidable: new people equal old ones too. What counts is how many more of the
--| synthetic records do. NULL equals NULL, and NaN is NULL.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg holdout VARCHAR: records that the synthetic ones were not made from, of the same population; NULL: none
--| @arg columns VARCHAR[]: columns that are compared; none: all that the tables share
--| @column original_records BIGINT: original records
--| @column synthetic_records BIGINT: synthetic records
--| @column matches BIGINT: synthetic records that equal an original one
--| @column share DOUBLE: their share
--| @column matches_of_uniques BIGINT: those that equal an original record that is the only one of its kind
--| @column originals_matched BIGINT: original records that equal a synthetic one
--| @column share_of_originals DOUBLE: their share
--| @column holdout_records BIGINT: records of the holdout; NULL without one, as all that needs it
--| @column holdout_matches BIGINT: those that equal an original one
--| @column baseline DOUBLE: their share: what a fresh sample would have
--| @column lift DOUBLE: `share` less `baseline`
--| @column warning VARCHAR: what is wrong with the holdout, and columns that not all tables have
--| @example
--| SELECT synthetic_records, matches, share, baseline, lift
--| FROM sdc_identical_matches('(FROM people WHERE person_id <= 6)', '(SELECT * REPLACE (age + 1 AS age) FROM people WHERE person_id % 2 = 0)',
--|     '(FROM people WHERE person_id > 6)', columns := ['region', 'sex']);
--| @output
--| synthetic_records | matches | share |           baseline |                lift
--| ------------------+---------+-------+--------------------+--------------------
--|                 6 |       3 |   0.5 | 0.3333333333333333 | 0.16666666666666669
--| @source Platzer (2020), ANITA D2.2; Platzer and Reutterer (2021); Minieri (2022); Gower (1971)
CREATE OR REPLACE TEMP MACRO sdc_identical_matches(original, synthetic, holdout := NULL, columns := []) AS TABLE
    SELECT * FROM query(_sdc_plan_identical_matches(
        original::VARCHAR, synthetic::VARCHAR, holdout::VARCHAR, columns::VARCHAR[]));

--| sdc_dcr(original, synthetic, holdout := NULL, columns := [], distance := 'gower', categorical := [], ordinal := [], weights := NULL, buckets := 100, range_from := 'all') -> TABLE
--| Distances of synthetic records to the closest original record (DCR), summed up, beside those of a holdout.
--|
--| A fresh sample of the population is some way off the original records. Synthetic records that are closer were copied, or nearly. The
--| two rows should look alike. NNDR is the distance to the closest record by that to the next: a small one is close to one record only.
--| 
--| Missing values: NULL is 0 from NULL and 1 from everything else, in numbers too; NaN is NULL. Infinite values are refused. Numbers are
--| compared as doubles, dates and times by their microseconds. The search is exact.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg holdout VARCHAR: records that the synthetic ones were not made from, of the same population; NULL: none
--| @arg columns VARCHAR[]: columns that are compared; none: all that the tables share. Leave identifiers out
--| @arg distance VARCHAR: 'gower': mean over the columns, 1 for a different category, the difference by the range for numbers; 'buckets': number of columns that differ, with numbers in buckets
--| @arg categorical VARCHAR[]: columns of numbers that are codes, so that only equality counts
--| @arg ordinal VARCHAR[]: columns of an ENUM whose labels are in order: differences of ranks count
--| @arg weights STRUCT: weight by column, 1 where none is given: {'age': 2, 'sex': 0}
--| @arg buckets BIGINT: buckets of equal size into which 'buckets' cuts the numbers of all tables together
--| @arg range_from VARCHAR: 'all': the range of a number is that in all tables; 'original': without the synthetic records, and differences are at most 1
--| @column part VARCHAR: 'synthetic', and with a holdout 'holdout': the same for records that nothing was made from
--| @column records BIGINT: records
--| @column mean DOUBLE: mean distance to the closest original record; NULL if there is none
--| @column min DOUBLE: the least
--| @column q01 DOUBLE: distance that one per cent do not exceed
--| @column q05 DOUBLE: the same for 5 per cent
--| @column q10 DOUBLE: the same for 10 per cent
--| @column q25 DOUBLE: the lower quartile
--| @column median DOUBLE: the median
--| @column q75 DOUBLE: the upper quartile
--| @column max DOUBLE: the largest
--| @column zeros BIGINT: records at distance 0
--| @column zero_share DOUBLE: their share; that of the holdout is what chance brings
--| @column nndr_mean DOUBLE: mean of the distance to the closest by that to the next; 1 where both are 0
--| @column nndr_q05 DOUBLE: what 5 per cent do not exceed
--| @column nndr_median DOUBLE: the median
--| @column p_dcr DOUBLE: p-value (Mann and Whitney, one-sided): small if the synthetic records are closer than the holdout
--| @column p_nndr DOUBLE: the same for the ratio
--| @column pass BOOLEAN: whether both are above 0.05
--| @column warning VARCHAR: what is wrong with the holdout, and columns that not all tables have
--| @example
--| SELECT part, records, round(mean, 3) AS mean, round(median, 3) AS median, zeros, round(nndr_mean, 3) AS nndr_mean
--| FROM sdc_dcr('(FROM people WHERE person_id <= 6)', '(SELECT * REPLACE (age + 1 AS age) FROM people WHERE person_id % 2 = 0)',
--|     '(FROM people WHERE person_id > 6)', columns := ['region', 'sex', 'age', 'income']);
--| @output
--| part      | records |  mean | median | zeros | nndr_mean
--| ----------+---------+-------+--------+-------+----------
--| synthetic |       6 | 0.188 |  0.146 |     0 |     0.434
--| holdout   |       6 | 0.279 |  0.291 |     0 |     0.698
--| @source Platzer (2020), ANITA D2.2; Platzer and Reutterer (2021); Minieri (2022); Gower (1971)
CREATE OR REPLACE TEMP MACRO sdc_dcr(
    original, synthetic, holdout := NULL, columns := [], distance := 'gower',
    categorical := [], ordinal := [], weights := NULL, buckets := 100, range_from := 'all'
) AS TABLE
    SELECT * FROM query(_sdc_plan_dcr(
        original::VARCHAR, synthetic::VARCHAR, holdout::VARCHAR, columns::VARCHAR[], distance::VARCHAR,
        categorical::VARCHAR[], ordinal::VARCHAR[], to_json(weights)::VARCHAR, buckets, range_from::VARCHAR));

--| sdc_dcr_records(original, synthetic, holdout := NULL, columns := [], distance := 'gower', categorical := [], ordinal := [], weights := NULL, buckets := 100, range_from := 'all', id := NULL, itself := false) -> TABLE
--| For each synthetic record the distance to the closest original record, and how that compares with the next.
--|
--| For looking at single records: the copies, and those suspiciously close to one person. See `sdc_dcr` for what is measured.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg holdout VARCHAR: records that the synthetic ones were not made from, of the same population; NULL: none
--| @arg columns VARCHAR[]: columns that are compared; none: all that the tables share but `id`. Leave identifiers out
--| @arg distance VARCHAR: 'gower': mean over the columns, 1 for a different category, the difference by the range for numbers; 'buckets': number of columns that differ, with numbers in buckets
--| @arg categorical VARCHAR[]: columns of numbers that are codes, so that only equality counts
--| @arg ordinal VARCHAR[]: columns of an ENUM whose labels are in order: differences of ranks count
--| @arg weights STRUCT: weight by column, 1 where none is given: {'age': 2, 'sex': 0}
--| @arg buckets BIGINT: buckets of equal size into which 'buckets' cuts the numbers of all tables together
--| @arg range_from VARCHAR: 'all': the range of a number is that in all tables; 'original': without the synthetic records, and differences are at most 1
--| @arg id VARCHAR: column of the synthetic records that says what they are called; NULL: they are numbered as they come
--| @arg itself BOOLEAN: true: both tables are the same, and no record is its own neighbour
--| @column record BIGINT: number of the synthetic record; or the column `id`, under its own name
--| @column dcr DOUBLE: distance to the closest original record
--| @column second DOUBLE: to the next
--| @column nndr DOUBLE: their ratio, 1 if both are 0; NULL if there is no next one
--| @column dcr_holdout DOUBLE: distance to the closest record of the holdout; NULL without one
--| @column closer VARCHAR: 'original', 'holdout' or 'neither'
--| @example
--| SELECT person_id, round(dcr, 3) AS dcr, round(nndr, 3) AS nndr, closer
--| FROM sdc_dcr_records('(FROM people WHERE person_id <= 6)', '(SELECT * REPLACE (age + 1 AS age) FROM people WHERE person_id % 2 = 0)',
--|     '(FROM people WHERE person_id > 6)', columns := ['region', 'sex', 'age', 'income'], id := 'person_id')
--| ORDER BY dcr LIMIT 3;
--| @output
--| person_id |   dcr |  nndr | closer
--| ----------+-------+-------+---------
--|         2 | 0.006 | 0.036 | original
--|         4 | 0.006 |  0.03 | original
--|         6 | 0.006 | 0.021 | original
--| @source Platzer (2020), ANITA D2.2; Platzer and Reutterer (2021); Minieri (2022); Gower (1971)
CREATE OR REPLACE TEMP MACRO sdc_dcr_records(
    original, synthetic, holdout := NULL, columns := [], distance := 'gower',
    categorical := [], ordinal := [], weights := NULL, buckets := 100, range_from := 'all', id := NULL, itself := false
) AS TABLE
    SELECT * FROM query(_sdc_plan_dcr_records(
        original::VARCHAR, synthetic::VARCHAR, holdout::VARCHAR, columns::VARCHAR[], distance::VARCHAR,
        categorical::VARCHAR[], ordinal::VARCHAR[], to_json(weights)::VARCHAR, buckets, range_from::VARCHAR,
        id::VARCHAR, itself));

--| sdc_dcr_histogram(original, synthetic, holdout := NULL, columns := [], distance := 'gower', categorical := [], ordinal := [], weights := NULL, buckets := 100, range_from := 'all', bins := NULL) -> TABLE
--| Histogram of the distances to the closest original record: exact zeros, then bins of equal width.
--|
--| A spike at 0 that the holdout does not have is copies. See `sdc_dcr` for what is measured.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg holdout VARCHAR: records that the synthetic ones were not made from, of the same population; NULL: none
--| @arg columns VARCHAR[]: columns that are compared; none: all that the tables share. Leave identifiers out
--| @arg distance VARCHAR: 'gower': mean over the columns, 1 for a different category, the difference by the range for numbers; 'buckets': number of columns that differ, with numbers in buckets
--| @arg categorical VARCHAR[]: columns of numbers that are codes, so that only equality counts
--| @arg ordinal VARCHAR[]: columns of an ENUM whose labels are in order: differences of ranks count
--| @arg weights STRUCT: weight by column, 1 where none is given: {'age': 2, 'sex': 0}
--| @arg buckets BIGINT: buckets of equal size into which 'buckets' cuts the numbers of all tables together
--| @arg range_from VARCHAR: 'all': the range of a number is that in all tables; 'original': without the synthetic records, and differences are at most 1
--| @arg bins BIGINT: bins of equal width up to the largest distance that there can be; NULL: 20, or one a column for 'buckets'
--| @column bin BIGINT: 0: distance 0; then 1, 2, ..
--| @column low DOUBLE: distances are above it
--| @column high DOUBLE: and at most this
--| @column records BIGINT: synthetic records
--| @column share DOUBLE: their share
--| @column holdout_records BIGINT: records of the holdout; NULL without one
--| @column holdout_share DOUBLE: their share
--| @example
--| SELECT bin, round(low, 2) AS low, round(high, 2) AS high, records, holdout_records
--| FROM sdc_dcr_histogram('(FROM people WHERE person_id <= 6)', '(SELECT * REPLACE (age + 1 AS age) FROM people WHERE person_id % 2 = 0)',
--|     '(FROM people WHERE person_id > 6)', columns := ['region', 'sex', 'age', 'income'], bins := 5);
--| @output
--| bin | low | high | records | holdout_records
--| ----+-----+------+---------+----------------
--|   0 | 0.0 |  0.0 |       0 |               0
--|   1 | 0.0 |  0.2 |       3 |               2
--|   2 | 0.2 |  0.4 |       2 |               3
--|   3 | 0.4 |  0.6 |       1 |               1
--|   4 | 0.6 |  0.8 |       0 |               0
--|   5 | 0.8 |  1.0 |       0 |               0
--| @source Platzer (2020), ANITA D2.2; Platzer and Reutterer (2021); Minieri (2022); Gower (1971)
CREATE OR REPLACE TEMP MACRO sdc_dcr_histogram(
    original, synthetic, holdout := NULL, columns := [], distance := 'gower',
    categorical := [], ordinal := [], weights := NULL, buckets := 100, range_from := 'all', bins := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_dcr_histogram(
        original::VARCHAR, synthetic::VARCHAR, holdout::VARCHAR, columns::VARCHAR[], distance::VARCHAR,
        categorical::VARCHAR[], ordinal::VARCHAR[], to_json(weights)::VARCHAR, buckets, range_from::VARCHAR,
        bins));

--| sdc_holdout_share(original, synthetic, holdout, columns := [], distance := 'gower', categorical := [], ordinal := [], weights := NULL, buckets := 100, range_from := 'all', confidence := 0.95) -> TABLE
--| The share of synthetic records that are closer to the records they were made from than to a holdout.
--|
--| Half of them should be, for tables of equal size; in general the original records among both. More says that the synthetic data know who
--| was in the original. The second row puts the holdout in the place of the synthetic records, each of its records without itself: it says how
--| far from `expected` chance leads. See `sdc_dcr` for what is measured.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg holdout VARCHAR: records that the synthetic ones were not made from, of the same population
--| @arg columns VARCHAR[]: columns that are compared; none: all that the tables share. Leave identifiers out
--| @arg distance VARCHAR: 'gower': mean over the columns, 1 for a different category, the difference by the range for numbers; 'buckets': number of columns that differ, with numbers in buckets
--| @arg categorical VARCHAR[]: columns of numbers that are codes, so that only equality counts
--| @arg ordinal VARCHAR[]: columns of an ENUM whose labels are in order: differences of ranks count
--| @arg weights STRUCT: weight by column, 1 where none is given: {'age': 2, 'sex': 0}
--| @arg buckets BIGINT: buckets of equal size into which 'buckets' cuts the numbers of all tables together
--| @arg range_from VARCHAR: 'all': the range of a number is that in all tables; 'original': without the synthetic records, and differences are at most 1
--| @arg confidence DOUBLE: of the interval
--| @column part VARCHAR: 'synthetic'; 'holdout': the calibration
--| @column records BIGINT: records
--| @column closer_original BIGINT: closer to an original record than to any of the holdout
--| @column closer_holdout BIGINT: the other way round
--| @column ties BIGINT: at the same distance from both
--| @column strict_share DOUBLE: `closer_original` by `records`
--| @column share DOUBLE: the same with the share `expected` of the ties
--| @column expected DOUBLE: share of a fresh sample: the original records among original and holdout
--| @column low DOUBLE: confidence interval of `share` (normal approximation): lower end
--| @column high DOUBLE: upper end
--| @column p_value DOUBLE: binomial test of the records without ties against a share above `expected`; NULL if all are ties
--| @column mean_dcr DOUBLE: mean distance to the closest original record
--| @column mean_dcr_holdout DOUBLE: to the closest of the holdout
--| @column dcr_ratio DOUBLE: their ratio: near 1 is good
--| @column copies BIGINT: records at distance 0 from an original one
--| @column copies_holdout BIGINT: from one of the holdout
--| @column pass BOOLEAN: whether `p_value` is above 0.05
--| @column warning VARCHAR: what is wrong with the holdout: records of the original in it, or too few of them; columns that not all tables have
--| @example
--| SELECT part, closer_original, closer_holdout, ties, round(share, 3) AS share, expected, round(p_value, 3) AS p_value
--| FROM sdc_holdout_share('(FROM people WHERE person_id <= 6)', '(SELECT * REPLACE (age + 1 AS age) FROM people WHERE person_id % 2 = 0)',
--|     '(FROM people WHERE person_id > 6)', columns := ['region', 'sex', 'age', 'income']);
--| @output
--| part      | closer_original | closer_holdout | ties | share | expected | p_value
--| ----------+-----------------+----------------+------+-------+----------+--------
--| synthetic |               3 |              3 |    0 |   0.5 |      0.5 |   0.656
--| holdout   |               3 |              3 |    0 |   0.5 |      0.5 |   0.656
--| @source Platzer (2020), ANITA D2.2; Platzer and Reutterer (2021); Minieri (2022); Gower (1971)
CREATE OR REPLACE TEMP MACRO sdc_holdout_share(
    original, synthetic, holdout, columns := [], distance := 'gower',
    categorical := [], ordinal := [], weights := NULL, buckets := 100, range_from := 'all', confidence := 0.95
) AS TABLE
    SELECT * FROM query(_sdc_plan_holdout_share(
        original::VARCHAR, synthetic::VARCHAR, holdout::VARCHAR, columns::VARCHAR[], distance::VARCHAR,
        categorical::VARCHAR[], ordinal::VARCHAR[], to_json(weights)::VARCHAR, buckets, range_from::VARCHAR,
        confidence));

--| sdc_replicated_uniques(original, synthetic, holdout := NULL, keys := [], denominator := 'original') -> TABLE
--| Records that are unique in the original and unique in the synthetic data, by the same values of the keys.
--|
--| Who knows the keys of a person finds one record in the synthetic data, and is right that there was one. Two baselines stand beside the share:
--| that of a holdout, and that of drawing anew from the table of the keys, about 37 per cent of the uniques whatever the data. NULL is a value.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg holdout VARCHAR: records that the synthetic ones were not made from, of the same population; NULL: none
--| @arg keys VARCHAR[]: what somebody may know; none: all columns that the tables share
--| @arg denominator VARCHAR: what `ru` is a share of: 'original' or 'synthetic' records
--| @column original_records BIGINT: original records
--| @column synthetic_records BIGINT: synthetic records
--| @column uniques_original BIGINT: unique in the original
--| @column uniques_synthetic BIGINT: unique in the synthetic data
--| @column uniques_found BIGINT: unique in the synthetic data, and some in the original
--| @column replicated BIGINT: unique in both
--| @column cells DOUBLE: combinations of the values that the original has (NULL is one)
--| @column p1 DOUBLE: per cent of the original records that are unique
--| @column p0 DOUBLE: per cent of the cells that are empty
--| @column ru DOUBLE: replicated uniques in per cent of the records
--| @column ru_of_p1 DOUBLE: in per cent of the original uniques
--| @column ru_saturated DOUBLE: what `ru` is expected to be if records are drawn anew from the original table
--| @column ru_holdout DOUBLE: `ru` of the holdout in the place of the synthetic data; NULL without one
--| @column lift DOUBLE: `ru` less `ru_holdout`
--| @column warning VARCHAR: what is wrong with the holdout, and columns that not all tables have
--| @example
--| SELECT uniques_original, uniques_synthetic, replicated, round(p1, 1) AS p1, round(ru, 1) AS ru, round(ru_of_p1, 1) AS ru_of_p1
--| FROM sdc_replicated_uniques('people', '(FROM people WHERE person_id <> 3)', keys := ['region', 'sex']);
--| @output
--| uniques_original | uniques_synthetic | replicated |   p1 |   ru | ru_of_p1
--| -----------------+-------------------+------------+------+------+---------
--|                2 |                 3 |          2 | 16.7 | 16.7 |    100.0
--| @source Raab (2022), PSD; R package synthpop
CREATE OR REPLACE TEMP MACRO sdc_replicated_uniques(
    original, synthetic, holdout := NULL, keys := [], denominator := 'original'
) AS TABLE
    SELECT * FROM query(_sdc_plan_replicated_uniques(
        original::VARCHAR, synthetic::VARCHAR, holdout::VARCHAR, keys::VARCHAR[], denominator::VARCHAR));

--| sdc_tcap(original, synthetic, keys := [], targets := [], tau := 1.0, weighting := 'original', key_sizes := NULL) -> TABLE
--| Targeted correct attribution probability: how often a target is inferred rightly where all synthetic records with the same keys agree.
--|
--| Guessing is right at times too. `baseline` is what drawing from the distribution of the original brings, and `marginal_tcap` puts TCAP between it
--| (0) and certainty (1). `modal_baseline` always answers with the most frequent value of the synthetic data, for the same people; where `lift` is
--| about 0 nothing was learned from the keys, and `tcap_not_modal` says how good the attack is on those whom that guess gets wrong. NULL is a value.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg keys VARCHAR[]: what somebody may know of a person
--| @arg targets VARCHAR[]: what nobody should learn; a row each
--| @arg tau DOUBLE: share of the records with the same keys that have to agree
--| @arg weighting VARCHAR: 'original': mean over the original records; 'synthetic': over the synthetic ones that have a match (Taub and Elliot)
--| @arg key_sizes BIGINT[]: numbers of keys: the first of them are known; NULL: all
--| @column target VARCHAR: the target
--| @column n_keys BIGINT: number of keys known
--| @column originals BIGINT: original records
--| @column hits BIGINT: those whose keys are in the synthetic data, with one answer
--| @column correct BIGINT: those for whom it is right
--| @column recall DOUBLE: `hits` by `originals`
--| @column tcap DOUBLE: `correct` by `hits`, 0 without any; or the mean over the synthetic records, NULL without any
--| @column baseline DOUBLE: sum of the squared shares of the values in the original
--| @column marginal_tcap DOUBLE: (tcap - baseline) / (1 - baseline); NULL if the baseline is 1, or nobody is hit
--| @column modal_baseline DOUBLE: how often the most frequent value of the synthetic data is right for the same people
--| @column lift DOUBLE: `tcap` less `modal_baseline`
--| @column tcap_not_modal DOUBLE: how often the answer is right for those who have another value
--| @example
--| SELECT target, n_keys, hits, correct, tcap, round(baseline, 3) AS baseline, round(marginal_tcap, 3) AS marginal_tcap, lift
--| FROM sdc_tcap('(SELECT region, sex, CASE WHEN income < 3000 THEN ''low'' ELSE ''high'' END AS pay FROM people)',
--|     '(SELECT region, sex, CASE WHEN person_id % 4 = 0 THEN ''low'' ELSE ''high'' END AS pay FROM people)',
--|     keys := ['region', 'sex'], targets := ['pay'], key_sizes := [1, 2]);
--| @output
--| target | n_keys | hits | correct | tcap | baseline | marginal_tcap |   lift
--| -------+--------+------+---------+------+----------+---------------+-------
--| pay    |      1 |    0 |       0 |  0.0 |      0.5 |          NULL |   NULL
--| pay    |      2 |    8 |       2 | 0.25 |      0.5 |          -0.5 | -0.125
--| @source Little, Elliot and Allmendinger (2022), PSD; Taub and Elliot (2019); Francis (2022), PSD (modal guess)
CREATE OR REPLACE TEMP MACRO sdc_tcap(
    original, synthetic, keys := [], targets := [], tau := 1.0, weighting := 'original', key_sizes := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_tcap(
        original::VARCHAR, synthetic::VARCHAR, keys::VARCHAR[], targets::VARCHAR[], tau, weighting::VARCHAR,
        key_sizes::BIGINT[]));

--| sdc_tcap_records(original, synthetic, keys := [], target := NULL, tau := 1.0) -> TABLE
--| Every original record with what the synthetic data say of its target: whose attribute can be inferred, and how surely.
--|
--| The records behind `sdc_tcap` and the CAP measures of `sdc_disclosure`: TCAP is the mean of `correct`, DCAP that of `cap`, with 0 for NULL. An
--| inference that `modal_correct` makes too needs no data. NULL is a value.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg keys VARCHAR[]: what somebody may know of a person
--| @arg target VARCHAR: what nobody should learn
--| @arg tau DOUBLE: share of the records with the same keys that have to agree
--| @column .. as in `original`
--| @column matches BIGINT: synthetic records with the same keys
--| @column cap DOUBLE: share of them that have the same target; NULL without any
--| @column agreement DOUBLE: share of the most frequent target among them; NULL without any
--| @column guess VARCHAR: that target, if `agreement` is at least `tau`
--| @column hit BOOLEAN: whether it is: there is one answer
--| @column correct BOOLEAN: whether the answer is right; NULL without one
--| @column modal_correct BOOLEAN: whether the most frequent target of all synthetic records would be right
--| @example
--| SELECT person_id, region, sex, pay, matches, cap, guess, hit, correct, modal_correct
--| FROM sdc_tcap_records('(SELECT person_id, region, sex, CASE WHEN income < 3000 THEN ''low'' ELSE ''high'' END AS pay FROM people)',
--|     '(SELECT region, sex, CASE WHEN person_id % 4 = 0 THEN ''low'' ELSE ''high'' END AS pay FROM people)',
--|     keys := ['region', 'sex'], target := 'pay')
--| ORDER BY hit DESC, person_id LIMIT 4;
--| @output
--| person_id | region | sex | pay  | matches | cap | guess |  hit | correct | modal_correct
--| ----------+--------+-----+------+---------+-----+-------+------+---------+--------------
--|         1 | North  | m   | low  |       3 | 0.0 | high  | true |   false |         false
--|         2 | North  | m   | high |       3 | 1.0 | high  | true |    true |          true
--|         5 | North  | m   | low  |       3 | 0.0 | high  | true |   false |         false
--|         6 | South  | f   | low  |       3 | 0.0 | high  | true |   false |         false
--| @source Taub and Elliot (2019); Little, Elliot and Allmendinger (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_tcap_records(original, synthetic, keys := [], target := NULL, tau := 1.0) AS TABLE
    SELECT * FROM query(_sdc_plan_tcap_records(
        original::VARCHAR, synthetic::VARCHAR, keys::VARCHAR[], target::VARCHAR, tau));

--| sdc_disclosure(original, synthetic, keys := [], targets := [], tau := 1.0) -> TABLE
--| What the keys give away, of identity and of a target: uniques, DiSCO, DCAP, WEAP, TCAP and their relatives, as shares.
--|
--| Shares of all original records are comparable between files; TCAP and its like are shares of those for whom there is an answer, and rise when
--| answers are dropped. Inferences that everybody could make without the data are no disclosure: the baselines and the two flags point at them.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg keys VARCHAR[]: what somebody may know of a person
--| @arg targets VARCHAR[]: what nobody should learn; a row each
--| @arg tau DOUBLE: share of the records with the same keys that have to agree
--| @column target VARCHAR: the target
--| @column original_records BIGINT: original records
--| @column synthetic_records BIGINT: synthetic records
--| @column uio DOUBLE: UiO: originals that are unique by their keys
--| @column uis DOUBLE: UiS: synthetic records that are
--| @column uiois DOUBLE: UiOiS: unique originals whose keys are in the synthetic data
--| @column repu DOUBLE: repU: unique in both
--| @column dorig DOUBLE: Dorig: originals whose keys have one target in the original
--| @column dsyn DOUBLE: Dsyn: the same within the synthetic data
--| @column is_share DOUBLE: iS: originals whose keys are in the synthetic data
--| @column dis DOUBLE: DiS: those for whom there is one answer
--| @column disco DOUBLE: DiSCO: those for whom it is right
--| @column disdio DOUBLE: DiSDiO: those for whom it is right, and the only one in the original too
--| @column cap_original DOUBLE: CAP of the original with itself: mean share of the own target among the records with the same keys
--| @column weap DOUBLE: WEAP: the same within the synthetic data
--| @column dcap DOUBLE: DCAP: mean share of the own target among the synthetic records with the same keys, 0 without any
--| @column dcap_match DOUBLE: the same over the originals that have some
--| @column tcap DOUBLE: TCAP: of those for whom there is one answer, how many are right; 0 without any
--| @column tcap_match DOUBLE: of those whose keys are in the synthetic data, how many are right by one answer
--| @column baseline DOUBLE: sum of the squared shares of the target in the original: what drawing from it brings
--| @column marginal_dcap DOUBLE: (dcap_match - baseline) / (1 - baseline); NULL if the baseline is 1
--| @column marginal_tcap DOUBLE: (tcap - baseline) / (1 - baseline); NULL if the baseline is 1, or nobody is hit
--| @column modal_baseline DOUBLE: originals that have the most frequent target of the synthetic data
--| @column flag_1way BOOLEAN: nine of ten right answers are the same value, and at least 50: it may be no secret
--| @column flag_2way BOOLEAN: at least 5 right answers are the target of four in five originals with that value of a single key
--| @column warning VARCHAR: what the flags say, or that the target should be grouped
--| @example
--| SELECT target, uio, repu, is_share, dis, disco, round(dcap, 3) AS dcap, tcap, round(baseline, 3) AS baseline
--| FROM sdc_disclosure('(SELECT region, sex, CASE WHEN income < 3000 THEN ''low'' ELSE ''high'' END AS pay FROM people)',
--|     '(SELECT region, sex, CASE WHEN person_id % 4 = 0 THEN ''low'' ELSE ''high'' END AS pay FROM people)',
--|     keys := ['region', 'sex'], targets := ['pay']);
--| @output
--| target |                 uio |                repu | is_share |                dis |               disco |  dcap | tcap | baseline
--| -------+---------------------+---------------------+----------+--------------------+---------------------+-------+------+---------
--| pay    | 0.16666666666666666 | 0.16666666666666666 |      1.0 | 0.6666666666666666 | 0.16666666666666666 | 0.333 | 0.25 |      0.5
--| @source Taub and Elliot (2019); R package synthpop (disclosure); Little, Elliot and Allmendinger (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_disclosure(original, synthetic, keys := [], targets := [], tau := 1.0) AS TABLE
    SELECT * FROM query(_sdc_plan_disclosure(
        original::VARCHAR, synthetic::VARCHAR, keys::VARCHAR[], targets::VARCHAR[], tau));
