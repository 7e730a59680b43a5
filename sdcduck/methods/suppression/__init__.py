"""Cell suppression of linked tables by exact elimination, its audit, decimals and stencil. Arrays in, arrays out.

Two cells of a total: where one must not be known, the other one stays back, too.

>>> import numpy as np
>>> from sdcduck.methods import suppression
>>> x = suppression.DummyMatrix.from_pairs(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 2]), (2, 3))
>>> suppression.suppress_secondary(x, candidates=[0, 2], primary=[1]).secondary
array([False, False,  True])

A function that is called as its module is stays there: `suppression.audit.audit`, `suppression.stencil.stencil`.
"""

from sdcduck.methods.suppression import audit, decimals, determined, improve, stencil
from sdcduck.methods.suppression.candidates import candidate_order
from sdcduck.methods.suppression.differences import Differences, disclosing_differences
from sdcduck.methods.suppression.elimination import Suppression, suppress_secondary
from sdcduck.methods.suppression.intervals import widen_intervals
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import ModularNullSpace, modular_null_space, null_space, reveals_modular
from sdcduck.methods.suppression.optimal import optimal_suppression
from sdcduck.methods.suppression.patterns import Choice, Chosen, LinkedTables, Roles, choose_cells
from sdcduck.methods.suppression.rounding import controlled_rounding, small_count_rounding

__all__ = [
    "Choice", "Chosen", "Differences", "DummyMatrix", "LinkedTables", "ModularNullSpace", "Roles", "Suppression",
    "UnsafePatternError", "audit", "candidate_order", "choose_cells", "controlled_rounding", "decimals", "determined",
    "disclosing_differences", "improve", "modular_null_space", "null_space", "optimal_suppression", "reveals_modular",
    "small_count_rounding", "stencil", "suppress_secondary", "widen_intervals",
]  # fmt: skip
