"""The fixtures of the gateway's tests."""

from __future__ import annotations

from served_gateway import encrypted, register, serve, served

__all__ = ["encrypted", "register", "serve", "served"]
