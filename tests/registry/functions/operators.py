"""Constructors and methods of operators, real forms, the measure of orthogonality."""

import numpy as np

from registry.functions.entry import Function
from registry.functions.linalg import NUMPY

ON = {"backend": "cpu"}
AT_RANDOM = {"numpy": "rng", "torch": "generator"}


def of_w(draw):
    return {"w": draw.orthogonal(4)}


def with_last(draw):
    """Of D: any phases of a complex matrix, signs of a real one."""
    return of_w(draw) | ({"phases": draw.real(4)} if draw.complex else {"signs": np.ones(4, draw.dtype)})


def householder(package, take):
    return package.Householder(take(np.ones((4, 1))))


def method(arrays, faces=("numpy", "torch")):
    return Function(arrays, ON, owner=householder, faces=faces)


def at_random(refused, **counts):
    """One entry for each face, whose names of a source of random numbers differ."""
    refused = (({"n": 4.0}, TypeError, "n must be an integer, not float"), *refused)
    for face, source in AT_RANDOM.items():
        options = {"n": 4, **counts, source: None, "dtype": None}
        yield Function(lambda draw: {}, options, refused, checks=False, faces=(face,))


def plain(name, **more):
    return Function(lambda draw: {name: draw(2, 4)}, checks=False, **more)


TOL = {"tol": None}
TOLERANCES = (
    *(({"tol": wrong}, ValueError, "tol") for wrong in (float("nan"), -1e-9, 10**400)),
    ({"tol": "small"}, TypeError, "tol"),
)
THREADS = (
    *(({"k": wrong}, ValueError, r"1\.\.1024") for wrong in (0, 1025, 2**70)),
    *(({"k": wrong}, TypeError, "k must be an integer") for wrong in (True, 1.0, "2")),
)
OPERATORS = {
    "Householder": Function(lambda draw: {"vectors": draw(4, 1)}, {"sign": 1.0, "phases": None}, checks=False),
    "Cayley": Function(
        lambda draw: {"upper": draw(6)}, {"diagonal": None, "signs": None, "phases": None}, checks=False
    ),
    "Dense": Function(lambda draw: {"weight": draw(4, 1)}, checks=False),
    "apply": method(lambda draw: {"x": draw(2, 4)}),
    "apply_adjoint": method(lambda draw: {"x": draw(2, 4)}),
    "matrix": method(lambda draw: {}),
    "apply_vjp": method(lambda draw: {"x": draw(2, 4), "ct": draw(2, 4)}, NUMPY),
    "apply_adjoint_vjp": method(lambda draw: {"y": draw(2, 4), "ct": draw(2, 4)}, NUMPY),
    "matrix_vjp": method(lambda draw: {"ct": draw.real(4, 4)}, NUMPY),
    "Householder.from_matrix": Function(of_w, TOL, TOLERANCES),
    "Householder.from_trapezoid": Function(lambda draw: {"u": draw(4, 1)}, {"sign": "hard"}, checks=False, real=True),
    "Cayley.from_matrix": Function(with_last, {"signs": None, "phases": None, **TOL}, TOLERANCES),
    "Exponential.from_matrix": Function(of_w, TOL),
    "Mesh.from_matrix": Function(of_w, {"first": "left", **TOL}),
    "Mesh.from_clements": Function(
        lambda draw: {"theta": draw.real(6), "phi": draw.real(6), "phases": draw.real(4)},
        {"n": 4, "first": "left"},
        checks=False,
    ),
    "Kronecker.from_matrix": Function(
        lambda draw: {"w": np.kron(draw.orthogonal(2), draw.orthogonal(2))}, {"factor_sizes": [2, 2], **TOL}
    ),
    **{
        f"{kind}.{maker}": Function(arrays)
        for kind in ("Cayley", "Exponential")
        for maker, arrays in {
            "from_skew": lambda draw: {"a": draw.skew(4, 4)},
            "from_rotvec": lambda draw: {"rotvec": draw.real(3)},
            "from_quat": lambda draw: {"quat": draw.real(4)},
        }.items()
    },
    "orthogonality_error": Function(of_w),
    "real_matrix": plain("w"),
    "real_state": plain("z"),
    "real_input": plain("v"),
    "complex_matrix": plain("r", real=True),
    "complex_state": plain("r", real=True),
    "set_num_threads": Function(lambda draw: {}, {"k": 1}, THREADS, checks=False),
}
for name, counts, refused in (
    ("Householder", {"m": 2}, [({"m": 2.0}, TypeError, "m must be an integer")]),
    ("Cayley", {"negative_ones": 2}, [({"negative_ones": True}, TypeError, "negative_ones must be an integer")]),
    ("Dense", {}, []),
):
    for face, entry in zip(AT_RANDOM, at_random(refused, **counts), strict=True):
        OPERATORS[f"{name}.random, {face}"] = entry
