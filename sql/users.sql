-- Users of the gateway, and their roles. Pure SQL. The password itself is nowhere: only what a server checks it with.

CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.users (name VARCHAR NOT NULL, role VARCHAR NOT NULL, verifier VARCHAR NOT NULL);

--| sdc_users() -> TABLE
--| The users of the gateway (`sdcduck serve`).
--|
--| @column name VARCHAR: with which the user logs in
--| @column role VARCHAR: whose policies hold for the user: `sdc_protect(.., role := ..)`
--| @example
--| FROM sdc_users();
--| @output
--| name | role
--| -----+-----
--| @source this project
CREATE OR REPLACE MACRO sdc_users() AS TABLE SELECT name, role FROM sdc.users ORDER BY name;
