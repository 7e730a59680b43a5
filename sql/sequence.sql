-- The sequence of answers: how near what somebody knows is to what nobody should. What is pure SQL.

--| sdc_dist_jaccard(a, b) -> DOUBLE
--| Distance of two sets: the share of their elements that they do not have in common; 0 is the same set, 1 disjoint ones.
--|
--| An element counts once, and NULL is none. Two empty sets are the same.
--|
--| @arg a LIST: a set of values
--| @arg b LIST: another one, of values of the same type
--| @example
--| SELECT sdc_dist_jaccard(['flu', 'cold'], ['flu']) AS half, sdc_dist_jaccard(['flu'], ['cancer']) AS apart,
--|     sdc_dist_jaccard([1, 2, 3], [3, 2, 1, 1]) AS same;
--| @output
--| half | apart | same
--| -----+-------+-----
--|  0.5 |   1.0 |  0.0
--| @source Anantharaman, Frittella and Nguyen (2022), section 5
CREATE OR REPLACE MACRO sdc_dist_jaccard(a, b) AS
    CASE
        WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN len(list_distinct(list_concat(a, b))) = 0 THEN 0
        ELSE (len(list_distinct(list_concat(a, b))) - len(list_distinct(list_intersect(a, b))))
            / len(list_distinct(list_concat(a, b)))
    END::DOUBLE;

--| sdc_dist_interval(low, high, other_low, other_high, step := 1) -> DOUBLE
--| Distance of two intervals of numbers: the share of the values in either that are not in both.
--|
--| Intervals hold their lower end and not their upper one, and the values are `step` apart: `[20, 30)` are the ages 20 to 29, and the
--| age 46 is the interval from 46 to 47. It is the Jaccard distance of the sets of these values.
--|
--| @arg low DOUBLE: lower end of an interval
--| @arg high DOUBLE: its upper end
--| @arg other_low DOUBLE: lower end of the other
--| @arg other_high DOUBLE: its upper end
--| @arg step DOUBLE: how far values are apart
--| @example
--| SELECT sdc_dist_interval(40, 50, 46, 47) AS in_it, sdc_dist_interval(50, 60, 46, 47) AS beside_it,
--|     sdc_dist_interval(0, 2, 1, 3, step := 0.5) AS overlapping;
--| @output
--| in_it | beside_it |        overlapping
--| ------+-----------+-------------------
--|   0.9 |       1.0 | 0.6666666666666667
--| @source Anantharaman, Frittella and Nguyen (2022), section 5
CREATE OR REPLACE MACRO sdc_dist_interval(low, high, other_low, other_high, step := 1) AS
    CASE
        WHEN low IS NULL OR high IS NULL OR other_low IS NULL OR other_high IS NULL OR step IS NULL THEN NULL
        WHEN NOT isfinite(low::DOUBLE) OR NOT isfinite(high::DOUBLE) OR NOT isfinite(other_low::DOUBLE)
            OR NOT isfinite(other_high::DOUBLE) OR NOT isfinite(step::DOUBLE)
            THEN error('sdc_dist_interval: an end of an interval is NaN or infinite')
        WHEN step <= 0 THEN error('sdc_dist_interval: argument ''step'' must be above 0')
        WHEN low >= high OR other_low >= other_high
            THEN error('sdc_dist_interval: the upper end of an interval must lie above its lower end')
        ELSE 1 - greatest(0, least(high, other_high) - greatest(low, other_low))::DOUBLE
            / ((high - low) + (other_high - other_low) - greatest(0, least(high, other_high) - greatest(low, other_low)))
    END::DOUBLE;

--| sdc_dist_taxonomy(a, b, taxonomy) -> DOUBLE
--| Distance of two nodes of a tree: how much of the ways from its top to them they do not share.
--|
--| With c nodes on the way to `a`, d on that to `b`, both ends counted, and e on what the ways share, it is 1 - 2 e / (c + d).
--| It is a metric. NULL for what is not in the tree.
--|
--| @arg a VARCHAR: a node
--| @arg b VARCHAR: another one
--| @arg taxonomy VARCHAR: a table or view with the columns `child` and `parent`; what is the child of nothing, or of NULL, is a top
--| @example
--| CREATE TABLE illnesses AS FROM (VALUES ('heart disease', 'illness'), ('cancer', 'illness'), ('virus', 'illness'),
--|     ('flu', 'virus'), ('covid', 'virus')) t(child, parent);
--| SELECT sdc_dist_taxonomy('cancer', 'covid', 'illnesses') AS far, sdc_dist_taxonomy('virus', 'covid', 'illnesses') AS near,
--|     sdc_dist_taxonomy('flu', 'flu', 'illnesses') AS same;
--| @output
--| far | near | same
--| ----+------+-----
--| 0.6 |  0.2 |  0.0
--| @source Anantharaman, Frittella and Nguyen (2022), section 5 and appendix C; Wu and Palmer (1994)
CREATE OR REPLACE MACRO _sdc_taxonomy_paths(taxonomy) AS (
    -- A value by itself: DuckDB 1.5 has internal errors where such a query knows the nodes that are asked for.
    WITH RECURSIVE nodes AS (
        SELECT child::VARCHAR AS node, parent::VARCHAR AS above FROM query_table(taxonomy) WHERE parent IS NOT NULL
    ),
    paths(node, path) AS (
        SELECT DISTINCT above, [above] FROM nodes WHERE above NOT IN (SELECT node FROM nodes WHERE node IS NOT NULL)
        UNION ALL
        SELECT n.node, list_append(p.path, n.node) FROM nodes n JOIN paths p ON n.above = p.node
    )
    SELECT map_from_entries(list({'node': node, 'path': path})) FROM paths
);
CREATE OR REPLACE MACRO _sdc_apart(one, other) AS
    ((len(one) + len(other) - 2 * len(list_intersect(one, other))) / (len(one) + len(other)))::DOUBLE;
CREATE OR REPLACE MACRO sdc_dist_taxonomy(a, b, taxonomy) AS
    _sdc_apart(_sdc_taxonomy_paths(taxonomy)[a::VARCHAR], _sdc_taxonomy_paths(taxonomy)[b::VARCHAR]);

--| sdc_eps_min(p, q, distance := 1) -> DOUBLE
--| The smallest epsilon for which two outcomes with these probabilities cannot be told apart: |ln(p / q)| over their distance.
--|
--| `p` and `q` are the probabilities of one answer given two inputs, or of two answers given one. Infinite if exactly one of
--| them is 0, or if they differ at distance 0.
--|
--| @arg p DOUBLE: a probability
--| @arg q DOUBLE: another one
--| @arg distance DOUBLE: how far apart the inputs are, such as the columns in which they differ
--| @example
--| SELECT round(sdc_eps_min(3/4, 1/4), 4) AS randomised_response, round(sdc_eps_min(2/5, 3/5, 2), 6) AS two_columns,
--|     sdc_eps_min(0, 0.5) AS told;
--| @output
--| randomised_response | two_columns | told
--| --------------------+-------------+-----
--|              1.0986 |    0.202733 |  inf
--| @source Anantharaman, Frittella and Nguyen (2022), sections 3, 4 and 6
CREATE OR REPLACE MACRO sdc_eps_min(p, q, distance := 1) AS
    CASE
        WHEN p IS NULL OR q IS NULL OR distance IS NULL THEN NULL
        WHEN NOT (p::DOUBLE BETWEEN 0 AND 1 AND q::DOUBLE BETWEEN 0 AND 1)
            THEN error('sdc_eps_min: arguments ''p'' and ''q'' must lie between 0 and 1')
        WHEN NOT (isfinite(distance::DOUBLE) AND distance >= 0)
            THEN error('sdc_eps_min: argument ''distance'' must be a number of at least 0')
        WHEN p = q THEN 0
        WHEN p = 0 OR q = 0 OR distance = 0 THEN 'infinity'::DOUBLE
        ELSE abs(ln(p::DOUBLE / q::DOUBLE)) / distance
    END::DOUBLE;
