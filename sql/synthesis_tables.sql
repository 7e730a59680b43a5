-- Synthesis of tables: the functions that need Python.

--| sdc_synth_table(source, dimensions := [], freq := NULL, model := 'nbi', sigma := NULL, alpha := 0, nu := NULL, m := 1, size := 1, domains := NULL, structural_zeros := NULL, seed := NULL, zeros := false, records := false) -> TABLE
--| Synthetic counts: each cell drawn from a law whose mean is the count of the cell.
--|
--| No model is fitted: `sigma` says how noisy a cell is, `alpha` lets empty cells become positive, `m` how many
--| independent tables are made. What they give away and what they keep, tell `sdc_tau` and `sdc_tune` before anything is
--| drawn. A count depends on the secret, the seed, the categories of its cell and the number of its replicate, and on
--| nothing else: asking again gives the same table. Whoever knows secret and seed can undo it. With alpha = 0, empty cells
--| stay empty and are never made. A NULL category is a category. Rows come chunk by chunk, in no order.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: unit records, or cells with counts
--| @arg dimensions VARCHAR[]: the columns whose combinations are the cells
--| @arg freq VARCHAR: column of the counts; NULL: each row is a record
--| @arg model VARCHAR: 'nbi' (negative binomial), 'poisson', 'pig' (Poisson, inverse Gaussian), 'delaporte', or 'multinomial' (as many records as the original has)
--| @arg sigma DOUBLE: dispersion: a count of n has variance n + sigma n^2 (times (1 - nu)^2 for Delaporte)
--| @arg alpha DOUBLE: mean of an empty cell
--| @arg nu DOUBLE: Delaporte: share of the Poisson part, between 0 and 1
--| @arg m BIGINT: number of synthetic tables
--| @arg size DOUBLE: expected number of records, as a multiple of the original one
--| @arg domains STRUCT of lists: categories by column, e.g. {'sex': ['f', 'm']}; those of the data where a column is left out
--| @arg structural_zeros VARCHAR: condition on the columns of `dimensions` under which a cell cannot exist
--| @arg seed BIGINT: beside the secret of the connection; without a secret it must be given, and kept
--| @arg zeros BOOLEAN: whether cells that became 0 are shown
--| @arg records BOOLEAN: one row for each synthetic record, shuffled, instead of counts
--| @was by: dimensions
--| @was count: freq
--| @column .. as in `source`: the columns of `dimensions`
--| @column replicate BIGINT: 1 to m
--| @column count BIGINT: the synthetic count (not with `records`)
--| @example
--| FROM sdc_synth_table('people', dimensions := ['region', 'sex'], sigma := 0.5, m := 2, seed := 20240917)
--| ORDER BY replicate, region, sex;
--| @output
--| region | sex | replicate | count
--| -------+-----+-----------+------
--| North  | f   |         1 |     1
--| North  | m   |         1 |     5
--| South  | f   |         1 |     4
--| South  | m   |         1 |     2
--| East   | m   |         2 |     1
--| North  | f   |         2 |     3
--| North  | m   |         2 |     1
--| South  | f   |         2 |     7
--| @source Jackson, Mitra, Francis & Dove (2022), PSD; laws as in R package gamlss.dist

--| sdc_draw_count(n, sigma, cell_key, replicate, seed, model := 'nbi', nu := NULL) -> BIGINT
--| One synthetic count: the draw of `sdc_synth_table`, for tables that are made in SQL.
--|
--| The same cell key, replicate and seed give the same number for ever (and under a secret, if the connection has one).
--|
--| @arg n DOUBLE: the mean: the original count, or what it is to be
--| @arg sigma DOUBLE: dispersion; 0 is Poisson
--| @arg cell_key UBIGINT: what identifies the cell, e.g. a hash of its categories
--| @arg replicate BIGINT: number of the replicate
--| @arg seed BIGINT: the seed
--| @arg model VARCHAR: 'nbi', 'poisson', 'pig' or 'delaporte'
--| @arg nu DOUBLE: Delaporte: share of the Poisson part
--| @example
--| SELECT region, sdc_draw_count(count(*), 0.1, md5_number_lower(region), 1, 4711) AS n FROM people
--| GROUP BY region ORDER BY region;
--| @output
--| region | n
--| -------+--
--| East   | 2
--| North  | 4
--| South  | 5
--| @source Jackson, Mitra, Francis & Dove (2022), PSD
CREATE OR REPLACE MACRO sdc_draw_count(n, sigma, cell_key, replicate, seed, model := 'nbi', nu := NULL) AS
    CASE
        WHEN _sdc_with_python('') IS NULL OR n IS NULL OR cell_key IS NULL OR replicate IS NULL THEN NULL
        WHEN (model IN ('poisson', 'nbi', 'pig', 'delaporte')) IS NOT TRUE
            THEN error('sdc_draw_count: model must be one of ''poisson'', ''nbi'', ''pig'', ''delaporte''')
        WHEN (sigma BETWEEN 0 AND 1e6) IS NOT TRUE THEN error('sdc_draw_count: sigma must be a number between 0 and 1e+06')
        WHEN model = 'delaporte' AND (nu > 0 AND nu < 1) IS NOT TRUE THEN error('sdc_draw_count: nu must lie between 0 and 1')
        WHEN seed IS NULL THEN error('sdc_draw_count: a seed must be given')
        WHEN (n BETWEEN 0 AND 1e12) IS NOT TRUE THEN error('sdc_draw_count: n must lie between 0 and 1e+12')
        ELSE _sdc_draw_counts(
            CASE model WHEN 'poisson' THEN 0 WHEN 'nbi' THEN 1 WHEN 'pig' THEN 2 ELSE 3 END::TINYINT, n::DOUBLE,
            sigma::DOUBLE, coalesce(nu, 0)::DOUBLE, cell_key::UBIGINT, replicate::BIGINT, seed::BIGINT, true)
    END;

--| sdc_tau(source, dimensions := [], freq := NULL, cells := NULL, cells_total := NULL, domains := NULL, structural_zeros := NULL, model := 'nbi', sigma := NULL, nu := NULL, alpha := 0, m := 1, size := 1, k := 1, d := 0, method := 'exact') -> TABLE
--| Risk and utility of a synthesis before it is drawn: tau1 to tau4 for every combination of sigma, m, k and d.
--|
--| Take one of all cells at random: f is its original count, F the mean of its m synthetic counts. tau3(1) is the chance
--| that a unique stays one, tau4(1) the chance that what looks like a unique is one. `d` widens the question from F = k to
--| |F - k| <= d, which more than one release needs. The law of F is exact. All cells are those that can exist, empty ones
--| too: every combination of categories of the columns, less the structural zeros, or `cells_total`.
--|
--| @args_of sdc_synth_table
--| @arg source VARCHAR: a table or view, or a query in parentheses: unit records, cells with counts, or a histogram
--| @arg cells VARCHAR: histogram: column that tells how many cells have the count (then without `dimensions`)
--| @arg cells_total BIGINT: number of all cells that can exist, if it does not follow from the data
--| @arg model VARCHAR: 'nbi', 'poisson', 'pig' or 'delaporte'
--| @arg sigma DOUBLE or DOUBLE[]: dispersion
--| @arg nu DOUBLE: Delaporte: share of the Poisson part
--| @arg m BIGINT or BIGINT[]: number of synthetic tables
--| @arg k BIGINT or BIGINT[]: the count that is asked about
--| @arg d DOUBLE or DOUBLE[]: how near to it counts
--| @arg method VARCHAR: 'exact', or 'clt' for the normal approximation of the paper
--| @was by: dimensions
--| @was count: freq
--| @column model VARCHAR: the law
--| @column sigma DOUBLE: its dispersion
--| @column nu DOUBLE: its share of the Poisson part
--| @column alpha DOUBLE: mean of an empty cell
--| @column m BIGINT: number of synthetic tables
--| @column k BIGINT: the count
--| @column d DOUBLE: how near
--| @column tau1 DOUBLE: P(|F - k| <= d)
--| @column tau2 DOUBLE: P(f = k)
--| @column tau3 DOUBLE: P(|F - k| <= d, given f = k)
--| @column tau4 DOUBLE: P(f = k, given |F - k| <= d)
--| @column expected_records DOUBLE: expected number of records of one synthetic table
--| @column sd_records DOUBLE: its standard deviation
--| @column squared_distance DOUBLE: expected sum of (F - f)^2 over all cells
--| @example
--| SELECT sigma, m, d, round(tau3, 4) AS tau3, round(tau4, 4) AS tau4, round(squared_distance, 1) AS distance
--| FROM sdc_tau('people', dimensions := ['region', 'sex'], sigma := [0, 0.5, 2], m := [1, 20], d := 0.5) ORDER BY ALL;
--| @output
--| sigma |  m |   d |   tau3 |   tau4 | distance
--| ------+----+-----+--------+--------+---------
--|   0.0 |  1 | 0.5 | 0.3679 | 0.4669 |     12.0
--|   0.0 | 20 | 0.5 | 0.9815 | 0.9408 |      0.6
--|   0.5 |  1 | 0.5 | 0.2963 | 0.4013 |     26.0
--|   0.5 | 20 | 0.5 | 0.9475 | 0.8683 |      1.3
--|   2.0 |  1 | 0.5 | 0.1925 | 0.3609 |     68.0
--|   2.0 | 20 | 0.5 | 0.8387 | 0.7254 |      3.4
--| @source Jackson, Mitra, Francis & Dove (2022), PSD; exact law of the mean: this project

--| sdc_tune(target, source, dimensions := [], freq := NULL, cells := NULL, cells_total := NULL, domains := NULL, structural_zeros := NULL, parameter := 'sigma', model := 'nbi', sigma := NULL, nu := NULL, alpha := 0, m := 1, size := 1, method := 'exact') -> TABLE
--| The mildest synthesis that keeps a promise, such as "at most half of what looks like a unique is one".
--|
--| Of `sigma` and `alpha` the smallest value is found; of `m` the largest number of releases up to which the promise
--| holds (`<=`), or the smallest that brings as much (`>=`), up to 100. If none does, the error says what can be had.
--|
--| @args_of sdc_tau
--| @arg target VARCHAR: 'tau4(1) <= 0.5', 'tau3(1, 0.5) >= 0.9': one of tau1, tau3, tau4 of k, or of k and d
--| @arg source VARCHAR: as in `sdc_tau`
--| @arg cells VARCHAR: histogram: column that tells how many cells have the count
--| @arg domains STRUCT of lists: categories by column
--| @arg structural_zeros VARCHAR: condition under which a cell cannot exist
--| @arg parameter VARCHAR: what to find: 'sigma', 'alpha' or 'm'
--| @arg sigma DOUBLE: dispersion, where it is not looked for
--| @arg alpha DOUBLE: mean of an empty cell, where it is not looked for
--| @arg m BIGINT: number of synthetic tables, where it is not looked for
--| @arg method VARCHAR: 'exact' or 'clt'
--| @was by: dimensions
--| @was count: freq
--| @column parameter VARCHAR: what was looked for
--| @column value DOUBLE: its value
--| @column target VARCHAR: the target
--| @column attained DOUBLE: the measure with this value
--| @column model VARCHAR: the law
--| @column sigma DOUBLE: dispersion
--| @column alpha DOUBLE: mean of an empty cell
--| @column m BIGINT: number of synthetic tables
--| @example
--| SELECT parameter, round(value, 4) AS value, round(attained, 4) AS attained
--| FROM sdc_tune('tau4(1) <= 0.4', 'people', dimensions := ['region', 'sex']);
--| @output
--| parameter |  value | attained
--| ----------+--------+---------
--| sigma     | 0.5202 |      0.4
--| @source Jackson, Mitra, Francis & Dove (2022), PSD

--| sdc_tau_observed(original, synthetic, dimensions := [], freq := NULL, synthetic_freq := 'count', m := NULL, cells_total := NULL, k := 1, d := 0) -> TABLE
--| The measures of `sdc_tau`, counted in a synthesis that has been drawn.
--|
--| F is the mean over the replicates; a cell that a table does not list is 0 in it.
--|
--| @arg original VARCHAR: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: what `sdc_synth_table` made of it: the columns of `dimensions`, the count, and `replicate` if there are several
--| @arg dimensions VARCHAR[]: the columns that identify a cell, in both
--| @arg freq VARCHAR: column of the original counts; NULL: each row is a record
--| @arg synthetic_freq VARCHAR: column of the synthetic counts
--| @arg m BIGINT: number of synthetic tables; NULL: the largest number in column `replicate`
--| @arg cells_total BIGINT: number of all cells that can exist; NULL: all combinations of the categories of the original
--| @arg k BIGINT or BIGINT[]: the count that is asked about
--| @arg d DOUBLE or DOUBLE[]: how near to it counts
--| @was by: dimensions
--| @was count: freq
--| @was synthetic_count: synthetic_freq
--| @column k BIGINT: the count
--| @column d DOUBLE: how near
--| @column cells BIGINT: number of all cells
--| @column tau1 DOUBLE: share of the cells with |F - k| <= d
--| @column tau2 DOUBLE: share of the cells with f = k
--| @column tau3 DOUBLE: share with |F - k| <= d among the cells with f = k; NULL if there are none
--| @column tau4 DOUBLE: share with f = k among the cells with |F - k| <= d; NULL if there are none
--| @example
--| FROM sdc_tau_observed('people',
--|     '(FROM sdc_synth_table(''people'', dimensions := [''region'', ''sex''], sigma := 0.5, m := 2, seed := 20240917))',
--|     dimensions := ['region', 'sex'], k := [1, 3], d := 1);
--| @output
--| k |   d | cells |               tau1 |               tau2 | tau3 | tau4
--| --+-----+-------+--------------------+--------------------+------+-----
--| 1 | 1.0 |     6 | 0.6666666666666666 | 0.3333333333333333 |  1.0 |  0.5
--| 3 | 1.0 |     6 | 0.3333333333333333 | 0.3333333333333333 |  0.5 |  0.5
--| @source Jackson, Mitra, Francis & Dove (2022), PSD

-- DuckDB 1.5 has an error of its own for values that are not finite, or too large.
CREATE OR REPLACE MACRO _sdc_variance_between(q) AS var_samp(CASE WHEN abs(q::DOUBLE) <= 1e140 THEN q::DOUBLE END);

-- The rules of combination, from the figures of the m analyses.
CREATE OR REPLACE MACRO _sdc_combined(m, q, b, v, t_p, df_p, t_s, level) AS {
    'm': m,
    'q': q,
    'b': b,
    'v': v,
    't_p': t_p,
    'df_p': df_p,
    'low_p': q - _sdc_t_quantile(0.5 + level / 2, df_p) * sqrt(t_p),
    'high_p': q + _sdc_t_quantile(0.5 + level / 2, df_p) * sqrt(t_p),
    't_s': t_s,
    'low_s': q - _sdc_t_quantile(0.5 + level / 2, 'infinity'::DOUBLE) * sqrt(t_s),
    'high_s': q + _sdc_t_quantile(0.5 + level / 2, 'infinity'::DOUBLE) * sqrt(t_s)
};

--| sdc_combine(q, v, sigma := NULL, size := 1, confidence := 0.95, pooled := NULL, proper := false) -> STRUCT
--| One estimate with its interval from the analyses of m synthetic tables.
--|
--| An aggregate: one row for each release, with an estimate and its variance. `t_p = b / m + v`, with Student's t of
--| `df_p = (m - 1) (1 + m v / b)^2` degrees of freedom, holds always; it needs two releases. `t_s = v (size + 1 / m)` holds
--| for a Poisson synthesis, and for records that are all synthetic and learnt from a simple random sample; there it works
--| with a single release; of records drawn with `proper := true` it is `v (size + (1 + size) / m)`. It ignores the noise that
--| sigma adds, so it is NULL unless you say `sigma := 0`. NULL estimates or variances are an error.
--|
--| With `pooled := m` there is one row, the analysis of m releases that were added up or averaged beforehand. Nothing is
--| known of the variance between them, so that only `t_s` is given.
--|
--| @arg q DOUBLE column: the estimate from one release
--| @arg v DOUBLE column: its variance there; of tables that were added up, times m
--| @arg sigma DOUBLE: dispersion of the synthesis; `t_s` is given for 0
--| @arg size DOUBLE: records of one release, as a multiple of the original number
--| @arg confidence DOUBLE: of the intervals
--| @arg pooled BIGINT: number of releases that the one row is an analysis of; NULL: each row is one release
--| @arg proper BOOLEAN: whether the records were drawn with `proper := true`
--| @was level: confidence
--| @column m BIGINT: number of releases
--| @column q DOUBLE: the mean of the estimates
--| @column b DOUBLE: the variance between the releases
--| @column v DOUBLE: the mean of the variances
--| @column t_p DOUBLE: variance of `q` that holds always
--| @column df_p DOUBLE: its degrees of freedom
--| @column low_p DOUBLE: lower end of its interval
--| @column high_p DOUBLE: upper end
--| @column t_s DOUBLE: the smaller variance of `q`, for releases without dispersion
--| @column low_s DOUBLE: lower end of its interval
--| @column high_s DOUBLE: upper end
--| @example
--| SELECT c.m, round(c.q, 4) AS q, round(c.t_p, 4) AS t_p, round(c.df_p, 1) AS df_p, round(c.low_p, 4) AS low,
--|     round(c.high_p, 4) AS high
--| FROM (SELECT sdc_combine(q, v) AS c FROM (VALUES (1.0, 0.04), (1.2, 0.05), (0.9, 0.03)) analyses(q, v));
--| @output
--| m |      q |    t_p | df_p |    low |   high
--| --+--------+--------+------+--------+-------
--| 3 | 1.0333 | 0.0478 | 75.5 | 0.5979 | 1.4687
--| @source Raab, Nowok & Dibben (2016); Reiter (2003); Jackson, Mitra, Francis & Dove (2022)
CREATE OR REPLACE MACRO sdc_combine(q, v, sigma := NULL, size := 1, confidence := 0.95, pooled := NULL, proper := false, level := NULL) AS
    CASE
        WHEN _sdc_with_python('') IS NULL THEN NULL
        WHEN count(*) <> count(q) OR count(*) <> count(v) THEN error('sdc_combine: an estimate or its variance is NULL')
        WHEN (min(v) < 0) THEN error('sdc_combine: a variance is negative')
        WHEN NOT isfinite(max(abs(q))::DOUBLE) OR NOT isfinite(max(v)::DOUBLE)
            THEN error('sdc_combine: an estimate or its variance is NaN or infinite')
        WHEN max(abs(q)) > 1e140 OR max(v) > 1e280 THEN error('sdc_combine: an estimate or its variance is too large')
        WHEN (coalesce(level, confidence) > 0 AND coalesce(level, confidence) < 1) IS NOT TRUE
            THEN error('sdc_combine: confidence must lie between 0 and 1')
        WHEN (size > 0 AND isfinite(size::DOUBLE)) IS NOT TRUE THEN error('sdc_combine: size must be above 0')
        WHEN pooled IS NOT NULL AND count(*) <> 1 THEN error('sdc_combine: pooled is for one row, the only analysis')
        WHEN (pooled >= 1 AND pooled::DOUBLE = round(pooled::DOUBLE)) = false
            THEN error('sdc_combine: pooled must be a whole number, at least 1')
        ELSE _sdc_combined(
            coalesce(pooled::BIGINT, count(*)), avg(q)::DOUBLE, _sdc_variance_between(q), avg(v)::DOUBLE,
            _sdc_variance_between(q) / count(*) + avg(v),
            CASE
                WHEN count(*) < 2 THEN NULL
                WHEN _sdc_variance_between(q) = 0 THEN 'infinity'::DOUBLE
                ELSE (count(*) - 1) * (1 + count(*) * avg(v) / _sdc_variance_between(q)) ** 2
            END,
            CASE
                WHEN sigma = 0
                    THEN avg(v) * (size + (CASE WHEN proper THEN 1 + size ELSE 1 END) / coalesce(pooled::BIGINT, count(*)))
            END,
            coalesce(level, confidence)::DOUBLE)
    END;
