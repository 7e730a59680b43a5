"""Protection: blocks over unit-level records become protected numbers, and nothing else."""
