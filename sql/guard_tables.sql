-- Table functions that declare policies. They call Python while a statement is bound.

--| sdc_protect(tbl, unit := NULL, record_key := 'record_key', dimensions := [], measures := [], method := 'cell_key', ptable := 'default', magnitude_ptable := 'default_magnitude', min_units := NULL, base := 3, publication := NULL, population := NULL, role := '', preview := NULL) -> TABLE
--| Declares a table or view as unit-level records, and how questions about it are answered.
--|
--| Nothing changes for whoever holds the connection. `sdcduck.open_guard(con)` answers analysts under the policy: they see the
--| dimensions and measures only, and get protected numbers only. Whatever can be wrong is looked for now: columns that are
--| not there, NULL units, keys that are missing or out of range, a view that fails for some of its rows. Replaces an
--| earlier policy of the table.
--|
--| @arg tbl VARCHAR: the table or view
--| @arg unit VARCHAR: column that identifies the unit (person, firm)
--| @arg record_key VARCHAR: column with the record keys (cell_key, rounding)
--| @arg dimensions VARCHAR[]: columns to group by and filter on
--| @arg measures VARCHAR[]: numeric columns to add up
--| @arg method VARCHAR: cell_key, suppression, threshold or rounding
--| @arg ptable VARCHAR: p-table for counts (cell_key)
--| @arg magnitude_ptable VARCHAR: p-table for sums (cell_key)
--| @arg min_units INTEGER: groups of fewer units are left out; threshold needs it, elsewhere NULL is 1
--| @arg base INTEGER: counts become multiples of it, at random and without bias (rounding)
--| @arg publication VARCHAR: name of the stored publication that answers (suppression)
--| @arg population VARCHAR: a name for what the units are, such as 'persons'; tables of one population, with the same
--|      identifiers and record keys for the same units, may be joined on the unit. NULL: with no other table
--| @arg role VARCHAR: whom the policy is for (`sdcduck.open_guard(con, role=..)`); '': everybody without a policy of their own
--| @arg preview VARCHAR: a table or view of made-up rows, with the same dimensions and measures, that answers
--|      `SELECT * FROM tbl LIMIT 10` of people and programs who want to see what the table looks like. NULL: nothing does
--| @column name VARCHAR: the table or view
--| @column method VARCHAR: how it is answered
--| @column rows BIGINT: its records
--| @column units BIGINT: its units
--| @column one_row_per_unit BOOLEAN: where not, the rows of a unit are brought together before noise is added
--| @example
--| FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex', 'age'], measures := ['income']);
--| @output
--| name   | method   | rows | units | one_row_per_unit
--| -------+----------+------+-------+-----------------
--| people | cell_key |   12 |    12 |             true
--| @source this project
CREATE OR REPLACE MACRO sdc_protect(
    tbl, unit := NULL, record_key := 'record_key', dimensions := [], measures := [], method := 'cell_key',
    ptable := 'default', magnitude_ptable := 'default_magnitude', min_units := NULL, base := 3, publication := NULL,
    population := NULL, role := '', preview := NULL
) AS TABLE
    SELECT * FROM query(_sdc_with_python(_sdc_plan_protect(
        tbl::VARCHAR, unit::VARCHAR, record_key::VARCHAR, dimensions::VARCHAR[], measures::VARCHAR[], method::VARCHAR,
        ptable::VARCHAR, magnitude_ptable::VARCHAR, min_units::VARCHAR, base::VARCHAR, publication::VARCHAR, population::VARCHAR,
        role::VARCHAR, preview::VARCHAR, list_value(current_database(), current_schema()))));

--| sdc_public(tbl, role := '') -> TABLE
--| Declares a table or view as public: analysts read it freely. A view that fails for some of its rows is refused.
--|
--| @arg tbl VARCHAR: the table or view
--| @arg role VARCHAR: for whom; '': for everybody without a policy of their own
--| @column name VARCHAR: the table or view
--| @column columns BIGINT: its columns
--| @example
--| FROM sdc_public('visits');
--| @output
--| name   | columns
--| -------+--------
--| visits |       3
--| @source this project
CREATE OR REPLACE MACRO sdc_public(tbl, role := '') AS TABLE
    SELECT * FROM query(_sdc_with_python(
        _sdc_plan_public(tbl::VARCHAR, role::VARCHAR, list_value(current_database(), current_schema()))));

--| sdc_unprotect(tbl, role := '') -> TABLE
--| Takes a policy back: analysts do not see the table or view any more.
--|
--| @arg tbl VARCHAR: the table or view
--| @arg role VARCHAR: whose policy
--| @column name VARCHAR: the table or view
--| @example
--| FROM sdc_unprotect('visits');
--| @output
--| name
--| ------
--| visits
--| @source this project
