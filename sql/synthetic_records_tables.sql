-- Synthetic records: the functions that need Python (temporary macros of a connection with sdcduck).

--| sdc_synth_records(source := NULL, targets := [], rows := NULL, subset := NULL, share := NULL, details := false, model := NULL, by := [], method := 'cart', visit := [], joint := [], predictors := NULL, minbucket := 5, smoothing := NULL, groups := 20, exclude := [0], bounds := NULL, bounds_where := NULL, non_negative := [], round_to := NULL, redraws := 3, derived := NULL, train_rows := NULL, max_categories := NULL, count_zero := true, weight := NULL, near_constant := true, seed := NULL) -> TABLE
--| Synthetic records: column after column, each drawn from the donors in a leaf of a tree on the columns drawn before.
--|
--| A tree is fitted to the original records; a synthetic record walks down it with what it already has, and takes the
--| value of one of the original records in its leaf. **Without `smoothing` every single value is one that a person had**;
--| there is no formal guarantee. Look at the result with `sdc_synth_replicas` and `sdc_synth_diversity`. A column without
--| predictors, such as the first, is drawn on its own. NULL, NaN and infinities are drawn first, by a tree of their own.
--|
--| With `targets`, `subset` or `share` the synthesis is partial: other columns and other records stay as they are. With
--| `model` the records come from a stored model, and only `rows`, `details` and `seed` can be given. A record depends on
--| the secret, the seed and its number, at any number of threads. Rows come chunk by chunk, in no order.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg targets VARCHAR[]: the columns to be synthesised; []: all
--| @arg rows BIGINT: number of synthetic records; NULL: as many as the original ones
--| @arg subset VARCHAR: condition on the records to be synthesised, e.g. a column of flags; the others stay
--| @arg share DOUBLE: share of the records (of `subset`) to be synthesised, chosen by chance
--| @arg details BOOLEAN: adds `ldiv_..` for each column drawn: different values in the leaf, NULL where all are 0; and `clipped_..` for each one with bounds: whether the value was put on a bound
--| @arg model VARCHAR: a model stored by `sdc_synth_model`, instead of a source
--| @arg by VARCHAR[]: strata: a model of its own for each combination of these columns, with as many records as it had (in proportion, with `rows`)
--| @arg method VARCHAR: 'cart' (trees), 'independent' (each column on its own), 'bootstrap-noise' (whole records with noise on their numbers)
--| @arg visit VARCHAR[] or VARCHAR: columns that are drawn first, in this order; then follow the others as they stand; 'weighted_abs': categories and dates as they stand, then numbers, the one with the largest sum of absolute values first
--| @arg joint VARCHAR[]: columns that are drawn first and together: whole combinations of original records, without predictors
--| @arg predictors STRUCT of lists: the columns that a column may depend on, e.g. {'income': ['age', 'sex']}; all those before it where it is left out
--| @arg minbucket BIGINT: records that a leaf has at least
--| @arg smoothing VARCHAR or STRUCT: 'none' or 'density' for all numbers, or {'income': 'density'}; NULL: 'density' for 'bootstrap-noise', else 'none'
--| @arg groups BIGINT: 'density': groups of values that have noise of their own
--| @arg exclude DOUBLE[]: 'density': numbers that get no noise
--| @arg bounds STRUCT of lists: least and largest value, e.g. {'income': [0, NULL], 'age': [0, 85]}
--| @arg bounds_where STRUCT of STRUCTs of lists: bounds where a condition on other columns holds, e.g. {'wages': {'age < 15': [0, 0]}}
--| @arg non_negative VARCHAR[]: columns whose least value is 0
--| @arg round_to STRUCT: what results are multiples of, e.g. {'income': 100}
--| @arg redraws BIGINT: how often a value out of bounds is drawn again before it is put on the bound
--| @arg derived STRUCT: columns that are not drawn but computed from the others, in SQL, e.g. {'total': 'wages + interest'}
--| @arg train_rows BIGINT: learn from so many records, chosen by chance
--| @arg max_categories BIGINT: texts with more different values than these are refused, and are no predictors where they are kept; NULL: 1000, and where more than 20 they must not be more than half of the texts that there are
--| @arg count_zero BOOLEAN: whether 0 counts as a value in `ldiv_..` of leaves with other values
--| @arg weight VARCHAR: 'weighted_abs': column of weights in these sums
--| @arg near_constant BOOLEAN: false: no predictors that hardly vary, which have one value, or so few (at most one to a hundred records) that the first is more than 19 times as frequent as the second
--| @arg seed BIGINT: beside the secret of the connection; without a secret it must be given, and kept
--| @column .. as in `source`: its columns
--| @example
--| SELECT region, sex, age, income
--| FROM sdc_synth_records('(SELECT region, sex, age, income FROM people)', rows := 4, smoothing := 'density', groups := 2,
--|     non_negative := ['income'], seed := 20240917)
--| ORDER BY ALL;
--| @output
--| region | sex | age | income
--| -------+-----+-----+-------
--| East   | f   |  47 |   5485
--| North  | m   |  62 |   2342
--| South  | m   |  36 |   2098
--| South  | m   |  37 |   1591
--| @source Reiter (2005); R package synthpop; Bowen et al. (2022), PSD, for noise, bounds and leaf diversity; Geyer et al. (2022), PSD, for partial synthesis
CREATE OR REPLACE TEMP MACRO sdc_synth_records(
    source := NULL, targets := [], rows := NULL, subset := NULL, share := NULL, details := false, model := NULL, by :=
    [], method := 'cart', visit := [], joint := [], predictors := NULL, minbucket := 5, smoothing := NULL, groups := 20,
    exclude := [0], bounds := NULL, bounds_where := NULL, non_negative := [], round_to := NULL, redraws := 3, derived :=
    NULL, train_rows := NULL, max_categories := NULL, count_zero := true, weight := NULL, near_constant := true, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_synth_records(
        source::VARCHAR, targets::VARCHAR[], rows::VARCHAR, subset::VARCHAR, share, details, model::VARCHAR, seed::VARCHAR::VARCHAR,
        "by"::VARCHAR[], method::VARCHAR, to_json(visit)::VARCHAR, to_json(predictors)::VARCHAR, minbucket::VARCHAR,
        to_json(smoothing)::VARCHAR, groups::VARCHAR, exclude::DOUBLE[], to_json(bounds)::VARCHAR, non_negative::VARCHAR[],
        to_json(round_to)::VARCHAR, redraws::VARCHAR, to_json(derived)::VARCHAR, train_rows::VARCHAR, max_categories::VARCHAR, count_zero, joint::VARCHAR[],
        to_json(bounds_where)::VARCHAR, weight::VARCHAR, near_constant));

--| sdc_synth_model(name, source, by := [], method := 'cart', visit := [], joint := [], predictors := NULL, minbucket := 5, smoothing := NULL, groups := 20, exclude := [0], bounds := NULL, bounds_where := NULL, non_negative := [], round_to := NULL, redraws := 3, derived := NULL, train_rows := NULL, max_categories := NULL, count_zero := true, weight := NULL, near_constant := true, replace := false, seed := NULL) -> TABLE
--| Fits a model of synthetic records and stores it in the database: records can be drawn later, without the source.
--|
--| The model is stored as arrays (tree nodes, and the values of the donors in their leaves), never as code. **It holds
--| original values and is as confidential as the records**; there is no saying from it which values belong together, but
--| small leaves come near to it.
--|
--| @arg name VARCHAR: of the model
--| @arg source VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg by VARCHAR[]: strata: a model of its own for each combination of these columns, with as many records as it had (in proportion, with `rows`)
--| @arg method VARCHAR: 'cart' (trees), 'independent' (each column on its own), 'bootstrap-noise' (whole records with noise on their numbers)
--| @arg visit VARCHAR[] or VARCHAR: columns that are drawn first, in this order; then follow the others as they stand; 'weighted_abs': categories and dates as they stand, then numbers, the one with the largest sum of absolute values first
--| @arg joint VARCHAR[]: columns that are drawn first and together: whole combinations of original records, without predictors
--| @arg predictors STRUCT of lists: the columns that a column may depend on, e.g. {'income': ['age', 'sex']}; all those before it where it is left out
--| @arg minbucket BIGINT: records that a leaf has at least
--| @arg smoothing VARCHAR or STRUCT: 'none' or 'density' for all numbers, or {'income': 'density'}; NULL: 'density' for 'bootstrap-noise', else 'none'
--| @arg groups BIGINT: 'density': groups of values that have noise of their own
--| @arg exclude DOUBLE[]: 'density': numbers that get no noise
--| @arg bounds STRUCT of lists: least and largest value, e.g. {'income': [0, NULL], 'age': [0, 85]}
--| @arg bounds_where STRUCT of STRUCTs of lists: bounds where a condition on other columns holds, e.g. {'wages': {'age < 15': [0, 0]}}
--| @arg non_negative VARCHAR[]: columns whose least value is 0
--| @arg round_to STRUCT: what results are multiples of, e.g. {'income': 100}
--| @arg redraws BIGINT: how often a value out of bounds is drawn again before it is put on the bound
--| @arg derived STRUCT: columns that are not drawn but computed from the others, in SQL, e.g. {'total': 'wages + interest'}
--| @arg train_rows BIGINT: learn from so many records, chosen by chance
--| @arg max_categories BIGINT: texts with more different values than these are refused, and are no predictors where they are kept; NULL: 1000, and where more than 20 they must not be more than half of the texts that there are
--| @arg count_zero BOOLEAN: whether 0 counts as a value in `ldiv_..` of leaves with other values
--| @arg weight VARCHAR: 'weighted_abs': column of weights in these sums
--| @arg near_constant BOOLEAN: false: no predictors that hardly vary, which have one value, or so few (at most one to a hundred records) that the first is more than 19 times as frequent as the second
--| @arg replace BOOLEAN: whether a model of this name may be replaced
--| @arg seed BIGINT: chooses the records of `train_rows`
--| @column name VARCHAR: the model
--| @column method VARCHAR: of the synthesis
--| @column records BIGINT: the records that it was fitted to
--| @column bytes BIGINT: its size
--| @example
--| SELECT name, method, records
--| FROM sdc_synth_model('persons', '(SELECT region, sex, age FROM people)', minbucket := 3, seed := 1);
--| @output
--| name    | method | records
--| --------+--------+--------
--| persons | cart   |      12
--| @source as of `sdc_synth_records`
CREATE OR REPLACE TEMP MACRO sdc_synth_model(
    name, source, by := [], method := 'cart', visit := [], joint := [], predictors := NULL, minbucket := 5, smoothing :=
    NULL, groups := 20, exclude := [0], bounds := NULL, bounds_where := NULL, non_negative := [], round_to := NULL,
    redraws := 3, derived := NULL, train_rows := NULL, max_categories := NULL, count_zero := true, weight := NULL,
    near_constant := true, replace := false, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_synth_model(
        name::VARCHAR, source::VARCHAR, seed::VARCHAR, replace, "by"::VARCHAR[], method::VARCHAR, to_json(visit)::VARCHAR,
        to_json(predictors)::VARCHAR, minbucket::VARCHAR, to_json(smoothing)::VARCHAR, groups::VARCHAR, exclude::DOUBLE[],
        to_json(bounds)::VARCHAR, non_negative::VARCHAR[], to_json(round_to)::VARCHAR, redraws::VARCHAR,
        to_json(derived)::VARCHAR, train_rows::VARCHAR, max_categories::VARCHAR, count_zero, joint::VARCHAR[],
        to_json(bounds_where)::VARCHAR, weight::VARCHAR, near_constant));

--| sdc_drop_synth_model(name) -> TABLE
--| Takes a stored model of synthetic records away.
--|
--| @arg name VARCHAR: the model
--| @column name VARCHAR: the model
--| @example
--| FROM sdc_drop_synth_model('persons');
--| @output
--| name
--| -------
--| persons
--| @source this project

--| sdc_synth_equal_weights(source, weight, by := [], max_rate := NULL, seed := NULL) -> TABLE
--| Survey records drawn again, with replacement and in proportion to their weights, so that all of a stratum weigh the same.
--|
--| As many records of each stratum come back as it has with a weight above 0, each with the stratum's sum of weights divided
--| by their number: totals by stratum stay as they are, and what is learnt from these records needs no weights. With
--| `max_rate` fewer come back where a stratum would have more records than this share of its sum of weights; a stratum
--| too small for one record is an error. The order of the records is nothing to the choice. NULL in `by` is a stratum.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg weight VARCHAR: column of numbers: how many of the population a record stands for
--| @arg by VARCHAR[]: the strata
--| @arg max_rate DOUBLE: largest share of a stratum's population that its records may be, above 0, at most 1
--| @arg seed BIGINT: beside the secret of the connection; without a secret it must be given, and kept
--| @column .. as in `source`: its columns; the weight is DOUBLE
--| @example
--| SELECT region, count(*) AS records, round(sum(weight), 6) AS total
--| FROM sdc_synth_equal_weights('(SELECT *, 10 + age AS weight FROM people)', 'weight', by := ['region'], max_rate := 0.02,
--|     seed := 20240917)
--| GROUP BY region ORDER BY region;
--| @output
--| region | records | total
--| -------+---------+------
--| East   |       1 |  97.0
--| North  |       5 | 273.0
--| South  |       5 | 280.0
--| @source Bowen et al. (2022), PSD, section on the preparation of the records

--| sdc_synth_replicas(original, synthetic, columns := [], small := 3) -> TABLE
--| How many original records have a copy among the synthetic ones, on chosen columns.
--|
--| Values are compared as they are (round them in a query first, if need be); NULL equals NULL. Independent of where the
--| synthetic records come from.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the same of the synthetic records
--| @arg columns VARCHAR[]: what records are compared on; []: all columns that both have
--| @arg small BIGINT: original records are few below this number
--| @column original_records BIGINT: all of them
--| @column synthetic_records BIGINT: all of them
--| @column original_uniques BIGINT: combinations of values that one original record has
--| @column synthetic_uniques BIGINT: combinations of values that one synthetic record has
--| @column recreated BIGINT: original records that have a copy
--| @column recreated_synthetic BIGINT: synthetic records that are a copy
--| @column unique_recreated BIGINT: original uniques that have a copy
--| @column small_recreated BIGINT: original records that have a copy, of combinations that few have
--| @column unique_as_unique BIGINT: original uniques that have one copy
--| @example
--| SELECT recreated, recreated_synthetic, unique_recreated, small_recreated, unique_as_unique
--| FROM sdc_synth_replicas('(SELECT unnest([''a'', ''a'', ''b'', ''c'', ''d'', ''d'', ''d'']) AS v)',
--|     '(SELECT unnest([''a'', ''b'', ''b'', ''c'', ''e'']) AS v)');
--| @output
--| recreated | recreated_synthetic | unique_recreated | small_recreated | unique_as_unique
--| ----------+---------------------+------------------+-----------------+-----------------
--|         4 |                   4 |                2 |               4 |                1
--| @source Bowen et al. (2022), PSD

--| sdc_synth_diversity(synthetic, threshold := 3) -> TABLE
--| Of each column, how many synthetic values came from leaves with few different ones.
--|
--| An intruder who knows the leaf would know such a value.
--|
--| @arg synthetic VARCHAR: records drawn with `details := true`: a table or view, or a query in parentheses
--| @arg threshold BIGINT: fewer different values are few
--| @column variable VARCHAR: the column
--| @column n BIGINT: synthetic values
--| @column low BIGINT: those from leaves with fewer than `threshold` different values
--| @column share_ok DOUBLE: share of the others
--| @example
--| SELECT variable, n, low, round(share_ok, 2) AS share_ok
--| FROM sdc_synth_diversity('(FROM sdc_synth_records(''(SELECT region, sex, age FROM people)'', details := true, seed := 1))');
--| @output
--| variable |  n | low | share_ok
--| ---------+----+-----+---------
--| region   | 12 |   0 |      1.0
--| sex      | 12 |  12 |      0.0
--| age      | 12 |   0 |      1.0
--| @source Bowen et al. (2022), PSD

--| sdc_synth_diversity_records(synthetic, threshold := 3) -> TABLE
--| How many synthetic records have 0, 1, 2, .. values from leaves with few different ones.
--|
--| @arg synthetic VARCHAR: records drawn with `details := true`: a table or view, or a query in parentheses
--| @arg threshold BIGINT: fewer different values are few
--| @column variables BIGINT: number of such values
--| @column records BIGINT: synthetic records that have so many
--| @column percent DOUBLE: of all records
--| @column cumulative DOUBLE: percent that have so many or fewer
--| @example
--| SELECT variables, records, round(percent, 1) AS percent, round(cumulative, 1) AS cumulative
--| FROM sdc_synth_diversity_records(
--|     '(FROM sdc_synth_records(''(SELECT region, sex, age FROM people)'', details := true, seed := 1))');
--| @output
--| variables | records | percent | cumulative
--| ----------+---------+---------+-----------
--|         1 |      12 |   100.0 |      100.0
--| @source Bowen et al. (2022), PSD

--| sdc_synth_moments(original, synthetic, columns := [], weight := NULL) -> TABLE
--| Means, standard deviations and the largest distance of the distribution functions, number by number.
--|
--| NULL, NaN and infinities are left out, and their share is given. `z` is the difference of the means in standard errors
--| of a sample as large as the synthetic one: values far from 0 are no chance.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the same of the synthetic records
--| @arg columns VARCHAR[]: what is compared; []: all numbers that both have
--| @arg weight VARCHAR: column of weights in both, or NULL
--| @column variable VARCHAR: the column
--| @column mean_original DOUBLE: mean
--| @column mean_synthetic DOUBLE: mean
--| @column sd_original DOUBLE: standard deviation
--| @column sd_synthetic DOUBLE: standard deviation
--| @column z DOUBLE: difference of the means in standard errors
--| @column missing_original DOUBLE: share that is left out
--| @column missing_synthetic DOUBLE: share that is left out
--| @column ks DOUBLE: largest distance of the distribution functions (Kolmogorov-Smirnov)
--| @example
--| SELECT variable, mean_original, mean_synthetic, round(z, 2) AS z, ks
--| FROM sdc_synth_moments('(SELECT unnest([1, 2, 3, 4]) AS x)', '(SELECT unnest([2, 2, 3, 4]) AS x)');
--| @output
--| variable | mean_original | mean_synthetic |    z |   ks
--| ---------+---------------+----------------+------+-----
--| x        |           2.5 |           2.75 | 0.39 | 0.25
--| @source Bowen et al. (2022), PSD

--| sdc_synth_correlations(original, synthetic, columns := []) -> TABLE
--| The correlation of every two numbers, in the original and in the synthetic records.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the same of the synthetic records
--| @arg columns VARCHAR[]: what is compared; []: all numbers that both have
--| @column variable VARCHAR: one
--| @column with_variable VARCHAR: the other
--| @column r_original DOUBLE: their correlation; NULL where one is constant
--| @column r_synthetic DOUBLE: the same
--| @column difference DOUBLE: synthetic less original
--| @example
--| SELECT variable, with_variable, round(r_original, 3) AS r_original, round(difference, 3) AS difference
--| FROM sdc_synth_correlations('people', 'people', columns := ['age', 'income']);
--| @output
--| variable | with_variable | r_original | difference
--| ---------+---------------+------------+-----------
--| age      | income        |      0.236 |        0.0
--| @source Bowen et al. (2022), PSD
