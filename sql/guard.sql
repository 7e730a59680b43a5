-- Policies: which relations analysts may ask about, and how their answers are protected. Pure SQL.

CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.policies (
    name VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    unit VARCHAR,
    record_key VARCHAR,
    dimensions VARCHAR[],
    measures VARCHAR[],
    method VARCHAR,
    ptable VARCHAR,
    magnitude_ptable VARCHAR,
    min_units INTEGER,
    base INTEGER,
    publication VARCHAR,
    count_column VARCHAR,
    one_row_per_unit BOOLEAN
);
ALTER TABLE sdc.policies ADD COLUMN IF NOT EXISTS population VARCHAR;
ALTER TABLE sdc.policies ADD COLUMN IF NOT EXISTS role VARCHAR;
ALTER TABLE sdc.policies ADD COLUMN IF NOT EXISTS complete VARCHAR[];
ALTER TABLE sdc.policies ADD COLUMN IF NOT EXISTS records BIGINT;
ALTER TABLE sdc.policies ADD COLUMN IF NOT EXISTS preview VARCHAR;

-- Bounds or bands of the measures of a policy, which are stored as JSON.
CREATE OR REPLACE MACRO _sdc_limits(stored, kind) AS
    json_transform(json_extract(stored, '$.' || kind), '"MAP(VARCHAR,DOUBLE[])"');

-- A name as DuckDB compares it: of A and a, and no others.
CREATE OR REPLACE MACRO _sdc_folded(name) AS
    translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz');

-- How many units of each kind a number needs, where a policy has several kinds, which are stored as JSON.
CREATE OR REPLACE MACRO _sdc_kinds(stored) AS
    map_from_entries(
        list_transform(
            json_transform(json_extract(stored, '$.kinds'), '[{"unit":"VARCHAR","min_units":"INTEGER"}]'),
            lambda kind: (kind.unit, kind.min_units)));

--| sdc_policies() -> TABLE
--| The policies of the database: what analysts see, and how it is protected.
--|
--| @column name VARCHAR: the table or view
--| @column label VARCHAR: 'unit-level' (confidential records) or 'public'
--| @column method VARCHAR: cell_key, suppression, threshold or rounding
--| @column dimensions VARCHAR[]: columns to group by and filter on
--| @column measures VARCHAR[]: columns to add up
--| @column min_units INTEGER: fewer units than this are not answered
--| @column population VARCHAR: what the units are, where tables may be joined on them
--| @column role VARCHAR: who is answered under the policy; empty: everybody without one of their own
--| @column preview VARCHAR: the table of made-up rows that answers SELECT * .. LIMIT
--| @column bounds MAP(VARCHAR, DOUBLE[]): of measures, the ends of what their values are taken for in functions
--| @column bands MAP(VARCHAR, DOUBLE[]): of measures, the borders of the bands that are dimensions
--| @column units MAP(VARCHAR, INTEGER): where units are of several kinds, how many of each are needed
--| @column owned MAP(VARCHAR, VARCHAR): of dimensions of which each value is of one unit, what they identify
--| @column sequence VARCHAR: 'off': what many answers tell together is not counted; 'precision', 'atoms', 'pairwise', 'rank': it is,
--|      and limited for each login
--| @column questions BIGINT: how many questions a login may ask in a day (`sdc_question_budget`); NULL: any number
--| @example
--| SELECT name, label, method, measures FROM sdc_policies();
--| @output
--| name | label | method | measures
--| -----+-------+--------+---------
--| @source this project
CREATE OR REPLACE MACRO sdc_policies() AS TABLE
    SELECT
        p.name, p.label, p.method, p.dimensions, p.measures, p.min_units, p.population, coalesce(p.role, '') AS role,
        p.preview, _sdc_limits(s.value, 'bounds') AS bounds, _sdc_limits(s.value, 'bands') AS bands,
        _sdc_kinds(k.value) AS units,
        json_transform(json_extract(s.value, '$.owned'), '"MAP(VARCHAR,VARCHAR)"') AS owned,
        CASE
            WHEN p.label = 'unit-level'
                THEN coalesce(json_extract_string(
                    CASE WHEN p.record_key IS NULL AND (p.method <> 'threshold' OR p.unit IS NULL) THEN q.value END, '$.mode'), 'off')
        END AS sequence,
        CASE WHEN p.label = 'unit-level' THEN b.value::BIGINT END AS questions
    FROM sdc.policies p
        LEFT JOIN sdc.settings s
            ON starts_with(s.name, 'limits ')
                AND p.name = CASE WHEN starts_with(s.name, 'limits ') THEN json_extract_string(s.value, '$.name') END
                AND coalesce(p.role, '')
                    = CASE WHEN starts_with(s.name, 'limits ') THEN json_extract_string(s.value, '$.role') END
        LEFT JOIN sdc.settings k
            ON starts_with(k.name, 'kinds ')
                AND p.name = CASE WHEN starts_with(k.name, 'kinds ') THEN json_extract_string(k.value, '$.name') END
                AND coalesce(p.role, '')
                    = CASE WHEN starts_with(k.name, 'kinds ') THEN json_extract_string(k.value, '$.role') END
        LEFT JOIN sdc.settings q
            ON starts_with(q.name, 'sequence ')
                AND p.name = CASE WHEN starts_with(q.name, 'sequence ') THEN json_extract_string(q.value, '$.name') END
                AND coalesce(p.role, '')
                    = CASE WHEN starts_with(q.name, 'sequence ') THEN json_extract_string(q.value, '$.role') END
        LEFT JOIN sdc.settings b
            ON starts_with(b.name, 'questions ')
                AND _sdc_folded(p.name)
                    = CASE WHEN starts_with(b.name, 'questions ') THEN json_extract_string(substr(b.name, 11), '$[0]') END
                AND _sdc_folded(coalesce(p.role, ''))
                    = CASE WHEN starts_with(b.name, 'questions ') THEN json_extract_string(substr(b.name, 11), '$[1]') END
    ORDER BY p.name, p.role;

-- An expression of an analyst over one record, NULL where it fails. The optimiser does not look into a lambda: beside one
-- it works out a part that stands twice, or the left side of a long IN, before TRY and outside of it.
CREATE OR REPLACE MACRO _sdc_try(x) AS list_transform([0], lambda _sdc_once: TRY(x))[1];

-- A floating-point number that no other equals: 0.0 for -0.0, and one NaN, of which there are many that are equal and look
-- different, by their sign and their last bits.
CREATE OR REPLACE MACRO _sdc_one_of_equal(x) AS
    list_transform([x], lambda _sdc_once: CASE WHEN isnan(_sdc_once) THEN 'nan' ELSE _sdc_once + 0::TINYINT END)[1];

-- What is shown of a group key: the same of all values that are equal, or it would tell whose record is stored first. A
-- text in quotes has the type of what it stands beside. NULL and no error where that is not known of a type: an error would
-- tell that there is a record in a group. The guard refuses these types before.
CREATE OR REPLACE MACRO _sdc_group_key(k) AS
    CASE
        WHEN typeof(k) IN ('DOUBLE', 'FLOAT') AND k::VARCHAR = '-0.0' THEN '0.0'
        WHEN typeof(k) IN ('DOUBLE', 'FLOAT') AND k::VARCHAR IN ('nan', '-nan') THEN 'nan'
        WHEN regexp_matches(typeof(k), 'INTERVAL|(^|[ (])VARIANT|[(].*(DOUBLE|FLOAT)|(DOUBLE|FLOAT)\[')
            THEN NULL
        ELSE k
    END;
