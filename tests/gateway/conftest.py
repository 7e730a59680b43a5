"""The fixtures of the gateway's tests."""

from __future__ import annotations

from served_gateway import register, serve, served

__all__ = ["register", "serve", "served"]
