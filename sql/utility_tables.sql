-- Utility of protected records: the functions that need Python (temporary macros of a connection with sdcduck).

--| sdc_accuracy(original, synthetic, columns := [], ways := 2, buckets := NULL, categorical := [], holdout := NULL) -> TABLE
--| How near synthetic records come to the original in the tables of one, two or three columns, on average over all of them.
--|
--| Every column is cut into buckets of the original: numbers, dates and times at its quantiles, categories into the most
--| frequent values and one bucket for all others; NULL is a bucket (NaN counts as NULL, an infinity is outside of all
--| buckets). Of each table the distance is the total variation, half the sum of the differences of the shares. It is 0
--| for no difference and 1 for nothing in common. Chance alone makes a distance too: `tvd_expected`, or with `holdout`,
--| original records that the synthesis has not seen, `tvd_holdout`. All records count, whatever the size.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg ways BIGINT: columns of a table: 1, 2 or 3
--| @arg buckets BIGINT: buckets of a column, at most 250; NULL: 100 for single columns, 10 for pairs, 5 for triples
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg holdout VARCHAR: as `original`: original records that were kept from the synthesis
--| @column ways BIGINT: columns of a table
--| @column margins BIGINT: tables: sets of so many columns
--| @column buckets BIGINT: buckets of a column
--| @column accuracy DOUBLE: 1 - `tvd`
--| @column tvd DOUBLE: mean total variation distance
--| @column l1 DOUBLE: mean sum of the differences, twice `tvd`
--| @column hellinger DOUBLE: mean Hellinger distance
--| @column tvd_max DOUBLE: the largest distance
--| @column worst VARCHAR: the columns that have it
--| @column tvd_expected DOUBLE: what chance would make of `tvd`, were both samples of one population
--| @column tvd_holdout DOUBLE: `tvd` of the holdout; NULL without one
--| @column ratio DOUBLE: `tvd` / `tvd_holdout`: 1 is as good as fresh records
--| @column warning VARCHAR: what makes the number misleading; NULL: nothing that was seen
--| @example
--| SELECT ways, margins, round(accuracy, 3) AS accuracy, worst, round(tvd_expected, 3) AS expected
--| FROM sdc_accuracy('people', '(FROM people WHERE region <> ''East'')', columns := ['region', 'sex', 'age'], buckets := 3);
--| @output
--| ways | margins | accuracy | worst        | expected
--| -----+---------+----------+--------------+---------
--|    2 |       3 |    0.844 | region x age |    0.398
--| @source Platzer (2020), ANITA deliverable D2.2; Platzer and Reutterer (2021), "Holdout-based empirical assessment of mixed-type synthetic data"
CREATE OR REPLACE TEMP MACRO sdc_accuracy(
    original, synthetic, columns := [], ways := 2, buckets := NULL, categorical := [], holdout := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_accuracy(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], ways, buckets, categorical::VARCHAR[],
        holdout::VARCHAR));

--| sdc_accuracy_margins(original, synthetic, columns := [], ways := 2, buckets := NULL, categorical := [], holdout := NULL) -> TABLE
--| The distances of each table of one, two or three columns: which columns, and which relations, were lost.
--|
--| With `ways := 2` the rows are the cells of a heat map of `column_a` by `column_b`.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg ways BIGINT: columns of a table: 1, 2 or 3
--| @arg buckets BIGINT: buckets of a column, at most 250; NULL: 100 for single columns, 10 for pairs, 5 for triples
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg holdout VARCHAR: as `original`: original records that were kept from the synthesis
--| @column column_a VARCHAR: the first column
--| @column column_b VARCHAR: the second; NULL with `ways := 1`
--| @column column_c VARCHAR: the third; NULL with `ways` below 3
--| @column cells BIGINT: combinations of buckets that occur in one of the two
--| @column tvd DOUBLE: total variation distance
--| @column accuracy DOUBLE: 1 - `tvd`
--| @column l1 DOUBLE: sum of the differences of the shares
--| @column mae DOUBLE: their mean over the cells
--| @column max_difference DOUBLE: the largest
--| @column hellinger DOUBLE: Hellinger distance
--| @column tvd_expected DOUBLE: what chance would make of `tvd`, were both samples of one population
--| @column tvd_holdout DOUBLE: `tvd` of the holdout; NULL without one
--| @column ratio DOUBLE: `tvd` / `tvd_holdout`; NULL where that is 0
--| @example
--| SELECT column_a, column_b, cells, round(tvd, 3) AS tvd, round(hellinger, 3) AS hellinger
--| FROM sdc_accuracy_margins('people', '(FROM people WHERE region <> ''East'')', columns := ['region', 'sex', 'age'], buckets := 3)
--| ORDER BY tvd DESC, column_b;
--| @output
--| column_a | column_b | cells |   tvd | hellinger
--| ---------+----------+-------+-------+----------
--| region   | age      |     8 | 0.167 |     0.295
--| region   | sex      |     6 | 0.167 |     0.295
--| sex      | age      |     6 | 0.133 |     0.107
--| @source Platzer (2020), ANITA deliverable D2.2; Platzer and Reutterer (2021), "Holdout-based empirical assessment of mixed-type synthetic data"
CREATE OR REPLACE TEMP MACRO sdc_accuracy_margins(
    original, synthetic, columns := [], ways := 2, buckets := NULL, categorical := [], holdout := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_accuracy_margins(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], ways, buckets, categorical::VARCHAR[],
        holdout::VARCHAR));

--| sdc_accuracy_cells(original, synthetic, columns := [], ways := 2, buckets := NULL, categorical := [], worst := 20) -> TABLE
--| The cells that differ most, over all tables of one, two or three columns.
--|
--| The buckets tell quantiles and values of the original: as confidential as the records.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg ways BIGINT: columns of a table: 1, 2 or 3
--| @arg buckets BIGINT: buckets of a column, at most 250; NULL: 100 for single columns, 10 for pairs, 5 for triples
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg worst BIGINT: how many cells
--| @column column_a VARCHAR: the first column
--| @column bucket_a VARCHAR: its bucket; 'other' for values that have none; NULL for NULL
--| @column column_b VARCHAR: the second; NULL with `ways := 1`
--| @column bucket_b VARCHAR: its bucket
--| @column column_c VARCHAR: the third; NULL with `ways` below 3
--| @column bucket_c VARCHAR: its bucket
--| @column original BIGINT: original records in the cell
--| @column synthetic BIGINT: synthetic ones
--| @column share_original DOUBLE: their share of the original records
--| @column share_synthetic DOUBLE: their share of the synthetic ones
--| @column difference DOUBLE: `share_synthetic` - `share_original`
--| @example
--| SELECT column_a, bucket_a, column_b, bucket_b, original, synthetic, round(difference, 3) AS difference
--| FROM sdc_accuracy_cells('people', '(FROM people WHERE region <> ''East'')', columns := ['region', 'sex', 'age'],
--|     buckets := 3, worst := 3);
--| @output
--| column_a | bucket_a | column_b | bucket_b               | original | synthetic | difference
--| ---------+----------+----------+------------------------+----------+-----------+-----------
--| region   | East     | sex      | f                      |        1 |         0 |     -0.083
--| region   | East     | sex      | m                      |        1 |         0 |     -0.083
--| region   | East     | age      | [25, 36.6666666666667] |        1 |         0 |     -0.083
--| @source Platzer (2020), ANITA deliverable D2.2
CREATE OR REPLACE TEMP MACRO sdc_accuracy_cells(
    original, synthetic, columns := [], ways := 2, buckets := NULL, categorical := [], worst := 20
) AS TABLE
    SELECT * FROM query(_sdc_plan_accuracy_cells(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], ways, buckets, categorical::VARCHAR[], worst));

--| sdc_pmse(original, synthetic, columns := [], model := 'logit', interactions := 0, expected_by := NULL, permutations := 50, ccp_alpha := 0.0001, categorical := [], special := NULL, seed := NULL) -> TABLE
--| Can a model tell synthetic records from original ones? The propensity mean squared error, with what a right synthesis would have.
--|
--| Two numbers are called S_pMSE in the literature: `pmse_ratio` (synthpop from 1.7: 1 is right) and `pmse_z` (Snoke et al.: 0 is
--| right). Both suppose records drawn from a model fitted to the original; two samples of a population come to a ratio of 2 (of
--| equal sizes), a sample of a share f of the original itself to 1 - f. A model sees what it can express: the logistic one
--| sees means, with `interactions` covariances; never rely on one model. NULL in a category is a level, in a number 0 with an
--| indicator (as are `special` values, each); NaN and infinities count as NULL.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg model VARCHAR: 'logit' (logistic regression), or 'tree' (a classification tree)
--| @arg interactions BIGINT: 1: with the products of every two variables; 2: of every three too
--| @arg expected_by VARCHAR: 'analytic' (of 'logit'), 'permutation' or 'none'; NULL: 'analytic' for 'logit', 'permutation' for 'tree'
--| @arg permutations BIGINT: how often records are mixed for expected_by := 'permutation'
--| @arg ccp_alpha DOUBLE: 'tree': what a split must gain in Gini impurity; results depend on it: try several
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg special STRUCT of lists: numbers that are codes, e.g. {'income': [-8]}
--| @arg seed BIGINT: of the permutations
--| @column model VARCHAR: as asked for
--| @column original BIGINT: original records
--| @column synthetic BIGINT: synthetic ones
--| @column parameters BIGINT: of 'logit', without aliased ones; NULL for a tree
--| @column pmse DOUBLE: mean squared distance of the scores from the synthetic share c; from 0 to c (1 - c)
--| @column expected DOUBLE: its mean, were the synthesis right
--| @column deviation DOUBLE: its standard deviation
--| @column pmse_ratio DOUBLE: `pmse` / `expected`; NULL where no permuted tree has a split
--| @column pmse_z DOUBLE: (`pmse` - `expected`) / `deviation`
--| @column specks DOUBLE: largest distance of the distributions of the scores
--| @column po50 DOUBLE: per cent of the records told rightly, less 50
--| @column u DOUBLE: Mann and Whitney's statistic of the scores
--| @column no_split BIGINT: permutations whose tree has no split; NULL without permutations
--| @column warning VARCHAR: what makes the numbers misleading; NULL: nothing that was seen
--| @example
--| SELECT model, parameters, round(pmse, 4) AS pmse, round(pmse_ratio, 2) AS ratio, round(pmse_z, 2) AS z, round(specks, 2) AS specks
--| FROM sdc_pmse('people', '(SELECT region, sex, age + 5 AS age FROM people)');
--| @output
--| model | parameters |   pmse | ratio |     z | specks
--| ------+------------+--------+-------+-------+-------
--| logit |          5 | 0.0097 |  0.46 | -0.76 |   0.17
--| @source Snoke, Raab, Nowok, Dibben and Slavkovic (2018); Drechsler (2022), PSD; R package synthpop; SPECKS: Bowen, Liu and Su (2021)
CREATE OR REPLACE TEMP MACRO sdc_pmse(
    original, synthetic, columns := [], model := 'logit', interactions := 0, expected_by := NULL, permutations := 50, ccp_alpha
    := 0.0001, categorical := [], special := NULL, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_pmse(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], model::VARCHAR, interactions, expected_by::VARCHAR,
        permutations, ccp_alpha::DOUBLE, categorical::VARCHAR[], to_json(special)::VARCHAR, seed::VARCHAR));

--| sdc_utility_tables(original, synthetic, columns := [], ways := 2, groups := 5, categorical := [], special := NULL) -> TABLE
--| Every table of one, two or three columns, with the measures that synthpop prints.
--|
--| Numbers are cut at quantiles of both tables together; NULL and `special` values are groups of their own. A `pmse_ratio` under 3
--| is good, over 10 poor. `specks` is also the total variation distance, and half of MabsDD.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg ways BIGINT: columns of a table: 1, 2 or 3
--| @arg groups BIGINT: groups of a column of numbers or dates; NULL: each value by itself
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg special STRUCT of lists: numbers that are codes, e.g. {'income': [-8]}
--| @column column_a VARCHAR: the first column
--| @column column_b VARCHAR: the second; NULL with `ways := 1`
--| @column column_c VARCHAR: the third; NULL with `ways` below 3
--| @column cells BIGINT: cells that occur in one of the two
--| @column df BIGINT: degrees of freedom, one less
--| @column vw DOUBLE: Voas and Williamson's sum of squares: about `df` where the synthesis is right
--| @column pmse DOUBLE: propensity mean squared error of a saturated model
--| @column pmse_ratio DOUBLE: over what a right synthesis has: `vw` / `df`
--| @column pmse_z DOUBLE: standardised: (`vw` - `df`) / sqrt(2 `df`)
--| @column ft DOUBLE: Freeman and Tukey's statistic
--| @column jsd DOUBLE: Jensen-Shannon divergence, in bits
--| @column g DOUBLE: likelihood ratio over the cells that both have; NULL for fewer than two
--| @column g_df BIGINT: its degrees of freedom
--| @column specks DOUBLE: largest distance of the distributions of the propensity scores
--| @column wmabsdd DOUBLE: absolute differences over their expectation, summed
--| @column hellinger DOUBLE: Hellinger (Bhattacharyya) distance
--| @column u DOUBLE: Mann and Whitney's statistic of the propensity scores
--| @example
--| SELECT column_a, column_b, cells, round(vw, 3) AS vw, round(pmse_ratio, 3) AS ratio, round(specks, 3) AS specks
--| FROM sdc_utility_tables('people', '(FROM people WHERE region <> ''East'')', columns := ['region', 'sex', 'age'], groups := 3);
--| @output
--| column_a | column_b | cells |    vw | ratio | specks
--| ---------+----------+-------+-------+-------+-------
--| region   | sex      |     6 | 3.361 | 0.672 |  0.167
--| region   | age      |     8 | 3.361 |  0.48 |  0.167
--| sex      | age      |     6 | 0.896 | 0.179 |  0.133
--| @source Raab (2022), PSD; Raab, Nowok and Dibben (2021); R package synthpop
CREATE OR REPLACE TEMP MACRO sdc_utility_tables(
    original, synthetic, columns := [], ways := 2, groups := 5, categorical := [], special := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_utility_tables(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], ways, groups, categorical::VARCHAR[],
        to_json(special)::VARCHAR));

--| sdc_utility_columns(original, synthetic, columns := [], groups := 5, categorical := [], special := NULL) -> TABLE
--| Column by column: groups, distribution functions, missing values, spikes, and values that cannot be.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg groups BIGINT: groups of a column of numbers or dates; NULL: each value by itself
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg special STRUCT of lists: numbers that are codes, e.g. {'income': [-8]}; they are left out of `ks` and `outside`
--| @column column_name VARCHAR: the column
--| @column kind VARCHAR: 'number', 'time' or 'category'
--| @column pmse_ratio DOUBLE: of the table of its groups; NULL where there is one only
--| @column df BIGINT: groups that occur, less one
--| @column ks DOUBLE: largest distance of the distribution functions (Kolmogorov-Smirnov); NULL for categories
--| @column ks_at VARCHAR: where it is
--| @column ks_p DOUBLE: asymptotic p-value of two independent samples
--| @column null_original DOUBLE: share of NULL (or NaN) in the original
--| @column null_synthetic DOUBLE: in the synthetic
--| @column mode_original DOUBLE: share of the most frequent value of the original
--| @column mode_synthetic DOUBLE: share of that value in the synthetic
--| @column outside BIGINT: synthetic values below the least or above the largest original one
--| @column negative BIGINT: negative synthetic values, where the original has none
--| @column warning VARCHAR: what makes the numbers misleading; NULL: nothing that was seen
--| @example
--| SELECT column_name, round(pmse_ratio, 2) AS ratio, round(ks, 2) AS ks, ks_at, outside, warning
--| FROM sdc_utility_columns('people', '(SELECT region, age, 2 * income - 6000 AS income FROM people)', groups := 3);
--| @output
--| column_name | ratio |   ks | ks_at | outside | warning
--| ------------+-------+------+-------+---------+---------------------------------------------
--| region      |   0.0 | NULL | NULL  |    NULL | NULL
--| age         |   0.0 |  0.0 | 25    |       0 | NULL
--| income      |  12.0 | 0.67 | 600   |       9 | negative values, where the original has none
--| @source Drechsler (2022), PSD; R package synthpop
CREATE OR REPLACE TEMP MACRO sdc_utility_columns(
    original, synthetic, columns := [], groups := 5, categorical := [], special := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_utility_columns(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], groups, categorical::VARCHAR[],
        to_json(special)::VARCHAR));

--| sdc_roc(original, synthetic, columns := [], ways := 1, groups := NULL, categorical := []) -> TABLE
--| Ratio of counts: the smaller share of a cell over the larger, on average over the cells of a table.
--|
--| Rare cells count as much as common ones. A cell that is empty in both counts as 1 in `roc` and not at all in
--| `roc_nonempty`: look at both. Bin numbers with many values with `groups`, or in a query.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg ways BIGINT: columns of a table: 1, 2 or 3
--| @arg groups BIGINT: groups of a column of numbers or dates; NULL: each value by itself
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @column column_a VARCHAR: the first column
--| @column column_b VARCHAR: the second; NULL with `ways := 1`
--| @column column_c VARCHAR: the third; NULL with `ways` below 3
--| @column cells BIGINT: the levels of the original crossed, and those of the synthetic crossed
--| @column empty BIGINT: those that no record has
--| @column roc DOUBLE: mean of the ratios, from 0 to 1, over all cells
--| @column roc_nonempty DOUBLE: over those that a record has
--| @example
--| SELECT column_a, column_b, cells, empty, round(roc, 3) AS roc, round(roc_nonempty, 3) AS roc_nonempty
--| FROM sdc_roc('people', '(FROM people WHERE age < 60)', columns := ['region', 'sex'], ways := 2);
--| @output
--| column_a | column_b | cells | empty |   roc | roc_nonempty
--| ---------+----------+-------+-------+-------+-------------
--| region   | sex      |     6 |     0 | 0.756 |        0.756
--| @source Little, Elliot and Allmendinger (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_roc(
    original, synthetic, columns := [], ways := 1, groups := NULL, categorical := []
) AS TABLE
    SELECT * FROM query(_sdc_plan_roc(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], ways, groups, categorical::VARCHAR[]));

--| sdc_utility_regression(original, synthetic, outcome := NULL, predictors := [], family := 'gaussian', sets := NULL, intervals_for := 'original', quantile := 1.96, categorical := []) -> TABLE
--| What a regression says on the original and on the synthetic records, coefficient by coefficient.
--|
--| `cio` prefers estimates that are near for their standard errors, the mean of `abs(z)` (MASD) estimates that are near: they may
--| rank files differently. Records with a NULL are left out. A coefficient that the synthetic records do not determine has
--| overlap 0.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic records, of one file or of several
--| @arg outcome VARCHAR: the column to be explained
--| @arg predictors VARCHAR[]: the columns that explain it: numbers, or categories whose first value is the reference
--| @arg family VARCHAR: 'gaussian' (linear regression), or 'binomial' (logistic, for an outcome of 0 and 1 or of truth values)
--| @arg sets VARCHAR: column of `synthetic` that says which synthetic file a record is of; NULL: there is one
--| @arg intervals_for VARCHAR: 'original': synthetic intervals for the estimate of the original; 'population': for that of the population, wider by 1 / number of sets
--| @arg quantile DOUBLE: half the width of an interval, in standard errors
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @column term VARCHAR: the coefficient
--| @column estimate_original DOUBLE: on the original
--| @column se_original DOUBLE: its standard error
--| @column estimate_synthetic DOUBLE: on the synthetic records; the mean over sets
--| @column se_synthetic DOUBLE: its standard error
--| @column ratio_estimate DOUBLE: synthetic / original estimate
--| @column ratio_se DOUBLE: synthetic / original standard error
--| @column cio DOUBLE: overlap of the intervals, 0 for a gap between them
--| @column cio_raw DOUBLE: overlap, negative for a gap
--| @column z DOUBLE: difference over `se_original` / sqrt(sets)
--| @column same_sign BOOLEAN: whether both estimates have the same sign
--| @column warning VARCHAR: what makes the numbers misleading; NULL: nothing that was seen
--| @example
--| SELECT term, round(estimate_original, 1) AS original, round(estimate_synthetic, 1) AS synthetic, round(cio, 3) AS cio, round(z, 2) AS z
--| FROM sdc_utility_regression('people', '(FROM people WHERE income < 9000)', outcome := 'income', predictors := ['age', 'sex']);
--| @output
--| term      | original | synthetic |   cio |     z
--| ----------+----------+-----------+-------+------
--| intercept |   1069.6 |    1021.2 | 0.707 | -0.02
--| age       |     38.0 |      39.1 | 0.707 |  0.02
--| sex=m     |   1695.7 |     622.7 | 0.717 | -0.87
--| @source Karr et al. (2006); Drechsler (2022), PSD; Little, Elliot and Allmendinger (2022), PSD, for separated groups
CREATE OR REPLACE TEMP MACRO sdc_utility_regression(
    original, synthetic, outcome := NULL, predictors := [], family := 'gaussian', sets := NULL, intervals_for := 'original',
    quantile := 1.96, categorical := []
) AS TABLE
    SELECT * FROM query(_sdc_plan_utility_regression(
        original::VARCHAR, synthetic::VARCHAR, outcome::VARCHAR, predictors::VARCHAR[], family::VARCHAR, sets::VARCHAR,
        intervals_for::VARCHAR, quantile::DOUBLE, categorical::VARCHAR[]));

--| sdc_quality(original, protected, keys := [], estimate := 'est', se := 'se', n := NULL, suppressed := NULL, percent := true) -> TABLE
--| Estimates of a protected file beside those of the original: ratios of estimates and of standard errors, and the extreme ones.
--|
--| Give unrounded values. An estimate that is in one of the two only is listed without ratios, as is one suppressed in the original, or
--| one that is 0 there.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: one row an estimate
--| @arg protected VARCHAR: as `original`, with the same columns: the same estimates from the protected file
--| @arg keys VARCHAR[]: the columns that say what is estimated, such as measure, domain and year
--| @arg estimate VARCHAR: the column of estimates
--| @arg se VARCHAR: the column of standard errors
--| @arg n VARCHAR: column of `original` with the records that an estimate rests on; NULL: there is none
--| @arg suppressed VARCHAR: column of truth values of `original`: not published; NULL: there is none
--| @arg percent BOOLEAN: whether estimates are per cent, else proportions; for the reason only
--| @column .. as in `original`: the columns of `keys`
--| @column present_in VARCHAR: 'both', 'original' or 'protected'
--| @column estimate_original DOUBLE: the estimate of the original
--| @column estimate_protected DOUBLE: of the protected file
--| @column se_original DOUBLE: the standard error of the original
--| @column se_protected DOUBLE: of the protected file
--| @column ratio_estimate DOUBLE: protected / original
--| @column ratio_se DOUBLE: protected / original
--| @column extreme BOOLEAN: whether one of the ratios is below 0.5 or above 1.5
--| @column reason VARCHAR: 'low prevalence or few contributors' (under 1 per cent, or of fewer than 1000 records), 'loss of precision' (of an estimate with a relative standard error below 0.3)
--| @example
--| FROM sdc_quality('(SELECT ''nicotine'' AS topic, 0.1 AS est, 0.06 AS se)', '(SELECT ''nicotine'' AS topic, 0.3 AS est, 0.21 AS se)', keys := ['topic']);
--| @output
--| topic    | present_in | estimate_original | estimate_protected | se_original | se_protected |     ratio_estimate | ratio_se | extreme | reason
--| ---------+------------+-------------------+--------------------+-------------+--------------+--------------------+----------+---------+-----------------------------------
--| nicotine | both       |               0.1 |                0.3 |        0.06 |         0.21 | 2.9999999999999996 |      3.5 |    true | low prevalence or few contributors
--| @source Sathe et al. (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_quality(
    original, protected, keys := [], estimate := 'est', se := 'se', n := NULL, suppressed := NULL, percent := true
) AS TABLE
    SELECT * FROM query(_sdc_plan_quality(
        original::VARCHAR, protected::VARCHAR, keys::VARCHAR[], estimate::VARCHAR, se::VARCHAR, n::VARCHAR,
        suppressed::VARCHAR, percent));

--| sdc_quality_summary(original, protected, keys := [], by := [], estimate := 'est', se := 'se', suppressed := NULL) -> TABLE
--| The ratios of `sdc_quality` in short: mean, percentiles, extremes, and the correlation of the two files.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: one row an estimate
--| @arg protected VARCHAR: as `original`, with the same columns: the same estimates from the protected file
--| @arg keys VARCHAR[]: the columns that say what is estimated, such as measure, domain and year
--| @arg by VARCHAR[]: those of the keys for each value of which there is a row; []: one for all
--| @arg estimate VARCHAR: the column of estimates
--| @arg se VARCHAR: the column of standard errors
--| @arg suppressed VARCHAR: column of truth values of `original`: not published; NULL: there is none
--| @column .. as in `original`: the columns of `by`
--| @column quantity VARCHAR: 'estimate' or 'se'
--| @column ratios BIGINT: how many
--| @column mean DOUBLE: their mean
--| @column least DOUBLE: the least
--| @column p10 DOUBLE: a tenth lies below
--| @column median DOUBLE: half lie below
--| @column p90 DOUBLE: nine tenths lie below
--| @column most DOUBLE: the largest
--| @column extreme BIGINT: ratios below 0.5 or above 1.5
--| @column share_extreme DOUBLE: their share
--| @column correlation DOUBLE: of the values themselves, in both files
--| @example
--| SELECT quantity, ratios, round(mean, 3) AS mean, round(p10, 3) AS p10, round(median, 3) AS median, extreme
--| FROM sdc_quality_summary(
--|     '(SELECT region, avg(income) AS est, stddev(income) / sqrt(count(*)) AS se FROM people GROUP BY ALL)',
--|     '(SELECT region, avg(income) AS est, stddev(income) / sqrt(count(*)) AS se FROM people WHERE age < 60 GROUP BY ALL)',
--|     keys := ['region']);
--| @output
--| quantity | ratios |  mean |   p10 | median | extreme
--| ---------+--------+-------+-------+--------+--------
--| estimate |      3 | 0.986 | 0.878 |    1.0 |       0
--| se       |      3 | 0.961 | 0.822 |    1.0 |       0
--| @source Sathe et al. (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_quality_summary(
    original, protected, keys := [], "by" := [], estimate := 'est', se := 'se', suppressed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_quality_summary(
        original::VARCHAR, protected::VARCHAR, keys::VARCHAR[], "by"::VARCHAR[], estimate::VARCHAR, se::VARCHAR,
        suppressed::VARCHAR));

--| sdc_trend_concordance(original, protected, keys := [], period := NULL, estimate := 'est', se := 'se', z := 1.959964) -> TABLE
--| Would a user of the protected file find the same trends? Every period against the last one, tested in both files.
--|
--| The estimates of two periods count as independent.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: one row an estimate
--| @arg protected VARCHAR: as `original`, with the same columns: the same estimates from the protected file
--| @arg keys VARCHAR[]: the columns that say what is estimated, such as measure and domain
--| @arg period VARCHAR: the column of the period
--| @arg estimate VARCHAR: the column of estimates
--| @arg se VARCHAR: the column of standard errors
--| @arg z DOUBLE: from which size on a difference is significant
--| @column .. as in `original`: the columns of `keys` and `period`
--| @column t_original DOUBLE: difference from the last period over its standard error, in the original
--| @column t_protected DOUBLE: in the protected file
--| @column significant_original BOOLEAN: whether it is significant in the original
--| @column significant_protected BOOLEAN: in the protected file
--| @column same_sign BOOLEAN: whether both go the same way
--| @column concordant BOOLEAN: whether both or neither is significant, and if both, they go the same way
--| @example
--| SELECT year, round(t_original, 2) AS t_original, round(t_protected, 2) AS t_protected, concordant
--| FROM sdc_trend_concordance(
--|     '(SELECT * FROM (VALUES (''all'', 2017, 4.6, 0.2), (''all'', 2018, 4.9, 0.2), (''all'', 2019, 5.1, 0.1)) t(who, year, est, se))',
--|     '(SELECT * FROM (VALUES (''all'', 2017, 4.7, 0.3), (''all'', 2018, 4.8, 0.2), (''all'', 2019, 5.2, 0.2)) t(who, year, est, se))',
--|     keys := ['who'], period := 'year');
--| @output
--| year | t_original | t_protected | concordant
--| -----+------------+-------------+-----------
--| 2017 |      -2.24 |       -1.39 |      false
--| 2018 |      -0.89 |       -1.41 |       true
--| @source Sathe et al. (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_trend_concordance(
    original, protected, keys := [], period := NULL, estimate := 'est', se := 'se', z := 1.959964
) AS TABLE
    SELECT * FROM query(_sdc_plan_trend_concordance(
        original::VARCHAR, protected::VARCHAR, keys::VARCHAR[], period::VARCHAR, estimate::VARCHAR, se::VARCHAR,
        z::DOUBLE));

--| sdc_utility_profile(original, synthetic, columns := [], groups := 5, permutations := 20, categorical := [], special := NULL, seed := NULL) -> TABLE
--| Several measures of utility side by side, and where they contradict each other: never release on a single number.
--|
--| Models with more than 400 parameters are left out.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg groups BIGINT: groups of a column of numbers or dates; NULL: each value by itself
--| @arg permutations BIGINT: how often records are mixed for the expectation of the tree
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg special STRUCT of lists: numbers that are codes, e.g. {'income': [-8]}
--| @arg seed BIGINT: of the permutations
--| @column family VARCHAR: 'global', 'columns' or 'pairs'
--| @column measure VARCHAR: as the functions of each measure call it
--| @column value DOUBLE: of the measure
--| @column target DOUBLE: what a right synthesis has; NULL: there is none
--| @column column_names VARCHAR: the columns that have it
--| @column warning VARCHAR: what makes the number misleading, or contradicts it
--| @example
--| SELECT family, measure, round(value, 2) AS value, target, column_names
--| FROM sdc_utility_profile('people', '(SELECT region, sex, age + 5 AS age FROM people)') WHERE measure NOT LIKE '%tree';
--| @output
--| family  | measure                                | value | target | column_names
--| --------+----------------------------------------+-------+--------+-------------
--| global  | pmse_ratio, logit                      |  0.46 |    1.0 | NULL
--| global  | pmse_ratio, logit with products of two |  1.14 |    1.0 | NULL
--| columns | pmse_ratio, worst                      |   0.7 |    1.0 | age
--| columns | ks, worst                              |  0.17 |    0.0 | age
--| columns | plausibility                           |  NULL |   NULL | age
--| pairs   | pmse_ratio, mean                       |  0.99 |    1.0 | NULL
--| pairs   | pmse_ratio, worst                      |  1.85 |    1.0 | sex x age
--| pairs   | total variation, mean                  |  0.28 |    0.0 | NULL
--| pairs   | ratio of counts, mean                  |  0.61 |    1.0 | NULL
--| @source Drechsler (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_utility_profile(
    original, synthetic, columns := [], groups := 5, permutations := 20, categorical := [], special := NULL, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_utility_profile(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], groups, permutations, categorical::VARCHAR[],
        to_json(special)::VARCHAR, seed::VARCHAR));

--| sdc_sample_curve(original, columns := [], metrics := [], keys := [], targets := [], outcomes := [], predictors := [], family := 'binomial', fractions := [], repeats := 10, groups := NULL, categorical := [], seed := NULL) -> TABLE
--| Utility and risk of simple samples of the original, by their size: a yardstick for synthetic files.
--|
--| Samples of samples understate the risk: who is in the original counts as known. The samples of one draw are nested.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg columns VARCHAR[]: the columns to be compared; []: all
--| @arg metrics VARCHAR[]: 'roc1' and 'roc2' (ratio of counts of columns and of pairs), 'cio' (overlap of intervals of regressions), 'utility' (mean of these), 'tcap' (correct attribution above the baseline: a risk); []: all for which there are arguments
--| @arg keys VARCHAR[]: 'tcap': what is known of a person; with three of them, with four, and so on, in this order
--| @arg targets VARCHAR[]: 'tcap': what nobody should learn
--| @arg outcomes VARCHAR[]: 'cio': columns explained by the others and by `predictors`
--| @arg predictors VARCHAR[]: 'cio': the columns that explain them
--| @arg family VARCHAR: 'cio': 'binomial' (outcomes are 0 and 1, or truth values) or 'gaussian'
--| @arg fractions DOUBLE[]: sizes of the samples, as shares; []: 22 from 0.1 per cent to 99 per cent
--| @arg repeats BIGINT: samples of each size
--| @arg groups BIGINT: 'roc1' and 'roc2': groups of a column of numbers or dates; NULL: each value by itself
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg seed BIGINT: of the samples
--| @column fraction DOUBLE: size of the samples, as a share
--| @column metric VARCHAR: the measure
--| @column repeats BIGINT: samples that have it
--| @column mean DOUBLE: their mean
--| @column sd DOUBLE: their standard deviation
--| @example
--| SELECT fraction, metric, round(mean, 2) AS mean
--| FROM sdc_sample_curve('people', columns := ['region', 'sex'], fractions := [0.25, 0.5], seed := 1);
--| @output
--| fraction | metric  | mean
--| ---------+---------+-----
--|     0.25 | roc1    | 0.59
--|      0.5 | roc1    | 0.77
--|     0.25 | roc2    | 0.27
--|      0.5 | roc2    | 0.54
--|     0.25 | utility | 0.43
--|      0.5 | utility | 0.66
--| @source Little, Elliot and Allmendinger (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_sample_curve(
    original, columns := [], metrics := [], keys := [], targets := [], outcomes := [], predictors := [], family :=
    'binomial', fractions := [], repeats := 10, groups := NULL, categorical := [], seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_sample_curve(
        original::VARCHAR, "columns"::VARCHAR[], metrics::VARCHAR[], keys::VARCHAR[], targets::VARCHAR[],
        outcomes::VARCHAR[], predictors::VARCHAR[], family::VARCHAR, fractions::DOUBLE[], repeats, groups,
        categorical::VARCHAR[], seed::VARCHAR));

--| sdc_sample_equivalence(original, synthetic, columns := [], metrics := [], keys := [], targets := [], outcomes := [], predictors := [], family := 'binomial', fractions := [], repeats := 10, groups := NULL, categorical := [], seed := NULL) -> TABLE
--| The simple sample of the original that is as useful as a synthetic file, and the one that is as risky.
--|
--| Good is useful as a large sample and risky as a small one. The curve of `sdc_sample_curve` is made to rise (pooled adjacent
--| violators) before it is read.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the original records
--| @arg synthetic VARCHAR: as `original`: the synthetic or otherwise protected records
--| @arg columns VARCHAR[]: the columns to be compared; []: all that both have
--| @arg metrics VARCHAR[]: 'roc1' and 'roc2' (ratio of counts of columns and of pairs), 'cio' (overlap of intervals of regressions), 'utility' (mean of these), 'tcap' (correct attribution above the baseline: a risk); []: all for which there are arguments
--| @arg keys VARCHAR[]: 'tcap': what is known of a person; with three of them, with four, and so on, in this order
--| @arg targets VARCHAR[]: 'tcap': what nobody should learn
--| @arg outcomes VARCHAR[]: 'cio': columns explained by the others and by `predictors`
--| @arg predictors VARCHAR[]: 'cio': the columns that explain them
--| @arg family VARCHAR: 'cio': 'binomial' (outcomes are 0 and 1, or truth values) or 'gaussian'
--| @arg fractions DOUBLE[]: sizes of the samples, as shares; []: 22 from 0.1 per cent to 99 per cent
--| @arg repeats BIGINT: samples of each size
--| @arg groups BIGINT: 'roc1' and 'roc2': groups of a column of numbers or dates; NULL: each value by itself
--| @arg categorical VARCHAR[]: columns of numbers or dates whose values are categories, such as codes
--| @arg seed BIGINT: of the samples
--| @column metric VARCHAR: the measure
--| @column value DOUBLE: of the synthetic file
--| @column lower DOUBLE: the largest sample that is no better; NULL: below the smallest
--| @column upper DOUBLE: the next larger one; NULL: above the largest
--| @column interpolated DOUBLE: the share in between, by linear interpolation
--| @column violation DOUBLE: by how much the curve was changed to rise
--| @column warning VARCHAR: what makes the numbers misleading; NULL: nothing that was seen
--| @example
--| SELECT metric, round(value, 2) AS value, lower, upper
--| FROM sdc_sample_equivalence('people', '(FROM people WHERE person_id % 2 = 0)', columns := ['region', 'sex'],
--|     fractions := [0.25, 0.5, 0.75], repeats := 20, seed := 1);
--| @output
--| metric  | value | lower | upper
--| --------+-------+-------+------
--| roc1    |  0.79 |   0.5 |  0.75
--| roc2    |  0.56 |  0.25 |   0.5
--| utility |  0.67 |   0.5 |  0.75
--| @source Little, Elliot and Allmendinger (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_sample_equivalence(
    original, synthetic, columns := [], metrics := [], keys := [], targets := [], outcomes := [], predictors := [], family :=
    'binomial', fractions := [], repeats := 10, groups := NULL, categorical := [], seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_sample_equivalence(
        original::VARCHAR, synthetic::VARCHAR, "columns"::VARCHAR[], metrics::VARCHAR[], keys::VARCHAR[],
        targets::VARCHAR[], outcomes::VARCHAR[], predictors::VARCHAR[], family::VARCHAR, fractions::DOUBLE[], repeats,
        groups, categorical::VARCHAR[], seed::VARCHAR));
