-- Attacks on synthetic data, with a control group, what guessing would bring, and intervals.

--| sdc_attack_singling_out(original, synthetic, control := NULL, columns := [], mode := 'univariate', terms := 3, attacks := 2000, categorical := [], confidence := 0.95, seed := NULL) -> TABLE
--| Singling out: how often predicates that one synthetic record meets are met by exactly one original record.
--|
--| "There is exactly one person who is at least 98 years old and lives in the North." With 'univariate' the attacker says this of values that occur
--| once in a column of the synthetic data, and of its ends; with 'multivariate' of random columns of random synthetic records, where numbers are
--| compared outwards from the median. Where the control is of another size, the control rate is that of a control as large as the original table.
--| Predicates that single out the same person count as one finding in the intervals.
--| NULL is a value, NaN is NULL, infinite values are refused.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records, all that the attacker has
--| @arg control VARCHAR: records of the same population that the synthetic ones were not made from; NULL: none, and then there is no risk to be told
--| @arg columns VARCHAR[]: columns that are used; none: all that the tables share. Leave identifiers out
--| @arg mode VARCHAR: 'univariate' or 'multivariate'
--| @arg terms BIGINT: columns of a predicate, for 'multivariate'
--| @arg attacks BIGINT: how many predicates, at most
--| @arg categorical VARCHAR[]: columns of numbers that are codes, so that only equality counts
--| @arg confidence DOUBLE: of the intervals
--| @arg seed BIGINT: the seed of what is drawn; NULL is 0
--| @column mode VARCHAR: as given
--| @column terms BIGINT: columns of a predicate
--| @column attacks BIGINT: attacks on the originals
--| @column attack_rate DOUBLE: share of them that succeed
--| @column attack_low DOUBLE: lower end of its interval (Wilson)
--| @column attack_high DOUBLE: upper end
--| @column control_attacks BIGINT: attacks on the control; NULL without one, as all that needs it
--| @column control_rate DOUBLE: how often the same predicates single out one record of a control as large as the original
--| @column control_low DOUBLE: lower end of its interval
--| @column control_high DOUBLE: upper end
--| @column baseline_rate DOUBLE: the same for predicates with random columns, operators and values
--| @column modal_rate DOUBLE: NULL: the most frequent value singles out nobody
--| @column risk DOUBLE: (attack_rate - control_rate) / (1 - control_rate): 0 is what everybody can know of the population, 1 certainty
--| @column risk_low DOUBLE: lower end of its interval
--| @column risk_high DOUBLE: upper end
--| @column warning VARCHAR: why the figures may mean less than they seem to
--| @example
--| SELECT attacks, attack_rate, control_rate, round(risk, 3) AS risk, round(risk_low, 3) AS risk_low, risk_high
--| FROM sdc_attack_singling_out('(FROM people WHERE person_id <= 6)', '(FROM people WHERE person_id <= 6)',
--|     '(FROM people WHERE person_id > 6)', columns := ['age', 'income'], mode := 'multivariate', terms := 2, seed := 1);
--| @output
--| attacks | attack_rate | control_rate | risk | risk_low | risk_high
--| --------+-------------+--------------+------+----------+----------
--|       5 |         1.0 |          0.4 |  1.0 |    -0.01 |       1.0
--| @source Giomi, Boenisch, Wehmeyer and Tasnadi (2023), PoPETs; Francis (2022), PSD (modal guess)
CREATE OR REPLACE TEMP MACRO sdc_attack_singling_out(
    original, synthetic, control := NULL, columns := [], mode := 'univariate', terms := 3, attacks := 2000,
    categorical := [], confidence := 0.95, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_attack_singling_out(
        original::VARCHAR, synthetic::VARCHAR, control::VARCHAR, columns::VARCHAR[], mode::VARCHAR, terms, attacks,
        categorical::VARCHAR[], confidence, seed::VARCHAR));

--| sdc_attack_linkability(original, synthetic, control := NULL, aux := [], neighbours := 1, attacks := 2000, categorical := [], confidence := 0.95, seed := NULL) -> TABLE
--| Linkability: how often the synthetic data tell that two halves of a record belong to the same person.
--|
--| The attacker has some columns of a person from one file and others from another one. He finds the nearest synthetic records of both halves, by
--| Gower's distance; if they have one in common, he says that the halves are of one person. NULL is 0 from NULL and 1 from everything else.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records, all that the attacker has
--| @arg control VARCHAR: records of the same population that the synthetic ones were not made from; NULL: none, and then there is no risk to be told
--| @arg aux VARCHAR[][]: two lists of columns, those of the two halves: [['age', 'sex'], ['income']]
--| @arg neighbours BIGINT: how many synthetic records count as nearest
--| @arg attacks BIGINT: how many people of each table are attacked, at most
--| @arg categorical VARCHAR[]: columns of numbers that are codes, so that only equality counts
--| @arg confidence DOUBLE: of the intervals
--| @arg seed BIGINT: the seed of what is drawn; NULL is 0
--| @column neighbours BIGINT: as given
--| @column attacks BIGINT: attacks on the originals
--| @column attack_rate DOUBLE: share of them that succeed
--| @column attack_low DOUBLE: lower end of its interval (Wilson)
--| @column attack_high DOUBLE: upper end
--| @column control_attacks BIGINT: attacks on the control; NULL without one, as all that needs it
--| @column control_rate DOUBLE: share of those that succeed
--| @column control_low DOUBLE: lower end of its interval
--| @column control_high DOUBLE: upper end
--| @column baseline_rate DOUBLE: how often two random sets of so many synthetic records meet
--| @column modal_rate DOUBLE: share of the originals that are linked if everybody's second half is taken to be the most frequent one
--| @column risk DOUBLE: (attack_rate - control_rate) / (1 - control_rate): 0 is what everybody can know of the population, 1 certainty
--| @column risk_low DOUBLE: lower end of its interval
--| @column risk_high DOUBLE: upper end
--| @column warning VARCHAR: why the figures may mean less than they seem to
--| @example
--| SELECT attacks, attack_rate, control_rate, round(baseline_rate, 3) AS baseline_rate, round(modal_rate, 3) AS modal_rate, risk
--| FROM sdc_attack_linkability('(FROM people WHERE person_id <= 6)', '(FROM people WHERE person_id <= 6)',
--|     '(FROM people WHERE person_id > 6)', aux := [['age', 'region'], ['income']], seed := 1);
--| @output
--| attacks | attack_rate | control_rate | baseline_rate | modal_rate | risk
--| --------+-------------+--------------+---------------+------------+-----
--|       6 |         1.0 |          0.0 |         0.167 |      0.167 |  1.0
--| @source Giomi, Boenisch, Wehmeyer and Tasnadi (2023), PoPETs; Francis (2022), PSD (modal guess)
CREATE OR REPLACE TEMP MACRO sdc_attack_linkability(
    original, synthetic, control := NULL, aux := [], neighbours := 1, attacks := 2000, categorical := [],
    confidence := 0.95, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_attack_linkability(
        original::VARCHAR, synthetic::VARCHAR, control::VARCHAR, to_json(aux)::VARCHAR, neighbours, attacks,
        categorical::VARCHAR[], confidence, seed::VARCHAR));

--| sdc_attack_inference(original, synthetic, control := NULL, secret := NULL, aux := [], tolerance := 0.05, attacks := 2000, categorical := [], confidence := 0.95, seed := NULL) -> TABLE
--| Inference: how often the nearest synthetic record tells a secret of a person of whom other columns are known.
--|
--| The nearest by Gower's distance on the known columns. NULL is a value: a secret that is NULL is inferred by NULL.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records, all that the attacker has
--| @arg control VARCHAR: records of the same population that the synthetic ones were not made from; NULL: none, and then there is no risk to be told
--| @arg secret VARCHAR: the column that is inferred
--| @arg aux VARCHAR[]: what the attacker knows; none: all other columns that the tables share
--| @arg tolerance DOUBLE: a number is right if it is off by at most this share of the true value; all else must be equal
--| @arg attacks BIGINT: how many people of each table are attacked, at most
--| @arg categorical VARCHAR[]: columns of numbers that are codes, so that only equality counts
--| @arg confidence DOUBLE: of the intervals
--| @arg seed BIGINT: the seed of what is drawn; NULL is 0
--| @column secret VARCHAR: the column
--| @column tolerance DOUBLE: for numbers; NULL for all else
--| @column attacks BIGINT: attacks on the originals
--| @column attack_rate DOUBLE: share of them that succeed
--| @column attack_low DOUBLE: lower end of its interval (Wilson)
--| @column attack_high DOUBLE: upper end
--| @column control_attacks BIGINT: attacks on the control; NULL without one, as all that needs it
--| @column control_rate DOUBLE: share of those that succeed
--| @column control_low DOUBLE: lower end of its interval
--| @column control_high DOUBLE: upper end
--| @column baseline_rate DOUBLE: how often the secret of a random synthetic record is right
--| @column modal_rate DOUBLE: how often the one guess is right that is right for most synthetic records
--| @column risk DOUBLE: (attack_rate - control_rate) / (1 - control_rate): 0 is what everybody can know of the population, 1 certainty
--| @column risk_low DOUBLE: lower end of its interval
--| @column risk_high DOUBLE: upper end
--| @column warning VARCHAR: why the figures may mean less than they seem to
--| @column rate_not_modal DOUBLE: share of the attacks that succeed on originals for whom that one guess is wrong
--| @example
--| SELECT attacks, attack_rate, control_rate, round(baseline_rate, 3) AS baseline_rate, round(modal_rate, 3) AS modal_rate, risk
--| FROM sdc_attack_inference('(FROM people WHERE person_id <= 6)', '(FROM people WHERE person_id <= 6)',
--|     '(FROM people WHERE person_id > 6)', secret := 'income', aux := ['age', 'sex'], seed := 1);
--| @output
--| attacks | attack_rate | control_rate | baseline_rate | modal_rate | risk
--| --------+-------------+--------------+---------------+------------+-----
--|       6 |         1.0 |          0.0 |         0.194 |      0.333 |  1.0
--| @source Giomi, Boenisch, Wehmeyer and Tasnadi (2023), PoPETs; Francis (2022), PSD (modal guess)
CREATE OR REPLACE TEMP MACRO sdc_attack_inference(
    original, synthetic, control := NULL, secret := NULL, aux := [], tolerance := 0.05, attacks := 2000,
    categorical := [], confidence := 0.95, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_attack_inference(
        original::VARCHAR, synthetic::VARCHAR, control::VARCHAR, secret::VARCHAR, aux::VARCHAR[], tolerance, attacks,
        categorical::VARCHAR[], confidence, seed::VARCHAR));

--| sdc_dcr_subsets(original, synthetic, holdout, columns := [], subsets := 20, size := NULL, records := 2000, categorical := [], confidence := 0.95, seed := NULL) -> TABLE
--| Whether the synthetic records are closer to the originals than to a holdout, in all columns or in some of them.
--|
--| What a generator has learned by heart in a few columns does not show in the distances of whole records. The first row is for all columns; of the
--| subsets one half are columns that go together in the synthetic data (Cramér's V), the others random. Whoever looks at many subsets finds some
--| share above the expected one by chance: the corrected intervals (Bonferroni) hold for all rows together.
--|
--| @arg original VARCHAR: the records that the synthetic ones were made from: a table or view, or a query in parentheses
--| @arg synthetic VARCHAR: the synthetic records
--| @arg holdout VARCHAR: records of the same population that the synthetic ones were not made from
--| @arg columns VARCHAR[]: columns that are used; none: all that the tables share. Leave identifiers out
--| @arg subsets BIGINT: how many subsets, at most
--| @arg size BIGINT: columns of a subset; NULL: a third of all, at least two
--| @arg records BIGINT: how many synthetic records are looked at, at most
--| @arg categorical VARCHAR[]: columns of numbers that are codes, so that only equality counts
--| @arg confidence DOUBLE: of the intervals
--| @arg seed BIGINT: the seed of what is drawn; NULL is 0
--| @column subset BIGINT: number; 0 for all columns
--| @column kind VARCHAR: 'all', 'correlated' or 'random'
--| @column columns VARCHAR[]: the columns
--| @column records BIGINT: synthetic records that were looked at
--| @column share DOUBLE: share of them whose nearest record is an original and not of the holdout; of equal ones there, the share of originals counts
--| @column expected DOUBLE: share of a fresh sample: the originals by originals and holdout
--| @column low DOUBLE: lower end of the interval of `share`, of this row alone
--| @column high DOUBLE: upper end
--| @column corrected_low DOUBLE: lower end of the interval that holds for all rows together; above `expected`, something was learned by heart
--| @column corrected_high DOUBLE: upper end
--| @column largest BOOLEAN: the row with the largest share
--| @column warning VARCHAR: in the first row: what is wrong with the tables
--| @example
--| SELECT subset, kind, columns, share, expected, round(corrected_low, 3) AS corrected_low, largest
--| FROM sdc_dcr_subsets('(FROM people WHERE person_id <= 6)', '(FROM people WHERE person_id <= 6)',
--|     '(FROM people WHERE person_id > 6)', columns := ['region', 'sex', 'age'], subsets := 2, seed := 1);
--| @output
--| subset | kind       | columns                  | share | expected | corrected_low | largest
--| -------+------------+--------------------------+-------+----------+---------------+--------
--|      0 | all        | ['region', 'sex', 'age'] |   1.0 |      0.5 |         0.511 |    true
--|      1 | correlated | ['region', 'age']        |   1.0 |      0.5 |         0.511 |   false
--|      2 | random     | ['sex', 'age']           |   1.0 |      0.5 |         0.511 |   false
--| @source Platzer and Reutterer (2021), Frontiers in Big Data; Minieri (2022)
CREATE OR REPLACE TEMP MACRO sdc_dcr_subsets(
    original, synthetic, holdout, columns := [], subsets := 20, size := NULL, records := 2000, categorical := [],
    confidence := 0.95, seed := NULL
) AS TABLE
    SELECT * FROM query(_sdc_plan_dcr_subsets(
        original::VARCHAR, synthetic::VARCHAR, holdout::VARCHAR, columns::VARCHAR[], subsets, size, records,
        categorical::VARCHAR[], confidence, seed::VARCHAR));
