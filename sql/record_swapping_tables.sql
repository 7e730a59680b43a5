-- Targeted record swapping (temporary macros of a connection with sdcduck).

--| sdc_record_swap(source, household := NULL, hierarchy := [], similar := [], risk_variables := [], k_anonymity := 3, swaprate := 0.05, carry_along := [], return_swapped_id := false, seed := NULL) -> TABLE
--| Households that stand out change place with similar households of other areas.
--|
--| A person is at risk in an area where fewer than `k_anonymity` persons have the same risk variables, and the household
--| with them. All households at risk are swapped if there is anybody to swap with, across the widest level of the
--| geography at which they are at risk; others follow until the share `swaprate` of the households has moved. A donor
--| agrees in the first list of `similar`, or else in the next one; the riskier, the likelier it is chosen. The columns of
--| `hierarchy` and `carry_along` change place, for all members; nothing else changes, and no household moves twice. All
--| tables by areas keep their numbers of households; tables without geography do not change at all.
--|
--| The same secret, seed and data give the same swap, whatever the order of the records. Whoever knows secret and seed may
--| undo it. Risk variables and `similar` may be NULL, which is a category; household and geography may not. A household
--| has one place, and one value of each column of `similar` and `carry_along`. A source that is a query is read twice and
--| must give the same records. Rows come in no order.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses, with one row a person
--| @arg household VARCHAR: the column that tells which records move together
--| @arg hierarchy VARCHAR[]: the columns of the geography, the widest first; areas must nest
--| @arg similar VARCHAR[] or VARCHAR[][]: what must be equal in two households, such as their size; several lists: in order of preference
--| @arg risk_variables VARCHAR[]: the columns whose rare combinations make a person stand out
--| @arg k_anonymity BIGINT: how many persons must be alike in an area; 0: nobody is at risk
--| @arg swaprate DOUBLE: share of the households that is to change place; more do if more are at risk
--| @arg carry_along VARCHAR[]: further columns of the place, such as a grid cell
--| @arg return_swapped_id BOOLEAN: whether to add the columns that tell what was done; keep them to yourself
--| @arg seed BIGINT: beside the secret of the connection; without a secret it must be given, and kept
--| @column .. as in `source`: its columns, and `swapped_with`: the household it changed place with, or NULL (only with `return_swapped_id`)
--| @column swap_level VARCHAR: the column of `hierarchy` across whose areas it moved (only with `return_swapped_id`)
--| @column at_risk_level VARCHAR: the widest one at which it is at risk (only with `return_swapped_id`)
--| @example
--| SELECT person_id, p.region AS was, s.region, swapped_with, at_risk_level
--| FROM sdc_record_swap('people', household := 'person_id', hierarchy := ['region'], similar := ['sex'],
--|     risk_variables := ['sex'], k_anonymity := 2, swaprate := 0.3, seed := 20240917, return_swapped_id := true) s
--| JOIN people p USING (person_id)
--| WHERE swapped_with IS NOT NULL ORDER BY person_id;
--| @output
--| person_id | was   | region | swapped_with | at_risk_level
--| ----------+-------+--------+--------------+--------------
--|         3 | North | East   |           11 | NULL
--|         5 | North | South  |           10 | NULL
--|         8 | South | East   |           12 | NULL
--|        10 | South | North  |            5 | NULL
--|        11 | East  | North  |            3 | region
--|        12 | East  | South  |            8 | region
--| @source De Wolf et al. (2019); Geyer, Tent, Reiffert & Giessing (2022), PSD; behaviour as recordSwap of R package sdcMicro
CREATE OR REPLACE TEMP MACRO sdc_record_swap(
    source, household := NULL, hierarchy := [], similar := [], risk_variables := [], k_anonymity := 3, swaprate := 0.05,
    carry_along := [], return_swapped_id := false, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_record_swap(
        source::VARCHAR, household::VARCHAR, hierarchy::VARCHAR[], to_json("similar")::VARCHAR, risk_variables::VARCHAR[],
        k_anonymity, swaprate, carry_along::VARCHAR[], return_swapped_id, seed::VARCHAR));

--| sdc_record_swap_report(source, household := NULL, hierarchy := [], similar := [], risk_variables := [], k_anonymity := 3, swaprate := 0.05, carry_along := [], seed := NULL) -> TABLE
--| What `sdc_record_swap` with the same arguments does: who was at risk, who moved, and why the others did not.
--|
--| One row for each level of the geography, and one for all (`level` is NULL). At risk are `at_risk_swapped + no_similar +
--| no_donor_left` households. Its figures tell of the original data: they are for the custodian.
--|
--| @arg source VARCHAR: as in `sdc_record_swap`
--| @arg household VARCHAR: the column that tells which records move together
--| @arg hierarchy VARCHAR[]: the columns of the geography, the widest first
--| @arg similar VARCHAR[] or VARCHAR[][]: what must be equal in two households
--| @arg risk_variables VARCHAR[]: the columns whose rare combinations make a person stand out
--| @arg k_anonymity BIGINT: how many persons must be alike in an area
--| @arg swaprate DOUBLE: share of the households that is to change place
--| @arg carry_along VARCHAR[]: further columns of the place
--| @arg seed BIGINT: the seed of the swap
--| @column level VARCHAR: column of `hierarchy`, or NULL for all levels together
--| @column households BIGINT: number of households
--| @column at_risk BIGINT: households for which this is the widest level at which they are at risk
--| @column at_risk_swapped BIGINT: those of them that changed place
--| @column no_similar BIGINT: those of them that have no similar household in any other area
--| @column no_donor_left BIGINT: those of them whose similar households had all moved already
--| @column swapped BIGINT: households that changed place across this level, at risk or not
--| @column wanted BIGINT: households that `swaprate` asks for, in the row for all
--| @column rate DOUBLE: share of the households that changed place across this level
--| @example
--| FROM sdc_record_swap_report('people', household := 'person_id', hierarchy := ['region'], similar := ['sex'],
--|     risk_variables := ['sex'], k_anonymity := 2, swaprate := 0.3, seed := 20240917);
--| @output
--| level  | households | at_risk | at_risk_swapped | no_similar | no_donor_left | swapped | wanted | rate
--| -------+------------+---------+-----------------+------------+---------------+---------+--------+-----
--| region |         12 |       2 |               2 |          0 |             0 |       6 |   NULL |  0.5
--| NULL   |         12 |       2 |               2 |          0 |             0 |       6 |      4 |  0.5
--| @source De Wolf et al. (2019); Geyer, Tent, Reiffert & Giessing (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_record_swap_report(
    source, household := NULL, hierarchy := [], similar := [], risk_variables := [], k_anonymity := 3, swaprate := 0.05,
    carry_along := [], seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_record_swap_report(
        source::VARCHAR, household::VARCHAR, hierarchy::VARCHAR[], to_json("similar")::VARCHAR, risk_variables::VARCHAR[],
        k_anonymity, swaprate, carry_along::VARCHAR[], seed::VARCHAR));
