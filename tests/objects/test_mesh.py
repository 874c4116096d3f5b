"""Meshes: what the layouts reach, sizes at the edges of vectors, transitions, memory of a backward, and refusals."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from isometry._objects import mesh
from registry import DTYPES, is_complex, real_of
from subprocesses import script
from tolerance import TIGHT, close, forward, gradient, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
PLANS = {
    "one": {"n": 1, "layers": 3},
    "two": {"n": 2, "layers": 3, "first": "right"},
    "vectors": {"n": 33, "layers": 5},
    "right": {"n": 34, "layers": 4, "first": "right"},
    "deep": {"n": 5, "layers": 12},
    "fft 1": {"n": 1, "layout": "fft"},
    "fft 2": {"n": 2, "layout": "fft"},
    "fft 128": {"n": 128, "layout": "fft"},
}
PLAN = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


def drawn(plan, dtype, rng):
    return iso.Mesh.random(**plan, dtype=dtype, rng=rng)


def arrays(op):
    return {k: a for k in ("theta", "phi", "phases", "signs") if (a := getattr(op, k)) is not None}


@DTYPE
@PLAN
def test_values_and_gradients(plan, dtype, seed):
    op = drawn(plan, dtype, seed)
    n, given = plan["n"], arrays(op)
    size = 2 * (n + op.layers)
    w = ref.mesh(**given, **plan)
    close(op.matrix(), w, forward(dtype, size))
    x, ct = ref.normal(seed, 7, n, dtype=dtype), ref.normal(seed, 7, n, dtype=dtype)
    close(op.apply(x), x @ w.T, forward(dtype, size), floor=1.0)
    close(op.apply_adjoint(x), x @ w.conj(), forward(dtype, size), floor=1.0)
    expected = ref.mesh_vjp(ref.wide(ct).T @ x.conj(), **given, **plan)
    for grads, x_bar, own in (
        (*op.apply_vjp(x, ct), ct @ w.conj()),
        (*op.apply_adjoint_vjp(ct, x), x @ w.T),
    ):
        close(x_bar, own, forward(dtype, size), floor=1.0)
        assert set(grads) == set(expected)
        for name, grad in grads.items():
            close(grad, expected[name], gradient(dtype, size), name, floor=1.0)
    w_bar = ref.normal(seed, n, n, dtype=dtype)
    for name, grad in ref.mesh_vjp(w_bar, **given, **plan).items():
        close(op.matrix_vjp(w_bar)[name], grad, gradient(dtype, size), name, floor=1.0)


@pytest.mark.parametrize("n", [4, 5])
def test_as_many_layers_as_rows_reach_every_unitary_matrix(n, seed):
    """The n^2 angles move W in independent directions. A real W has the determinant (-1)^P prod(signs)."""
    op = drawn({"n": n, "layers": n}, np.complex128, seed)
    angles = np.concatenate([op.theta, op.phi, op.phases])
    assert len(angles) == n * n
    cuts = np.cumsum([len(op.theta), len(op.phi)])

    def matrix(angles):
        theta, phi, phases = np.split(angles, cuts)
        return iso.Mesh(theta, n=n, layers=n, phi=phi, phases=phases).matrix()

    step = 1e-6
    columns = [(matrix(angles + step * e) - matrix(angles - step * e)).ravel() / (2 * step) for e in np.eye(n * n)]
    jacobian = np.array([np.concatenate([c.real, c.imag]) for c in columns])
    assert np.linalg.matrix_rank(jacobian, tol=1e-6) == n * n
    real = drawn({"n": n, "layers": 3}, np.float64, seed)
    signs = np.where(np.arange(n) < 1, -1.0, 1.0)
    signed = iso.Mesh(real.theta, n=n, layers=3, signs=signs)
    assert np.linalg.det(signed.matrix()) * (-1.0) ** len(real.theta) < 0


def test_numbers_of_pairs_and_places_agree_with_the_pairs():
    for plan in (
        {"n": n, "layers": depth, "first": side}
        for n in range(1, 8)
        for depth in range(1, 5)
        for side in ("left", "right")
    ):
        pairs = ref.mesh_pairs(**plan)
        shape = mesh.frame(plan["n"], plan["layers"], "brick", plan["first"])
        assert mesh.count(*shape[:3]) == sum(map(len, pairs))
        assert [(start, many) for start, many, _ in mesh.layers(*shape[:3]) if many] == [
            (layer[0][0], len(layer)) for layer in pairs if layer
        ]
    for n in (1, 2, 8, 32):
        depth = n.bit_length() - 1
        places = [
            [(s + q, s + q + p) for s in range(0, n, 2 * p) for q in range(p)] for _, _, p in mesh.layers(n, depth, 3)
        ]
        assert places == ref.mesh_pairs(n, layout="fft")


@PLAN
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_recurrence_equals_that_of_its_matrix(plan, dtype, seed):
    """Step by step, or through the matrix: states and gradients, sequences of several lengths."""
    op, n = drawn(plan, dtype, seed), plan["n"]
    x, v, h0 = (ref.normal(seed, *shape, dtype=dtype) for shape in ((9, 5, 3), (n, 3), (5, n)))
    options = {"h0": h0, "activation": "tanh", "lengths": [9, 4, 7, 1, 9]}
    states = iso.recurrence(op, x, v, **options)
    dense = iso.Dense(op.matrix())
    close(states, iso.recurrence(dense, x, v, **options), TIGHT)
    ct = ref.normal(seed, *states.shape, dtype=dtype)
    grads = iso.recurrence_vjp(op, x, v, states, ct, **options)
    expected = iso.recurrence_vjp(dense, x, v, states, ct, **options)
    wanted = op.matrix_vjp(expected["transition"]["weight"])
    assert set(grads["transition"]) == set(wanted)
    for name, grad in wanted.items():
        close(grads["transition"][name], grad, TIGHT, name)
    for name in ("x", "input_weight", "h0"):
        close(grads[name], expected[name], TIGHT)


@DTYPE
def test_both_faces_and_every_number_of_threads_give_the_same_bits(dtype, seed, threads):  # noqa: ARG001
    plan = {"n": 128, "layers": 4}
    x, ct = (ref.normal(seed, 300, 128, dtype=dtype) for _ in range(2))
    op, results = drawn(plan, dtype, seed), []
    for count in (1, 2, 3):
        iso.set_num_threads(count)
        grads, x_bar = op.apply_vjp(x, ct)
        results.append([op.apply(x), x_bar, *grads.values()])
    leaves = {k: torch.from_numpy(a).requires_grad_() for k, a in arrays(op).items()}
    rows = torch.from_numpy(x).requires_grad_()
    out = it.Mesh(**leaves, **plan).apply(rows)
    out.backward(torch.from_numpy(ct))
    results.append([a.detach().numpy() for a in (out, rows.grad, *(leaf.grad for leaf in leaves.values()))])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            identical(a, b)


def test_the_formula_has_every_derivative():
    plan = {"n": 4, "layout": "fft"}
    draw = lambda *shape: torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    given, x = (draw(4), draw(4), draw(4)), torch.randn(3, 4, dtype=torch.complex128, requires_grad=True)
    build = lambda theta, phi, phases: it.Mesh(theta, phi=phi, phases=phases, **plan)
    assert torch.autograd.gradcheck(lambda x, *a: build(*a).apply(x), (x, *given))
    assert torch.autograd.gradgradcheck(lambda x, *a: build(*a).apply(x), (x, *given))
    assert torch.autograd.gradgradcheck(lambda *a: torch.view_as_real(build(*a).matrix()), given)
    thetas = torch.randn(5, 4, dtype=torch.float64)
    stack = torch.func.vmap(lambda theta: it.Mesh(theta, **plan).matrix())(thetas)
    torch.testing.assert_close(stack[3], it.Mesh(thetas[3], **plan).matrix())


def test_a_compiled_graph_calls_the_kernel():
    theta, x = torch.randn(8, requires_grad=True), torch.randn(5, 6)
    apply = lambda theta, x: it.Mesh(theta, n=6, layers=3).apply(x)
    compiled = torch.compile(apply, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(theta, x), apply(theta, x))
    grads = [torch.autograd.grad(f(theta, x).square().sum(), theta) for f in (compiled, apply)]
    torch.testing.assert_close(*grads)


def test_fields_and_conversions(seed):
    """Angles are real; phi or phases make W complex, and a converted mesh keeps its layout."""
    op = iso.Mesh(np.zeros(4, np.float32), n=4, layout="fft", phases=np.zeros(4))
    assert op.dtype == np.complex128
    assert op.apply_vjp(np.ones(4), np.ones(4))[0]["theta"].dtype == np.float32
    for package in (iso, it):
        op = package.Mesh.random(8, layers=3, first="right")
        wide = op.astype(np.complex64) if package is iso else op.to(torch.complex64)
        assert (wide.n, wide.layers, wide.layout, wide.first) == (8, 3, "brick", "right")
        assert "complex64" in repr(wide)
        assert "float32" in str(wide.theta.dtype)
    real = iso.Mesh.random(8, layout="fft", rng=seed)
    z = ref.normal(seed, 8, dtype=np.complex128)
    close(real.apply(z), real.matrix() @ z, TIGHT)
    close((real.H @ real).matrix(), np.eye(8), TIGHT)
    with pytest.raises(TypeError, match="^theta must be real"):
        iso.Mesh(np.zeros(4, complex), n=4, layout="fft")
    with pytest.raises(TypeError, match="phi is float64 and theta is float32"):
        it.Mesh(torch.zeros(4), n=4, layout="fft", phi=torch.zeros(4, dtype=torch.float64))


@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"layers": None}, "^layers must be given with layout 'brick'; only 'fft'"),
        ({"layers": 0}, "^layers must be at least 1"),
        ({"n": 0}, "^n must be at least 1"),
        ({"layout": "cube"}, "^layout must be"),
        ({"first": "middle"}, "^first must be"),
        ({"layout": "fft", "n": 6, "layers": None}, "^n must be a power of two"),
        ({"layout": "fft", "layers": 5}, "^layers must be None or log2 n = 2"),
        ({"layout": "fft", "layers": None, "first": "right"}, "^first must be 'left'"),
        ({"theta": np.zeros(4)}, r"^theta must have shape \(\*, pairs\) with pairs = 3, not \(4,\)"),
        ({"theta": np.zeros((2, 4))}, r"^theta must have shape \(\*, pairs\) with pairs = 3"),
        ({"phi": np.zeros(4)}, "^phi must have shape"),
        ({"phases": np.zeros(3)}, "^phases must have shape"),
        ({"signs": np.ones(3)}, "^signs must have shape"),
        ({"signs": np.array([1.0, 1.0, 0.5, 1.0])}, r"^signs must be \+1 or -1"),
        ({"signs": np.ones(4), "phases": np.zeros(4)}, "^phases and signs must not be given together"),
    ],
)
def test_what_is_refused(package, change, error):
    give = lambda a: torch.from_numpy(a) if package is it and isinstance(a, np.ndarray) else a
    given = {"theta": np.zeros(3), "n": 4, "layers": 2, **change}
    with pytest.raises(ValueError, match=error):
        package.Mesh(**{k: give(a) for k, a in given.items()})
    with pytest.raises(ValueError, match="^layers must be given"):
        package.Mesh.random(4)


@DTYPE
def test_random_ones_are_unitary_however_large_their_angles(dtype, seed):
    op = drawn({"n": 24, "layers": 24}, dtype, seed)
    assert iso.orthogonality_error(op.matrix()) < 20
    far = {k: (a * 1e4).astype(real_of(dtype)) for k, a in arrays(op).items()}
    wide = iso.Mesh(**far, n=24, layers=24)
    assert wide.dtype == dtype
    assert is_complex(dtype) == (op.phi is not None)
    assert iso.orthogonality_error(wide.matrix()) < 20
    close(wide.matrix(), ref.mesh(**far, n=24, layers=24), forward(dtype, 48))


PEAK = """
    import sys
    import numpy as np
    import isometry as iso

    iso.set_num_threads(1)
    n, rows, layers = 1024, 4000, int(sys.argv[1])
    op = iso.Mesh.random(n, layers=layers, rng=0, dtype=np.float32)
    x = np.ones((rows, n), np.float32)

    def field(name):
        with open("/proc/self/status") as status:
            return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])

    op.apply_vjp(x[:50], x[:50])
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
    before = field("VmRSS")
    result = op.apply_vjp(x, x, check_finite=False)
    print((field("VmHWM") - before) / (rows * n * 4))
"""


def test_the_backward_needs_no_array_per_layer():
    """In units of the rows: one for x_bar; the sums of the angles are a fiftieth each, for any number of rows."""
    for layers in (2, 64):
        assert float(script(PEAK, str(layers))) < 1.3
