-- What the numbers of a policy are worth: the law of their noise, from the policy and its p-tables alone. Pure SQL.

-- The law of the noise of each row of a p-table: mean, mean square, the largest, and the mean product with the place of the
-- key among all keys, less a half, which moves counts of rows beside the noise.
CREATE OR REPLACE MACRO _sdc_noise_laws() AS TABLE
    SELECT
        t.name, t.type, t.i,
        sum(t.v * (t.ub - t.lb) / p.modulus) AS mean,
        sum(t.v * t.v * (t.ub - t.lb) / p.modulus) AS square,
        max(abs(t.v)) AS most,
        sum(t.v * (t.ub - t.lb) / p.modulus * ((t.ub + t.lb) / (2.0 * p.modulus) - 0.5)) AS with_place,
        any_value(p.step) AS step, any_value(p.repeat) AS repeat
    FROM sdc.ptable_intervals t JOIN sdc.ptables p ON p.name = t.name
    GROUP BY t.name, t.type, t.i;

-- The same of counts: neighbouring rows of one law are one class. Beyond the last row counts use the last few in turn.
CREATE OR REPLACE MACRO _sdc_noise_of_counts() AS TABLE
    WITH rows_of AS (
        SELECT name, least(i, max(i) OVER (PARTITION BY name) - repeat + 1) AS size, mean, square, most
        FROM _sdc_noise_laws() WHERE type = 'all' AND i > 0
    ),
    classes AS (
        SELECT name, size, round(avg(mean), 4) + 0 AS mean, round(sqrt(greatest(avg(square - mean * mean), 0)), 4) AS sd,
            max(most) AS most
        FROM rows_of GROUP BY name, size
    ),
    changes AS (
        SELECT *, (sd, most, mean) IS DISTINCT FROM lag((sd, most, mean)) OVER (PARTITION BY name ORDER BY size) AS is_new
        FROM classes
    ),
    runs AS (SELECT *, sum(is_new::INTEGER) OVER (PARTITION BY name ORDER BY size) AS run FROM changes),
    spans AS (
        SELECT name, min(size)::BIGINT AS size_from, max(size)::BIGINT AS size_to, any_value(mean) AS mean,
            any_value(sd) AS sd, any_value(most) AS most
        FROM runs GROUP BY name, run
    )
    SELECT * REPLACE (CASE WHEN size_to < max(size_to) OVER (PARTITION BY name) THEN size_to END AS size_to) FROM spans;

-- And of sums, which the guard takes for at least as large as their largest contribution, so for ten times their noise: of
-- the rows that serve these. All in multiples of that contribution.
CREATE OR REPLACE MACRO _sdc_noise_of_sums() AS TABLE
    WITH serving AS (
        SELECT *, i >= max(CASE WHEN i <= 9.99 THEN i END) OVER (PARTITION BY name, type) AS serves FROM _sdc_noise_laws()
    )
    SELECT name, round(0.1 * sqrt(max(square - mean * mean)), 4) AS sd, 0.1 * max(most) AS most,
        round(0.1 * max(abs(mean)), 4) AS mean, 0.1 / any_value(step) AS step,
        max(0.01 * (square - mean * mean) + 1 / 12.0 + 0.2 * with_place) AS variance_of_rows
    FROM serving WHERE serves GROUP BY name;

--| sdc_noise(tbl, role := '') -> TABLE
--| How large the noise of the numbers of a table is that is answered under a policy: what they are worth.
--|
--| It is made of the policy and of its p-tables alone, looks at no record and has no key in it: it may be published. Where
--| the noise depends on a number, as that of small counts does, it depends on the original one, which nobody sees: there
--| is a row for each class of sizes. Analysts ask for it as they ask for anything: `FROM sdc_noise('people')`.
--|
--| @arg tbl VARCHAR: a table or view with a policy (`sdc_protect`)
--| @arg role VARCHAR: whose policy; '': that of everybody without one of their own
--| @column method VARCHAR: cell_key, suppression, threshold or rounding
--| @column statistic VARCHAR: count (of rows), units (count of units), sum, mean, variance, or quantile
--| @column size_from BIGINT: the law is that of original numbers from here on
--| @column size_to BIGINT: and up to here; NULL: of all above
--| @column sd DOUBLE: standard deviation of the noise; NULL: there is none of its own
--| @column max DOUBLE: the largest noise that there can be, with the rounding behind it; NULL: it cannot be said
--| @column mean DOUBLE: the mean of the noise, 0 with p-tables of `sdc_ptable`
--| @column per VARCHAR: what sd, max and the steps are multiples of; '1': they are numbers
--| @column step_least DOUBLE: published numbers are multiples of a step that is at least this
--| @column step_most DOUBLE: and at most this
--| @column shown VARCHAR: how it is published, and what is hidden
--| @example
--| SELECT statistic, size_from, size_to, sd, max, per FROM sdc_noise('people');
--| @output
--| statistic | size_from | size_to |     sd |    max | per
--| ----------+-----------+---------+--------+--------+--------------------------------------------------
--| count     |         1 |       1 | 1.1413 |    5.0 | 1
--| count     |         2 |    NULL | 1.4142 |    5.0 | 1
--| units     |         1 |       1 | 1.1413 |    5.0 | 1
--| units     |         2 |    NULL | 1.4142 |    5.0 | 1
--| sum       |      NULL |    NULL |    0.1 | 0.5625 | largest contribution
--| mean      |      NULL |    NULL |    0.1 |  0.625 | largest contribution / published count
--| variance  |      NULL |    NULL |    0.1 |  0.625 | largest squared deviation / (published count - 1)
--| quantile  |      NULL |    NULL |   NULL |   10.0 | places in the order of values
--| @source this project; law of the p-tables of Giessing & Tent (2019)
CREATE OR REPLACE MACRO sdc_noise(tbl, role := '') AS TABLE
    WITH declared AS (
        SELECT p.name, p.method, coalesce(p.min_units, 1) AS least, coalesce(p.base, 3) AS base, p.ptable,
            p.magnitude_ptable, p.one_row_per_unit AS alone, len(p.measures) > 0 AS adds_up,
            CASE
                WHEN coalesce(p.min_units, 1) <= 1 OR p.method = 'suppression' THEN ''
                WHEN p.method = 'threshold' THEN ', hidden below ' || p.min_units || ' units'
                ELSE ', hidden below ' || p.min_units || ' published units'
            END AS hidden
        FROM sdc.policies p
        WHERE lower(p.name) = lower(tbl) AND lower(coalesce(p.role, '')) = lower(role) AND p.label = 'unit-level'
    ),
    of_counts AS (SELECT c.*, d.* FROM declared d JOIN _sdc_noise_of_counts() c ON c.name = d.ptable WHERE method = 'cell_key'),
    of_sums AS (
        SELECT s.*, d.*, (SELECT max(most) FROM of_counts) AS most_of_counts, (SELECT max(sd) FROM of_counts) AS sd_of_counts
        FROM declared d JOIN _sdc_noise_of_sums() s ON s.name = d.magnitude_ptable WHERE method = 'cell_key'
    ),
    numbers AS (
        SELECT method, statistic, place, size_from, size_to, sd, most AS largest, mean, '1' AS per, 1 AS step_least, 1 AS step_most,
            'with noise' || hidden AS shown
        FROM of_counts, (VALUES ('count', 1), ('units', 2)) t(statistic, place) WHERE alone OR statistic = 'units'
        UNION ALL
        SELECT method, 'count', 1, 1, NULL, round(sqrt(sd_of_counts ** 2 + variance_of_rows), 4), most_of_counts + most + 0.5,
            mean, 'rows of the unit that has most', NULL, NULL, 'with noise' || hidden
        FROM of_sums WHERE NOT alone
        UNION ALL
        SELECT method, statistic, place, NULL, NULL, sd, most + CASE WHEN place = 3 AND alone THEN 3.125 ELSE 6.25 END * step, mean,
            per, step, 6.25 * step,
            'with noise' || beside || hidden
        FROM of_sums, (VALUES
            ('sum', 3, 'largest contribution', ''),
            ('mean', 4, 'largest contribution / published count', ' of the sum, and that of the count'),
            ('variance', 5, 'largest squared deviation / (published count - 1)', ' of the sum, and that of the count')
        ) t(statistic, place, per, beside)
        WHERE adds_up
        UNION ALL
        SELECT method, 'quantile', 6, NULL, NULL, NULL, CASE WHEN alone THEN 2 * most_of_counts END, NULL,
            'places in the order of values', NULL, NULL, 'from published counts, two significant digits' || hidden
        FROM of_sums
        UNION ALL
        SELECT method, statistic, place, NULL, NULL, 0, 0, 0, '1', NULL, NULL,
            CASE method WHEN 'threshold' THEN 'exact' || hidden ELSE 'exact or NULL' END
        FROM declared, (VALUES ('count', 1), ('units', 2), ('sum', 3), ('mean', 4), ('variance', 5)) t(statistic, place)
        WHERE (method = 'threshold' AND (place <= 2 OR adds_up))
            OR (method = 'suppression' AND (place = 1 OR (place = 2 AND alone) OR (place IN (3, 4) AND adds_up)))
        UNION ALL
        SELECT method, statistic, place, NULL, NULL, round(sqrt((base * base - 1) / 6.0), 4), base - 1, 0, '1', base, base,
            'rounded to a multiple of ' || base || hidden
        FROM declared, (VALUES ('count', 1), ('units', 2)) t(statistic, place) WHERE method = 'rounding'
    )
    SELECT method, statistic, size_from::BIGINT AS size_from, size_to::BIGINT AS size_to, sd::DOUBLE AS sd,
        round(largest, 6)::DOUBLE AS max, mean::DOUBLE AS mean, per, round(step_least, 6)::DOUBLE AS step_least,
        round(step_most, 6)::DOUBLE AS step_most, shown
    FROM numbers ORDER BY place, size_from;
