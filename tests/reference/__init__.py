# ruff: noqa: F401  the names of `ref`
"""Textbook NumPy in double precision, directly from the definitions; slow, plain and independent of the package.

Arrays in are widened to float64 or complex128. An operator W is one matrix (n_out, n_in); states are rows, C = H W^T.
The gradient of a real loss L in z = x + i y is dL/dx + i dL/dy: Re sum conj(p_bar) dp = Re sum conj(c_bar) dc.
"""

from reference.activations import NAMES, activate, activate_vjp, as_complex, as_real, on_parts, pairs
from reference.bounded_svd import bounded_svd, bounded_svd_vjp
from reference.cayley import cayley, cayley_vjp, last_factor, size_of_packed, skew
from reference.circulant import circulant, circulant_vjp
from reference.dense import dense, dense_vjp
from reference.exponential import exponential, exponential_vjp
from reference.fourier import fourier, fourier_vjp
from reference.givens import givens, givens_vjp
from reference.gru import gru
from reference.hadamard import hadamard, hadamard_vjp
from reference.householder import householder, householder_factors, householder_vjp, reflection, reflection_vjp
from reference.kronecker import kronecker, kronecker_vjp
from reference.linalg import geqrf, reflector_factors, reflectors, reflectors_vjp, vectors_of
from reference.lstm import lstm
from reference.mesh import mesh, mesh_pairs, mesh_vjp
from reference.numbers import cofactors, haar, normal, orthogonality_error, slope_along, wide
from reference.recurrence import initial, pieces, preactivation, recurrence, recurrence_vjp
from reference.rotation import rotation, rotation_vjp, unit
from reference.rum import rum
