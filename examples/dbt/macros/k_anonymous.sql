{# Fails where fewer than k records have the same values of the keys. #}
{% test k_anonymous(model, keys, k=5) %}
SELECT k, uniques, below_k
FROM sdc_k_anonymity('{{ model }}', keys := ['{{ keys | join("', '") }}'], k := {{ k }})
WHERE k < {{ k }}
{% endtest %}
