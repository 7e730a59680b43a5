"""Numerical kernels of the methods: arrays and scalars in, arrays out; no database, files or global state."""
