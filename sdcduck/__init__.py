"""sdcduck: statistical disclosure control as SQL inside DuckDB.

>>> import sdcduck
>>> con = sdcduck.connect()
>>> con.execute("SELECT count(*) > 0 FROM sdc_functions()").fetchall()
[(True,)]
"""

from sdcduck.errors import SDCError
from sdcduck.session import connect, install, new_secret, set_secret, uninstall

__all__ = ["SDCError", "connect", "install", "new_secret", "set_secret", "uninstall"]
