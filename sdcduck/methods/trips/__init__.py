"""Trips: sequences of the cells of a grid, and what is drawn from a model of them."""
