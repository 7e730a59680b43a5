"""The functions in models of dbt: a plugin of dbt-duckdb, which a profile names ``sdcduck.dbt``.

The secret is that of the environment (``SDCDUCK_SECRET`` or ``SDCDUCK_SECRET_FILE``): profiles are shared.
"""

from __future__ import annotations

import duckdb

from sdcduck.functions.install import install

try:
    from dbt.adapters.duckdb.plugins import BasePlugin
except ImportError:  # nobody but dbt makes one of them
    BasePlugin = object


class Plugin(BasePlugin):  # type: ignore[misc]
    """Puts the functions on the connection that dbt takes its cursors from."""

    def configure_connection(self, conn: duckdb.DuckDBPyConnection) -> None:
        """What dbt calls when it has opened the database."""
        install(conn)
