-- Differentially private statistics. All of it needs Python.

--| sdc_dp_sigma(epsilon, delta, sensitivity := 1, method := 'analytic') -> DOUBLE
--| The standard deviation of the normal noise that makes a query (epsilon, delta)-private.
--|
--| `sensitivity` is how much all numbers of the query together change at most, as root of the sum of squares, between
--| neighbours. 'analytic' is exact: no smaller noise is private. 'zcdp' is the noise whose zero-concentrated privacy is
--| converted to (epsilon, delta), some 9 per cent more; 'classic' the old rule, which is proven for epsilon up to 1 only.
--|
--| @arg epsilon DOUBLE: above 0
--| @arg delta DOUBLE: above 0 and below 1; at most one by the number of persons
--| @arg sensitivity DOUBLE: above 0
--| @arg method VARCHAR: 'analytic', 'zcdp' or 'classic'
--| @example
--| SELECT round(sdc_dp_sigma(1, 1e-5), 4) AS sigma, round(sdc_dp_sigma(1, 1e-5, method := 'zcdp'), 4) AS by_zcdp,
--|     round(sdc_dp_sigma(1, 1e-5, method := 'classic'), 4) AS classic;
--| @output
--|  sigma | by_zcdp | classic
--| -------+---------+--------
--| 3.7306 |  4.0451 |  4.8448
--| @source Balle & Wang (2018), theorem 8; Canonne, Kamath & Steinke (2020); Dwork & Roth (2014), theorem A.1
CREATE OR REPLACE MACRO sdc_dp_sigma(epsilon, delta, sensitivity := 1, method := 'analytic') AS
    CASE
        WHEN _sdc_with_python('') IS NULL OR epsilon IS NULL OR delta IS NULL OR sensitivity IS NULL THEN NULL
        WHEN NOT (epsilon::DOUBLE > 0 AND isfinite(epsilon::DOUBLE))
            THEN error('sdc_dp_sigma: argument ''epsilon'' must be a number above 0')
        WHEN NOT (delta::DOUBLE > 0 AND delta::DOUBLE < 1)
            THEN error('sdc_dp_sigma: argument ''delta'' must be above 0 and below 1: normal noise is never private with delta 0')
        WHEN NOT (sensitivity::DOUBLE > 0 AND isfinite(sensitivity::DOUBLE))
            THEN error('sdc_dp_sigma: argument ''sensitivity'' must be a number above 0')
        WHEN (method IN ('analytic', 'zcdp', 'classic')) IS NOT TRUE
            THEN error('sdc_dp_sigma: argument ''method'' must be ''analytic'', ''zcdp'' or ''classic''')
        WHEN method = 'classic' AND epsilon::DOUBLE > 1
            THEN error('sdc_dp_sigma: argument ''method'': ''classic'' is proven for an epsilon of at most 1')
        ELSE _sdc_dp_sigma(epsilon::DOUBLE, delta::DOUBLE, sensitivity::DOUBLE, method)
    END;

--| sdc_dp_allocation(sensitivities, epsilon, delta, objective := 'volume', weights := NULL, eta := NULL, confidence := 0.95, level := 0.05) -> TABLE
--| How several numbers of one release share its noise, and what that is worth. It reads no data and costs nothing.
--|
--| | `objective` | noise is shared so that |
--| |---|---|
--| | `volume` | the region that holds all true numbers is smallest: each number gets the same part of the cost |
--| | `mse` | the weighted sum of squared errors is smallest |
--| | `lrt` | the test of "as expected" against "by `eta` more" is most powerful: the one number that says most is asked |
--| | `none` | each number gets the same noise |
--|
--| @arg sensitivities DOUBLE[]: by how much each number changes at most, if one record is another
--| @arg epsilon DOUBLE: above 0
--| @arg delta DOUBLE: above 0 and below 1
--| @arg objective VARCHAR: one of the table above
--| @arg weights DOUBLE[]: for `mse`, of each squared error; NULL: all 1
--| @arg eta DOUBLE[]: for `lrt`, and for `power`: by how much each number is more under the alternative
--| @arg confidence DOUBLE: of the region
--| @arg level DOUBLE: of the test
--| @column place BIGINT: of the number, from 1
--| @column sensitivity DOUBLE: as given
--| @column xi DOUBLE: by what the square of the number is rescaled before it gets noise; NULL where it never changes
--| @column noise_sd DOUBLE: the standard deviation of its noise; NULL: it is not asked
--| @column sigma DOUBLE: the noise of the rescaled numbers
--| @column half_axis DOUBLE: half the width of the region in its direction; NULL with `lrt`
--| @column volume DOUBLE: of the region; NULL with `lrt`
--| @column volume_ratio DOUBLE: beside that of `none`; NULL with `lrt`
--| @column power DOUBLE: the chance that the test finds the alternative; NULL without `eta`
--| @example
--| SELECT objective, list(round(noise_sd, 2) ORDER BY place) AS noise_sd, round(any_value(volume_ratio), 3) AS volume_ratio,
--|     round(any_value(power), 3) AS power
--| FROM (SELECT 'none' AS objective, * FROM sdc_dp_allocation([1, 10], 1, 1e-5, 'none', eta := [5, 10])
--|     UNION ALL SELECT 'volume', * FROM sdc_dp_allocation([1, 10], 1, 1e-5, eta := [5, 10])
--|     UNION ALL SELECT 'lrt', * FROM sdc_dp_allocation([1, 10], 1, 1e-5, 'lrt', eta := [5, 10]))
--| GROUP BY objective ORDER BY power;
--| @output
--| @source Shoham & Rinott (2022), PSD, theorems 1 and 2; mean squared error: this project

--| sdc_dp_release(source, counts := [], sums := [], means := [], bounds := NULL, epsilon := NULL, delta := NULL, objective := 'volume', weights := NULL, eta := NULL, expected := NULL, defaults := NULL, neighbours := 'replace', confidence := 0.95) -> TABLE
--| Counts, sums and means of records, released together with normal noise, whose size each has for the purpose.
--|
--| The whole release is (epsilon, delta)-private; `sdc_dp_allocation` says what is gained by `objective`, and by how much
--| noise, before anything is spent. Values are cut off at `bounds`, which everybody may know and nobody has looked up in
--| the data. The noise is drawn by OpenDP on a grid so fine that it behaves as normal noise does, and added in whole
--| numbers: counts have fractions, which may be rounded.
--|
--| The noise cannot be seeded: **every call has other noise and spends epsilon and delta again**, also when the same
--| statement is repeated: store the result. What it costs is written down before the noise is drawn
--| (`sdc_synth_dp_ledger`), and is refused if a budget does not allow it (`sdc_synth_dp_budget`, with a `delta`). What is
--| protected is a record: who has several is protected less. Needs the package opendp: pip install 'sdcduck[dp]'.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: the records
--| @arg counts VARCHAR[]: conditions on its columns, such as ['age >= 65']: how many records they hold for
--| @arg sums VARCHAR[]: columns of numbers to add up
--| @arg means VARCHAR[]: columns of numbers to take the mean of; with `replace` only
--| @arg bounds STRUCT of pairs: the lowest and highest value of each column in `sums` and `means`, such as {'income': [0, 10000]};
--|     beyond them a value counts as the bound
--| @arg epsilon DOUBLE: what the release may cost, above 0
--| @arg delta DOUBLE: what it may cost beside that, above 0 and below 1
--| @arg objective VARCHAR: 'volume', 'mse', 'lrt' or 'none', as in `sdc_dp_allocation`
--| @arg weights DOUBLE[]: for 'mse': of each squared error, counts first, then sums, then means
--| @arg eta DOUBLE[]: for 'lrt', and for `p_value`: by how much each number is more than expected under the alternative
--| @arg expected DOUBLE[]: for `p_value`: what each number is under the hypothesis; NULL: 0
--| @arg defaults STRUCT of numbers: what a NULL or NaN of a column counts as, such as {'income': 0}; else the middle of its bounds
--| @arg neighbours VARCHAR: 'replace' (a record is another; their number is public) or 'add_remove' (a record is there or not)
--| @arg confidence DOUBLE: of the intervals and of the region
--| @column statistic VARCHAR: what the number is
--| @column estimate DOUBLE: the number with its noise; NULL: 'lrt' did not ask it
--| @column noise_sd DOUBLE: the standard deviation of its noise
--| @column ci_low DOUBLE: lower end of the interval for the number without noise
--| @column ci_high DOUBLE: its upper end
--| @column half_axis DOUBLE: half the width, in this direction, of the ellipsoid that holds all numbers together; NULL with 'lrt'
--| @column sensitivity DOUBLE: by how much one record can change the number
--| @column xi DOUBLE: by what its square was rescaled before the noise; NULL where nothing can change it
--| @column sigma DOUBLE: the noise of the rescaled numbers
--| @column p_value DOUBLE: of the likelihood-ratio test of `expected` against `eta` more; NULL without `eta`
--| @example
--| SELECT statistic, round(estimate) AS estimate, round(sensitivity, 2) AS sensitivity, round(noise_sd, 4) AS noise_sd
--| FROM sdc_dp_release('visits', counts := ['ward = ''A'''], sums := ['patient'], bounds := {'patient': [0, 10]},
--|     epsilon := 1e9, delta := 1e-5);
--| @output
--| @source Shoham & Rinott (2022), PSD; Balle & Wang (2018); Canonne, Kamath & Steinke (2020); Mironov (2012); OpenDP

--| sdc_dp_composition(source, delta := 1e-6) -> TABLE
--| What several differentially private releases cost together, by four rules; any of them holds.
--|
--| | `rule` | |
--| |---|---|
--| | `basic` | the sums of epsilon and delta; also where what was released decided what was asked next |
--| | `advanced` | less for many small epsilon, for `delta` more |
--| | `zcdp` | the sum of rho, converted once at `delta` |
--| | `gaussian` | exact, if all have a `ratio`: normal noise and nothing else |
--|
--| It reads no data but the costs: `(FROM sdc_synth_dp_ledger() WHERE data = 'people')` is what has been released. That
--| they were decided beforehand is taken for granted by all rules but `basic`; budgets are counted by that.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: a row a release, with columns of these names:
--|     epsilon, delta (0 if there is none), rho, ratio (sensitivity by sigma of normal noise), times (how often; 1)
--| @arg delta DOUBLE: what the rules other than `basic` may use beside the deltas of the releases, above 0
--| @column rule VARCHAR: one of the table above
--| @column releases BIGINT: how many there are
--| @column epsilon DOUBLE: what they cost; NULL: the rule does not say
--| @column delta DOUBLE: what they cost beside that
--| @column rho DOUBLE: with `zcdp`, the sum
--| @example
--| SELECT rule, releases, round(epsilon, 3) AS epsilon, delta
--| FROM sdc_dp_composition('(SELECT 0.1 AS epsilon, 1000 AS times)', delta := 1e-6);
--| @output
--| @source Dwork et al. (2006); Kairouz, Oh & Viswanath (2015), theorem 3.5; Bun & Steinke (2016); Balle & Wang (2018)

--| sdc_dp_mean_region(source, columns, covariance := NULL, center := NULL, radius := NULL, epsilon := NULL, delta := NULL, confidence := 0.95, clip := true, gamma := NULL) -> TABLE
--| The mean of several columns with normal noise that has the shape of the data, and the region around it.
--|
--| `covariance` is that of the columns; it is taken to be known by everybody, from an older survey say, and never from these
--| data. By it columns are made alike before the noise comes, and turned back behind it. Records farther than `radius`
--| standard deviations from `center` are drawn to that ellipsoid, which is what makes it (epsilon, delta)-private: choose it
--| so that few lie beyond, such as the root of the 0.99 quantile of chi-square. Region and intervals are for the mean of
--| the law that records come from, as if normal; they know of noise and sampling, not of what was cut off.
--|
--| The noise cannot be seeded: **every call spends epsilon and delta again**, as with `sdc_dp_release`. Privacy is that under
--| 'replace': the number of records is public. Needs the package opendp: pip install 'sdcduck[dp]'.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: the records
--| @arg columns VARCHAR[]: columns of numbers, at most 40; a NULL, a NaN or an infinite value counts as the centre
--| @arg covariance DOUBLE[][]: the public covariance matrix of the columns, a list for each
--| @arg center DOUBLE[]: a public number for each column
--| @arg radius DOUBLE: how far from there a record counts, in standard deviations (Mahalanobis distance), above 0
--| @arg epsilon DOUBLE: what the release may cost, above 0
--| @arg delta DOUBLE: what it may cost beside that, above 0 and below 1
--| @arg confidence DOUBLE: of the region and of the intervals
--| @arg clip BOOLEAN: false: nothing is drawn to the radius, as in the paper. This is **not differentially private**: it
--|     protects nobody who lies far out. The ledger has it with an infinite epsilon, which no budget allows
--| @arg gamma DOUBLE: with clip := false: the chance that two records lie farther apart than the noise is made for
--| @column column VARCHAR: of `columns`
--| @column estimate DOUBLE: its mean with noise
--| @column noise_sd DOUBLE: the standard deviation of the noise
--| @column sd DOUBLE: that of noise and sampling together
--| @column ci_low DOUBLE: lower end of the interval
--| @column ci_high DOUBLE: its upper end
--| @column ellipsoid DOUBLE[]: the line of this column in the matrix A: the region has all m with (estimate - m)' A (estimate - m) <= 1
--| @column sigma DOUBLE: the noise in standard deviations of the mean
--| @example
--| SELECT "column", round(estimate) AS estimate, round(noise_sd, 4) AS noise_sd, round(sd, 1) AS sd, round(sigma, 4) AS sigma
--| FROM sdc_dp_mean_region('(SELECT 50 + i % 3 AS age, 2000 + 10 * (i % 5) AS income FROM range(1500) r(i))', ['age', 'income'],
--|     covariance := [[1, 5], [5, 200]], center := [50, 2000], radius := 4, epsilon := 1e6, delta := 1e-5);
--| @output
--| @source Shoham & Rinott (2022), PSD, section 3; clipping to the ellipsoid: this project; OpenDP

--| sdc_dp_mean_region_noise(covariance, records, epsilon, delta, gamma := 0.001, eta := NULL, level := 0.05) -> TABLE
--| What is gained if columns are made alike before their mean gets noise. It reads no data and costs nothing.
--|
--| The figures are those of random differential privacy, where nothing is cut off: `adjusted` as `sdc_dp_mean_region` does it,
--| `raw` with the same noise on each column for the same pairs of records, `raw, own pairs` for the pairs that lie as
--| near to each other in the columns as they stand.
--|
--| @arg covariance DOUBLE[][]: the covariance matrix of the columns, a list for each
--| @arg records BIGINT: how many there are
--| @arg epsilon DOUBLE: above 0
--| @arg delta DOUBLE: above 0 and below 1
--| @arg gamma DOUBLE: the chance that the promise fails, at most 0.5
--| @arg eta DOUBLE[]: for `power`: by how much the means are more than 0 under the alternative
--| @arg level DOUBLE: of that test
--| @column way VARCHAR: 'adjusted', 'raw' or 'raw, own pairs'
--| @column sensitivity DOUBLE: of what gets the noise
--| @column sigma DOUBLE: the noise
--| @column volume_ratio DOUBLE: the volume of the region of `adjusted` beside that of this way
--| @column power DOUBLE: the chance that the test finds the alternative; NULL without `eta`
--| @example
--| SELECT way, round(sigma, 4) AS sigma, round(volume_ratio, 3) AS volume_ratio, round(power, 3) AS power
--| FROM sdc_dp_mean_region_noise([[1, 0.9], [0.9, 1]], 1000, 1, 1e-5, eta := [0.05, -0.05]);
--| @output
--| @source Shoham & Rinott (2022), PSD, theorems 3 and 4; Imhof (1961)
