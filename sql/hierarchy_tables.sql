-- Hierarchies: trees of codes, and the files of tau-Argus. The table functions call Python while a statement is bound, so
-- they are temporary and live with the connection that sdcduck was installed on.

--| sdc_levels(tbl, child := 'child', parent := 'parent', prefix := 'level_') -> TABLE
--| A (child, parent) table as one row a leaf, with a column for every level: what a publication joins.
--|
--| `level_1` is the top. Where branches are not equally long, a leaf that stands higher repeats itself downwards, so that
--| every level holds all the records: its cells add up to the same total. Several tops are fine; a top has no row as a
--| child, or one with the parent NULL. Identical rows count once.
--|
--| There are as many columns as the tree has levels when the statement is bound. Codes keep their type. Records join by
--| their leaf; those that have another code, or none, drop out of a JOIN.
--|
--| Refused: a code with two parents, a cycle, a child that is NULL or its own parent, more than 100 levels.
--|
--| @arg tbl VARCHAR: table, view or query in parentheses
--| @arg child VARCHAR: its column of codes
--| @arg parent VARCHAR: its column of the codes above them
--| @arg prefix VARCHAR: with which the names of the level columns begin
--| @column code VARCHAR: the leaf, of the type of the codes, as are the levels
--| @column level_1 VARCHAR: the top above it
--| @column level_2 VARCHAR: the code below; and so on, down to the leaf
--| @example
--| CREATE TABLE geo AS FROM (VALUES ('North', 'Mainland'), ('South', 'Mainland'), ('East', NULL)) geo(child, parent);
--| FROM sdc_levels('geo');
--| @output
--| code  | level_1  | level_2
--| ------+----------+--------
--| East  | East     | East
--| North | Mainland | North
--| South | Mainland | South
--| @source this project
CREATE OR REPLACE TEMP MACRO sdc_levels(tbl, child := 'child', parent := 'parent', prefix := 'level_') AS TABLE
    SELECT * FROM query(_sdc_plan_levels(tbl, child, parent, prefix));

--| sdc_read_hrc(path, indent := '@') -> TABLE
--| Reads a hierarchy file of tau-Argus (.hrc): one code a line, indented once a level.
--|
--| The result is a (child, parent) table: `sdc_levels('(FROM sdc_read_hrc(..))')` makes level columns of it. The file has
--| no line for the total. Empty lines are passed over; a code stands once. Text is UTF-8, or else Windows-1252.
--|
--| @arg path VARCHAR: the file, as DuckDB finds files
--| @arg indent VARCHAR: what stands before a code once for each level (`<HIERLEADSTRING>` in the metadata)
--| @column child VARCHAR: the code
--| @column parent VARCHAR: the code above it; NULL at the top
--| @column level BIGINT: 1 at the top
--| @column position BIGINT: place in the file, from 1
--| @example
--| COPY (SELECT unnest(['Mainland', '@North', '@South', 'Islands', '@East'])) TO 'geo.hrc' (FORMAT csv, HEADER false);
--| FROM sdc_read_hrc('geo.hrc');
--| @output
--| child    | parent   | level | position
--| ---------+----------+-------+---------
--| Mainland | NULL     |     1 |        1
--| North    | Mainland |     2 |        2
--| South    | Mainland |     2 |        3
--| Islands  | NULL     |     1 |        4
--| East     | Islands  |     2 |        5
--| @source format of tau-Argus 4 (tau-Argus User's Manual 4.1)
CREATE OR REPLACE TEMP MACRO sdc_read_hrc(path, indent := '@') AS TABLE
    SELECT * FROM query(_sdc_plan_read_hrc(path, indent));

--| sdc_read_rda(path) -> TABLE
--| Reads a metadata file of tau-Argus (.rda): one row a variable.
--|
--| For microdata of fixed width, microdata with a separator, and tables. Metadata are taken for those of a table where they
--| have a keyword that only tables have, such as `<FREQUENCY>` or `<STATUS>`; what follows a name are missing codes then, not
--| a width. `//` begins a comment.
--|
--| @arg path VARCHAR: the file, as DuckDB finds files
--| @column name VARCHAR: of the variable
--| @column position BIGINT: of its first character, from 1; NULL with a separator
--| @column width BIGINT: its characters; NULL for tables
--| @column missing VARCHAR[]: its missing codes
--| @column recodeable BOOLEAN: <RECODEABLE>, a categorical variable
--| @column total_code VARCHAR: <TOTCODE>, the code of the total
--| @column code_list VARCHAR: <CODELIST>, the file with the labels
--| @column hierarchical BOOLEAN: <HIERARCHICAL>
--| @column hier_code_list VARCHAR: <HIERCODELIST>, the file with the hierarchy
--| @column hier_lead_string VARCHAR: <HIERLEADSTRING>, its indent
--| @column hier_levels BIGINT[]: <HIERLEVELS>, the characters of the code that each level has
--| @column distance BIGINT[]: <DISTANCE>
--| @column numeric BOOLEAN: <NUMERIC>
--| @column decimals BIGINT: <DECIMALS>
--| @column weight BOOLEAN: <WEIGHT>, the sampling weight
--| @column frequency BOOLEAN: <FREQUENCY>, the counts of a table
--| @column holding BOOLEAN: <HOLDING>, whose a record is
--| @column request VARCHAR[]: <REQUEST>, the codes of those who asked for protection; NULL for other variables
--| @column other VARCHAR[]: all further keywords, with what follows them
--| @column separator VARCHAR: <SEPARATOR> of the file; NULL for fixed width
--| @example
--| COPY (SELECT unnest(['Region 1 2 99', '  <RECODEABLE>', '  <HIERLEVELS> 1 1', 'Turnover 3 9 999999999', '  <NUMERIC> <DECIMALS> 2']))
--| TO 'firms.rda' (FORMAT csv, HEADER false, DELIMITER '|', QUOTE '');
--| SELECT name, position, width, missing, recodeable, hier_levels, "numeric", decimals FROM sdc_read_rda('firms.rda');
--| @output
--| name     | position | width | missing       | recodeable | hier_levels | numeric | decimals
--| ---------+----------+-------+---------------+------------+-------------+---------+---------
--| Region   |        1 |     2 | ['99']        |       true | [1, 1]      |   false |     NULL
--| Turnover |        3 |     9 | ['999999999'] |      false | NULL        |    true |        2
--| @source format of tau-Argus 4 (its Metadata.java)
CREATE OR REPLACE TEMP MACRO sdc_read_rda(path) AS TABLE
    SELECT * FROM query(_sdc_plan_read_rda(path));

--| sdc_read_hst(path, separator := NULL, total := 'Total') -> TABLE
--| Reads an a priori file of tau-Argus (.hst): what is known of cells beforehand, one line a cell.
--|
--| A line has the codes of a cell, one a dimension, and then one of: `s` safe, never primary; `u` unsafe, primary; `p`
--| protected, always published; `m` and `ml`, secondary; `c` (or `w`) and a cost, the higher the rather published; `pl` and
--| one or two numbers, how far an interval must reach below and above the value. `sdc_apriori_primary` and
--| `sdc_apriori_forced` make suppression follow it.
--|
--| @arg path VARCHAR: the file, as DuckDB finds files
--| @arg separator VARCHAR: one character; NULL: the first of ; tab | , that the first line has
--| @arg total VARCHAR: the code of totals, which becomes NULL; an empty code does too
--| @column line BIGINT: number of the line
--| @column codes VARCHAR[]: the cell
--| @column status VARCHAR: 's', 'u', 'p', 'm' or 'ml'; NULL in a line with c or pl
--| @column cost DOUBLE: what follows c
--| @column lower_protection DOUBLE: what follows pl
--| @column upper_protection DOUBLE: the second number after pl, or the first again
--| @example
--| COPY (SELECT unnest(['North;f;u', 'East;m;s', 'East;Total;p', 'South;m;c;12'])) TO 'people.hst' (FORMAT csv, HEADER false, DELIMITER '|');
--| FROM sdc_read_hst('people.hst');
--| @output
--| line | codes          | status | cost | lower_protection | upper_protection
--| -----+----------------+--------+------+------------------+-----------------
--|    1 | ['North', 'f'] | u      | NULL |             NULL |             NULL
--|    2 | ['East', 'm']  | s      | NULL |             NULL |             NULL
--|    3 | ['East', None] | p      | NULL |             NULL |             NULL
--|    4 | ['South', 'm'] | NULL   | 12.0 |             NULL |             NULL
--| @source format of tau-Argus 4 (its TableSet.java)
CREATE OR REPLACE TEMP MACRO sdc_read_hst(path, separator := NULL, total := 'Total') AS TABLE
    SELECT * FROM query(_sdc_plan_read_hst(path, separator, total));

CREATE OR REPLACE TEMP MACRO _sdc_apriori_in(path, dimensions, separator, total, statuses) AS
    '[' || list_aggregate(list_transform(dimensions::VARCHAR[], lambda name: '"' || replace(name, '"', '""') || '"::VARCHAR'), 'string_agg', ', ')
    || '] IN (SELECT codes FROM sdc_read_hst(''' || replace(path, '''', '''''') || ''', separator := '
    || coalesce('''' || replace(separator, '''', '''''') || '''', 'NULL') || ', total := '
    || coalesce('''' || replace(total, '''', '''''') || '''', 'NULL') || ') WHERE status IN (' || statuses || '))';

--| sdc_apriori_primary(path, dimensions, separator := NULL, total := 'Total') -> VARCHAR
--| The condition for `primary_if` by which suppression follows an a priori file of tau-Argus.
--|
--| Cells of the status `s` are not primary whatever the rules say; those of `u` are, and so are `m` and `ml`, cells that were
--| secondary elsewhere and stay suppressed. All others are left to the rules.
--|
--| @arg path VARCHAR: the file (.hst), as DuckDB finds files
--| @arg dimensions VARCHAR[]: the columns of the publication that the codes in the file belong to, in their order
--| @arg separator VARCHAR: as for `sdc_read_hst`
--| @arg total VARCHAR: as for `sdc_read_hst`
--| @example
--| SELECT region, sex, n, status, why FROM sdc_primary($$
--|     SELECT region, sex, count(*) AS n FROM people GROUP BY GROUPING SETS ((region, sex), (region))
--| $$, max_count := 1, primary_if := sdc_apriori_primary('people.hst', ['region', 'sex']));
--| @output
--| region | sex  | n | status  | why
--| -------+------+---+---------+-----------
--| East   | NULL | 2 | open    | NULL
--| North  | NULL | 5 | open    | NULL
--| South  | NULL | 5 | open    | NULL
--| East   | f    | 1 | primary | max_count
--| East   | m    | 1 | open    | NULL
--| North  | f    | 2 | primary | primary_if
--| North  | m    | 3 | open    | NULL
--| South  | f    | 3 | open    | NULL
--| South  | m    | 2 | open    | NULL
--| @source format of tau-Argus 4 (its TableSet.java)
CREATE OR REPLACE TEMP MACRO sdc_apriori_primary(path, dimensions, separator := NULL, total := 'Total') AS
    'CASE WHEN ' || _sdc_apriori_in(path, dimensions, separator, total, '''s''') || ' THEN NULL ELSE '
    || _sdc_apriori_in(path, dimensions, separator, total, '''u'', ''m'', ''ml''') || ' END';

--| sdc_apriori_forced(path, dimensions, separator := NULL, total := 'Total') -> VARCHAR
--| The condition for `forced_if` by which suppression follows an a priori file of tau-Argus.
--|
--| Cells of the status `p` are published, those that the rules mark among them, where tau-Argus would refuse the line. To
--| let the rules go first, add them: `sdc_apriori_forced(..) || ' AND n > 3'` beside `max_count := 3`.
--|
--| @arg path VARCHAR: the file (.hst), as DuckDB finds files
--| @arg dimensions VARCHAR[]: the columns of the publication that the codes in the file belong to, in their order
--| @arg separator VARCHAR: as for `sdc_read_hst`
--| @arg total VARCHAR: as for `sdc_read_hst`
--| @example
--| SELECT region, sex, n, status FROM sdc_suppress($$
--|     SELECT region, sex, count(*) AS n FROM people GROUP BY GROUPING SETS ((region, sex), (region))
--| $$, max_count := 1, forced_if := sdc_apriori_forced('people.hst', ['region', 'sex']));
--| @output
--| region | sex  |    n | status
--| -------+------+------+--------
--| East   | NULL |    2 | forced
--| North  | NULL |    5 | open
--| South  | NULL |    5 | open
--| East   | f    | NULL | primary
--| East   | m    | NULL | primary
--| North  | f    |    2 | open
--| North  | m    |    3 | open
--| South  | f    |    3 | open
--| South  | m    |    2 | open
--| @source format of tau-Argus 4 (its TableSet.java)
CREATE OR REPLACE TEMP MACRO sdc_apriori_forced(path, dimensions, separator := NULL, total := 'Total') AS
    _sdc_apriori_in(path, dimensions, separator, total, '''p''');
