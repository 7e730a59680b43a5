AUDIT (name not_empty);

SELECT count(*) AS n FROM @this_model HAVING count(*) = 0
