-- The functions about the functions.

--| sdc_functions(name := NULL) -> TABLE
--| Lists every SQL function of sdcduck: signature, summary, arguments, columns, example with output, source.
--|
--| @arg name VARCHAR: only this one
--| @column name VARCHAR: the function
--| @column family VARCHAR: the family of methods it belongs to
--| @column kind VARCHAR: 'aggregate', 'scalar' or 'table'
--| @column signature VARCHAR: arguments with their defaults, and the result
--| @column summary VARCHAR: one sentence
--| @column description VARCHAR: the rest
--| @column example VARCHAR: a statement to try
--| @column output VARCHAR: what it returns
--| @column source VARCHAR: where the method comes from
--| @column needs_python BOOLEAN: whether it needs a connection with sdcduck (the others work in any DuckDB shell)
--| @example
--| SELECT name, kind, summary FROM sdc_functions(name := 'sdc_count');
--| @output
--| name      | kind      | summary
--| ----------+-----------+-------------------------------------------------------------------------------------------------
--| sdc_count | aggregate | The perturbed number of records in each cell: what `count(*)` becomes under the cell-key method.
--| @source this project
CREATE OR REPLACE TEMP MACRO sdc_functions(name := NULL) AS TABLE
    SELECT * FROM query(_sdc_plan_functions(name::VARCHAR));

--| sdc_ptables() -> TABLE
--| Lists the stored p-tables.
--|
--| @column name VARCHAR: under which `sdc_count` and `sdc_sum` find it
--| @column kind VARCHAR: 'counts' or 'magnitudes'
--| @column keys BIGINT: the keys run from 0 to this number less 1
--| @column step INTEGER: noise is a multiple of 1 / step
--| @column origin VARCHAR: where it came from
--| @example
--| SELECT name, kind, origin FROM sdc_ptables();
--| @output
--| name              | kind       | origin
--| ------------------+------------+-----------------------------------------------------------------------
--| default           | counts     | built in: counts, D = 5, V = 2, modified
--| default_magnitude | magnitudes | built in: magnitudes, D = 5, V = 1, step = 5, icat = 1, 3, 5, modified
--| @source this project
CREATE OR REPLACE TEMP MACRO sdc_ptables() AS TABLE
    SELECT name, kind, modulus AS keys, step, origin FROM sdc.ptables ORDER BY name;
