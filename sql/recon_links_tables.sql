-- Names for reconstructed records, and the luck in them (temporary macros of a connection with sdcduck).

--| sdc_recon_link(records, external, match := [], near := NULL, tolerance := 1, id := 'id', order := [], slot := 'slot', draw := 'draw') -> TABLE
--| Gives every record of every reconstruction the name of a person, as an attacker with a list of people would.
--|
--| First each record, in the order of `slot`, gets the first person who agrees in the columns of `match` and in the number
--| `near`, such as block, sex and age; then those without a name get the first person whose number is at most `tolerance`
--| off. Nobody is named twice in a draw. What is NULL agrees with nobody. Ask `sdc_recon_agreement` how far the draws agree.
--|
--| @arg records VARCHAR: a table, view or query in parentheses: one row a record and draw, as of `sdc_reconstruct`
--| @arg external VARCHAR: people with their names: a table, view or query in parentheses
--| @arg match VARCHAR[]: columns that both have, in which a record and its person agree
--| @arg near VARCHAR: column of numbers that both have, which may be off; NULL: there is none
--| @arg tolerance DOUBLE: by how much
--| @arg id VARCHAR: column of the names in `external`: one of each, no NULL
--| @arg order VARCHAR[]: columns by which the people are gone through, before the name
--| @arg slot VARCHAR: column of the number of the record
--| @arg draw VARCHAR: column of the number of the reconstruction
--| @column .. as in `external`: the name; NULL: the record got none
--| @column draw BIGINT: number of the reconstruction
--| @column slot BIGINT: number of the record
--| @column exact BOOLEAN: whether the number is the very one; NULL: no name
--| @example
--| FROM sdc_recon_link(
--|     '(FROM (VALUES (1, 1, ''b1'', 30), (1, 2, ''b1'', 31), (1, 3, ''b2'', 30)) v(draw, slot, block, age))',
--|     '(FROM (VALUES (''ann'', ''b1'', 31), (''bob'', ''b1'', 31)) v(id, block, age))', match := ['block'], near := 'age');
--| @output
--| id   | draw | slot | exact
--| -----+------+------+------
--| bob  |    1 |    1 | false
--| ann  |    1 |    2 |  true
--| NULL |    1 |    3 |  NULL
--| @source Muralidhar (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_recon_link(records, external, match := [], near := NULL, tolerance := 1, id := 'id', "order" := [], slot := 'slot', draw := 'draw') AS TABLE
    SELECT * FROM query(_sdc_plan_recon_link(records::VARCHAR, external::VARCHAR, match::VARCHAR[], near::VARCHAR, tolerance, id::VARCHAR, "order"::VARCHAR[], slot::VARCHAR, draw::VARCHAR));

--| sdc_recon_designations(links, attribute := NULL, id := 'id') -> TABLE
--| What every person is taken to be in the reconstructions: an attacker's harvest, by person and value.
--|
--| @arg links VARCHAR: a table, view or query in parentheses: one row a record that got a name, with what the record says
--| @arg attribute VARCHAR: column of what the record says, such as race
--| @arg id VARCHAR: column of the names; rows without one are left out
--| @column .. as in `links`: the name, and the value of the attribute
--| @column draws BIGINT: draws in which the person is said to have it
--| @column share DOUBLE: their share of the draws in which the person was found
--| @column modal BOOLEAN: whether no other value is said more often
--| @example
--| FROM sdc_recon_designations(
--|     '(FROM (VALUES (1, ''ann'', ''W''), (2, ''ann'', ''B''), (3, ''ann'', ''W''), (1, ''bob'', ''W'')) v(draw, id, race))',
--|     attribute := 'race');
--| @output
--| id  | race | draws |              share | modal
--| ----+------+-------+--------------------+------
--| ann | W    |     2 | 0.6666666666666666 |  true
--| ann | B    |     1 | 0.3333333333333333 | false
--| bob | W    |     1 |                1.0 |  true
--| @source Muralidhar (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_recon_designations(links, attribute := NULL, id := 'id') AS TABLE
    SELECT * FROM query(_sdc_plan_recon_designations(links::VARCHAR, attribute::VARCHAR, id::VARCHAR));

--| sdc_recon_refutations(links, claim := 1, slot := 'slot', draw := 'draw', id := 'id') -> TABLE
--| Whom else the records of one reconstruction are taken for in the others: a custodian's counter-examples to a claim.
--|
--| @arg links VARCHAR: a table, view or query in parentheses: one row a draw and record, with the name it was linked to
--| @arg claim BIGINT: the draw whose names somebody claims to be right
--| @arg slot VARCHAR: column of the records
--| @arg draw VARCHAR: column of the draws
--| @arg id VARCHAR: column of the names; NULL: not linked
--| @column .. as in `links`: the record and the name that is claimed, and `others`, a list of the other names it got
--| @column unlinked BIGINT: draws in which it got none
--| @example
--| FROM sdc_recon_refutations('(FROM (VALUES (1, 1, ''ann''), (1, 2, ''bob''), (1, 3, NULL), (2, 1, ''eve'')) v(slot, draw, id))');
--| @output
--| slot | id  | others  | unlinked
--| -----+-----+---------+---------
--|    1 | ann | ['bob'] |        1
--|    2 | eve | []      |        0
--| @source Muralidhar (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_recon_refutations(links, claim := 1, slot := 'slot', draw := 'draw', id := 'id') AS TABLE
    SELECT * FROM query(_sdc_plan_recon_refutations(links::VARCHAR, claim, slot::VARCHAR, draw::VARCHAR, id::VARCHAR));

--| sdc_chance_match(source, unit := NULL, keys := [], near := NULL, tolerance := 0, attribute := NULL) -> TABLE
--| How much of a reconstruction is right by luck: what a file drawn at random, that knows only the sizes of the units, hits.
--|
--| Two files are filled with people drawn from the whole, unit by unit; the expected hits are computed, not drawn. An attack on
--| a table has to be compared with this: in a large unit somebody of every common age and sex is always there.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a person
--| @arg unit VARCHAR: column of the units, such as blocks; no NULL
--| @arg keys VARCHAR[]: columns that are reconstructed, such as sex and age; NULL is a value
--| @arg near VARCHAR: column of numbers that is reconstructed too, and may be off, such as age; NULL: there is none
--| @arg tolerance DOUBLE: by how much
--| @arg attribute VARCHAR: column that is guessed besides, always as the most frequent value of the unit; NULL: none
--| @column persons BIGINT: people
--| @column units BIGINT: units
--| @column combinations BIGINT: different combinations of the keys
--| @column matched DOUBLE: share of people for whom somebody alike is in the random file
--| @column matched_once DOUBLE: the same, where each one of the random file counts for one person only; NULL: not with a tolerance
--| @column modal_share DOUBLE: share of people whose attribute is the most frequent of their unit
--| @column by_luck DOUBLE: `matched` times `modal_share`: all right, keys and attribute
--| @example
--| SELECT persons, units, combinations, round(matched, 4) AS matched, round(matched_once, 4) AS matched_once, by_luck
--| FROM sdc_chance_match('people', unit := 'region', keys := ['sex']);
--| @output
--| persons | units | combinations | matched | matched_once | by_luck
--| --------+-------+--------------+---------+--------------+--------
--|      12 |     3 |            2 |  0.9323 |       0.7324 |    NULL
--| @source Francis (2022), PSD; Ruggles and Van Riper (2021)
CREATE OR REPLACE TEMP MACRO sdc_chance_match(source, unit := NULL, keys := [], near := NULL, tolerance := 0, attribute := NULL) AS TABLE
    SELECT * FROM query(_sdc_plan_chance_match(source::VARCHAR, unit::VARCHAR, keys::VARCHAR[], near::VARCHAR, tolerance, attribute::VARCHAR));
