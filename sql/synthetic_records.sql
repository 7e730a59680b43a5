-- Models of synthetic records that are stored in the database. Pure SQL. A model holds values of original records.

CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.synth_models (
    name VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    columns VARCHAR NOT NULL,
    records BIGINT NOT NULL,
    header VARCHAR NOT NULL,
    arrays BLOB NOT NULL
);

--| sdc_synth_models() -> TABLE
--| The stored models of synthetic records.
--|
--| @column name VARCHAR: of the model
--| @column method VARCHAR: 'cart', 'independent' or 'bootstrap-noise', or the methods of its columns
--| @column columns VARCHAR: the columns of its records
--| @column records BIGINT: the records that it was fitted to
--| @column bytes BIGINT: its size
--| @example
--| SELECT name, method, columns, records FROM sdc_synth_models();
--| @output
--| name | method | columns | records
--| -----+--------+---------+--------
--| @source this project
CREATE OR REPLACE MACRO sdc_synth_models() AS TABLE
    SELECT name, method, columns, records, octet_length(arrays)::BIGINT AS bytes FROM sdc.synth_models ORDER BY name;
