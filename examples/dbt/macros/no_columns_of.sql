{# Fails where one of these columns has come into a release. #}
{% test no_columns_of(model, columns) %}
SELECT column_name
FROM (DESCRIBE {{ model }})
WHERE column_name IN ('{{ columns | join("', '") }}')
{% endtest %}
