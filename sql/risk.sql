-- Disclosure risk: what is pure SQL.

--| sdc_yob_range(event_date, age_low, age_high) -> STRUCT
--| The years of birth that go with an age, or a band of ages, on a date: the first and the last.
--|
--| For linking a file with ages to one with dates of birth. NULL as `age_low` is a band that is open below, NULL as
--| `age_high` one that is open above, and the year is NULL there.
--|
--| @arg event_date DATE: the date on which a person had that age
--| @arg age_low BIGINT: the age, or the lowest of the band
--| @arg age_high BIGINT: the highest of the band
--| @column low BIGINT: the first year
--| @column high BIGINT: the last one
--| @example
--| SELECT sdc_yob_range(DATE '2021-03-01', 30, 30) AS thirty, sdc_yob_range(DATE '2021-03-01', 30, 59) AS band,
--|     sdc_yob_range(DATE '2021-03-01', 90, NULL) AS old;
--| @output
--| thirty                      | band                        | old
--| ----------------------------+-----------------------------+----------------------------
--| {'low': 1990, 'high': 1991} | {'low': 1961, 'high': 1991} | {'low': None, 'high': 1931}
--| @source Zhang et al. (2022), PSD: matching by year of birth
CREATE OR REPLACE MACRO sdc_yob_range(event_date, age_low, age_high) AS
    {'low': year(event_date) - age_high - 1, 'high': year(event_date) - age_low};
