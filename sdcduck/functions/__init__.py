"""How methods become SQL functions: what a family declares, and how it comes onto a connection."""
