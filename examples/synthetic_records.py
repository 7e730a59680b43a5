"""Synthetic records of a real survey: 6366 answers of 1974 about marriage, from statsmodels (Fair 1978).

python synthetic_records.py        needs: pip install 'sdcduck[synthesis]' pandas statsmodels
"""

from __future__ import annotations

import warnings

import pyarrow as pa

import sdcduck

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from statsmodels.datasets import fair

SYNTHESISE = "CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records('survey', method := '{}', seed := 1974)"
RISK = """
    SELECT recreated, original_uniques, unique_recreated FROM sdc_synth_replicas('survey', 'drawn',
        columns := ['age', 'yrs_married', 'children', 'educ', 'occupation', 'occupation_husb'])
"""
UTILITY = """
    SELECT max(abs(difference)) < 0.05 AS correlations_kept FROM sdc_synth_correlations('survey', 'drawn')
"""

con = sdcduck.connect(secret="a secret of the custodian")
con.register("given", pa.Table.from_pandas(fair.load_pandas().data, preserve_index=False))
con.execute("CREATE TABLE survey AS FROM given")
for method in ("cart", "independent"):
    con.execute(SYNTHESISE.format(method))
    print(f"{method}:")
    print(con.sql(RISK))
    print(con.sql(UTILITY))
