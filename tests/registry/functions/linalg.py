"""Products of reflections, QR factorisations, nearest matrices and Cayley transforms."""

import numpy as np

from registry.functions.entry import Function

FIRST, OF_A, NUMPY = {"a": "input"}, {"a": "A"}, ("numpy",)


def zeros(*shape):
    return np.zeros(shape)


def reflections(draw):
    return {"a": draw(4, 3) / 2, "tau": draw(3)}


def with_other(draw):
    return {**reflections(draw), "other": draw(4, 4)}


def larger(*names):
    """Stacks of reflections and of few large ones, with some of other, ct, and the cotangent of tau."""

    def drawn(draw, *shape):
        a = draw(*shape) / 8
        tau = 2 / (1 + (np.abs(np.tril(a, -1)) ** 2).sum(-2))
        other, ct = draw(*shape[:-1], 40), draw(*shape[:-1], 40) if "other" in names else draw(*shape)
        found = {"a": a, "tau": tau.astype(a.dtype), "other": other, "ct": ct, "tau_ct": draw(*shape[:-2], shape[-1])}
        return {name: found[name] for name in names}

    return tuple(lambda draw, shape=shape: drawn(draw, *shape) for shape in ((64, 24, 24), (2, 300, 200)))


CT = ({"ct": zeros(3, 3)}, ValueError, "^ct must have shape")
SHAPES = (
    ({"a": zeros(2, 3)}, ValueError, "^[aA] must"),
    ({"a": zeros(3), "tau": zeros(1)}, ValueError, "^[aA] must"),
    ({"tau": zeros(4)}, ValueError, "tau"),
    ({"tau": zeros()}, ValueError, "tau"),
    ({"a": zeros(2, 3, 2), "tau": zeros(3, 2)}, ValueError, "batch shapes of [aA], tau"),
)
LINALG = {
    "linalg.householder_product": Function(
        reflections, renamed=OF_A, refused=SHAPES, smooth=True, large=larger("a", "tau")
    ),
    "linalg.householder_product_vjp": Function(
        lambda draw: {**reflections(draw), "ct": draw(4, 3)},
        faces=NUMPY,
        refused=(CT, ({"ct": zeros(4, 3) + 0j}, TypeError, "ct")),
        large=larger("a", "tau", "ct"),
    ),
    "linalg.ormqr": Function(
        with_other,
        {"left": True, "transpose": False},
        (
            ({"other": zeros(5, 4)}, ValueError, "other"),
            ({"other": zeros(3, 5), "left": False}, ValueError, "other"),
            ({"other": zeros(3)}, ValueError, "other"),
            ({"left": "no"}, TypeError, "left"),
        ),
        renamed=FIRST,
        smooth=True,
        large=larger("a", "tau", "other"),
    ),
    "linalg.ormqr, from the right": Function(
        with_other, {"left": False, "transpose": True}, renamed=FIRST, smooth=True
    ),
    "linalg.ormqr_vjp": Function(
        lambda draw: {**with_other(draw), "ct": draw(4, 4)},
        {"left": True, "transpose": False},
        (CT,),
        faces=NUMPY,
        large=larger("a", "tau", "other", "ct"),
    ),
    "linalg.geqrf": Function(
        lambda draw: {"a": draw(4, 3)},
        renamed=FIRST,
        refused=(({"a": zeros(3)}, ValueError, "^(a|input) must"),),
        smooth=True,
        large=larger("a"),
    ),
    "linalg.geqrf, wide": Function(lambda draw: {"a": draw(3, 5)}, renamed=FIRST, smooth=True),
    "linalg.geqrf_vjp": Function(
        lambda draw: {"a": draw(4, 3), "ct": draw(4, 3), "tau_ct": draw(3)},
        faces=NUMPY,
        refused=(CT, ({"tau_ct": zeros(4, 3)}, ValueError, "ct must have shape")),
        large=larger("a", "ct", "tau_ct"),
    ),
    "linalg.qr": Function(
        lambda draw: {"a": draw(5, 3)},
        {"mode": "reduced"},
        (({"mode": "raw"}, ValueError, "^mode must be"), ({"a": zeros(3)}, ValueError, "must have shape")),
        renamed=OF_A,
        smooth=True,
    ),
    "linalg.qr, complete": Function(lambda draw: {"a": draw(3, 5)}, {"mode": "complete"}, renamed=OF_A, smooth=True),
    "linalg.procrustes": Function(
        lambda draw: {"a": draw(2, 4, 4)},
        {"special": False, "return_scale": False},
        (
            ({"a": zeros(3)}, ValueError, "a must have shape"),
            (
                {"a": zeros(4, 3), "special": True},
                ValueError,
                r"a must be square with special=True, shape \(\*, n, n\), not \(4, 3\)",
            ),
            ({"a": zeros(3, 3) + 1j, "special": True}, TypeError, "a must be real with special=True"),
            ({"return_scale": 1}, TypeError, "^return_scale "),
        ),
        smooth=True,
        large=tuple(
            lambda draw, shape=shape: {"a": draw(*shape)} for shape in ((301, 3, 3), (5, 40, 40), (1, 220, 200))
        ),
    ),
    "linalg.procrustes, with its scale": Function(
        lambda draw: {"a": draw(2, 4, 2)}, {"return_scale": True}, smooth=True
    ),
    "linalg.procrustes, rotations": Function(
        lambda draw: {"a": draw(2, 3, 3)}, {"special": True, "return_scale": True}, real=True, smooth=True
    ),
    "linalg.procrustes_vjp": Function(
        lambda draw: {"a": draw(3, 3), "ct": draw(3, 3)},
        {"special": False},
        (({"ct": zeros(2, 2)}, ValueError, "ct must have shape"),),
        faces=NUMPY,
    ),
    "linalg.cayley": Function(
        lambda draw: {"a": draw.skew(4, 4)},
        refused=(({"a": zeros(3, 2)}, ValueError, "a"), ({"a": np.eye(3)}, ValueError, "skew")),
    ),
    "linalg.cayley_vjp": Function(lambda draw: {"a": draw.skew(4, 4), "ct": draw(4, 4)}, faces=NUMPY),
    "cayley_step": Function(
        lambda draw: {"w": draw.orthogonal(4), "gradient": draw(4, 4)},
        {"rate": 0.3},
        (
            *(({"rate": rate}, ValueError, "^rate must be") for rate in (-0.1, np.nan, np.inf)),
            ({"rate": "1"}, TypeError, "^rate must be a number"),
            ({"w": zeros(3, 2), "gradient": zeros(3, 2)}, ValueError, "^w must be square"),
            ({"gradient": np.eye(2)}, ValueError, "^gradient must have shape"),
            ({"gradient": np.eye(4) + 0j}, TypeError, "^gradient must be real"),
            # of odd n the skew matrix of a step is singular
            ({"w": np.eye(5), "gradient": np.triu(np.ones((5, 5)), 1), "rate": 1e30}, ValueError, "^rate must keep"),
            (
                {"w": np.eye(2, dtype=np.float32), "gradient": np.float32([[0, 1e30], [0, 0]]), "rate": 1e30},
                ValueError,
                "^rate must keep",
            ),
        ),
        smooth=True,
    ),
}
