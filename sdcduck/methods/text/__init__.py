"""Texts: who they are about, although they were masked."""
