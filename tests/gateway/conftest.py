"""The fixtures of the gateway's tests."""

from __future__ import annotations

from hypothesis import settings
from served_gateway import register, serve, served

settings.register_profile("gateway", deadline=None)  # a machine that is busy with gateways is no fault of an example
settings.load_profile("gateway")

__all__ = ["register", "serve", "served"]
