-- What Power BI asks of PostgreSQL through Npgsql, in words of our own.

-- about the database
select character_set_name from information_schema.character_sets;

select table_name, table_schema, table_type from INFORMATION_SCHEMA.TABLES
where not table_schema in ('pg_catalog', 'information_schema') order by 2, 1;

select column_name, ordinal_position, is_nullable, data_type, case data_type when 'DOUBLE' then 2 else 10 end as radix
from INFORMATION_SCHEMA.COLUMNS where table_name = 'people' and table_schema = 'public' order by 2;

DISCARD ALL;

-- the same as: SELECT region, sum(income) FROM people GROUP BY region
select "_"."region", "_"."a0" from (select "rows"."region" as "region", sum("rows"."income") as "a0"
    from (select "region", "income" from "public"."people" "$Table") "rows" group by "region") "_"
where not "_"."a0" is null limit 1000001;

-- the same as: SELECT count(DISTINCT person_id) FROM people
select count(distinct("rows"."person_id")) as "a0" from "public"."people" "rows";

-- a preview
select "$Table"."region" as "region", "$Table"."sex" as "sex" from "public"."people" "$Table" limit 1000;

-- refused: SDC040
select "$Table"."person_id" as "person_id", "$Table"."region" as "region" from "public"."people" "$Table";
