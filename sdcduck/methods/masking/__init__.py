"""Masking of records: what is changed of their values, so that nobody can be told from others by them."""
