"""Adapters between SQL and the kernels: SQL arguments in, a kernel call, an Arrow table out."""
