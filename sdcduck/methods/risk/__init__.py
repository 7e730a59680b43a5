"""Disclosure risk: how likely a record is to be found, and what it would tell."""
