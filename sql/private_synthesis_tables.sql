-- Differentially private synthesis of tables (temporary macros of a connection with sdcduck).

--| sdc_synth_dp(source, by := [], epsilon := NULL, method := 'ipf', margins := 'twoway', mechanism := 'geometric', neighbours := 'add_remove', count := NULL, domains := NULL, public_domains := false, structural_zeros := NULL, prior_n := 0, total := NULL, rounded := false, tol := 1e-4, max_iter := 5000, zeros := false, records := false) -> TABLE
--| A differentially private synthetic table: noise from OpenDP on the counts, then synthetic records drawn from them.
--|
--| 'catall' puts noise on all cells, 'ipf' on margins, which are then reconciled by iterative proportional fitting. Noisy
--| counts below 0 become (almost) 0, tables are rescaled to one number of records, and as many records are drawn.
--| `epsilon` is for the whole table; margins share it equally. `sdc_synth_dp_statement` says what is promised and what is
--| not private, `sdc_synth_dp_preflight` how much of it would be noise.
--|
--| The noise cannot be seeded: **every call gives another table and spends epsilon again**, also when the same statement is
--| repeated. Store the result once, and publish that. What it costs is written down before the noise is drawn, and is not
--| given back if the statement fails or is interrupted: see `sdc_synth_dp_ledger`. If the table has a budget
--| (`sdc_synth_dp_budget`) a release beyond it is refused. A database that is open for reading only refuses too. Margins, method and categories must not be chosen by looking at
--| the data. Noisy margins may contradict each other so much that the fit does not settle: `converged` is false then, and
--| the table should not be used. A NULL category is a category. Needs the package opendp: pip install 'sdcduck[dp]'.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: unit records, or cells with counts
--| @arg by VARCHAR[]: the columns whose combinations are the cells
--| @arg epsilon DOUBLE: what the whole table costs in privacy, above 0
--| @arg method VARCHAR: 'ipf' (noise on margins) or 'catall' (noise on all cells)
--| @arg margins VARCHAR or VARCHAR[][]: for 'ipf': 'twoway', 'oneway', or lists of columns
--| @arg mechanism VARCHAR: 'geometric' (whole numbers) or 'laplace'
--| @arg neighbours VARCHAR: 'add_remove' (a record is there or not) or 'replace' (a record is another; twice the noise, and the number of records is public)
--| @arg count VARCHAR: column of the counts; NULL: each row is a record
--| @arg domains STRUCT of lists: the categories of each column, e.g. {'sex': ['f', 'm']}
--| @arg public_domains BOOLEAN: whether the categories of other columns may be read from the data, because all know them
--| @arg structural_zeros VARCHAR: condition on the columns of `by` under which a cell cannot exist; it is taken to be public
--| @arg prior_n DOUBLE: records added to each noisy table, spread evenly over its cells
--| @arg total BIGINT: number of synthetic records, if it is public; NULL: estimated from the noisy tables
--| @arg rounded BOOLEAN: round the fitted table to whole numbers, instead of drawing from it
--| @arg tol DOUBLE: the fit has settled when a sweep changes no cell by as much
--| @arg max_iter BIGINT: sweeps of the fit after which it is given up
--| @arg zeros BOOLEAN: whether cells with count 0 are shown
--| @arg records BOOLEAN: one row for each synthetic record, shuffled, instead of counts
--| @column .. as in `source`: the columns of `by`, and `count` BIGINT (not with `records`)
--| @column converged BOOLEAN: whether the fit has settled; the same in all rows
--| @example
--| SELECT region, sex, count = original AS as_it_was, converged
--| FROM sdc_synth_dp('people', by := ['region', 'sex'], epsilon := 1e6, method := 'catall', rounded := true,
--|     domains := {'region': ['North', 'South', 'East'], 'sex': ['f', 'm']})
--| JOIN (SELECT region, sex, count(*) AS original FROM people GROUP BY ALL) USING (region, sex) ORDER BY ALL;
--| @output
--| region | sex | as_it_was | converged
--| -------+-----+-----------+----------
--| East   | f   |      true |      true
--| East   | m   |      true |      true
--| North  | f   |      true |      true
--| North  | m   |      true |      true
--| South  | f   |      true |      true
--| South  | m   |      true |      true
--| @source Raab (2022), PSD; Dwork, McSherry, Nissim & Smith (2006); Ghosh, Roughgarden & Sundararajan (2009); OpenDP
CREATE OR REPLACE TEMP MACRO sdc_synth_dp(
    source, by := [], epsilon := NULL, method := 'ipf', margins := 'twoway', mechanism := 'geometric',
    neighbours := 'add_remove', count := NULL, domains := NULL, public_domains := false, structural_zeros := NULL,
    prior_n := 0, total := NULL, rounded := false, tol := 1e-4, max_iter := 5000, zeros := false, records := false
) AS TABLE
    SELECT * FROM query(_sdc_plan_synth_dp(
        source::VARCHAR, "by"::VARCHAR[], epsilon, method::VARCHAR, to_json(margins)::VARCHAR, mechanism::VARCHAR,
        neighbours::VARCHAR, count::VARCHAR, to_json(domains)::VARCHAR, public_domains, structural_zeros::VARCHAR, prior_n,
        total, rounded, tol, max_iter, zeros, records));

--| sdc_synth_dp_statement(source, by := [], epsilon := NULL, method := 'ipf', margins := 'twoway', mechanism := 'geometric', neighbours := 'add_remove', count := NULL, domains := NULL, public_domains := false, structural_zeros := NULL, prior_n := 0, total := NULL) -> TABLE
--| What `sdc_synth_dp` with the same arguments promises, table by table, and all that is not private.
--|
--| It looks at the arguments only and spends nothing. `epsilon` of a table is what OpenDP certifies for its noise.
--|
--| @arg source VARCHAR: as in `sdc_synth_dp`
--| @arg by VARCHAR[]: the columns whose combinations are the cells
--| @arg epsilon DOUBLE: what the whole table costs in privacy
--| @arg method VARCHAR: 'ipf' or 'catall'
--| @arg margins VARCHAR or VARCHAR[][]: for 'ipf': 'twoway', 'oneway', or lists of columns
--| @arg mechanism VARCHAR: 'geometric' or 'laplace'
--| @arg neighbours VARCHAR: 'add_remove' or 'replace'
--| @arg count VARCHAR: column of the counts
--| @arg domains STRUCT of lists: the categories of each column
--| @arg public_domains BOOLEAN: whether the categories of other columns are read from the data
--| @arg structural_zeros VARCHAR: condition under which a cell cannot exist
--| @arg prior_n DOUBLE: records added to each noisy table
--| @arg total BIGINT: number of synthetic records, if it is public
--| @column item VARCHAR: what is spoken of
--| @column value VARCHAR: what holds of it
--| @column epsilon DOUBLE: what it costs, where it costs
--| @column private BOOLEAN: true: it is protected; false: it is not, and has to be public
--| @example
--| SELECT item, value, round(epsilon, 3) AS epsilon, private
--| FROM sdc_synth_dp_statement('people', by := ['region', 'sex'], epsilon := 1, margins := 'oneway',
--|     domains := {'sex': ['f', 'm']}, public_domains := true);
--| @output
--| item                 | value                                                                            | epsilon | private
--| ---------------------+----------------------------------------------------------------------------------+---------+--------
--| privacy              | epsilon-differential privacy; composition: sum over the 2 noisy table(s)         |     1.0 |    true
--| neighbours           | tables that differ by one record, there or not there                             |    NULL |    NULL
--| unit                 | one record; whoever has several is protected less, by their number times epsilon |    NULL |    NULL
--| noise                | two-sided geometric, scale 2, by OpenDP; not reproducible, no seed               |    NULL |    NULL
--| table region         | sensitivity 1                                                                    |     0.5 |    true
--| table sex            | sensitivity 1                                                                    |     0.5 |    true
--| number of records    | estimated from the noisy tables                                                  |    NULL |    true
--| categories of region | from the data, said to be public                                                 |    NULL |   false
--| categories of sex    | given in the statement                                                           |    NULL |   false
--| errors               | that a record has a category or a combination that is not foreseen is told       |    NULL |   false
--| repetition           | every call draws new noise and spends epsilon again, see sdc_synth_dp_ledger     |    NULL |    NULL
--| @source Raab (2022), PSD; OpenDP
CREATE OR REPLACE TEMP MACRO sdc_synth_dp_statement(
    source, by := [], epsilon := NULL, method := 'ipf', margins := 'twoway', mechanism := 'geometric',
    neighbours := 'add_remove', count := NULL, domains := NULL, public_domains := false, structural_zeros := NULL,
    prior_n := 0, total := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_synth_dp_statement(
        source::VARCHAR, "by"::VARCHAR[], epsilon, method::VARCHAR, to_json(margins)::VARCHAR, mechanism::VARCHAR,
        neighbours::VARCHAR, count::VARCHAR, to_json(domains)::VARCHAR, public_domains, structural_zeros::VARCHAR, prior_n,
        total));

--| sdc_synth_dp_preflight(source, by := [], epsilon := NULL, margins := 'twoway', neighbours := 'add_remove', count := NULL, domains := NULL, structural_zeros := NULL) -> TABLE
--| How much of a differentially private table would be data, and how much noise: one row a method, before anything is drawn.
--|
--| Noise that is cut off at 0 makes records out of empty cells, half its scale each. `signal_share` is the share of real
--| records in what comes out (of the worst margin). The figures are exact and **not private**: they are for the custodian,
--| and a method chosen because of them is not chosen blindly.
--|
--| @arg source VARCHAR: as in `sdc_synth_dp`
--| @arg by VARCHAR[]: the columns whose combinations are the cells
--| @arg epsilon DOUBLE: what the whole table costs in privacy
--| @arg margins VARCHAR or VARCHAR[][]: for 'ipf': 'twoway', 'oneway', or lists of columns
--| @arg neighbours VARCHAR: 'add_remove' or 'replace'
--| @arg count VARCHAR: column of the counts
--| @arg domains STRUCT of lists: the categories of columns; those of the data where a column is left out
--| @arg structural_zeros VARCHAR: condition under which a cell cannot exist
--| @column method VARCHAR: 'catall' or 'ipf'
--| @column tables BIGINT: number of tables that share epsilon
--| @column scale DOUBLE: scale of the noise of a count
--| @column records BIGINT: number of records
--| @column cells BIGINT: number of cells that can exist
--| @column empty BIGINT: those of them without records
--| @column uniques BIGINT: cells with one record
--| @column p0 DOUBLE: empty cells, per cent of all
--| @column p1 DOUBLE: uniques, per cent of the records
--| @column signal_share DOUBLE: share of real records, about
--| @column advice VARCHAR: 'good' from 0.95 on, or what to expect
--| @example
--| SELECT method, tables, scale, cells, empty, round(signal_share, 3) AS signal_share, advice
--| FROM sdc_synth_dp_preflight('people', by := ['region', 'sex', 'age'], epsilon := 1);
--| @output
--| method | tables | scale | cells | empty | signal_share | advice
--| -------+--------+-------+-------+-------+--------------+--------------------------
--| catall |      1 |   1.0 |    72 |    60 |        0.286 | most of it would be noise
--| ipf    |      3 |   3.0 |    72 |    60 |         0.25 | most of it would be noise
--| @source Raab (2022), PSD; signal share: this project
CREATE OR REPLACE TEMP MACRO sdc_synth_dp_preflight(
    source, by := [], epsilon := NULL, margins := 'twoway', neighbours := 'add_remove', count := NULL, domains := NULL,
    structural_zeros := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_synth_dp_preflight(
        source::VARCHAR, "by"::VARCHAR[], epsilon, to_json(margins)::VARCHAR, neighbours::VARCHAR, count::VARCHAR,
        to_json(domains)::VARCHAR, structural_zeros::VARCHAR));

--| sdc_synth_dp_budget(data, epsilon, neighbours := 'add_remove') -> TABLE
--| Sets what all differentially private releases of a table may cost together; a release beyond it is refused.
--|
--| What the table has been charged already counts (`sdc_synth_dp_ledger`). A new budget takes the place of the old one;
--| NULL takes it away, and the ledger stays. A view stands for the one table that it reads.
--|
--| @arg data VARCHAR: a table
--| @arg epsilon DOUBLE: the sum over its releases; 0: no more of them; NULL: no budget
--| @arg neighbours VARCHAR: the relation under which is counted: 'add_remove' or 'replace'
--| @column data VARCHAR: the table
--| @column neighbours VARCHAR: the relation
--| @column budget DOUBLE: the budget
--| @example
--| FROM sdc_synth_dp_budget('people', 4);
--| @output
--| data   | neighbours | budget
--| -------+------------+-------
--| people | add_remove |    4.0
--| @source sequential composition: Dwork, McSherry, Nissim & Smith (2006)
CREATE OR REPLACE TEMP MACRO sdc_synth_dp_budget(data, epsilon, neighbours := 'add_remove') AS TABLE
    SELECT * FROM query(_sdc_plan_synth_dp_budget(data::VARCHAR, epsilon, neighbours::VARCHAR));
