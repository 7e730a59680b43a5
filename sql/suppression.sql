-- The stencil of a suppressed publication, as macros over ordinary aggregates.
--
-- Pure SQL: they work in any DuckDB shell (1.5 or later) over the stencil table that `sdc_publish` of the Python package
-- wrote into the database file.
--
-- Method: Langsrud and Bøvelstad (2022), with whole numbers in place of decimals. Every inner cell carries a number
-- modulo the prime 2^61 - 1, drawn so that it adds up to 0 over every cell that follows from the published ones, and to 0
-- over any other set of inner cells with a chance of 1 in 2 10^18. Sums of integers are exact: the answer is the same in
-- every query, on any number of threads.

CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.publications (
    name VARCHAR NOT NULL,
    query VARCHAR NOT NULL,
    arguments VARCHAR,
    fingerprint VARCHAR
);
CREATE TABLE IF NOT EXISTS sdc.rule_sets (
    name VARCHAR NOT NULL,
    arguments VARCHAR NOT NULL
);

--| sdc_is_open(stencil, filter := true) -> BOOLEAN
--| Whether the sum over these inner cells follows from what a publication has published already.
--|
--| An aggregate over the stencil table of `sdc_publish`. True for a sum of published cells and for whatever can be derived
--| from them; such a number may be shown, for it says nothing new. A NULL stencil is an error: inner cells that came after
--| the publication have none.
--|
--| @arg stencil BIGINT column: the numbers of the inner cells
--| @arg filter BOOLEAN expression over the rows: which inner cells to add up (as FILTER (WHERE ..))
--| @example
--| SELECT region, sdc_is_open(stencil) AS is_open
--| FROM (VALUES ('N', 1, 5), ('N', 2, 2305843009213693946), ('S', 1, 7)) inner_cells(region, sex, stencil)
--| GROUP BY region ORDER BY region;
--| @output
--| region | is_open
--| -------+--------
--| N      |    true
--| S      |   false
--| @source Langsrud and Bøvelstad (2022); modulo a prime in place of decimals
CREATE OR REPLACE MACRO sdc_is_open(stencil, filter := true) AS
    CASE
        WHEN count(CASE WHEN filter THEN 1 END) <> count(CASE WHEN filter THEN stencil END)
            THEN error('an inner cell without a stencil: it came after the publication')
        ELSE coalesce(sum(CASE WHEN filter THEN stencil END) % 2305843009213693951 = 0, true)
    END;

--| sdc_open_sum(y, stencil, filter := true) -> DOUBLE
--| The sum of a measure over inner cells where it may be shown, NULL where it may not.
--|
--| Works with GROUP BY, CUBE, ROLLUP and GROUPING SETS over the stencil table, on any grouping of its columns. The type is
--| that of `sum(y)`. Of floating-point numbers the last digits may tell suppressed cells apart: publish them as DECIMAL.
--|
--| @arg y numeric column: the measure in the inner cells
--| @arg stencil BIGINT column: the numbers of the inner cells
--| @arg filter BOOLEAN expression over the rows: which inner cells to add up (as FILTER (WHERE ..))
--| @example
--| SELECT region, sdc_open_sum(turnover, stencil) AS turnover
--| FROM (VALUES ('N', 10.5, 5), ('N', 20.0, 2305843009213693946), ('S', 12.0, 7)) inner_cells(region, turnover, stencil)
--| GROUP BY region ORDER BY region;
--| @output
--| region | turnover
--| -------+---------
--| N      | 30.5
--| S      | NULL
--| @source Langsrud and Bøvelstad (2022)
CREATE OR REPLACE MACRO sdc_open_sum(y, stencil, filter := true) AS
    CASE WHEN sdc_is_open(stencil, filter := filter) THEN sum(CASE WHEN filter THEN y END) END;

--| sdc_open_count(n, stencil, filter := true) -> BIGINT
--| The number of records in inner cells where it may be shown, NULL where it may not.
--|
--| @arg n BIGINT column: the number of records of each inner cell
--| @arg stencil BIGINT column: the numbers of the inner cells
--| @arg filter BOOLEAN expression over the rows: which inner cells to add up (as FILTER (WHERE ..))
--| @example
--| SELECT region, sdc_open_count(n, stencil) AS n
--| FROM (VALUES ('N', 3, 5), ('N', 4, 2305843009213693946), ('S', 9, 7)) inner_cells(region, n, stencil)
--| GROUP BY region ORDER BY region;
--| @output
--| region |    n
--| -------+-----
--| N      |    7
--| S      | NULL
--| @source Langsrud and Bøvelstad (2022)
CREATE OR REPLACE MACRO sdc_open_count(n, stencil, filter := true) AS
    CASE WHEN sdc_is_open(stencil, filter := filter) THEN coalesce(sum(CASE WHEN filter THEN n END), 0)::BIGINT END;

--| sdc_publications() -> TABLE
--| The stored publications of the database.
--|
--| @column name VARCHAR: of the publication
--| @column published BOOLEAN: whether it has been suppressed and stored with `sdc_publish`
--| @column query VARCHAR: its SELECT
--| @example
--| SELECT name, published FROM sdc_publications();
--| @output
--| name | published
--| -----+----------
--| @source this project
CREATE OR REPLACE MACRO sdc_publications() AS TABLE
    SELECT name, fingerprint IS NOT NULL AS published, query FROM sdc.publications ORDER BY name;
