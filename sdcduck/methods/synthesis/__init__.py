"""Synthesis of tables: counts drawn from models whose risk and utility are known before the draw."""
