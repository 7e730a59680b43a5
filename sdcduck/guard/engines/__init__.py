"""Records on another engine: it adds up the inner cells of a question, and DuckDB makes the numbers of these.

What conditions and groups are made of are dimensions, the same for all records of an inner cell. So the engine is asked
for no expression of an analyst, only for counts, sums, and least and largest values, by columns as they are
(`inner_cells.py`, in the words of `catalog/engine_semantics.py`); all else of a question is worked out by DuckDB, as
ever, in `cut.py`.
"""
