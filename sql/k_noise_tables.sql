-- k-noise and k-PRAM: numbers blurred so that about k records may stand behind each. All of it needs Python.

--| sdc_k_noise(x, delta, id, seed := 0, low := NULL, high := NULL, round_to := NULL) -> DOUBLE
--| A number with noise that is uniform between -delta and delta, and always the same for one record.
--|
--| With a `delta` above `sdc_k_noise_delta`, more than k / 2 numbers with noise are expected within 2 delta of each point
--| (`sdc_local_k` counts them). It is made of `seed`, `id` and the secret of the connection, if there is one, so that nobody
--| averages it away over releases. Whoever knows the seed, where there is no secret, takes the noise off again: give a large
--| random number and keep it. Two columns with one seed have the same noise, and their difference has none: give each a
--| seed of its own, or take `sdc_k_noise_records`. NULL stays NULL.
--|
--| @arg x DOUBLE: the number
--| @arg delta DOUBLE: how far it may move, at least 0
--| @arg id any type: what identifies the record; its text counts, 42 and '42' are one
--| @arg seed BIGINT: other seeds, other noise
--| @arg low DOUBLE: results below become this, which moves means; NULL: there are none too low
--| @arg high DOUBLE: results above become this; NULL: there are none too high
--| @arg round_to DOUBLE: results are multiples of this, such as 1; NULL: not rounded
--| @example
--| SELECT age, sdc_k_noise(age, 5, person_id, seed := 90125, round_to := 1) AS masked FROM people ORDER BY person_id LIMIT 4;
--| @output
--| age | masked
--| ----+-------
--|  34 |   37.0
--|  51 |   48.0
--|  42 |   43.0
--|  67 |   70.0
--| @source Biswal, Arbuckle & Kulik, Disclosure metrics born from statistical evaluations of data utility
CREATE OR REPLACE MACRO sdc_k_noise(x, delta, id, seed := 0, low := NULL, high := NULL, round_to := NULL) AS
    CASE
        WHEN _sdc_with_python('') IS NULL THEN NULL
        WHEN NOT coalesce(delta::DOUBLE >= 0 AND isfinite(delta::DOUBLE), false)
            THEN error('sdc_k_noise: argument ''delta'' must be a number of at least 0')
        WHEN seed IS NULL OR seed <> seed::BIGINT THEN error('sdc_k_noise: argument ''seed'' must be a whole number')
        WHEN id IS NULL THEN error('sdc_k_noise: argument ''id'' is NULL: noise belongs to a record that is known')
        WHEN round_to <= 0 OR NOT isfinite(round_to::DOUBLE)
            THEN error('sdc_k_noise: argument ''round_to'' must be a number above 0')
        WHEN low > high THEN error('sdc_k_noise: argument ''low'' must not be above ''high''')
        WHEN x IS NULL THEN NULL
        WHEN NOT isfinite(x::DOUBLE) THEN error('sdc_k_noise: argument ''x'' is NaN or infinite')
        ELSE _sdc_bounded(
            _sdc_rounded_to(
                x::DOUBLE + delta::DOUBLE * (2 * _sdc_keyed_chance(md5_number_lower(id::VARCHAR), seed::BIGINT) - 1),
                round_to::DOUBLE),
            low::DOUBLE, high::DOUBLE)
    END;
CREATE OR REPLACE MACRO _sdc_rounded_to(value, unit) AS CASE WHEN unit IS NULL THEN value ELSE round(value / unit) * unit END;
CREATE OR REPLACE MACRO _sdc_bounded(value, low, high) AS least(greatest(value, low), high);

--| sdc_k_noise_records(source, delta := NULL, id := NULL, nulls := 'refuse', seed := 0) -> TABLE
--| Records with k-noise in some of their columns: uniform between -delta and delta.
--|
--| As `sdc_k_noise` for each column, whose name is part of what its noise is made of: columns have noise of their own, and
--| another record, or another column, changes nothing of it.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: the records
--| @arg delta STRUCT of numbers: how far each column may move, such as {'age': 2.5}
--| @arg id VARCHAR: a column that is different in each record, and identifies it; NULL: the values of all columns do
--| @arg nulls VARCHAR: what is done with NULL in a column that is to be changed: `refuse`, or `keep`, it stays NULL
--| @arg seed BIGINT: what the noise is made of, beside the record and the secret of the connection; keep it
--| @column .. as in `source`: its columns, those that are changed as DOUBLE
--| @example
--| SELECT region, round(age, 1) AS age, round(income) AS income
--| FROM sdc_k_noise_records('people', delta := {'age': 2.5, 'income': 300}, id := 'person_id', seed := 90125)
--| ORDER BY person_id LIMIT 3;
--| @output
--| region |  age | income
--| -------+------+-------
--| North  | 35.6 | 2204.0
--| North  | 49.6 | 3658.0
--| North  | 43.0 | 3005.0
--| @source Biswal, Arbuckle & Kulik, Disclosure metrics born from statistical evaluations of data utility

--| sdc_k_noise_delta(source, x := NULL, k := 3) -> TABLE
--| How far k-noise must move numbers at least, so that each point of their range has k originals within 2 delta.
--|
--| `delta` must be larger than `delta_min`, the largest of three terms: half the way from the lowest value to the k-th, half
--| that from the k-th highest to the highest, and a quarter of the longest way from a value to the k-th behind it. Outliers
--| make it large: recode or suppress them first. NULL does not count.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: the records
--| @arg x VARCHAR: the column of numbers
--| @arg k BIGINT: records that each point of the range has within 2 delta
--| @column delta_min DOUBLE: the largest of the terms
--| @column binding_term VARCHAR: which one it is: `lowest`, `between` or `highest`
--| @column n BIGINT: records with a value
--| @column lowest DOUBLE: the term of the lowest values
--| @column between DOUBLE: that of all values; NULL where k is n
--| @column highest DOUBLE: that of the highest values
--| @example
--| FROM sdc_k_noise_delta('(SELECT unnest([24, 26, 27, 30, 31, 33, 38, 41]) AS age)', 'age', k := 3);
--| @output
--| delta_min | binding_term | n | lowest | between | highest
--| ----------+--------------+---+--------+---------+--------
--|       4.0 | highest      | 8 |    1.5 |     2.5 |     4.0
--| @source Biswal, Arbuckle & Kulik, section on k-noise; the smallest delta follows from its condition

--| sdc_k_pram(source, x := NULL, k := NULL, m := NULL, method := 'uniform', id := NULL, nulls := 'refuse', seed := 0) -> TABLE
--| Records whose number becomes another one of the same interval; all intervals are equally long, and keep their records.
--|
--| There are as many intervals as can be where each has `k` records, or `m` of them. With `uniform` all numbers of the interval
--| are equally likely; with `swap` the records of an interval exchange their values by lot, so that all values remain. A
--| number tells its interval, and not more.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: the records
--| @arg x VARCHAR: the column of numbers that is changed
--| @arg k BIGINT: records that each interval has at least; NULL: as `m` makes them
--| @arg m BIGINT: number of intervals; NULL: the most there can be. With `k`, too, it is refused where one has fewer records
--| @arg method VARCHAR: `uniform` or `swap`
--| @arg id VARCHAR: a column that is different in each record, and identifies it; NULL: the values of all columns do
--| @arg nulls VARCHAR: what is done with NULL in `x`: `refuse`, or `keep`, it stays NULL and does not count
--| @arg seed BIGINT: what is drawn, beside the record and the secret of the connection; keep it
--| @column .. as in `source`: its columns, `x` as DOUBLE
--| @column interval_lo DOUBLE: where the interval of the record begins
--| @column interval_hi DOUBLE: where it ends; the last one includes its end
--| @column interval_size BIGINT: records of the interval
--| @example
--| SELECT round(age, 1) AS age, interval_lo, interval_hi, interval_size
--| FROM sdc_k_pram('people', 'age', k := 3, id := 'person_id', seed := 90125) ORDER BY person_id LIMIT 4;
--| @output
--|  age | interval_lo | interval_hi | interval_size
--| -----+-------------+-------------+--------------
--| 27.4 |        25.0 |        39.0 |             5
--| 43.2 |        39.0 |        53.0 |             4
--| 45.7 |        39.0 |        53.0 |             4
--| 54.2 |        53.0 |        67.0 |             3
--| @source Biswal, Arbuckle & Kulik, section on k-PRAM

--| sdc_local_k(original, masked, delta, x := NULL, y := NULL) -> TABLE
--| Among how many records each masked number stands: originals around it, and numbers with k-noise that are expected there.
--|
--| An original at a distance d of the number is expected within 2 delta, after noise between -delta and delta, with
--| probability 1 up to delta, (3 delta - d) / (2 delta) up to 3 delta, and 0 beyond. Give the originals for `masked`, too, to see
--| what noise would do.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses: the records before
--| @arg masked VARCHAR: the same: the records after
--| @arg delta DOUBLE: how far the noise moves numbers
--| @arg x VARCHAR: the column of numbers of `original`; NULL: the only one
--| @arg y VARCHAR: that of `masked`; NULL: that of the same name, or the only one
--| @column .. as in `masked`: its columns
--| @column n_within BIGINT: originals nearer than 2 delta; NULL where the number is
--| @column expected_within DOUBLE: numbers with noise that are expected within 2 delta
--| @column masked_within BIGINT: masked numbers within 2 delta
--| @example
--| FROM sdc_local_k('(SELECT unnest([24, 26, 27, 30, 31, 33, 38, 41]) AS age)', '(SELECT unnest([24, 33, 41]) AS age)', 4)
--| ORDER BY age;
--| @output
--| age | n_within | expected_within | masked_within
--| ----+----------+-----------------+--------------
--|  24 |        5 |            4.75 |             1
--|  33 |        6 |           6.125 |             2
--|  41 |        2 |           2.875 |             2
--| @source Biswal, Arbuckle & Kulik, theorem on k-noise

--| sdc_mask_utility(x, y) -> STRUCT
--| What masking has done to a number, as an aggregate: bias, squared error, and how far its distribution has moved.
--|
--| The theory for k-noise: bias 0, `mse` delta^2 / 3. NULL on either side is left out.
--|
--| @arg x DOUBLE: the number before
--| @arg y DOUBLE: the number after
--| @column n BIGINT: records with both
--| @column bias DOUBLE: mean of y - x
--| @column mse DOUBLE: mean of its square
--| @column rmse DOUBLE: the root of that
--| @column ks DOUBLE: largest distance of the two distribution functions, 0 to 1
--| @example
--| SELECT u.n, u.bias, u.mse, round(u.rmse, 2) AS rmse, round(u.ks, 3) AS ks
--| FROM (SELECT sdc_mask_utility(income, 1000 * round(income / 1000)) AS u FROM people);
--| @output
--|  n |  bias |                mse |   rmse |    ks
--| ---+-------+--------------------+--------+------
--| 12 | -12.5 | 48541.666666666664 | 220.32 | 0.167
--| @source Biswal, Arbuckle & Kulik, section on utility
CREATE OR REPLACE MACRO sdc_mask_utility(x, y) AS
    CASE WHEN _sdc_with_python('') IS NULL THEN NULL ELSE struct_pack(
        n := count(x + y),
        bias := avg(y::DOUBLE - x::DOUBLE),
        mse := avg((y::DOUBLE - x::DOUBLE) ** 2),
        rmse := sqrt(avg((y::DOUBLE - x::DOUBLE) ** 2)),
        ks := _sdc_kolmogorov(
            list(x::DOUBLE) FILTER (x IS NOT NULL AND y IS NOT NULL),
            list(y::DOUBLE) FILTER (x IS NOT NULL AND y IS NOT NULL))
    ) END;
