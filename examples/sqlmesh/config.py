"""The functions for SQLMesh: whatever it opens in this process has those of the connection that is kept open here."""

import os

import duckdb
from sqlmesh.core.config import Config, DuckDBConnectionConfig, GatewayConfig, ModelDefaultsConfig

import sdcduck

RELEASES = os.environ.get("RELEASES", "releases.duckdb")
FUNCTIONS = duckdb.connect(RELEASES)
sdcduck.install(FUNCTIONS)
# The register is only read. What may leave the house is made in a file of its own, which holds no records.
FUNCTIONS.execute(f"ATTACH IF NOT EXISTS '{os.environ.get('REGISTER', '../register.duckdb')}' AS register (READ_ONLY)")

config = Config(
    gateways={"house": GatewayConfig(connection=DuckDBConnectionConfig(database=RELEASES))},
    default_gateway="house",
    model_defaults=ModelDefaultsConfig(dialect="duckdb", start="2026-01-01"),
)
