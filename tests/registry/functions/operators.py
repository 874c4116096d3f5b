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
NEAREST = {**TOL, "nearest": False}
TOLERANCES = (
    *(({"tol": wrong}, ValueError, "tol") for wrong in (float("nan"), -1e-9, 10**400)),
    ({"tol": "small"}, TypeError, "tol"),
)
THREADS = (
    *(({"k": wrong}, ValueError, r"1\.\.1024") for wrong in (0, 1025, 2**70)),
    *(({"k": wrong}, TypeError, "k must be an integer") for wrong in (True, 1.0, "2")),
)
NO_SKEW = tuple(({"a": a}, ValueError, "^a must") for a in (np.ones((3, 3)), np.zeros((3, 2))))
HALF_TURNS = {
    "rotvec": [[0.0, k * np.pi, 0.0] for k in (1, 3, -5)],
    "quat": [[1.0, 0, 0, 0], [0, 0.6, -0.8, 0], [-3.0, 0, 0, -0.0]],
}


def of_space(kind, name, size, **options):
    """A rotation of space from real vectors of this size."""
    refused = [
        *(({name: np.ones(shape)}, ValueError, rf"^{name} must have shape") for shape in ((5,), (2, 2), ())),
        ({name: np.ones(size) + 0j}, TypeError, f"^{name} must be real"),
        *(
            ({name: np.array(r)}, ValueError, f"^{name} must not turn by pi")
            for r in HALF_TURNS[name]
            if kind == "Cayley"
        ),
        *([({name: np.zeros((2, 4))}, ValueError, "^quat must not be zero")] if name == "quat" else []),
    ]
    return Function(lambda draw: {name: draw.real(size)}, options, tuple(refused))


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
    "Householder.from_matrix": Function(of_w, NEAREST, TOLERANCES),
    "Householder.from_trapezoid": Function(
        lambda draw: {"u": draw(4, 1)},
        {"sign": "hard"},
        (
            *(({"u": np.ones(shape)}, ValueError, "u") for shape in ((3, 4), (3, 0), (3,))),
            ({"u": np.array([[1.0, 0], [2, 1.5]]), "sign": "soft"}, ValueError, "sign"),
            ({"sign": "firm"}, ValueError, "sign"),
        ),
        checks=False,
        real=True,
    ),
    "Cayley.from_matrix": Function(with_last, {"signs": None, "phases": None, **NEAREST}, TOLERANCES),
    "Exponential.from_matrix": Function(of_w, NEAREST),
    "Mesh.from_matrix": Function(of_w, {"first": "left", **NEAREST}),
    "Mesh.from_clements": Function(
        lambda draw: {"theta": draw.real(6), "phi": draw.real(6), "phases": draw.real(4)},
        {"n": 4, "first": "left"},
        (
            *(({name: np.ones(3)}, ValueError, f"^{name} must have shape") for name in ("theta", "phi", "phases")),
            ({"phi": np.ones(6) + 0j}, TypeError, "^phi must be real"),
            ({"first": "top"}, ValueError, "^first must be"),
        ),
        checks=False,
    ),
    "Kronecker.from_matrix": Function(
        lambda draw: {"w": np.kron(draw.orthogonal(2), draw.orthogonal(2))}, {"factor_sizes": [2, 2], **TOL}
    ),
    **{
        f"{kind}.{maker}": entry
        for kind in ("Cayley", "Exponential")
        for maker, entry in {
            "from_skew": Function(lambda draw: {"a": draw.skew(4, 4)}, refused=NO_SKEW),
            "from_rotvec": of_space(kind, "rotvec", 3),
            "from_quat": of_space(kind, "quat", 4, scalar_first=False),
        }.items()
    },
    # rounding, in which any change of the order of summation shows
    "orthogonality_error": Function(lambda draw: {"w": np.linalg.qr(draw(3, 34, 21))[0]}),
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
