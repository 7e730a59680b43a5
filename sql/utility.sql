-- Utility of protected records: what is pure SQL.

--| sdc_ci_overlap_raw(low_original, high_original, low_synthetic, high_synthetic) -> DOUBLE
--| The share of two confidence intervals that they have in common, averaged over both; negative for a gap between them.
--|
--| Intervals without length: 1 if they are equal, 0.5 for one inside the other, else 0. An interval without bounds and one with
--| bounds have 0.5 in common, which says nothing.
--|
--| @arg low_original DOUBLE: lower limit on the original records
--| @arg high_original DOUBLE: upper limit
--| @arg low_synthetic DOUBLE: lower limit on the synthetic records
--| @arg high_synthetic DOUBLE: upper limit
--| @example
--| SELECT sdc_ci_overlap_raw(0, 1, 0.25, 1.25) AS shifted, sdc_ci_overlap_raw(0, 1, -1, 3) AS wider, sdc_ci_overlap_raw(0, 1, 2, 3) AS apart;
--| @output
--| shifted | wider | apart
--| --------+-------+------
--|    0.75 | 0.625 |  -1.0
--| @source Karr, Kohnen, Oganian, Reiter and Sanil (2006)
CREATE OR REPLACE MACRO sdc_ci_overlap_raw(low_original, high_original, low_synthetic, high_synthetic) AS
    CASE
        WHEN low_original IS NULL OR high_original IS NULL OR low_synthetic IS NULL OR high_synthetic IS NULL THEN NULL
        WHEN low_original > high_original OR low_synthetic > high_synthetic
            THEN error('sdc_ci_overlap: the lower limit of an interval is above the upper one')
        WHEN low_original = high_original AND low_synthetic = high_synthetic
            THEN CASE WHEN low_original = low_synthetic THEN 1.0 ELSE 0.0 END
        WHEN isinf((high_original - low_original)::DOUBLE) AND isinf((high_synthetic - low_synthetic)::DOUBLE) THEN 1.0
        WHEN isinf((high_original - low_original)::DOUBLE) OR isinf((high_synthetic - low_synthetic)::DOUBLE) THEN 0.5
        WHEN low_original = high_original OR low_synthetic = high_synthetic
            THEN CASE WHEN greatest(low_original, low_synthetic) <= least(high_original, high_synthetic)
                THEN 0.5 ELSE 0.0 END
        ELSE (least(high_original, high_synthetic) - greatest(low_original, low_synthetic))::DOUBLE / 2
            * (1.0 / (high_original - low_original)::DOUBLE + 1.0 / (high_synthetic - low_synthetic)::DOUBLE)
    END::DOUBLE;

--| sdc_ci_overlap(low_original, high_original, low_synthetic, high_synthetic) -> DOUBLE
--| As `sdc_ci_overlap_raw`, but 0 for a gap between the intervals, however wide.
--|
--| @arg low_original DOUBLE: lower limit on the original records
--| @arg high_original DOUBLE: upper limit
--| @arg low_synthetic DOUBLE: lower limit on the synthetic records
--| @arg high_synthetic DOUBLE: upper limit
--| @example
--| SELECT sdc_ci_overlap(0, 1, 0.25, 1.25) AS shifted, sdc_ci_overlap(0, 1, 2, 3) AS apart;
--| @output
--| shifted | apart
--| --------+------
--|    0.75 |   0.0
--| @source Karr, Kohnen, Oganian, Reiter and Sanil (2006); Drechsler (2022), PSD
CREATE OR REPLACE MACRO sdc_ci_overlap(low_original, high_original, low_synthetic, high_synthetic) AS
    CASE WHEN low_original IS NOT NULL AND high_original IS NOT NULL AND low_synthetic IS NOT NULL
            AND high_synthetic IS NOT NULL
        THEN greatest(sdc_ci_overlap_raw(low_original, high_original, low_synthetic, high_synthetic), 0.0) END;

--| sdc_unreliable(p, se, n) -> BOOLEAN
--| Whether an estimated proportion is too unreliable to be published, by the rule of the US survey on drug use and health.
--|
--| It is where the relative standard error of -ln(p) (of -ln(1 - p) above a half) exceeds 0.175, where the effective
--| sample p (1 - p) / se^2 is below 68, where n is below 100, or where p is within 0.00005 of 0 or 1.
--|
--| @arg p DOUBLE: the proportion, from 0 to 1
--| @arg se DOUBLE: its standard error
--| @arg n BIGINT: records that it rests on; NULL: not looked at
--| @example
--| SELECT sdc_unreliable(0.032, 0.0281, 500) AS rare, sdc_unreliable(0.789, 0.05, 500) AS few, sdc_unreliable(0.049, 0.0233, 500) AS good;
--| @output
--| rare |  few |  good
--| -----+------+------
--| true | true | false
--| @source Sathe et al. (2022), PSD, and the documentation of the survey
CREATE OR REPLACE MACRO sdc_unreliable(p, se, n) AS
    CASE
        WHEN p IS NULL OR se IS NULL THEN NULL
        WHEN p < 0.00005 OR p > 0.99995 OR coalesce(n < 100, false) THEN true
        WHEN p <= 0.5 AND se / p / -ln(p) > 0.175 THEN true
        WHEN p > 0.5 AND se / (1 - p) / -ln(1 - p) > 0.175 THEN true
        ELSE coalesce(p * (1 - p) / nullif(se * se, 0) < 68, false)
    END;
