"""The NumPy face without torch: values and vector-Jacobian products (VJPs), a row each, against NumPy and SciPy.

The sizes are those of the other groups. A peer's VJP uses the same formulas as ours, written with the products and
solves of its library; the arrays of both sides are C-ordered. LAPACK is called through SciPy; without SciPy its peers
are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from isometry.cli.bench.numpy import activation, cayley, householder, recurrence, rotations
from isometry.cli.bench.row import Row


def rows() -> Iterator[Row]:
    for module in (householder, cayley, rotations, recurrence, activation):
        yield from module.rows()
