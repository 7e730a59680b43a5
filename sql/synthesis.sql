-- Synthesis of tables: what is pure SQL.

--| sdc_interval_overlap(low, high, synthetic_low, synthetic_high, raw := false) -> DOUBLE
--| How far a confidence interval from synthetic data overlaps that from the original data: 1 is the same, 0 is disjoint.
--|
--| The mean of the two shares: of the original interval, and of the synthetic one. An interval that is infinitely wide or
--| infinitely narrow has an overlap of one half, so look at the widths too. NULL where an interval has no width.
--|
--| @arg low DOUBLE: lower end of the interval from the original data
--| @arg high DOUBLE: its upper end
--| @arg synthetic_low DOUBLE: lower end of the interval from synthetic data
--| @arg synthetic_high DOUBLE: its upper end
--| @arg raw BOOLEAN: whether disjoint intervals get a negative number that tells how far apart they are, instead of 0
--| @example
--| SELECT sdc_interval_overlap(0, 2, 1, 3) AS half, sdc_interval_overlap(0, 2, 0, 2) AS same,
--|     sdc_interval_overlap(0, 1, 2, 3) AS disjoint, sdc_interval_overlap(0, 1, 2, 3, raw := true) AS apart;
--| @output
--| half | same | disjoint | apart
--| -----+------+----------+------
--|  0.5 |  1.0 |      0.0 |  -1.0
--| @source Karr et al. (2006); Jackson, Mitra, Francis & Dove (2022)
CREATE OR REPLACE MACRO sdc_interval_overlap(low, high, synthetic_low, synthetic_high, raw := false) AS
    CASE
        WHEN isnan(low::DOUBLE) OR isnan(high::DOUBLE) OR isnan(synthetic_low::DOUBLE) OR isnan(synthetic_high::DOUBLE)
            THEN error('sdc_interval_overlap: an end of an interval is NaN')
        WHEN high < low OR synthetic_high < synthetic_low
            THEN error('sdc_interval_overlap: the upper end of an interval lies below its lower end')
        WHEN low IS NULL OR high IS NULL OR synthetic_low IS NULL OR synthetic_high IS NULL
            OR high = low OR synthetic_high = synthetic_low THEN NULL
        ELSE greatest(CASE WHEN raw THEN '-infinity'::DOUBLE ELSE 0 END,
            0.5::DOUBLE * (least(high, synthetic_high) - greatest(low, synthetic_low))
                * (1 / (high - low)::DOUBLE + 1 / (synthetic_high - synthetic_low)::DOUBLE))
    END;
