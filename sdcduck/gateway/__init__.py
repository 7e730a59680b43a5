"""The gateway: any client of PostgreSQL or Arrow Flight SQL asks, the guard answers.

``serving`` makes it of a file; ``shared_state`` is what its doors share: users, limits, passwords. ``postgres/`` and
``flight/`` are the doors, and ``system/`` answers what clients ask about the database itself.
"""
