"""Differential privacy of statistics: how much noise, how it is shared, how it is drawn, and what several cost."""
