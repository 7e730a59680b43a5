-- Table functions of suppression. They call Python while a statement is bound, so they are temporary and live with the
-- connection that sdcduck was installed on.

--| sdc_primary(publication, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL, not_counted := [], weight := NULL, extend_zeros := NULL, structural_zeros := NULL) -> TABLE
--| The cells of a publication with the primary rules applied: which cells may not be published, and why.
--|
--| A publication is a SELECT with grouping columns, count(..) and sum(..), and GROUP BY GROUPING SETS, CUBE or ROLLUP. Rules
--| combine: a cell that one of them marks is primary. The numbers are the original ones: for the custodian's eyes.
--|
--| A contributor's records in a cell are added up first; rules look at their absolute values. Holdings are contributors:
--| `contributor := 'coalesce(holding, firm)'`.
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
--| @arg freq VARCHAR: the count(..) column that `max_count` looks at, or the sum(..) of numbers of records where the table was counted before; the first count(..) when NULL
--| @arg contributor VARCHAR: column or expression of the source, whose a record is; NULL: every record is somebody else's
--| @arg not_counted VARCHAR[]: contributors that do not count for `min_contributors`
--| @arg weight VARCHAR: column or expression of the source, the sampling weight; contributions stay unweighted, totals not
--| @arg extend_zeros BOOLEAN: whether combinations that no record has are inner cells of 0; NULL: as `protect_zeros`
--| @arg structural_zeros VARCHAR: condition on the grouping columns: combinations that everybody knows to be impossible; they are no inner cells, and an error where they are not empty
--| @column .. the columns of the publication
--| @column level VARCHAR: the grouping set of the cell, such as `region x age`, or `total`
--| @column status VARCHAR: 'primary' or 'open'
--| @column why VARCHAR: the rules that mark the cell
--| @column contributors BIGINT: contributors of a value other than 0 (NULL without a rule on contributors)
--| @column contributed DOUBLE: sum of the absolute contributions
--| @column largest DOUBLE[]: the largest ones
--| @example
--| SELECT region, sex, n, income, level, status, why FROM sdc_primary($$
--|     SELECT region, sex, count(*) AS n, sum(income) AS income FROM people GROUP BY CUBE (region, sex)
--| $$, max_count := 2, dominance := [(1, 75)]);
--| @output
--| region | sex  |  n | income | level        | status  | why
--| -------+------+----+--------+--------------+---------+-----------------------------
--| NULL   | NULL | 12 |  43150 | total        | open    | NULL
--| East   | NULL |  2 |  12400 | region       | primary | max_count, dominance (1, 75)
--| North  | NULL |  5 |  13300 | region       | open    | NULL
--| South  | NULL |  5 |  17450 | region       | open    | NULL
--| NULL   | f    |  6 |  16450 | sex          | open    | NULL
--| NULL   | m    |  6 |  26700 | sex          | open    | NULL
--| East   | f    |  1 |   2600 | region x sex | primary | max_count, dominance (1, 75)
--| East   | m    |  1 |   9800 | region x sex | primary | max_count, dominance (1, 75)
--| North  | f    |  2 |   4900 | region x sex | primary | max_count
--| North  | m    |  3 |   8400 | region x sex | open    | NULL
--| South  | f    |  3 |   8950 | region x sex | open    | NULL
--| South  | m    |  2 |   8500 | region x sex | primary | max_count
--| @source Langsrud and Bøvelstad (2022), section 2; Willenborg and de Waal (2001)
CREATE OR REPLACE TEMP MACRO sdc_primary(
    publication, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL,
    p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL,
    not_counted := [], weight := NULL, extend_zeros := NULL, structural_zeros := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_primary(
        publication, extend_zeros, structural_zeros, max_count, protect_zeros, min_contributors::VARCHAR, dominance::VARCHAR,
        p_percent, pq::VARCHAR, primary_if, value, freq, contributor, not_counted::VARCHAR[], weight));

--| sdc_suppress(publication, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL, not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL, secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false, protect_intervals := false, after := NULL) -> TABLE
--| A publication with the numbers of its primary and secondary cells suppressed.
--|
--| Secondary cells are chosen so that no primary cell can be computed from the published ones, by exact elimination over
--| all the tables of the publication at once: the more useful a cell (count, value or `cost`), the rather it is published.
--| The choice does not depend on the order of rows or the number of threads.
--|
--| It protects against exact disclosure. How close to a value one comes is for `sdc_audit` to say.
--|
--| With `k_disclosure` attributes of groups are protected, too: where of the persons in one cell all but a few are in another
--| one inside it, those few, or everybody if there are none, would learn what the others are. Counts of 0 are suppressed
--| like others then, small ones rather than large ones, as in SuppressKDisclosure of the R package GaussSuppression.
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
--| @arg freq VARCHAR: the count(..) column that `max_count` looks at, or the sum(..) of numbers of records where the table was counted before; the first count(..) when NULL
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
--| @column .. the columns of the publication; counts and sums of suppressed cells are NULL
--| @column level VARCHAR: the grouping set of the cell, such as `region x age`, or `total`
--| @column status VARCHAR: 'open', 'primary', 'secondary' or 'forced'
--| @column suppressed BOOLEAN: whether the numbers are left out
--| @column why VARCHAR: the rules that mark the cell, also where it is forced, and what forced cells or zeros leave of its protection
--| @example
--| SELECT region, sex, n, status, why FROM sdc_suppress($$
--|     SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)
--| $$, max_count := 1);
--| @output
--| region | sex  |    n | status    | why
--| -------+------+------+-----------+----------
--| NULL   | NULL |   12 | open      | NULL
--| East   | NULL | NULL | secondary | NULL
--| North  | NULL |    5 | open      | NULL
--| South  | NULL | NULL | secondary | NULL
--| NULL   | f    |    6 | open      | NULL
--| NULL   | m    |    6 | open      | NULL
--| East   | f    | NULL | primary   | max_count
--| East   | m    | NULL | primary   | max_count
--| North  | f    |    2 | open      | NULL
--| North  | m    |    3 | open      | NULL
--| South  | f    | NULL | secondary | NULL
--| South  | m    | NULL | secondary | NULL
--| @source Langsrud and Bøvelstad (2022), section 2; R package GaussSuppression
CREATE OR REPLACE TEMP MACRO sdc_suppress(
    publication, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL,
    p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL,
    not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL,
    secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false,
    protect_intervals := false, after := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_suppress(
        publication, k_disclosure::VARCHAR, singleton, forced_if, hidden_if, secondary_zeros, extend_zeros, structural_zeros,
        cost, improve, protect_intervals, after, max_count, protect_zeros, min_contributors::VARCHAR, dominance::VARCHAR,
        p_percent, pq::VARCHAR, primary_if, value, freq, contributor, not_counted::VARCHAR[], weight));

--| sdc_publish(name, publication := NULL, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL, not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL, secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false, protect_intervals := false, after := NULL) -> TABLE
--| Suppresses a publication and stores it: its cells as published, and the stencil that answers every later table.
--|
--| Two tables are written in one transaction, replacing those of the same name: `sdc."<name>_cells"`, what may be given
--| away, and `sdc."<name>_stencil"`, the inner cells with their original numbers and the column `stencil`, which is
--| confidential. Any later grouping of the stencil table is answered under the same pattern by `sdc_is_open`,
--| `sdc_open_count` and `sdc_open_sum`, without a new round of suppression. Rules are stored with it, so that `sdc_audit`
--| and `sdc_suppress` of the name need none.
--|
--| @arg name VARCHAR: of the publication, without spaces
--| @arg publication VARCHAR: the SELECT, or the name of a stored publication; NULL: the one stored under `name`
--| @arg max_count DOUBLE: cells of 1 to so many records are primary
--| @arg protect_zeros BOOLEAN: cells of 0 records are too
--| @arg min_contributors BIGINT: cells with fewer contributors of a value other than 0 are primary
--| @arg dominance list of pairs (n, k): cells whose n largest contributors have k per cent of the total are primary
--| @arg p_percent DOUBLE: cells whose second contributor can tell the first one's value to within p per cent are primary
--| @arg pq pair (p, q): the same, for somebody who knows the others to within q per cent beforehand
--| @arg primary_if VARCHAR: any condition on the columns of a cell, and on `level`; where it is NULL the cell is not primary
--| @arg value VARCHAR: the sum(..) column that the rules on contributors look at; the first one when NULL
--| @arg freq VARCHAR: the count(..) column that `max_count` looks at, or the sum(..) of numbers of records where the table was counted before; the first count(..) when NULL
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
--| @column name VARCHAR: of the publication
--| @column inner_cells BIGINT: its inner cells
--| @column cells BIGINT: its cells
--| @column primary_cells BIGINT: those that the rules suppress
--| @column secondary_cells BIGINT: those that protect them
--| @column unsafe_cells BIGINT: primary cells that follow from forced ones all the same, or of which a number does as none is negative (all that `sdc_audit` finds exact; where more than 200 cells are not shown without those whose interval has a width, though less than one half), and cells of which forced ones tell what `k_disclosure` hides
--| @column narrow_cells BIGINT: primary cells whose interval cannot be as wide as the rule wants (NULL without `protect_intervals`)
--| @column share_shown DOUBLE: sum over published cells over sum over all of them, of the counts or the absolute values (NULL where there is nothing but a suppressed 0)
--| @column saved_cells BIGINT: secondary cells that `improve` did without; negative where it took several cheap ones for a dear one (NULL without `improve`)
--| @column saved_cost DOUBLE: what they are worth: counts or absolute values, times `cost` if given (NULL without `improve`)
--| @example
--| FROM sdc_publish('by_region', $$
--|     SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)
--| $$, max_count := 1);
--| @output
--| name      | inner_cells | cells | primary_cells | secondary_cells | unsafe_cells | narrow_cells |        share_shown | saved_cells | saved_cost
--| ----------+-------------+-------+---------------+-----------------+--------------+--------------+--------------------+-------------+-----------
--| by_region |           6 |    12 |             2 |               4 |            0 |         NULL | 0.7083333333333334 |        NULL |       NULL
--| @source Langsrud and Bøvelstad (2022); modulo a prime in place of decimals
CREATE OR REPLACE TEMP MACRO sdc_publish(
    name, publication := NULL, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL,
    p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL,
    not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL,
    secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false,
    protect_intervals := false, after := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_publish(
        name, publication, k_disclosure::VARCHAR, singleton, forced_if, hidden_if, secondary_zeros, extend_zeros,
        structural_zeros, cost, improve, protect_intervals, after, max_count, protect_zeros, min_contributors::VARCHAR,
        dominance::VARCHAR, p_percent, pq::VARCHAR, primary_if, value, freq, contributor, not_counted::VARCHAR[], weight));

--| sdc_audit(publication, measure := NULL, insider := false, time_limit := 600, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL, not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL, secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false, protect_intervals := false, after := NULL) -> TABLE
--| How close one comes to the suppressed numbers of a publication: the smallest and largest value each of them can have.
--|
--| Somebody who knows every published number, and that no inner cell is negative, can tell a suppressed one to within an
--| interval, found by two linear programs a cell. `exact` says that it is given away; `protected` that the interval reaches
--| as far beyond the value as the rule wants. For the custodian's eyes: the original numbers are shown. Where the measure
--| has negative cells nothing is known about the signs.
--|
--| With `insider`, the same for those who know one thing more, their own contribution: whoever is alone in an inner cell (a
--| person where no `contributor` is given) knows it, with all others where he is alone. Each suppressed cell that is not all
--| his own is looked at with the eyes of each such contributor, and shown is what the one learns who learns most. That takes
--| an audit for each of them.
--|
--| Where `time_limit` is over before all intervals are computed the others are NULL, and so is `exact` of these cells, unless
--| it is known to be true: cells that nobody has looked at never count as protected.
--|
--| @arg publication VARCHAR: the SELECT, or the name of a stored publication (whose rules hold where none are given)
--| @arg measure VARCHAR: the column to audit; NULL: the one the rules look at
--| @arg insider BOOLEAN: whether to audit with the knowledge of single contributors, too
--| @arg time_limit DOUBLE: seconds for the intervals, from when the cells are suppressed; NULL: until all are computed
--| @arg max_count DOUBLE: cells of 1 to so many records are primary
--| @arg protect_zeros BOOLEAN: cells of 0 records are too
--| @arg min_contributors BIGINT: cells with fewer contributors of a value other than 0 are primary
--| @arg dominance list of pairs (n, k): cells whose n largest contributors have k per cent of the total are primary
--| @arg p_percent DOUBLE: cells whose second contributor can tell the first one's value to within p per cent are primary
--| @arg pq pair (p, q): the same, for somebody who knows the others to within q per cent beforehand
--| @arg primary_if VARCHAR: any condition on the columns of a cell, and on `level`; where it is NULL the cell is not primary
--| @arg value VARCHAR: the sum(..) column that the rules on contributors look at; the first one when NULL
--| @arg freq VARCHAR: the count(..) column that `max_count` looks at, or the sum(..) of numbers of records where the table was counted before; the first count(..) when NULL
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
--| @column .. the grouping columns of the publication
--| @column level VARCHAR: the grouping set of the cell
--| @column original DOUBLE: the suppressed number
--| @column status VARCHAR: 'primary' or 'secondary'
--| @column lower DOUBLE: the smallest value that it can have; NULL where time was over (as `upper`)
--| @column upper DOUBLE: the largest one, infinite where nothing bounds it
--| @column exact BOOLEAN: whether it is given away; NULL where that is not known, as time was over
--| @column protected BOOLEAN: whether the interval is as wide as the rule that suppressed the cell wants, and not exact; false where time was over
--| @column insider_lower DOUBLE: the smallest value for the contributor who learns most (this and what follows: with `insider`)
--| @column insider_upper DOUBLE: the largest one
--| @column insider_exact BOOLEAN: whether the value is given away to some contributor; NULL where that is not known, as time was over
--| @column insider_protected BOOLEAN: whether the interval is as wide as the rule wants for all of them; false where time was over
--| @example
--| SELECT region, sex, original, status, lower, upper, exact FROM sdc_audit($$
--|     SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)
--| $$, max_count := 1);
--| @output
--| region | sex  | original | status    | lower | upper | exact
--| -------+------+----------+-----------+-------+-------+------
--| East   | NULL |      2.0 | secondary |   0.0 |   7.0 | false
--| South  | NULL |      5.0 | secondary |   0.0 |   7.0 | false
--| East   | f    |      1.0 | primary   |   0.0 |   4.0 | false
--| East   | m    |      1.0 | primary   |   0.0 |   3.0 | false
--| South  | f    |      3.0 | secondary |   0.0 |   4.0 | false
--| South  | m    |      2.0 | secondary |   0.0 |   3.0 | false
--| @source Fischetti and Salazar (2000), the attacker's problem; Willenborg and de Waal (2001)
CREATE OR REPLACE TEMP MACRO sdc_audit(
    publication, measure := NULL, insider := false, time_limit := 600, max_count := NULL, protect_zeros := false,
    min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL,
    contributor := NULL, not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL,
    hidden_if := NULL, secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL,
    improve := false, protect_intervals := false, after := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_audit(
        publication, measure, insider, time_limit, k_disclosure::VARCHAR, singleton, forced_if, hidden_if, secondary_zeros, extend_zeros,
        structural_zeros, cost, improve, protect_intervals, after, max_count, protect_zeros, min_contributors::VARCHAR,
        dominance::VARCHAR, p_percent, pq::VARCHAR, primary_if, value, freq, contributor, not_counted::VARCHAR[], weight));

--| sdc_optimum(publication, time_limit := 60, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL, not_counted := [], weight := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL, secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false, protect_intervals := false, after := NULL) -> TABLE
--| How far the choice of `sdc_suppress` is from the best possible one: for small publications.
--|
--| Integer programming finds the pattern of least cost (counts, values, `cost`) whose primary cells are all protected to
--| the width that their rules want, and where a rule wants none (`primary_if`, counts of 0, `after`) to a fifth of the value,
--| counts to 1 at least. Beside it stands that of `sdc_suppress` with `protect_intervals`, to the same widths. The optimum
--| knows nothing of singletons.
--|
--| @arg publication VARCHAR: the SELECT, or the name of a stored publication (whose rules hold where none are given)
--| @arg time_limit DOUBLE: seconds; when they are over, the best pattern found and a bound
--| @arg max_count DOUBLE: cells of 1 to so many records are primary
--| @arg protect_zeros BOOLEAN: cells of 0 records are too
--| @arg min_contributors BIGINT: cells with fewer contributors of a value other than 0 are primary
--| @arg dominance list of pairs (n, k): cells whose n largest contributors have k per cent of the total are primary
--| @arg p_percent DOUBLE: cells whose second contributor can tell the first one's value to within p per cent are primary
--| @arg pq pair (p, q): the same, for somebody who knows the others to within q per cent beforehand
--| @arg primary_if VARCHAR: any condition on the columns of a cell, and on `level`; where it is NULL the cell is not primary
--| @arg value VARCHAR: the sum(..) column that the rules on contributors look at; the first one when NULL
--| @arg freq VARCHAR: the count(..) column that `max_count` looks at, or the sum(..) of numbers of records where the table was counted before; the first count(..) when NULL
--| @arg contributor VARCHAR: column or expression of the source, whose a record is; NULL: every record is somebody else's
--| @arg not_counted VARCHAR[]: contributors that do not count for `min_contributors`
--| @arg weight VARCHAR: column or expression of the source, the sampling weight; contributions stay unweighted, totals not
--| @arg singleton VARCHAR: protection against those who know their own value: none, anySum, anySumNOTprimary, anySum0, subSum, subSpace for counts (NULL: anySum); none, sub2Sum, num and up to five letters (numttHTT) with a rule on contributors (NULL: numttHTT)
--| @arg forced_if VARCHAR: condition on the columns of a cell, and on `level`: these are published whatever the rules say
--| @arg hidden_if VARCHAR: the same: these are neither published nor protected, and left out of the result
--| @arg secondary_zeros BOOLEAN: whether cells of 0 records may be suppressed
--| @arg extend_zeros BOOLEAN: whether combinations that no record has are inner cells of 0; NULL: as `protect_zeros`
--| @arg structural_zeros VARCHAR: condition on the grouping columns: combinations that everybody knows to be impossible; they are no inner cells, and an error where they are not empty
--| @arg cost VARCHAR: column or expression of a cell's columns, by which publishing it is worth more
--| @arg improve BOOLEAN: whether to look for a cheaper choice of secondary cells afterwards; it is never less safe
--| @arg protect_intervals BOOLEAN: whether to suppress more until every interval is as wide as its rule wants (see `sdc_audit`)
--| @arg after VARCHAR: name of a publication published earlier; its cells stay as they are, open or suppressed
--| @column primary_cells BIGINT: cells that the rules suppress
--| @column secondary_cells BIGINT: cells that `sdc_suppress` adds
--| @column secondary_cost DOUBLE: their sum
--| @column optimal_cells BIGINT: cells that the best pattern adds
--| @column optimal_cost DOUBLE: their sum
--| @column bound DOUBLE: no pattern costs less
--| @column status VARCHAR: 'optimal' or 'time limit'
--| @example
--| FROM sdc_optimum($$
--|     SELECT region, sex, count(*) AS n, sum(income) AS income FROM people GROUP BY CUBE (region, sex)
--| $$, p_percent := 20);
--| @output
--| primary_cells | secondary_cells | secondary_cost | optimal_cells | optimal_cost |   bound | status
--| --------------+-----------------+----------------+---------------+--------------+---------+--------
--|             5 |               3 |        30650.0 |             2 |      22250.0 | 22250.0 | optimal
--| @source Fischetti and Salazar (2000)
CREATE OR REPLACE TEMP MACRO sdc_optimum(
    publication, time_limit := 60, max_count := NULL, protect_zeros := false, min_contributors := NULL,
    dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL,
    contributor := NULL, not_counted := [], weight := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL,
    secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false,
    protect_intervals := false, after := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_optimum(
        publication, time_limit, NULL, singleton, forced_if, hidden_if, secondary_zeros, extend_zeros, structural_zeros,
        cost, improve, protect_intervals, after, max_count, protect_zeros, min_contributors::VARCHAR, dominance::VARCHAR,
        p_percent, pq::VARCHAR, primary_if, value, freq, contributor, not_counted::VARCHAR[], weight));

--| sdc_decimals(publication, mode := 'counts', replicates := 3, seed := NULL, max_count := NULL, protect_zeros := false, min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL, freq := NULL, contributor := NULL, not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL, forced_if := NULL, hidden_if := NULL, secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL, cost := NULL, improve := false, protect_intervals := false, after := NULL) -> TABLE
--| Synthetic decimal numbers for the inner cells of a publication: a stencil that may be handed out.
--|
--| Random numbers, made from published cells alone, that add up to the true count over every cell that is published or
--| follows from published ones, and to something that is not whole over every other. Whoever has the table can answer any
--| later grouping: show a sum if it is whole in all replicates (to 1e-5) and the same. In the mode 'zeros' the sums are 0
--| in place of counts; take it for magnitudes. `sdc_publish` stores an exact stencil for use inside.
--|
--| @arg publication VARCHAR: the SELECT, or the name of a stored publication (whose rules hold where none are given)
--| @arg mode VARCHAR: 'counts' or 'zeros'
--| @arg replicates BIGINT: independent draws, 1 to 10
--| @arg seed BIGINT: the same seed gives the same table; NULL: a new one each time
--| @arg max_count DOUBLE: cells of 1 to so many records are primary
--| @arg protect_zeros BOOLEAN: cells of 0 records are too
--| @arg min_contributors BIGINT: cells with fewer contributors of a value other than 0 are primary
--| @arg dominance list of pairs (n, k): cells whose n largest contributors have k per cent of the total are primary
--| @arg p_percent DOUBLE: cells whose second contributor can tell the first one's value to within p per cent are primary
--| @arg pq pair (p, q): the same, for somebody who knows the others to within q per cent beforehand
--| @arg primary_if VARCHAR: any condition on the columns of a cell, and on `level`; where it is NULL the cell is not primary
--| @arg value VARCHAR: the sum(..) column that the rules on contributors look at; the first one when NULL
--| @arg freq VARCHAR: the count(..) column that `max_count` looks at, or the sum(..) of numbers of records where the table was counted before; the first count(..) when NULL
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
--| @column .. the grouping columns of the publication
--| @column d1 DOUBLE: the first draw; then d2 and so on
--| @column d2 DOUBLE: the second draw
--| @column d3 DOUBLE: the third draw
--| @example
--| SELECT region, round(sum(d1), 6) AS d1, round(sum(d2), 6) AS d2 FROM sdc_decimals($$
--|     SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)
--| $$, max_count := 1, seed := 1) GROUP BY region ORDER BY region;
--| @output
--| region |       d1 |       d2
--| -------+----------+---------
--| East   | 4.272135 | 3.939269
--| North  |      5.0 |      5.0
--| South  | 2.727865 | 3.060731
--| @source Langsrud and Bøvelstad (2022), section 3
CREATE OR REPLACE TEMP MACRO sdc_decimals(
    publication, mode := 'counts', replicates := 3, seed := NULL, max_count := NULL, protect_zeros := false,
    min_contributors := NULL, dominance := NULL, p_percent := NULL, pq := NULL, primary_if := NULL, value := NULL,
    freq := NULL, contributor := NULL, not_counted := [], weight := NULL, k_disclosure := NULL, singleton := NULL,
    forced_if := NULL, hidden_if := NULL, secondary_zeros := false, extend_zeros := NULL, structural_zeros := NULL,
    cost := NULL, improve := false, protect_intervals := false, after := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_decimals(
        publication, mode, replicates::VARCHAR, seed::VARCHAR, k_disclosure::VARCHAR, singleton, forced_if, hidden_if, secondary_zeros,
        extend_zeros, structural_zeros, cost, improve, protect_intervals, after, max_count, protect_zeros,
        min_contributors::VARCHAR, dominance::VARCHAR, p_percent, pq::VARCHAR, primary_if, value, freq, contributor,
        not_counted::VARCHAR[], weight));

--| sdc_publication(name, query) -> TABLE
--| Stores the SELECT of a publication under a name.
--|
--| @arg name VARCHAR: without spaces; a publication of that name is replaced
--| @arg query VARCHAR: a SELECT with grouping columns, count(..) and sum(..), and GROUP BY
--| @column name VARCHAR: of the publication
--| @column dimensions VARCHAR: its grouping columns
--| @column measures VARCHAR: its counts and sums
--| @column tables BIGINT: its grouping sets
--| @example
--| FROM sdc_publication('incomes', 'SELECT region, count(*) AS n, sum(income) AS income FROM people GROUP BY CUBE (region)');
--| @output
--| name    | dimensions | measures  | tables
--| --------+------------+-----------+-------
--| incomes | region     | n, income |      2
--| @source this project

--| sdc_drop_publication(name) -> TABLE
--| Removes a stored publication with its tables.
--|
--| @arg name VARCHAR: of the publication
--| @column name VARCHAR: the name
--| @example
--| FROM sdc_drop_publication('incomes');
--| @output
--| name
--| -------
--| incomes
--| @source this project

--| sdc_round_table(publication, base := 3, method := 'small_counts', freq := NULL, extend_zeros := false, seed := NULL) -> TABLE
--| The counts of a publication rounded, so that no small count is shown: an alternative to suppression.
--|
--| `small_counts` rounds only inner cells that contribute to small published counts, to 0 or the base, and chooses those
--| that go up so that the published cells change as little as possible; all tables add up. `controlled` takes every cell
--| to a multiple of the base next to it, tables add up, and the sum of the changes is the smallest there is; it is for
--| small publications. `random` draws every cell on its own, without bias; tables do not add up.
--|
--| `threshold` rounds nothing: cell by cell, it leaves out counts below the base other than 0. That is no protection
--| against differences: a cell that is left out alone follows from the total of its row. Take `sdc_suppress` for that.
--|
--| @arg publication VARCHAR: the SELECT, or the name of a stored publication
--| @arg base BIGINT: at least 2; the smallest count that `threshold` shows
--| @arg method VARCHAR: small_counts, controlled, random or threshold
--| @arg freq VARCHAR: the count(..) column, or the sum(..) of numbers of records where the table was counted before; the first count(..) when NULL
--| @arg extend_zeros BOOLEAN: whether combinations that no record has are inner cells of 0
--| @arg seed BIGINT: the same seed gives the same table; NULL: a new one each time
--| @column .. the grouping columns of the publication
--| @column level VARCHAR: the grouping set of the cell
--| @column original BIGINT: the count
--| @column rounded BIGINT: the rounded count; NULL where `threshold` leaves it out
--| @example
--| SELECT region, sex, original, rounded FROM sdc_round_table($$
--|     SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)
--| $$, base := 3, seed := 1);
--| @output
--| region | sex  | original | rounded
--| -------+------+----------+--------
--| NULL   | NULL |       12 |      12
--| East   | NULL |        2 |       0
--| North  | NULL |        5 |       6
--| South  | NULL |        5 |       6
--| NULL   | f    |        6 |       6
--| NULL   | m    |        6 |       6
--| East   | f    |        1 |       0
--| East   | m    |        1 |       0
--| North  | f    |        2 |       3
--| North  | m    |        3 |       3
--| South  | f    |        3 |       3
--| South  | m    |        2 |       3
--| @source Langsrud and Heldal (2018), R package SmallCountRounding; Salazar-González (2006)
