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
