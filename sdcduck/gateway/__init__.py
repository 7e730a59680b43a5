"""The PostgreSQL gateway: any PostgreSQL client asks, the guard answers.

``protocol`` are the messages, ``types``, ``texts``, ``rows`` and ``parameters`` the values in them; ``statements`` and
``postgres_sql`` read what clients send, ``system_catalog`` answers what they ask about the database itself; ``session``
is one client and ``server`` all of them.
"""
