-- Output checking (temporary macros of a connection with sdcduck).

--| sdc_check_table(publication, threshold := 10, max_share := 0.9, zeros := 'fail', dominance := [(2, 90)], p_percent := 10, contributor := NULL, weight := NULL, structural_zeros := NULL, hide := false, freq := NULL) -> TABLE
--| Whether a table of counts and sums may leave: every cell and margin under the rules of output checking.
--|
--| Counts: fewer than the threshold; most of a row, column or other line in one cell, or all of it; cells of nobody. Sums:
--| fewer contributors than the threshold, dominance, p per cent; negative values need a look, since rules take them for
--| positive. Lines along a dimension that has one category only are not looked at.
--|
--| With `hide`, inner cells that fail are NULL, and every margin is the sum of the inner cells that are shown: no
--| difference of published numbers is a hidden one. For margins that stay exact use `sdc_suppress`.
--|
--| @arg publication VARCHAR: the SELECT with GROUP BY, or the name of a stored publication
--| @arg threshold BIGINT: units that a cell needs, at least 2
--| @arg max_share DOUBLE: share of its line that a cell may have
--| @arg zeros VARCHAR: cells of nobody: 'fail', 'review' or 'ignore'; but for 'ignore', combinations that no record has are cells
--| @arg dominance list of pairs (n, k): cells whose n largest contributors have k per cent of the total fail; NULL: no rule
--| @arg p_percent DOUBLE: cells whose second contributor can tell the first one's value to within p per cent fail; NULL: no rule
--| @arg contributor VARCHAR: column or expression of the source, whose a record is; NULL: every record is somebody else's
--| @arg weight VARCHAR: column or expression of the source, the sampling weight
--| @arg structural_zeros VARCHAR: condition on the grouping columns: combinations that everybody knows to be impossible
--| @arg hide BOOLEAN: whether cells that fail are hidden, and margins made of the others
--| @arg freq VARCHAR: a sum(..) column that counts records, where the table was counted before
--| @column .. the columns of the publication
--| @column level VARCHAR: the grouping set of the cell, such as `region x age`, or `total`
--| @column status VARCHAR: 'pass', 'review' or 'fail'; with `hide` also 'hidden'
--| @column why VARCHAR: the measure and the rules
--| @example
--| FROM sdc_check_table('SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)', threshold := 2);
--| @output
--| region | sex  |  n | level        | status | why
--| -------+------+----+--------------+--------+-------------
--| NULL   | NULL | 12 | total        | pass   | NULL
--| East   | NULL |  2 | region       | pass   | NULL
--| North  | NULL |  5 | region       | pass   | NULL
--| South  | NULL |  5 | region       | pass   | NULL
--| NULL   | f    |  6 | sex          | pass   | NULL
--| NULL   | m    |  6 | sex          | pass   | NULL
--| East   | f    |  1 | region x sex | fail   | n: threshold
--| East   | m    |  1 | region x sex | fail   | n: threshold
--| North  | f    |  2 | region x sex | pass   | NULL
--| North  | m    |  3 | region x sex | pass   | NULL
--| South  | f    |  3 | region x sex | pass   | NULL
--| South  | m    |  2 | region x sex | pass   | NULL
--| @source Griffiths et al. (2019), Handbook on Statistical Disclosure Control for Outputs; Domingo-Ferrer (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_check_table(
    publication, threshold := 10, max_share := 0.9, zeros := 'fail', dominance := [(2, 90)], p_percent := 10,
    contributor := NULL, weight := NULL, structural_zeros := NULL, hide := false, freq := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_check_table(
        publication::VARCHAR, threshold, max_share, zeros::VARCHAR, dominance::VARCHAR, p_percent, contributor::VARCHAR,
        weight::VARCHAR, structural_zeros::VARCHAR, hide, freq::VARCHAR));

--| sdc_check_statistics(source, value := NULL, statistics := [], by := [], contributor := NULL, threshold := 10, max_share := 0.9) -> TABLE
--| Whether extremes, percentiles, modes and spreads may leave: how many units stand behind each of them.
--|
--| An extreme needs as many units with that very value as the threshold says; a percentile as many at it or below, and at it
--| or above; a mode as many that have it, and not nearly all; a standard deviation as many degrees of freedom. The values are
--| not shown. Sums and means are for `sdc_check_table`.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg value VARCHAR: the column; NULL values are left out
--| @arg statistics VARCHAR[]: some of 'min', 'max', 'range', 'median', 'mode', 'sd', 'variance', 'p1' to 'p99'
--| @arg by VARCHAR[]: columns of the groups; none: all records are one
--| @arg contributor VARCHAR: column that tells whose a record is; NULL: every record is somebody else's
--| @arg threshold BIGINT: units that are needed, at least 2
--| @arg max_share DOUBLE: share of the units that may have the mode
--| @column .. as in `source`: the columns of `by`
--| @column statistic VARCHAR: as in `statistics`
--| @column units BIGINT: units with a value
--| @column support BIGINT: those behind the statistic
--| @column status VARCHAR: 'pass' or 'fail'
--| @column why VARCHAR: the rule
--| @example
--| FROM sdc_check_statistics('people', value := 'income', statistics := ['median', 'max', 'sd'], threshold := 5);
--| @output
--| statistic | units | support | status | why
--| ----------+-------+---------+--------+------------------
--| median    |    12 |       6 | pass   | NULL
--| max       |    12 |       1 | fail   | too few behind it
--| sd        |    12 |      12 | pass   | NULL
--| @source Griffiths et al. (2019), Handbook on Statistical Disclosure Control for Outputs
CREATE OR REPLACE TEMP MACRO sdc_check_statistics(
    source, value := NULL, statistics := [], "by" := [], contributor := NULL, threshold := 10, max_share := 0.9
) AS TABLE
    SELECT * FROM query(_sdc_plan_check_statistics(
        source::VARCHAR, value::VARCHAR, statistics::VARCHAR[], "by"::VARCHAR[], contributor::VARCHAR, threshold, max_share));

--| sdc_check_submit(name, checked, by, exception := NULL) -> TABLE
--| Runs a check and stores what came of it, for somebody else to decide.
--|
--| The check runs here and now, and its verdict is stored with the call itself. Where a rule of the call is laxer than it is
--| by default, cells are said to be impossible, or a query has more than the records of one table, what passes is for
--| 'review'. A name may be used again until its output is decided.
--|
--| @arg name VARCHAR: of the output
--| @arg checked VARCHAR: one call of `sdc_check_table`, `sdc_check_statistics` or `sdc_check_regression` in parentheses: '(FROM sdc_check_regression(120, 4))'
--| @arg by VARCHAR: who asks, in plain letters (ASCII)
--| @arg exception VARCHAR: why it should go though it does not pass
--| @column name VARCHAR: of the output
--| @column kind VARCHAR: the check
--| @column status VARCHAR: the worst of its cells: 'pass', 'review' or 'fail'; 'review' also for laxer rules
--| @column cells BIGINT: cells, statistics or models in it
--| @column failed BIGINT: those that fail
--| @column review BIGINT: those that somebody has to look at
--| @example
--| FROM sdc_check_submit('wage regression', '(FROM sdc_check_regression(120, 4))', by := 'ann');
--| @output
--| name            | kind                 | status | cells | failed | review
--| ----------------+----------------------+--------+-------+--------+-------
--| wage regression | sdc_check_regression | pass   |     1 |      0 |      0
--| @source this project; ideas of ACRO (Green, Ritchie and Smith 2021)
CREATE OR REPLACE TEMP MACRO sdc_check_submit(name, checked, "by", exception := NULL) AS TABLE
    SELECT * FROM query(_sdc_plan_check_submit(name::VARCHAR, checked::VARCHAR, "by"::VARCHAR, exception::VARCHAR));

--| sdc_check_decide(name, decision, by, reason := NULL) -> TABLE
--| Approves or rejects an output that was submitted: once, by somebody else, and with a reason unless it passed.
--|
--| @arg name VARCHAR: of the output
--| @arg decision VARCHAR: 'approve' or 'reject'
--| @arg by VARCHAR: who decides, in plain letters (ASCII); `Ann` and `ann` are one person
--| @arg reason VARCHAR: why
--| @column name VARCHAR: of the output
--| @column status VARCHAR: what the check said
--| @column decision VARCHAR: what was decided
--| @column by VARCHAR: who decided
--| @example
--| FROM sdc_check_decide('wage regression', 'approve', by := 'bob');
--| @output
--| name            | status | decision | by
--| ----------------+--------+----------+----
--| wage regression | pass   | approve  | bob
--| @source this project; ideas of ACRO (Green, Ritchie and Smith 2021)
CREATE OR REPLACE TEMP MACRO sdc_check_decide(name, decision, "by", reason := NULL) AS TABLE
    SELECT * FROM query(_sdc_plan_check_decide(name::VARCHAR, decision::VARCHAR, "by"::VARCHAR, reason::VARCHAR));

--| sdc_check_drop(name) -> TABLE
--| Takes an output off the record.
--|
--| @arg name VARCHAR: of the output
--| @column name VARCHAR: of the output
--| @example
--| FROM sdc_check_drop('wage regression');
--| @output
--| name
--| ---------------
--| wage regression
--| @source this project
CREATE OR REPLACE TEMP MACRO sdc_check_drop(name) AS TABLE
    SELECT * FROM query(_sdc_plan_check_drop(name::VARCHAR));
