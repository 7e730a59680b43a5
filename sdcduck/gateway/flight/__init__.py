"""The door for Arrow Flight SQL clients: the same users, guard and limits as at the PostgreSQL door, and whole columns.

``messages`` are the protocol's messages, ``login`` tells who calls, ``metadata`` answers what clients ask about the
database itself, ``running`` watches what runs, and ``server`` is the calls that clients make.

Source: https://arrow.apache.org/docs/format/FlightSql.html
"""
