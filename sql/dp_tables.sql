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
