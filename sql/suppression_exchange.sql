-- Exchange of suppressed publications. The functions call Python while a statement is bound, so they are temporary.

--| sdc_sdmx(publication, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL, not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL, secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false, protect_intervals := false, after := NULL) -> TABLE
--| A suppressed publication in the terms of SDMX: one row a cell and measure, with observation and confidentiality status.
--|
--| Totals have the code `_T`, categories that are NULL `_U`. OBS_STATUS is `A`, a normal value, `Q`, missing because it is
--| suppressed, or `O`, missing otherwise: the sum of no values. CONF_STATUS is `F`, free, or says why a value is suppressed:
--| `A` small counts (`max_count`, `min_contributors`), `O`, `T` and `G` dominance by one unit, by two, by one or two (rules
--| with n = 1, n = 2, both), `M` other measures of concentration (`p_percent`, `pq`, n > 2), `C` confidential for another
--| reason (`primary_if`), `D` secondary confidentiality. `COPY (FROM sdc_sdmx(..)) TO 'cells.csv'` writes a file.
--|
--| @arg publication VARCHAR: the SELECT, or the name of a stored publication
--| @arg max_count DOUBLE: cells of 1 to so many records are primary
--| @arg protect_zeros BOOLEAN: cells of 0 records are too
--| @arg min_contributors BIGINT: cells with fewer contributors of a value other than 0 are primary
--| @arg dominance list of pairs (n, k): cells whose n largest contributors have k per cent of the total are primary
--| @arg p_percent DOUBLE: cells whose second contributor can tell the first one's value to within p per cent are primary
--| @arg pq pair (p, q): the same, for somebody who knows the others to within q per cent beforehand
--| @arg primary_if VARCHAR: any condition on the columns of a cell, and on `level`; where it is NULL the cell is not primary
--| @arg value VARCHAR: the sum(..) column that the rules on contributors look at; the first one when NULL
--| @arg freq VARCHAR: the count(..) column that `max_count` looks at; the first one when NULL
--| @arg contributor VARCHAR: column or expression of the source, whose a record is; NULL: every record is somebody else's
--| @arg not_counted VARCHAR[]: contributors that do not count for `min_contributors`
--| @arg weight VARCHAR: column or expression of the source, the sampling weight; contributions stay unweighted, totals not
--| @arg k_disclosure BIGINT: protects the difference of every two cells, one within the other, where at most so many persons are left: together these would learn that all others have the attribute (0: everybody would); NULL: off
--| @arg singleton VARCHAR: protection against those who know their own value: none, anySum, anySumNOTprimary, anySum0, subSum, subSpace for counts (NULL: anySum; anySumNOTprimary with `k_disclosure`); none, sub2Sum, num and up to five letters (numttHTT) with a rule on contributors (NULL: numttHTT)
--| @arg forced_if VARCHAR: condition on the columns of a cell, and on `level`: these are published whatever the rules say
--| @arg hidden_if VARCHAR: the same: these are neither published nor protected, and left out of the result
--| @arg secondary_zeros BOOLEAN: whether cells of 0 records may be suppressed; with `k_disclosure` they always may
--| @arg extend_zeros BOOLEAN: whether combinations that no record has are inner cells of 0; NULL: with `protect_zeros` or `k_disclosure`
--| @arg structural_zeros VARCHAR: condition on the grouping columns: combinations that everybody knows to be impossible; they are no inner cells, and an error where they are not empty
--| @arg cost VARCHAR: column or expression of a cell's columns, by which publishing it is worth more
--| @arg improve BOOLEAN: whether to look for a cheaper choice of secondary cells afterwards; it is never less safe
--| @arg protect_intervals BOOLEAN: whether to suppress more until every interval is as wide as its rule wants (see `sdc_audit`)
--| @arg after VARCHAR: name of a publication published earlier; its cells stay as they are, open or suppressed
--| @column .. the grouping columns of the publication, as VARCHAR
--| @column MEASURE VARCHAR: name of the count or sum
--| @column OBS_VALUE BIGINT: the number, NULL where it is suppressed; of a type that holds all the measures
--| @column OBS_STATUS VARCHAR: code of CL_OBS_STATUS
--| @column CONF_STATUS VARCHAR: code of CL_CONF_STATUS
--| @example
--| FROM sdc_sdmx($$
--|     SELECT region, sex, count(*) AS n, sum(income) AS income FROM people GROUP BY GROUPING SETS ((region, sex), (region), ())
--| $$, max_count := 1) WHERE region IN ('_T', 'East');
--| @output
--| region | sex | MEASURE | OBS_VALUE | OBS_STATUS | CONF_STATUS
--| -------+-----+---------+-----------+------------+------------
--| _T     | _T  | n       |        12 | A          | F
--| _T     | _T  | income  |     43150 | A          | F
--| East   | _T  | n       |      NULL | Q          | D
--| East   | _T  | income  |      NULL | Q          | D
--| East   | f   | n       |      NULL | Q          | A
--| East   | f   | income  |      NULL | Q          | A
--| East   | m   | n       |      NULL | Q          | A
--| East   | m   | income  |      NULL | Q          | A
--| @source SDMX cross-domain code lists CL_OBS_STATUS 2.2 and CL_CONF_STATUS 1.2
CREATE OR REPLACE TEMP MACRO sdc_sdmx(
    publication, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL,
    p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL,
    not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL,
    secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false,
    protect_intervals := false, after := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_sdmx(
        publication, k_disclosure::VARCHAR, singleton, forced_if, hidden_if, secondary_zeros, extend_zeros, structural_zeros,
        cost, improve, protect_intervals, after, max_count, protect_zeros, min_contributors::VARCHAR, dominance::VARCHAR,
        p_percent, pq::VARCHAR, primary_if, value, freq, contributor, not_counted::VARCHAR[], weight));

--| sdc_export(publications, file, stencil := true, force := false) -> TABLE
--| Writes published tables into a DuckDB file of their own, with a stencil by which anybody makes further tables of them.
--|
--| The file has the published cells (`P_cells`, for a publication P), the inner cells with a stencil (`P_stencil`), the
--| functions `sdc_is_open`, `sdc_open_count` and `sdc_open_sum`, and a table `readme`. Every DuckDB shell from 1.0 on opens it;
--| nothing in it needs Python. No suppressed number, no count of an inner cell, no record and no key is in it, in no form:
--| the numbers in the stencil table are drawn at random from the published sums alone, and add up to the true number for sums
--| that follow from these. Which rule suppressed a cell is left out, too.
--|
--| Which combinations of the grouping columns occur can be seen in the stencil; where that is a secret, publish with
--| `extend_zeros := true`, or export without the stencil. A measure with more than four decimals is only in the cells.
--| An existing file is replaced only with `force`; a file that could not be written whole is not there.
--|
--| @arg publications VARCHAR: the name of a stored publication that has been published, or a list of names
--| @arg file VARCHAR: the file that is written
--| @arg stencil BOOLEAN: whether to write the stencil and its functions
--| @arg force BOOLEAN: whether to replace a file that is there
--| @column publication VARCHAR: its name
--| @column cells BIGINT: rows of `P_cells`
--| @column inner_cells BIGINT: rows of `P_stencil`
--| @column left_out VARCHAR: measures that the stencil has not
--| @example
--| FROM sdc_publish('tables', $$
--|     SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)
--| $$, max_count := 1);
--| FROM sdc_export('tables', 'public.duckdb', force := true);
--| @output
--| publication | cells | inner_cells | left_out
--| ------------+-------+-------------+---------
--| tables      |    12 |           6 |     NULL
--| @source Langsrud and Bøvelstad (2022); modulo a prime in place of decimals
