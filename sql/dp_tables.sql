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
--| FROM sdc_dp_release('people', counts := ['sex = ''f'''], means := ['age', 'income'],
--|     bounds := {'age': [0, 100], 'income': [0, 10000]}, epsilon := 1e9, delta := 1e-5);
--| @output
--| @source Shoham & Rinott (2022), PSD; Balle & Wang (2018); Canonne, Kamath & Steinke (2020); Mironov (2012); OpenDP
