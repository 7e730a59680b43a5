-- What Grafana asks of PostgreSQL for its pickers, of the same relations with the same functions, in words of our own.

-- about the database
SELECT current_setting('server_version_num')::int/100 as version;

SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';

SELECT schema_name AS "name" FROM information_schema.schemata
WHERE schema_name NOT IN ('information_schema', 'pg_catalog', 'pg_toast', '_timescaledb_cache') ORDER BY schema_name;

SELECT quote_ident(table_name) AS "table" FROM information_schema.tables WHERE quote_ident(table_schema) = 'public' ORDER BY 1;

SELECT CASE WHEN quote_ident(table_schema) IN (
        SELECT CASE WHEN trim(paths[place]) = '"$user"' THEN user ELSE trim(paths[place]) END
        FROM generate_series(
            array_lower(string_to_array(current_setting('search_path'), ','), 1),
            array_upper(string_to_array(current_setting('search_path'), ','), 1)
        ) as place, string_to_array(current_setting('search_path'), ',') paths)
    THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache')
ORDER BY CASE WHEN quote_ident(table_schema) IN (
        SELECT CASE WHEN trim(paths[place]) = '"$user"' THEN user ELSE trim(paths[place]) END
        FROM generate_series(
            array_lower(string_to_array(current_setting('search_path'), ','), 1),
            array_upper(string_to_array(current_setting('search_path'), ','), 1)
        ) as place, string_to_array(current_setting('search_path'), ',') paths) THEN 0 ELSE 1 END, 1;

SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE CASE WHEN array_length(parse_ident('people'), 1) = 2
    THEN quote_ident(table_schema) = (parse_ident('people'))[1] AND quote_ident(table_name) = (parse_ident('people'))[2]
    ELSE quote_ident(table_name) = 'people' AND quote_ident(table_schema) IN (
        SELECT CASE WHEN trim(paths[place]) = '"$user"' THEN user ELSE trim(paths[place]) END
        FROM generate_series(
            array_lower(string_to_array(current_setting('search_path'), ','), 1),
            array_upper(string_to_array(current_setting('search_path'), ','), 1)
        ) as place, string_to_array(current_setting('search_path'), ',') paths)
    END;

-- the same as: SELECT 1
SELECT 1;

-- the same as: SELECT count(*), region FROM people GROUP BY region LIMIT 50
SELECT COUNT(region), "region" FROM public.people GROUP BY "region" LIMIT 50;

-- the same as: SELECT sum(income) FROM people WHERE region = 'North'
SELECT SUM(income) FROM people WHERE (region = 'North') LIMIT 50;

-- the same as: SELECT DISTINCT region FROM people ORDER BY 1
SELECT DISTINCT region FROM people ORDER BY region ASC;

-- refused: SDC040
SELECT income FROM people WHERE region = 'North';
