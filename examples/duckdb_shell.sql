-- The DuckDB shell (1.5), attached to a gateway as if it were PostgreSQL:
--     export PGHOST=127.0.0.1 PGPORT=5432 PGUSER=ann PGPASSWORD=.. PGDATABASE=register
--     duckdb < duckdb_shell.sql
-- The first time: INSTALL postgres;
ATTACH '' AS register (TYPE postgres, READ_ONLY);

-- Public tables are read as they are.
FROM register.regions ORDER BY region;

-- Protected tables are asked: the whole query goes to the gateway.
FROM postgres_query('register', 'SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region');

-- What was answered is joined here.
SELECT climate, sum(n)::BIGINT AS n
FROM postgres_query('register', 'SELECT region, count(*) AS n FROM people GROUP BY region') JOIN register.regions USING (region)
GROUP BY climate
ORDER BY climate;
