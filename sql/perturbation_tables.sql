-- Cell-key perturbation: the functions that need Python.
-- Text arguments are cast, so that a number in the place of a name is refused by name and not as a missing overload.

-- Every macro that calls Python asks this one first: where Python is not there, in a plain DuckDB shell say, the name of the
-- function that DuckDB does not find tells what to do. What it is given last it gives back. A session may have settings for
-- itself alone: with integer_division shares and risks would be 0, with another order ORDER BY means something else.
CREATE OR REPLACE MACRO _sdc_with_python(plan) AS
    CASE
        WHEN current_setting('integer_division')
            THEN error('integer_division is set, by which shares and means are whole numbers: RESET integer_division first')
        ELSE "sdcduck (not loaded: open the file with sdcduck.connect, or call sdcduck.install on this connection)"(
            current_setting('default_order'), current_setting('default_null_order'), plan)
    END;

--| sdc_record_key(unit_id, digits := 8) -> BIGINT
--| The record key of a unit: HMAC-SHA-256 of its identifier under the secret, modulo 10^digits.
--|
--| The secret is given to the connection and never appears in SQL, plans, logs or, unless the custodian says so, the
--| file. The identifier's text counts: 42 and '42' have one key. NULL gives NULL, which every protected aggregate
--| refuses. Compute keys once and store them, as INTEGER for up to 9 digits (see `sdc_add_record_key`).
--|
--| @arg unit_id any type: identifier of the unit (person, household, firm)
--| @arg digits INTEGER: number of decimal digits, 5 to 18
--| @example
--| SELECT unit, sdc_record_key(unit) AS record_key FROM (VALUES (1), (2), (NULL)) people(unit);
--| @output
--| unit | record_key
--| -----+-----------
--|    1 |   82005018
--|    2 |   59926057
--| NULL |       NULL
--| @source R package cellKey draws keys at random; a keyed hash makes them repeatable
CREATE OR REPLACE MACRO sdc_record_key(unit_id, digits := 8) AS
    CASE
        WHEN _sdc_with_python('') IS NULL THEN NULL
        ELSE coalesce(
            _sdc_hmac_keys(unit_id::VARCHAR, CASE WHEN digits = digits::INTEGER THEN digits::INTEGER ELSE NULL END),
            CASE
                WHEN unit_id IS NULL THEN NULL
                WHEN digits BETWEEN 5 AND 18 AND digits = digits::INTEGER THEN error(_sdc_secret_problem('sdc_record_key'))
                ELSE error('sdc_record_key: digits must be between 5 and 18')
            END)
    END;

--| sdc_add_record_key(tbl, unit := NULL, record_key := 'record_key', digits := 8) -> TABLE
--| Adds a stored key column to a table, in one statement and one transaction.
--|
--| The table is changed when the statement runs; EXPLAIN changes nothing. A NULL unit is an error and nothing is
--| written. Rows of one unit get one key. Not for temporary tables, and not part of the caller's transaction. Of a table
--| whose records are on another engine (`sdcduck.connect(.., records=..)`) the column is added there, too: batches of units
--| come to this process and go back with their keys, and the secret stays here.
--|
--| @arg tbl VARCHAR: the table
--| @arg unit VARCHAR: column that identifies the unit
--| @arg record_key VARCHAR: name of the new column
--| @arg digits INTEGER: number of decimal digits, 5 to 18 (up to 9 the column is INTEGER, which is fastest)
--| @column record_key VARCHAR: the new column
--| @column rows BIGINT: rows of the table
--| @column units BIGINT: distinct units; fewer than rows means several rows per unit: use `sdc_count_units`
--| @column shared_keys BIGINT: units whose key another unit has too (harmless: keys need not be unique)
--| @example
--| FROM sdc_add_record_key('visits_without_key', unit := 'patient');
--| @output
--| record_key | rows | units | shared_keys
--| -----------+------+-------+------------
--| record_key |    5 |     3 |           0
--| @source this project

--| sdc_sample(source, parts := 10, part := 1, record_key := 'record_key', seed := NULL) -> TABLE
--| The records of one of several equal parts of a table, drawn by their record keys: a sample, or piece by piece all of it.
--|
--| Of a table whose records are on another engine (`sdcduck.connect(.., records=..)`) the engine looks for them, and they come to
--| this process, 10 million at most: so a method that needs the records themselves gets a sample, and says so. One seed gives the
--| same records on every engine, and all parts together are the table. Records with one key, such as those of one unit, come together.
--| Numbers of a sample are not those of the table: its weight is `parts`, and its errors are those of a sample.
--|
--| Without `seed` the part depends on the secret of the connection. Keep a seed: whoever knows it and the records of a part
--| knows something of their keys.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses; of another engine a table
--| @arg parts INTEGER: into how many parts the records fall, each about as large as the others
--| @arg part INTEGER: which of them, from 1 to `parts`
--| @arg record_key VARCHAR: the key column, of whole numbers from 0 on (see `sdc_add_record_key`)
--| @arg seed BIGINT: for the same parts again; NULL: they are those of the secret
--| @column .. as in `source`: all columns; of another engine without those of types that it does not have alike
--| @example
--| SELECT person_id, region FROM sdc_sample('people', parts := 3, part := 2, seed := 20261129) ORDER BY ALL;
--| @output
--| person_id | region
--| ----------+-------
--|         6 | South
--| @source Carter & Wegman (1979), whose hash functions choose

--| sdc_check_keys(source, record_key := 'record_key', unit := NULL, digits := 8) -> TABLE
--| Counts what would make a protected query fail or mislead: missing keys, keys out of range, units without one key.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses
--| @arg record_key VARCHAR: the key column
--| @arg unit VARCHAR: the column that identifies the unit, if known
--| @arg digits INTEGER: number of decimal digits of the keys
--| @was tbl: source
--| @column rows BIGINT: records
--| @column null_keys BIGINT: records without a key (an error in every protected query)
--| @column keys_out_of_range BIGINT: keys below 0 or of more than `digits` digits
--| @column null_units BIGINT: records without a unit
--| @column units BIGINT: distinct units
--| @column units_with_several_rows BIGINT: if not 0, use `sdc_count_units`
--| @column units_with_several_keys BIGINT: must be 0
--| @column mean_key DOUBLE: mean of key / 10^digits; near 0.5 for good keys
--| @example
--| SELECT rows, null_keys, units, units_with_several_rows FROM sdc_check_keys('visits', unit := 'patient');
--| @output
--| rows | null_keys | units | units_with_several_rows
--| -----+-----------+-------+------------------------
--|    5 |         0 |     3 |                       2
--| @source this project

--| sdc_ptable(D := NULL, V := NULL, js := 0, pstay := NULL, mono := true, optim := 1, kind := 'counts', step := 2, icat := NULL, type := 'all', modified := false, threshold := 0.2, seed := 0) -> TABLE
--| A perturbation table of maximum entropy: for each original value the probabilities of the noise.
--|
--| The noise has mean 0, variance at most V, is at most D in absolute value, never makes a count negative and never
--| leads to a count of 1 to js. Parameters that no law satisfies are an error that says why.
--|
--| @arg D BIGINT: largest absolute noise
--| @arg V DOUBLE: variance of the noise, at most D * D
--| @arg js BIGINT: perturbed counts 1 .. js never appear (counts only)
--| @arg pstay DOUBLE or DOUBLE[]: wanted probability that a count stays as it is, for all rows or row by row, NULL for none (counts only)
--| @arg mono BOOLEAN or BOOLEAN[]: left of 0, larger noise is never likelier
--| @arg optim INTEGER or INTEGER[]: 1 variance at most V (2 and 3 the same), 4 exactly V
--| @arg kind VARCHAR: 'counts' or 'magnitudes'
--| @arg step BIGINT: magnitudes: noise is a multiple of 1 / step
--| @arg icat BIGINT[]: magnitudes: the rows (ratio of value to noise magnitude); must begin with 1 and end with D
--| @arg type VARCHAR: magnitudes: cells it is meant for: 'all', or 'even' or 'odd' numbers of contributors
--| @arg modified BOOLEAN: split and shuffle the intervals, so that the order of the keys tells nothing about the sign
--| @arg threshold DOUBLE: modified: largest probability of one interval
--| @arg seed BIGINT: modified: seed of the shuffle
--| @column i DOUBLE: original count, or ratio
--| @column j DOUBLE: target i + v
--| @column p DOUBLE: probability
--| @column v DOUBLE: noise
--| @column lb DOUBLE: lower bound of the interval of the cell key
--| @column ub DOUBLE: upper bound (exclusive)
--| @column type VARCHAR: 'all', 'even' or 'odd'
--| @example
--| SELECT i, j, p, v, ub FROM sdc_ptable(D := 2, V := 1.05, js := 1, mono := [true, true, false, true]) WHERE i <= 2;
--| @output
--|   i |   j |          p |    v |         ub
--| ----+-----+------------+------+-----------
--| 0.0 | 0.0 |        1.0 |  0.0 |        1.0
--| 1.0 | 0.0 | 0.50833333 | -1.0 | 0.50833333
--| 1.0 | 2.0 |      0.475 |  1.0 | 0.98333333
--| 1.0 | 3.0 | 0.01666667 |  2.0 |        1.0
--| 2.0 | 0.0 | 0.16155827 | -2.0 | 0.16155827
--| 2.0 | 2.0 | 0.55565037 |  0.0 | 0.71720864
--| 2.0 | 3.0 | 0.24246618 |  1.0 | 0.95967482
--| 2.0 | 4.0 | 0.04032518 |  2.0 |        1.0
--| @source Marley & Leaver (2011); Giessing & Tent (2019); parameters as in R package ptable
CREATE OR REPLACE MACRO sdc_ptable(
    D := NULL, V := NULL, js := 0, pstay := NULL, mono := true, optim := 1, kind := 'counts', step := 2, icat := NULL,
    type := 'all', modified := false, threshold := 0.2, seed := 0
) AS TABLE
    SELECT * FROM query(_sdc_with_python(_sdc_plan_double_double_double_double_boolean_double('ptable',
        [pstay::VARCHAR, mono::VARCHAR, optim::VARCHAR, kind::VARCHAR, icat::VARCHAR, type::VARCHAR, seed::VARCHAR],
        D, V, js, step, modified, threshold)));

--| sdc_rounding_ptable(base := 3) -> TABLE
--| A perturbation table that rounds counts to multiples of a base at random, without bias.
--|
--| A count between two multiples becomes the upper one with a probability in proportion to how near it is, else the lower
--| one; a multiple stays. Which of the two it becomes is up to the cell key, so the same set of records is always rounded the
--| same way, in whatever table it stands. Store it under a name: it then serves `sdc_count`, `sdc_count_units` and the guard
--| (`method := 'cell_key'`) as every p-table does.
--|
--| @arg base BIGINT: 2 to 100; 3 and 5 are usual
--| @column i DOUBLE: original count, 0 to `base`; counts above use rows 1 to `base` in turn
--| @column j DOUBLE: what becomes of it, of `i`
--| @column p DOUBLE: probability
--| @column v DOUBLE: noise
--| @column lb DOUBLE: lower bound of the interval of the cell key
--| @column ub DOUBLE: upper bound (exclusive)
--| @column repeat BIGINT: `base`: rows that larger counts use in turn
--| @example
--| SELECT i, j, round(p, 4) AS p FROM sdc_rounding_ptable(3);
--| @output
--|   i |   j |      p
--| ----+-----+-------
--| 0.0 | 0.0 |    1.0
--| 1.0 | 0.0 | 0.6667
--| 1.0 | 3.0 | 0.3333
--| 2.0 | 0.0 | 0.3333
--| 2.0 | 3.0 | 0.6667
--| 3.0 | 3.0 |    1.0
--| @source random rounding, as in official statistics; keyed as in Thompson, Broadfoot & Elazar (2013)
CREATE OR REPLACE MACRO sdc_rounding_ptable(base := 3) AS TABLE
    WITH counts AS (
        SELECT unnest(range(b + 1)) AS i, b AS modulus
        FROM (SELECT CASE
            WHEN (try_cast(base AS BIGINT) = base AND base BETWEEN 2 AND 100) IS TRUE THEN base::BIGINT
            ELSE error('base must be a whole number from 2 to 100')
        END AS b)
    )
    SELECT i::DOUBLE AS i, (i + v)::DOUBLE AS j, (ub - lb)::DOUBLE AS p, v::DOUBLE AS v, lb, ub, repeat
    FROM (
        SELECT i, modulus AS repeat, -(i % modulus) AS v, 0::DOUBLE AS lb, 1 - (i % modulus) / modulus AS ub FROM counts
        UNION ALL
        SELECT i, modulus, modulus - i % modulus, 1 - (i % modulus) / modulus, 1 FROM counts WHERE i % modulus > 0
    )
    ORDER BY i, lb;

--| sdc_store_ptable(name, source, kind := NULL) -> TABLE
--| Stores a p-table under a name, so that `sdc_count` and `sdc_sum` find it, here and in every shell that opens the file.
--|
--| Reads what is there: the columns of `sdc_ptable`, of R packages ptable and cellKey (i, j, p, v, p_int_lb, p_int_ub, type),
--| of tau-Argus (semicolons, p_int_ub only), and of ONS (pcv, ckey, pvalue; record keys 0-255 or 0-4095; counts above 750
--| use rows 501-750 in turn). A table with 'even' and 'odd' rows serves cells by their number of contributors; where there is
--| a column `repeat`, as of `sdc_rounding_ptable`, counts above the last row use so many of the last rows in turn. Zeros must
--| stay zeros. A table of the same name is replaced. The statement writes when it runs, outside the caller's transaction.
--|
--| @arg name VARCHAR: name to store it under
--| @arg source VARCHAR: a table or view, or a query in parentheses, e.g. '(FROM read_csv(''ptable.csv''))'
--| @arg kind VARCHAR: 'counts' or 'magnitudes', where the table does not tell (whole numbers with step 1)
--| @column name VARCHAR: the name
--| @column kind VARCHAR: 'counts' or 'magnitudes'
--| @column rows BIGINT: original values that it has noise for
--| @column intervals BIGINT: intervals in all
--| @column keys BIGINT: the keys run from 0 to this number less 1
--| @column origin VARCHAR: where it came from
--| @example
--| SELECT name, kind, rows, intervals FROM sdc_store_ptable('small', '(FROM sdc_ptable(D := 2, V := 1))');
--| @output
--| name  | kind   | rows | intervals
--| ------+--------+------+----------
--| small | counts |    3 |        10
--| @source R packages ptable and cellKey; tau-Argus manual; ONS cell-key perturbation

--| sdc_drop_ptable(name) -> TABLE
--| Removes a stored p-table.
--|
--| @arg name VARCHAR: its name; the built-in ones stay
--| @column name VARCHAR: the name
--| @example
--| FROM sdc_drop_ptable('small');
--| @output
--| name
--| -----
--| small
--| @source this project

--| sdc_ptable_check(name) -> TABLE
--| Moments of the noise of a stored p-table, row by row.
--|
--| @arg name VARCHAR: name of a stored p-table
--| @column type VARCHAR: 'all', 'even' or 'odd'
--| @column i DOUBLE: original count, or ratio
--| @column p_mean DOUBLE: mean of the noise
--| @column p_var DOUBLE: variance of the noise
--| @column p_sum DOUBLE: sum of the probabilities
--| @column p_stay DOUBLE: probability that the value stays as it is
--| @column ok BOOLEAN: the intervals cover all keys once, nothing becomes negative, and the mean is 0
--| @example
--| SELECT i, p_mean, p_var, p_stay, ok FROM sdc_ptable_check('default');
--| @output
--|   i | p_mean |      p_var |     p_stay |   ok
--| ----+--------+------------+------------+-----
--| 0.0 |    0.0 |        0.0 |        1.0 | true
--| 1.0 |    0.0 | 1.30247408 | 0.38893782 | true
--| 2.0 |    0.0 | 1.99999998 | 0.25827202 | true
--| 3.0 |    0.0 | 1.99999998 | 0.27641118 | true
--| 4.0 | -1e-08 | 1.99999991 |  0.2811651 | true
--| 5.0 |    0.0 | 1.99999996 | 0.28193748 | true
--| @source R package ptable

--| sdc_table_risk_utility(original, protected, dimensions := [], freq := 'n', protected_freq := 'n', value := NULL, protected_value := NULL, by := NULL) -> TABLE
--| What a perturbed table gives away about single units, and what it lost, beside its original.
--|
--| Cells are those of either table; where one side lacks a cell it is 0 there. Measures whose denominator is empty are
--| NULL, but 0 where both tables are all zero. Rule of thumb: a loss U above 0.1 was judged too much for municipalities.
--| How far the counts of single cells moved, tell `sdc_count_utility` and `sdc_noise_distribution`.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses
--| @arg protected VARCHAR: the same cells after perturbation
--| @arg dimensions VARCHAR[]: the columns that identify a cell, in both (NULL matches NULL)
--| @arg freq VARCHAR: column of the original counts
--| @arg protected_freq VARCHAR: column of the perturbed counts
--| @arg value VARCHAR: column of the original sums, if any
--| @arg protected_value VARCHAR: column of the perturbed sums
--| @arg by VARCHAR: one of the dimensions, to break the measures down by
--| @was perturbed: protected
--| @was keys: dimensions
--| @was n: freq
--| @was n_hat: protected_freq
--| @was x: value
--| @was x_hat: protected_value
--| @was level: by
--| @column variable VARCHAR: the column measured
--| @column level VARCHAR: value of the dimension named by `by`
--| @column cells BIGINT: number of cells
--| @column U DOUBLE: sum of |x_hat - x| over sum of |x|
--| @column U_single DOUBLE: the same over cells that are 1 before and after
--| @column R_pert DOUBLE: probability that a published 1 is a true singleton
--| @column R_true DOUBLE: probability that a true singleton is published as 1
--| @column R DOUBLE: (1 - min(1, U_single)) R_pert
--| @column hellinger DOUBLE: Hellinger distance of the two distributions of counts
--| @column hellinger_raw DOUBLE: the same on raw counts, sqrt(1/2 sum (sqrt n - sqrt n_hat)^2)
--| @column false_zero BIGINT: cells that became 0
--| @column false_nonzero BIGINT: cells that were 0
--| @example
--| SELECT cells, round(R_pert, 4) AS R_pert, R_true, round(hellinger, 4) AS hellinger, false_zero
--| FROM sdc_table_risk_utility(
--|     '(SELECT region, sex, count(*) AS n FROM people GROUP BY ALL)',
--|     '(SELECT region, sex, sdc_count(record_key) AS n FROM people GROUP BY ALL)', dimensions := ['region', 'sex']);
--| @output
--| cells | R_pert | R_true | hellinger | false_zero
--| ------+--------+--------+-----------+-----------
--|     6 | 0.6667 |    1.0 |     0.091 |          0
--| @source Geyer et al. (2022)

--| sdc_count_utility(original, protected, dimensions := [], freq := 'n', protected_freq := 'n', exclude_zeros := false) -> TABLE
--| Distances between original and perturbed counts, cell by cell, as quantiles.
--|
--| d1 = |n_hat - n|, d2 = d1 / n (0 where both are 0, infinite where only n is), d3 = |sqrt n_hat - sqrt n|. Quantiles of
--| type 7, rounded to 3 decimals.
--|
--| @args_of sdc_table_risk_utility
--| @arg dimensions VARCHAR[]: the columns that identify a cell, in both
--| @arg exclude_zeros BOOLEAN: leave out cells whose perturbed count is 0
--| @was perturbed: protected
--| @was keys: dimensions
--| @was n: freq
--| @was n_hat: protected_freq
--| @column measure VARCHAR: d1, d2 or d3
--| @column cells BIGINT: number of cells
--| @column min DOUBLE: smallest
--| @column q10 DOUBLE: quantile 0.1
--| @column q20 DOUBLE: quantile 0.2
--| @column q30 DOUBLE: quantile 0.3
--| @column q40 DOUBLE: quantile 0.4
--| @column median DOUBLE: quantile 0.5
--| @column q60 DOUBLE: quantile 0.6
--| @column q70 DOUBLE: quantile 0.7
--| @column q80 DOUBLE: quantile 0.8
--| @column q90 DOUBLE: quantile 0.9
--| @column q95 DOUBLE: quantile 0.95
--| @column q99 DOUBLE: quantile 0.99
--| @column max DOUBLE: largest
--| @column mean DOUBLE: mean
--| @example
--| SELECT measure, cells, median, q90, max, mean FROM sdc_count_utility(
--|     '(SELECT region, sex, count(*) AS n FROM people GROUP BY ALL)',
--|     '(SELECT region, sex, sdc_count(record_key) AS n FROM people GROUP BY ALL)', dimensions := ['region', 'sex']);
--| @output
--| measure | cells | median |   q90 |   max |  mean
--| --------+-------+--------+-------+-------+------
--| d1      |     6 |    0.0 |   1.0 |   1.0 | 0.333
--| d2      |     6 |    0.0 | 0.417 |   0.5 | 0.139
--| d3      |     6 |    0.0 | 0.366 | 0.414 | 0.122
--| @source R package cellKey (ck_cnt_measures)

--| sdc_noise_distribution(original, protected, dimensions := [], freq := 'n', protected_freq := 'n') -> TABLE
--| How often each noise occurs between original and perturbed counts.
--|
--| @args_of sdc_count_utility
--| @was perturbed: protected
--| @was keys: dimensions
--| @was n: freq
--| @was n_hat: protected_freq
--| @column noise BIGINT: n_hat - n
--| @column cells BIGINT: cells with this noise
--| @column share DOUBLE: their share
--| @example
--| SELECT noise, cells, round(share, 4) AS share FROM sdc_noise_distribution(
--|     '(SELECT region, sex, count(*) AS n FROM people GROUP BY ALL)',
--|     '(SELECT region, sex, sdc_count(record_key) AS n FROM people GROUP BY ALL)', dimensions := ['region', 'sex']);
--| @output
--| noise | cells |  share
--| ------+-------+-------
--|    -1 |     2 | 0.3333
--|     0 |     4 | 0.6667
--| @source R package cellKey (ck_cnt_measures)
