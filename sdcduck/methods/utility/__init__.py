"""Utility of protected records: how much of the original they keep."""
