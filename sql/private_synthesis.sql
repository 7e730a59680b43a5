-- What differentially private releases have spent: kept in the database. Pure SQL. Neither table holds data.

CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.dp_releases (
    release BIGINT NOT NULL,
    data VARCHAR NOT NULL,
    neighbours VARCHAR NOT NULL,
    epsilon DOUBLE NOT NULL,
    what VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    charged_at TIMESTAMP NOT NULL
);
CREATE TABLE IF NOT EXISTS sdc.dp_budgets (
    data VARCHAR NOT NULL,
    neighbours VARCHAR NOT NULL,
    epsilon DOUBLE NOT NULL
);
ALTER TABLE sdc.dp_releases ADD COLUMN IF NOT EXISTS delta DOUBLE DEFAULT 0;
ALTER TABLE sdc.dp_releases ADD COLUMN IF NOT EXISTS rho DOUBLE;
ALTER TABLE sdc.dp_budgets ADD COLUMN IF NOT EXISTS delta DOUBLE DEFAULT 0;

-- What a release costs under a neighbouring relation that is not its own. To replace a record is to remove one and to add
-- one; but a release under 'replace' tells the exact number of records, which 'add_remove' would protect.
CREATE OR REPLACE MACRO _sdc_dp_cost(epsilon, neighbours, under) AS
    CASE
        WHEN neighbours = under THEN epsilon
        WHEN under = 'replace' THEN 2 * epsilon
        ELSE 'infinity'::DOUBLE
    END;
CREATE OR REPLACE MACRO _sdc_dp_delta(epsilon, delta, neighbours, under) AS
    CASE WHEN delta = 0 OR neighbours = under THEN delta WHEN under = 'replace' THEN (1 + exp(epsilon)) * delta ELSE delta END;

--| sdc_synth_dp_ledger() -> TABLE
--| Every differentially private release on this database, with what the releases of the same data have spent up to it.
--|
--| Those of `sdc_synth_dp` and of the functions `sdc_dp_..`. A release is charged to each table of the database that its source reads, through views, macros and queries. A copy
--| of a table is a table of its own. Files are charged under the text of the source.
--|
--| @column release BIGINT: number of the release; one that reads several tables has a row for each
--| @column data VARCHAR: the table
--| @column neighbours VARCHAR: 'add_remove' or 'replace'
--| @column epsilon DOUBLE: what it cost
--| @column delta DOUBLE: what it cost beside that; 0 but for normal noise
--| @column rho DOUBLE: its zero-concentrated privacy, which several releases add up more tightly (`sdc_dp_composition`)
--| @column spent DOUBLE: the sum of `epsilon` up to it, of the releases of this table under the same neighbouring relation
--| @column spent_delta DOUBLE: the same of `delta`
--| @column what VARCHAR: what was drawn, in words
--| @column source VARCHAR: as it stood in the call
--| @column charged_at TIMESTAMP: when it was charged, in UTC
--| @example
--| SELECT release, data, neighbours, epsilon, delta, spent FROM sdc_synth_dp_ledger();
--| @output
--| release | data | neighbours | epsilon | delta | spent
--| --------+------+------------+---------+-------+------
--| @source sequential composition: Dwork, McSherry, Nissim & Smith (2006)
CREATE OR REPLACE MACRO sdc_synth_dp_ledger() AS TABLE
    SELECT release, data, neighbours, epsilon, delta, coalesce(rho, epsilon ** 2 / 2) AS rho,
        sum(epsilon) OVER (PARTITION BY data, neighbours ORDER BY release) AS spent,
        sum(delta) OVER (PARTITION BY data, neighbours ORDER BY release) AS spent_delta, what, source, charged_at
    FROM sdc.dp_releases ORDER BY release, data;

--| sdc_synth_dp_budgets() -> TABLE
--| What has been spent of each table that has a budget or was released, and what is left.
--|
--| One row for each neighbouring relation in which there is a budget or a release. Releases under the other relation count
--| too: one under 'add_remove' costs twice its epsilon under 'replace'; one under 'replace' tells the exact number of
--| records, which under 'add_remove' costs more than any budget.
--|
--| @column data VARCHAR: the table
--| @column neighbours VARCHAR: 'add_remove' or 'replace'
--| @column releases BIGINT: number of its releases, of both relations
--| @column spent DOUBLE: the sum of what they cost under this relation
--| @column budget DOUBLE: what they may cost together; NULL: there is no budget
--| @column remaining DOUBLE: what is left of it
--| @column spent_delta DOUBLE: the sum of what they cost beside that
--| @column budget_delta DOUBLE: what that may be; NULL: there is no budget
--| @example
--| SELECT data, neighbours, releases, spent, budget, remaining FROM sdc_synth_dp_budgets();
--| @output
--| data | neighbours | releases | spent | budget | remaining
--| -----+------------+----------+-------+--------+----------
--| @source sequential composition: Dwork, McSherry, Nissim & Smith (2006)
CREATE OR REPLACE MACRO sdc_synth_dp_budgets() AS TABLE
    SELECT a.data, a.neighbours, count(r.release) AS releases,
        coalesce(sum(_sdc_dp_cost(r.epsilon, r.neighbours, a.neighbours)), 0)::DOUBLE AS spent,
        any_value(b.epsilon) AS budget, any_value(b.epsilon) - spent AS remaining,
        coalesce(sum(_sdc_dp_delta(r.epsilon, r.delta, r.neighbours, a.neighbours)), 0)::DOUBLE AS spent_delta,
        any_value(b.delta) AS budget_delta
    FROM (SELECT data, neighbours FROM sdc.dp_releases UNION SELECT data, neighbours FROM sdc.dp_budgets) a
    LEFT JOIN sdc.dp_releases r ON r.data = a.data
    LEFT JOIN sdc.dp_budgets b ON b.data = a.data AND b.neighbours = a.neighbours
    GROUP BY a.data, a.neighbours ORDER BY a.data, a.neighbours;
