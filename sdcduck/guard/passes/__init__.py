"""The steps from an analyst's text to the one that runs: each looks at the query, or changes it."""
