"""sdcduck: statistical disclosure control as SQL inside DuckDB.

>>> import sdcduck
>>> con = sdcduck.connect()
>>> con.execute("SELECT count(*) > 0 FROM sdc_functions()").fetchall()
[(True,)]
"""

from sdcduck.errors import SDCError
from sdcduck.guard import guard
from sdcduck.report import report
from sdcduck.session import connect, install, new_secret, set_secret, uninstall

__all__ = ["SDCError", "connect", "guard", "install", "new_secret", "report", "set_secret", "uninstall"]
