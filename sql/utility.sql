-- Utility of protected records: what is pure SQL.

--| sdc_interval_overlap(low, high, synthetic_low, synthetic_high, raw := false) -> DOUBLE
--| How far a confidence interval from synthetic data overlaps that from the original data: 1 is the same, 0 is disjoint.
--|
--| The share of each interval that they have in common, averaged over both. Intervals without length: 1 if they are equal, 0.5 for
--| one inside the other, else 0. An interval without bounds and one with bounds have 0.5 in common, which says nothing: look at the
--| widths, too. NULL where an end is.
--|
--| @arg low DOUBLE: lower end of the interval from the original data
--| @arg high DOUBLE: its upper end
--| @arg synthetic_low DOUBLE: lower end of the interval from synthetic data
--| @arg synthetic_high DOUBLE: its upper end
--| @arg raw BOOLEAN: whether disjoint intervals get a negative number that tells how far apart they are, instead of 0
--| @was sdc_ci_overlap
--| @was sdc_ci_overlap_raw
--| @example
--| SELECT sdc_interval_overlap(0, 2, 1, 3) AS half, sdc_interval_overlap(0, 2, 0, 2) AS same, sdc_interval_overlap(0, 2, 1, 1) AS point,
--|     sdc_interval_overlap(0, 1, 2, 3) AS disjoint, sdc_interval_overlap(0, 1, 2, 3, raw := true) AS apart;
--| @output
--| half | same | point | disjoint | apart
--| -----+------+-------+----------+------
--|  0.5 |  1.0 |   0.5 |      0.0 |  -1.0
--| @source Karr, Kohnen, Oganian, Reiter and Sanil (2006); Jackson, Mitra, Francis & Dove (2022); Drechsler (2022), PSD
CREATE OR REPLACE MACRO sdc_interval_overlap(low, high, synthetic_low, synthetic_high, raw := false) AS
    CASE
        WHEN isnan(low::DOUBLE) OR isnan(high::DOUBLE) OR isnan(synthetic_low::DOUBLE) OR isnan(synthetic_high::DOUBLE)
            THEN error('sdc_interval_overlap: an end of an interval is NaN')
        WHEN low > high OR synthetic_low > synthetic_high
            THEN error('sdc_interval_overlap: the upper end of an interval lies below its lower end')
        WHEN low IS NULL OR high IS NULL OR synthetic_low IS NULL OR synthetic_high IS NULL THEN NULL
        WHEN low = high AND synthetic_low = synthetic_high THEN CASE WHEN low = synthetic_low THEN 1.0 ELSE 0.0 END
        WHEN isinf((high - low)::DOUBLE) AND isinf((synthetic_high - synthetic_low)::DOUBLE) THEN 1.0
        WHEN isinf((high - low)::DOUBLE) OR isinf((synthetic_high - synthetic_low)::DOUBLE) THEN 0.5
        WHEN low = high OR synthetic_low = synthetic_high
            THEN CASE WHEN greatest(low, synthetic_low) <= least(high, synthetic_high) THEN 0.5 ELSE 0.0 END
        ELSE greatest(CASE WHEN raw THEN '-infinity'::DOUBLE ELSE 0 END,
            (least(high, synthetic_high) - greatest(low, synthetic_low))::DOUBLE / 2
                * (1 / (high - low)::DOUBLE + 1 / (synthetic_high - synthetic_low)::DOUBLE))
    END::DOUBLE;
CREATE OR REPLACE MACRO sdc_ci_overlap(low_original, high_original, low_synthetic, high_synthetic) AS
    sdc_interval_overlap(low_original, high_original, low_synthetic, high_synthetic);
CREATE OR REPLACE MACRO sdc_ci_overlap_raw(low_original, high_original, low_synthetic, high_synthetic) AS
    sdc_interval_overlap(low_original, high_original, low_synthetic, high_synthetic, raw := true);

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
