-- Disclosure risk of records: the functions that need Python (temporary macros of a connection with sdcduck).

--| sdc_classes(source, keys := [], weight := NULL, nulls := 'category') -> TABLE
--| The classes of a table: how many records have the same values of the keys.
--|
--| A class of one record is a unique: whoever knows these things of a person, and that the person is in the data, has found
--| the record.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg weight VARCHAR: column of sampling weights; NULL: there is none
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out; 'match': NULL may be any value, as in sdcMicro
--| @column .. as in `source`: the columns of `keys`
--| @column records BIGINT: records of the class
--| @column population DOUBLE: sum of their weights, an estimate of how many persons are like them; NULL without weights
--| @example
--| FROM sdc_classes('people', keys := ['region', 'sex']) ORDER BY region, sex;
--| @output
--| region | sex | records | population
--| -------+-----+---------+-----------
--| East   | f   |       1 |       NULL
--| East   | m   |       1 |       NULL
--| North  | f   |       2 |       NULL
--| North  | m   |       3 |       NULL
--| South  | f   |       3 |       NULL
--| South  | m   |       2 |       NULL
--| @source Hundepool et al. (2012), Statistical Disclosure Control, ch. 3
CREATE OR REPLACE TEMP MACRO sdc_classes(source, keys := [], weight := NULL, nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_classes(source::VARCHAR, keys::VARCHAR[], weight::VARCHAR, nulls::VARCHAR));

--| sdc_k_anonymity(source, keys := [], k := 3, nulls := 'category') -> TABLE
--| How anonymous a table is: the size of its smallest class, its uniques, and who is in a class of fewer than k.
--|
--| `max_risk` and `mean_risk` are those of somebody who knows who is in the data: one in the smallest class, and the share of
--| records that would be linked rightly. k bounds the former only: look at both. An empty table has no k.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg k BIGINT: the size that is asked for
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out; 'match': NULL may be any value, as in sdcMicro
--| @column records BIGINT: records
--| @column classes BIGINT: classes
--| @column k BIGINT: records of the smallest class: the table is k-anonymous
--| @column uniques BIGINT: records that are alone in their class
--| @column share_unique DOUBLE: their share
--| @column below_k BIGINT: records in classes of fewer than `k`
--| @column share_below_k DOUBLE: their share
--| @column mean_risk DOUBLE: mean of 1/class size over the records
--| @column max_risk DOUBLE: 1/k of the smallest class
--| @example
--| FROM sdc_k_anonymity('people', keys := ['region', 'sex']);
--| @output
--| records | classes | k | uniques |        share_unique | below_k | share_below_k | mean_risk | max_risk
--| --------+---------+---+---------+---------------------+---------+---------------+-----------+---------
--|      12 |       6 | 1 |       2 | 0.16666666666666666 |       6 |           0.5 |       0.5 |      1.0
--| @source Samarati and Sweeney (1998)
CREATE OR REPLACE TEMP MACRO sdc_k_anonymity(source, keys := [], k := 3, nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_k_anonymity(source::VARCHAR, keys::VARCHAR[], k, nulls::VARCHAR));

--| sdc_l_diversity(source, keys := [], sensitive := NULL, c := 2, nulls := 'category') -> TABLE
--| What can be learned without finding a record: how diverse the sensitive values are in the least diverse class.
--|
--| Three measures: the number of different values, exp of their entropy, and the largest l for which the most frequent value
--| has fewer than c times as many records as the values from the l-th most frequent on have together. NULL is a value.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg sensitive VARCHAR: the column that nobody should learn
--| @arg c DOUBLE: of recursive (c, l)-diversity
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out; 'skip': those whose `sensitive` is NULL too
--| @column records BIGINT: records
--| @column classes BIGINT: classes
--| @column distinct_l BIGINT: number of different values in the worst class
--| @column entropy_l DOUBLE: exp of the entropy of the values in the worst class
--| @column recursive_l BIGINT: the largest l for which every class is recursively (c, l)-diverse; 0: none
--| @column homogeneous BIGINT: records in classes with a single value: their value is known without finding them
--| @column share_homogeneous DOUBLE: their share
--| @example
--| FROM sdc_l_diversity('people', keys := ['region', 'sex'], sensitive := 'income');
--| @output
--| records | classes | distinct_l | entropy_l | recursive_l | homogeneous |   share_homogeneous
--| --------+---------+------------+-----------+-------------+-------------+--------------------
--|      12 |       6 |          1 |       1.0 |           1 |           2 | 0.16666666666666666
--| @source Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam (2007)
CREATE OR REPLACE TEMP MACRO sdc_l_diversity(source, keys := [], sensitive := NULL, c := 2, nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_l_diversity(source::VARCHAR, keys::VARCHAR[], sensitive::VARCHAR, c, nulls::VARCHAR));

--| sdc_l_diversity_classes(source, keys := [], sensitive := NULL, c := 2, nulls := 'category') -> TABLE
--| How diverse the sensitive values are in each class.
--|
--| Three measures: the number of different values, exp of their entropy, and the largest l for which the most frequent value
--| has fewer than c times as many records as the values from the l-th most frequent on have together. NULL is a value.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg sensitive VARCHAR: the column that nobody should learn
--| @arg c DOUBLE: of recursive (c, l)-diversity
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out; 'skip': those whose `sensitive` is NULL too
--| @column .. as in `source`: the columns of `keys`
--| @column records BIGINT: records of the class
--| @column distinct_l BIGINT: number of different values
--| @column entropy_l DOUBLE: exp of the entropy of the values
--| @column recursive_l BIGINT: the largest l for which the class is recursively (c, l)-diverse; 0: none
--| @example
--| SELECT region, sex, records, distinct_l, round(entropy_l, 3) AS entropy_l, recursive_l
--| FROM sdc_l_diversity_classes('people', keys := ['region', 'sex'], sensitive := 'income') ORDER BY region, sex;
--| @output
--| region | sex | records | distinct_l | entropy_l | recursive_l
--| -------+-----+---------+------------+-----------+------------
--| East   | f   |       1 |          1 |       1.0 |           1
--| East   | m   |       1 |          1 |       1.0 |           1
--| North  | f   |       2 |          2 |       2.0 |           2
--| North  | m   |       3 |          3 |       3.0 |           3
--| South  | f   |       3 |          3 |       3.0 |           3
--| South  | m   |       2 |          2 |       2.0 |           2
--| @source Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam (2007)
CREATE OR REPLACE TEMP MACRO sdc_l_diversity_classes(source, keys := [], sensitive := NULL, c := 2, nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_l_diversity_classes(source::VARCHAR, keys::VARCHAR[], sensitive::VARCHAR, c, nulls::VARCHAR));

--| sdc_t_closeness(source, keys := [], sensitive := NULL, ordered := NULL, nulls := 'category') -> TABLE
--| What can be learned without finding a record: how far the sensitive values of a class are from those of all records.
--|
--| The earth mover's distance. Ordered values (numbers, dates): a value is as far from another as there are values between
--| them, from 0 to 1. Others: all are equally far, and the distance is the total variation; NULL is a value there.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg sensitive VARCHAR: the column that nobody should learn
--| @arg ordered BOOLEAN: whether the order of the values counts; NULL: for numbers and dates
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out; 'skip': those whose `sensitive` is NULL too
--| @column records BIGINT: records
--| @column classes BIGINT: classes
--| @column t DOUBLE: the largest distance of a class
--| @column mean_distance DOUBLE: mean over the records
--| @example
--| FROM sdc_t_closeness('people', keys := ['region'], sensitive := 'income');
--| @output
--| records | classes |                 t |       mean_distance
--| --------+---------+-------------------+--------------------
--|      12 |       3 | 0.196969696969697 | 0.14015151515151517
--| @source Li, Li and Venkatasubramanian (2007)
CREATE OR REPLACE TEMP MACRO sdc_t_closeness(source, keys := [], sensitive := NULL, ordered := NULL, nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_t_closeness(source::VARCHAR, keys::VARCHAR[], sensitive::VARCHAR, ordered, nulls::VARCHAR));

--| sdc_t_closeness_classes(source, keys := [], sensitive := NULL, ordered := NULL, nulls := 'category') -> TABLE
--| How far the distribution of the sensitive values in each class is from that of all records.
--|
--| The earth mover's distance. Ordered values (numbers, dates): a value is as far from another as there are values between
--| them, from 0 to 1. Others: all are equally far, and the distance is the total variation; NULL is a value there.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg sensitive VARCHAR: the column that nobody should learn
--| @arg ordered BOOLEAN: whether the order of the values counts; NULL: for numbers and dates
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out; 'skip': those whose `sensitive` is NULL too
--| @column .. as in `source`: the columns of `keys`
--| @column records BIGINT: records of the class
--| @column distance DOUBLE: between its distribution of the sensitive values and that of all records, 0 to 1
--| @example
--| SELECT region, sex, records, round(distance, 3) AS distance
--| FROM sdc_t_closeness_classes('people', keys := ['region', 'sex'], sensitive := 'income') ORDER BY region, sex;
--| @output
--| region | sex | records | distance
--| -------+-----+---------+---------
--| East   | f   |       1 |    0.288
--| East   | m   |       1 |      0.5
--| North  | f   |       2 |    0.227
--| North  | m   |       3 |    0.152
--| South  | f   |       3 |    0.091
--| South  | m   |       2 |    0.288
--| @source Li, Li and Venkatasubramanian (2007)
CREATE OR REPLACE TEMP MACRO sdc_t_closeness_classes(source, keys := [], sensitive := NULL, ordered := NULL, nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_t_closeness_classes(source::VARCHAR, keys::VARCHAR[], sensitive::VARCHAR, ordered, nulls::VARCHAR));

--| sdc_class_risk(records, population, approximate := false) -> DOUBLE
--| The risk of each record of a class: the chance that it is linked rightly with its person in the population.
--|
--| Benedetti and Franconi: the size of the class in the population is unknown and estimated by the sum of the weights. It is
--| 1/records where the population is not larger than the sample. NULL where an argument is.
--|
--| @arg records BIGINT: records of the class in the sample, at least 1
--| @arg population DOUBLE: estimate of its size in the population, positive
--| @arg approximate BOOLEAN: the approximation of mu-ARGUS and sdcMicro for classes of more than two records
--| @example
--| SELECT round(sdc_class_risk(1, 165), 7) AS a_unique, round(sdc_class_risk(2, 330), 7) AS a_pair;
--| @output
--|  a_unique |    a_pair
--| ----------+----------
--| 0.0311338 | 0.0059077
--| @source Benedetti and Franconi (1998); Franconi and Polettini (2004)
CREATE OR REPLACE TEMP MACRO sdc_class_risk(records, population, approximate := false) AS
    CASE
        WHEN records IS NULL OR population IS NULL THEN NULL
        WHEN records < 1 THEN error('sdc_class_risk: a class has at least one record')
        WHEN (population > 0 AND isfinite(population::DOUBLE)) IS NOT TRUE
            THEN error('sdc_class_risk: the population of a class must be a positive number')
        ELSE _sdc_class_risk(records::BIGINT, population::DOUBLE, approximate)
    END;

--| sdc_individual_risk(source, keys := [], weight := NULL, household := NULL, threshold := 0.02, method := 'exact', nulls := 'category') -> TABLE
--| Every record with its risk: the chance that it is linked rightly with its person in the population.
--|
--| Of a sample with weights, by the model of Benedetti and Franconi; without weights 1/records of the class. Somebody may be
--| found through the others of the household too: `household_risk` is the chance that any of them is.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg weight VARCHAR: column of sampling weights, all positive; NULL: the data are the whole population
--| @arg household VARCHAR: column that says who lives together; NULL: nobody does
--| @arg threshold DOUBLE: risk above which a record is unsafe
--| @arg method VARCHAR: 'exact', or 'approximate' as mu-ARGUS and sdcMicro for classes of more than two records
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'match': NULL may be any value, as in sdcMicro; 'drop': records with a NULL key are left out
--| @column .. as in `source`
--| @column class_records BIGINT: records of the same class
--| @column class_population DOUBLE: estimate of the size of the class in the population
--| @column risk DOUBLE: the risk of the record
--| @column household_risk DOUBLE: the risk that somebody of the household is found; NULL without `household`
--| @column unsafe BOOLEAN: whether `risk` is above the threshold
--| @example
--| SELECT person_id, region, sex, class_records, class_population, round(risk, 5) AS risk, unsafe
--| FROM sdc_individual_risk('(SELECT *, 40 AS weight FROM people)', keys := ['region', 'sex'], weight := 'weight')
--| ORDER BY risk DESC, person_id LIMIT 4;
--| @output
--| person_id | region | sex | class_records | class_population |    risk | unsafe
--| ----------+--------+-----+---------------+------------------+---------+-------
--|        11 | East   | f   |             1 |             40.0 | 0.09459 |   true
--|        12 | East   | m   |             1 |             40.0 | 0.09459 |   true
--|         3 | North  | f   |             2 |             80.0 | 0.02322 |   true
--|         4 | North  | f   |             2 |             80.0 | 0.02322 |   true
--| @source Benedetti and Franconi (1998); Hundepool et al., mu-ARGUS manual; R package sdcMicro (household risk)
CREATE OR REPLACE TEMP MACRO sdc_individual_risk(
    source, keys := [], weight := NULL, household := NULL, threshold := 0.02, method := 'exact', nulls := 'category'
) AS TABLE
    SELECT * FROM query(_sdc_plan_individual_risk(
        source::VARCHAR, keys::VARCHAR[], weight::VARCHAR, household::VARCHAR, threshold, method::VARCHAR, nulls::VARCHAR));

--| sdc_global_risk(source, keys := [], weight := NULL, household := NULL, threshold := 0.02, method := 'exact', nulls := 'category') -> TABLE
--| The risk of a whole file: how many records are expected to be linked rightly, and how many are unsafe.
--|
--| The figures of `sdc_individual_risk`, added up. Recode, ask again, and see what it brought.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg weight VARCHAR: column of sampling weights, all positive; NULL: the data are the whole population
--| @arg household VARCHAR: column that says who lives together; NULL: nobody does
--| @arg threshold DOUBLE: risk above which a record is unsafe
--| @arg method VARCHAR: 'exact', or 'approximate' as mu-ARGUS and sdcMicro for classes of more than two records
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'match': NULL may be any value, as in sdcMicro; 'drop': records with a NULL key are left out
--| @column records BIGINT: records
--| @column expected DOUBLE: expected number of right links
--| @column risk DOUBLE: their share
--| @column max_risk DOUBLE: the risk of the record that is easiest to find
--| @column unsafe BIGINT: records whose risk is above the threshold
--| @column share_unsafe DOUBLE: their share
--| @column uniques BIGINT: records that are alone in their class
--| @column household_expected DOUBLE: expected number of records of which somebody in the household is linked; NULL without `household`
--| @column household_risk DOUBLE: their share
--| @example
--| SELECT records, round(expected, 3) AS expected, round(risk, 4) AS risk, unsafe, uniques
--| FROM sdc_global_risk('(SELECT *, 40 AS weight FROM people)', keys := ['region', 'sex'], weight := 'weight');
--| @output
--| records | expected |   risk | unsafe | uniques
--| --------+----------+--------+--------+--------
--|      12 |    0.355 | 0.0296 |      6 |       2
--| @source Benedetti and Franconi (1998); Hundepool et al., mu-ARGUS manual
CREATE OR REPLACE TEMP MACRO sdc_global_risk(
    source, keys := [], weight := NULL, household := NULL, threshold := 0.02, method := 'exact', nulls := 'category'
) AS TABLE
    SELECT * FROM query(_sdc_plan_global_risk(
        source::VARCHAR, keys::VARCHAR[], weight::VARCHAR, household::VARCHAR, threshold, method::VARCHAR, nulls::VARCHAR));

--| sdc_unsafe_combinations(source, keys := [], k := 3, dimensions := 3, nulls := 'category') -> TABLE
--| Which variable makes records rare: how many are in a combination of few variables that fewer than k share.
--|
--| For each variable and each number of variables up to `dimensions`: records that are in at least one rare combination of
--| so many variables, this one among them. The variable with the most is the one to recode first.
--|
--| @arg source VARCHAR: a table or view, or a query in parentheses: one row a record
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg k BIGINT: a combination of fewer records is rare
--| @arg dimensions BIGINT: variables in a combination, at most
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out
--| @column variable VARCHAR: the variable
--| @column dimension BIGINT: number of variables in the combinations
--| @column unsafe BIGINT: records in a rare one
--| @column share DOUBLE: their share
--| @example
--| FROM sdc_unsafe_combinations('people', keys := ['region', 'sex', 'age'], dimensions := 2);
--| @output
--| variable | dimension | unsafe |               share
--| ---------+-----------+--------+--------------------
--| age      |         1 |     12 |                 1.0
--| region   |         1 |      2 | 0.16666666666666666
--| sex      |         1 |      0 |                 0.0
--| age      |         2 |     12 |                 1.0
--| region   |         2 |     12 |                 1.0
--| sex      |         2 |     12 |                 1.0
--| @source Hundepool et al., mu-ARGUS manual
CREATE OR REPLACE TEMP MACRO sdc_unsafe_combinations(source, keys := [], k := 3, dimensions := 3, nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_unsafe_combinations(source::VARCHAR, keys::VARCHAR[], k, dimensions, nulls::VARCHAR));

--| sdc_marketer_risk(internal, external := NULL, keys := [], k := 11, nulls := 'category') -> TABLE
--| The share of records that an attacker is expected to link rightly, under four assumptions about what is known.
--|
--| It is a mean: a file with one large class may have a low one and ten uniques, so the highest risks stand beside it. `orem`
--| is optimistic: it leaves out those whom the attacker's file lacks, which is luck and no protection.
--|
--| @arg internal VARCHAR: the records to be released: a table or view, or a query in parentheses
--| @arg external VARCHAR: an identified file that an attacker may have, with columns of the same names; NULL: none
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg k BIGINT: the limit is 1/k: a mean risk that is acceptable
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out
--| @column records BIGINT: records released
--| @column classes BIGINT: their classes
--| @column invalid BIGINT: records in classes that have fewer people in `external` than in `internal`; NULL without `external`, as all that needs it
--| @column share_invalid DOUBLE: their share
--| @column im DOUBLE: internal measure: the attacker knows who is in the data
--| @column cem DOUBLE: conservative external measure: everyone is also in `external`, which is filled up where it is short
--| @column orem DOUBLE: observable records measure: invalid classes are left out; NULL if all are
--| @column arem DOUBLE: all records measure: invalid classes have no risk
--| @column reduction_cem DOUBLE: by how many per cent `cem` is below `im`
--| @column reduction_orem DOUBLE: the same of `orem`
--| @column reduction_arem DOUBLE: the same of `arem`
--| @column k BIGINT: records of the smallest class
--| @column max_prosecutor DOUBLE: 1/k: the highest risk if the attacker knows who is in the data
--| @column max_journalist DOUBLE: the highest risk if only `external` is known, filled up where it is short
--| @column share_unique DOUBLE: share of records that are alone in their class
--| @column share_below_k DOUBLE: share of records in classes of fewer than `k`
--| @column im_acceptable BOOLEAN: whether `im` is at most 1/k
--| @column cem_acceptable BOOLEAN: the same of `cem`
--| @column orem_acceptable BOOLEAN: the same of `orem`
--| @column arem_acceptable BOOLEAN: the same of `arem`
--| @example
--| SELECT records, classes, round(im, 4) AS im, round(cem, 4) AS cem, round(orem, 4) AS orem, k, im_acceptable
--| FROM sdc_marketer_risk('people', '(FROM people UNION ALL FROM people)', keys := ['region', 'sex']);
--| @output
--| records | classes |  im |  cem | orem | k | im_acceptable
--| --------+---------+-----+------+------+---+--------------
--|      12 |       6 | 0.5 | 0.25 | 0.25 | 1 |         false
--| @source Zhang et al. (2022), PSD; Dankar and El Emam (2010)
CREATE OR REPLACE TEMP MACRO sdc_marketer_risk(internal, external := NULL, keys := [], k := 11, nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_marketer_risk(internal::VARCHAR, external::VARCHAR, keys::VARCHAR[], k, nulls::VARCHAR));

--| sdc_marketer_risk_classes(internal, external := NULL, keys := [], nulls := 'category') -> TABLE
--| The classes behind `sdc_marketer_risk`: how many are released, how many are in the identified file, and the risk of each.
--|
--| Which classes an attacker would try first.
--|
--| @arg internal VARCHAR: the records to be released: a table or view, or a query in parentheses
--| @arg external VARCHAR: an identified file that an attacker may have, with columns of the same names; NULL: none
--| @arg keys VARCHAR[]: the key variables: what somebody may know of a person
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out
--| @column .. as in `internal`: the columns of `keys`
--| @column records BIGINT: records released
--| @column population BIGINT: people in `external`; NULL without it
--| @column valid BOOLEAN: whether there are at least as many of them
--| @column risk_im DOUBLE: risk of each record if the attacker knows who is in the data
--| @column risk_cem DOUBLE: risk if everyone is in `external`, filled up
--| @column risk_orem DOUBLE: risk if not; NULL where the class is not valid
--| @example
--| FROM sdc_marketer_risk_classes('people', '(FROM people UNION ALL FROM people)', keys := ['region', 'sex'])
--| ORDER BY region, sex;
--| @output
--| region | sex | records | population | valid |            risk_im |            risk_cem |           risk_orem
--| -------+-----+---------+------------+-------+--------------------+---------------------+--------------------
--| East   | f   |       1 |          2 |  true |                1.0 |                 0.5 |                 0.5
--| East   | m   |       1 |          2 |  true |                1.0 |                 0.5 |                 0.5
--| North  | f   |       2 |          4 |  true |                0.5 |                0.25 |                0.25
--| North  | m   |       3 |          6 |  true | 0.3333333333333333 | 0.16666666666666666 | 0.16666666666666666
--| South  | f   |       3 |          6 |  true | 0.3333333333333333 | 0.16666666666666666 | 0.16666666666666666
--| South  | m   |       2 |          4 |  true |                0.5 |                0.25 |                0.25
--| @source Zhang et al. (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_marketer_risk_classes(internal, external := NULL, keys := [], nulls := 'category') AS TABLE
    SELECT * FROM query(_sdc_plan_marketer_risk_classes(internal::VARCHAR, external::VARCHAR, keys::VARCHAR[], nulls::VARCHAR));

--| sdc_policy_risk(internal, external := NULL, policies := NULL, k := 11, date := NULL, as_of := NULL, nulls := 'category') -> TABLE
--| Marketer risk for several ways to coarsen the keys, and for a file that grows: which can be released when.
--|
--| A policy is a list of columns, coarse ones made in views or queries over both files. With `date` and `as_of` the file goes up
--| to each date. Releasing the same people at several levels of detail lets them be compared: ask for all columns together too.
--|
--| @arg internal VARCHAR: the records to be released: a table or view, or a query in parentheses
--| @arg external VARCHAR: an identified file that an attacker may have, with columns of the same names; NULL: none
--| @arg policies STRUCT of lists: columns by policy: {'coarse': ['region'], 'fine': ['region', 'age']}
--| @arg k BIGINT: the limit is 1/k: a mean risk that is acceptable
--| @arg date VARCHAR: column of `internal` with the date of a record
--| @arg as_of DATE[]: the dates up to which the file goes
--| @arg nulls VARCHAR: 'category': NULL is a value of its own; 'drop': records with a NULL key are left out
--| @column policy VARCHAR: the policy
--| @column as_of DATE: the date; NULL: all records
--| @column records BIGINT: records released
--| @column classes BIGINT: their classes
--| @column invalid BIGINT: records in classes that have fewer people in `external` than in `internal`; NULL without `external`, as all that needs it
--| @column share_invalid DOUBLE: their share
--| @column im DOUBLE: internal measure: the attacker knows who is in the data
--| @column cem DOUBLE: conservative external measure: everyone is also in `external`, which is filled up where it is short
--| @column orem DOUBLE: observable records measure: invalid classes are left out; NULL if all are
--| @column arem DOUBLE: all records measure: invalid classes have no risk
--| @column reduction_cem DOUBLE: by how many per cent `cem` is below `im`
--| @column reduction_orem DOUBLE: the same of `orem`
--| @column reduction_arem DOUBLE: the same of `arem`
--| @column k BIGINT: records of the smallest class
--| @column max_prosecutor DOUBLE: 1/k: the highest risk if the attacker knows who is in the data
--| @column max_journalist DOUBLE: the highest risk if only `external` is known, filled up where it is short
--| @column share_unique DOUBLE: share of records that are alone in their class
--| @column share_below_k DOUBLE: share of records in classes of fewer than `k`
--| @column im_acceptable BOOLEAN: whether `im` is at most 1/k
--| @column cem_acceptable BOOLEAN: the same of `cem`
--| @column orem_acceptable BOOLEAN: the same of `orem`
--| @column arem_acceptable BOOLEAN: the same of `arem`
--| @example
--| SELECT policy, classes, round(im, 3) AS im, k, im_acceptable
--| FROM sdc_policy_risk('people', policies := {'coarse': ['region'], 'fine': ['region', 'sex']}, k := 3);
--| @output
--| policy | classes |   im | k | im_acceptable
--| -------+---------+------+---+--------------
--| coarse |       3 | 0.25 | 2 |          true
--| fine   |       6 |  0.5 | 1 |         false
--| @source Zhang et al. (2022), PSD
CREATE OR REPLACE TEMP MACRO sdc_policy_risk(
    internal, external := NULL, policies := NULL, k := 11, date := NULL, as_of := NULL, nulls := 'category'
) AS TABLE
    SELECT * FROM query(_sdc_plan_policy_risk(
        internal::VARCHAR, external::VARCHAR, to_json(policies)::VARCHAR, k, date::VARCHAR, as_of::DATE[], nulls::VARCHAR));
