-- Table functions that create and drop users of the gateway. They call Python, so they are temporary.

--| sdc_create_user(name, password, role := 'analyst') -> TABLE
--| Creates a user of the gateway, or gives one another password and role.
--|
--| Stored is a SCRAM-SHA-256 verifier (salted, 16384 rounds), from which nobody gets the password back. The statement
--| itself holds the password: where statements are kept, as in the history of a shell, use `sdcduck user add FILE NAME`,
--| which asks for it. A gateway that is running reads its users when it starts.
--|
--| @arg name VARCHAR: with which the user logs in; letters count as they are written
--| @arg password VARCHAR: at least 8 characters
--| @arg role VARCHAR: whose policies hold for the user: `sdc_protect(.., role := ..)`
--| @column name VARCHAR: the user
--| @column role VARCHAR: whose policies hold
--| @example
--| FROM sdc_create_user('ann', 'correct horse battery');
--| @output
--| name | role
--| -----+--------
--| ann  | analyst
--| @source RFC 5802 and RFC 7677
CREATE OR REPLACE TEMP MACRO sdc_create_user(name, password, role := 'analyst') AS TABLE
    SELECT * FROM query(_sdc_plan_create_user(name, password, role));

--| sdc_drop_user(name) -> TABLE
--| Takes a user of the gateway away.
--|
--| @arg name VARCHAR: the user
--| @column name VARCHAR: the user
--| @example
--| FROM sdc_drop_user('ann');
--| @output
--| name
--| ----
--| ann
--| @source this project
CREATE OR REPLACE TEMP MACRO sdc_drop_user(name) AS TABLE SELECT * FROM query(_sdc_plan_drop_user(name));
