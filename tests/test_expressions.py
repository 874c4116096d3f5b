"""Operators in expressions, beside the laws: refusals, text, the protocols of NumPy and SciPy."""

import copy
import pickle

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator, gmres

import isometry as iso
import isometry.torch as it
import reference as ref
import tolerance
from isometry._objects._declaration import Argument, Declaration
from isometry._rules.expression import sizes
from tolerance import close

FACES = pytest.mark.parametrize("api,array", [(iso, np.asarray), (it, torch.as_tensor)], ids=["numpy", "torch"])
TIGHT = tolerance.forward(np.float64, 16)


def operators(api, array):
    """One single operator of every kind, n = 4, W of modest size."""
    rng = np.random.default_rng(0)
    u, a, w = (array(rng.standard_normal(s)) for s in ((4, 2), 6, (4, 4)))
    h, c, d = api.Householder(u), api.Cayley(a), api.Dense(w)
    blocks = api.BlockDiagonal(api.Cayley(array(np.array([[0.5], [2.0]]))))
    return [h, c, d, h.H, c @ d, (d @ h).H, h @ c.H @ d, c.columns(3), (h @ d).columns(2), blocks, blocks.H @ d]


# ---------------------------------------------------------------- products and adjoints


@FACES
def test_products_flatten(api, array):
    a, b, c = operators(api, array)[:3]
    assert ((a @ b) @ c).operators == (a @ (b @ c)).operators == (a, b, c)
    assert (a @ (b @ c).H).operators[0] is a and len((a @ (b @ c).H).operators) == 2
    assert api.Composition(a).operators == (a,)


@FACES
def test_adjoints(api, array):
    for op in operators(api, array):
        if isinstance(op, api.Adjoint):
            assert op.H is op.T is op.operator
        else:
            assert op.H.H is op.T.T is op.H.operator is op
        assert op
        close(np.asarray(op.T), np.asarray(op).T, TIGHT)
    turned = api.Householder(array(np.ones((3, 1))), phases=array(np.ones(3)))
    for op in (turned, turned.H, turned @ turned):
        with pytest.raises(AttributeError, match="has no T: use H"):
            op.T


@FACES
def test_columns(api, array):
    op = api.Householder(array(np.ones((4, 2))))
    thin = op.columns(3)
    assert thin.operator is op and thin.shape == (4, 3) and thin.H.shape == (3, 4) and thin.columns(2).shape == (4, 2)
    assert repr(thin).startswith("Columns(Householder(n=4, m=2, ") and repr(thin).endswith("count=3)")
    for wrong in (0, 5, -1):
        with pytest.raises(ValueError, match="count must be at "):
            op.columns(wrong)
    for wrong in (1.0, None):
        with pytest.raises(TypeError, match="count must be an integer"):
            op.columns(wrong)
    with pytest.raises(TypeError, match="operator must be an operator"):
        api.Columns(array(np.eye(4)), 2)


@FACES
def test_blocks(api, array):
    turns = api.Cayley(array(np.array([[1.0], [0.0]])))
    op = api.BlockDiagonal(turns)
    assert op.operator is turns and op.H.shape == op.shape == (4, 4)
    assert repr(op) == f"BlockDiagonal({turns!r})"
    wide = api.BlockDiagonal(api.Dense(array(np.ones((3, 2, 4, 5)))))
    assert wide.shape == (8, 10) and wide.batch_shape == (3,) and wide[1].shape == (8, 10)
    assert api.BlockDiagonal(wide).shape == (24, 30)
    for stack in (api.Cayley(array(np.ones(3))), api.Dense(array(np.ones((0, 2, 2))))):
        with pytest.raises(ValueError, match=r"operator must be a stack of batch_shape \(\*, h\) with h >= 1"):
            api.BlockDiagonal(stack)
    with pytest.raises(TypeError, match="operator must be an operator"):
        api.BlockDiagonal(array(np.eye(4)))
    with pytest.raises(ValueError, match="h >= 1"):
        api.BlockDiagonal(turns[0])


@FACES
def test_columns_of_a_very_tall_product(api, array):
    """n x n numbers would be 80 GB."""
    thin = api.Householder(array(np.random.default_rng(0).standard_normal((100_000, 2)))).columns(2)
    w = np.asarray(thin.matrix())
    close(w.T @ w, np.eye(2), TIGHT)
    assert (thin @ array(np.ones(2))).shape == (100_000,)


@FACES
def test_products_refuse(api, array):
    a, wide = api.Cayley(array(np.ones(6))), api.Dense(array(np.ones((3, 4))))
    with pytest.raises(ValueError, match=r"operators must fit.*\(4, 4\) meets one of shape \(3, 4\)"):
        a @ wide
    with pytest.raises(ValueError, match="at least one"):
        api.Composition()
    with pytest.raises(TypeError, match="operators must be an operator"):
        api.Composition(a, array(np.eye(4)))
    with pytest.raises(TypeError, match="operator must be an operator"):
        api.Adjoint(array(np.eye(4)))
    with pytest.raises(ValueError, match="broadcast"):
        api.Dense(array(np.ones((2, 4, 4)))) @ api.Dense(array(np.ones((3, 4, 4))))
    with pytest.raises(TypeError, match="x must be .*Cayley"):
        a(a)


def test_faces_do_not_mix():
    ours, theirs = iso.Cayley(np.ones(3)), it.Cayley(torch.ones(3))
    for call in (lambda: ours @ theirs, lambda: theirs @ ours):
        with pytest.raises(TypeError, match="same face"):
            call()
    with pytest.raises(TypeError, match="x must be a torch.Tensor, not ndarray"):
        np.ones(3) @ theirs
    with pytest.raises(TypeError, match="a factor is .* and another is .*: they must have the same precision"):
        theirs @ it.Cayley(torch.ones(3).double())


@FACES
def test_matmul_refuses_by_the_rule_of_numpy(api, array):
    for op in (api.Dense(array(np.ones((2, 3)))), api.Dense(array(np.ones((4, 2, 3)))).H.H):
        for wrong in ((), (2,), (3, 3, 2), (2, 5), (4, 3, 5, 2)):
            if np.ndim(np.empty(wrong)) and wrong[-2:][0] == 3:
                continue
            with pytest.raises(ValueError, match=r"x must have shape \(n,\) or \(\.\.\., n, k\) with n = 3"):
                op @ array(np.ones(wrong))
        for wrong in ((), (3,), (5, 3), (2, 4)):
            with pytest.raises(ValueError, match=r"x must have shape \(n,\) or \(\.\.\., k, n\) with n = 2"):
                array(np.ones(wrong)) @ op
    with pytest.raises(ValueError, match="broadcast"):
        op @ array(np.ones((3, 3, 1)))


def test_numpy_leaves_products_to_the_operator():
    op, x = iso.Cayley(np.ones(3)), np.ones((2, 3))
    close(x.tolist() @ op, x @ op.matrix(), TIGHT)
    close(op @ x.T.tolist(), op.matrix() @ x.T, TIGHT)
    close(torch.ones(2, 3).double() @ op, x @ op.matrix(), TIGHT)
    assert (x @ op).flags.c_contiguous and (op @ x.T).flags.c_contiguous
    for call in (lambda: x + op, lambda: np.matmul(x, op), lambda: np.exp(op)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="x must be finite"):
        op @ np.full(3, np.nan)


@FACES
def test_arithmetic_names_the_matrix(api, array):
    """Sums and multiples of operators obey no law: the error says where the matrix is."""
    op = api.Cayley(array(np.ones(3)))
    one, eye = array(np.float64(1.0)), array(np.eye(3))
    for call in (
        lambda: 2.0 * op,
        lambda: op * 2,
        lambda: one * op,
        lambda: op + op,
        lambda: eye + op,
        lambda: op - eye,
        lambda: -op,
        lambda: op / 2,
    ):
        with pytest.raises(TypeError, match=r"a Cayley has products with @ but no .* use op\.matrix\(\)"):
            call()


@FACES
def test_sparse_operands(api, array):
    op, sparse = api.Cayley(array(np.ones(3))), csr_array(np.diag([1.0, 0.0, 2.0]))
    close(np.asarray(sparse @ op), sparse.toarray() @ np.asarray(op.matrix()), TIGHT)
    with pytest.raises(TypeError, match=r"op\.matrix\(\)" if api is iso else "must be a torch.Tensor"):
        op @ sparse
    if api is it:
        with pytest.raises(TypeError, match="x must be a dense"):
            op @ torch.eye(3).to_sparse()


def test_gradients_of_factors_with_batches_of_their_own():
    """Batch shapes (3, 1), () and (2,) against autograd of the product of matrices; a factor twice has two."""
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(s) for s in ((3, 1, 4, 4), (6,), (2, 4, 5))]
    leaves = [torch.tensor(a, requires_grad=True) for a in given]
    product = iso.Dense(given[0]) @ iso.Cayley(given[1]) @ iso.Dense(given[2])
    twin = it.Dense(leaves[0]) @ it.Cayley(leaves[1]) @ it.Dense(leaves[2])
    assert product.batch_shape == twin.batch_shape == (3, 2)
    x, ct, w_bar = (rng.standard_normal(s) for s in ((5, 1, 2, 5), (5, 3, 2, 4), (3, 2, 4, 5)))
    for found, out, bar in (
        (product.apply_vjp(x, ct)[0], twin(torch.tensor(x)), ct),
        (product.matrix_vjp(w_bar), twin.matrix(), w_bar),
        (product.H.matrix_vjp(w_bar.swapaxes(-1, -2)), twin.matrix(), w_bar),
    ):
        expected = torch.autograd.grad(out, leaves, torch.tensor(bar))
        for (name, g), e in zip((item for d in found["operators"] for item in d.items()), expected, strict=True):
            close(g, e, tolerance.gradient(np.float64, 16), name)
    square = iso.Cayley(given[1])
    left, right = (square @ square).matrix_vjp(np.eye(4))["operators"]
    assert not np.array_equal(left["upper"], 0 * left["upper"]) and right.keys() == left.keys()


@FACES
def test_precision_of_a_product(api, array):
    """Real meets complex; in the NumPy face every factor computes in the widest precision."""
    rng = np.random.default_rng(2)
    real, turned = api.Dense(array(rng.standard_normal((3, 3)))), api.Cayley(array(ref.normal(rng, 3, dtype=complex)))
    for op in (real @ turned, turned @ real):
        assert str(op.dtype).endswith("complex128")
        w = np.asarray(op.operators[0]) @ np.asarray(op.operators[1])
        x = rng.standard_normal((2, 3))
        for found, expected in ((op(array(x)), x @ w.T), (op.H(array(x)), x @ w.conj()), (op.matrix(), w)):
            close(found, expected, TIGHT)
            close(array(x) @ op, x @ w, TIGHT)
    if api is iso:
        low = iso.Dense(rng.standard_normal((3, 3)).astype(np.float32))
        close((low @ real).matrix(), low.weight.astype(float) @ real.weight, TIGHT)


@FACES
def test_copies_and_immutability(api, array):
    for op in operators(api, array)[3:]:
        for twin in (copy.copy(op), copy.deepcopy(op), pickle.loads(pickle.dumps(op))):
            assert type(twin) is type(op) and repr(twin) == repr(op)
            assert np.array_equal(np.asarray(twin), np.asarray(op))
            for name in ("operators", "operator", "shape", "dtype", "anything"):
                with pytest.raises(AttributeError):
                    setattr(twin, name, 1)


# ---------------------------------------------------------------- stacks


@FACES
def test_single_operators_are_no_stacks(api, array):
    for op in operators(api, array):
        for call in (lambda: len(op), lambda: op[0], lambda: op[...], lambda: iter(op), lambda: list(op)):
            with pytest.raises(TypeError, match="a single .* has no length and no members"):
                call()


@FACES
def test_keys_that_no_stack_has(api, array):
    stack = api.Dense(array(np.zeros((2, 3, 4, 4))))
    for op in (stack, stack.H, stack @ api.Cayley(array(np.ones(6)))):
        for key, text in (
            (2, "index 2 is out of bounds for batch axis 0 with size 2"),
            ((0, -4), "index -4 is out of bounds for batch axis 1 with size 3"),
            (([0, 2],), "index 2 is out of bounds"),
            ((0, 0, 0), "too many indices"),
            ((..., ...), "single ellipsis"),
            (True, "not by bool"),
            (1.0, "not by float"),
            ("a", "not by str"),
            (np.array([0.5]), "not by ndarray"),
            (np.array([True]), "boolean index must have the shape"),
            (([0, 1], [0, 1, 2]), "index arrays must broadcast"),
        ):
            with pytest.raises(IndexError, match=text):
                op[key]


def test_members_of_broadcast_arguments_are_not_copied():
    vectors, sign = np.ones((3, 4, 2)), np.ones((1,))
    stack = iso.Householder(vectors, sign=sign)
    assert stack[1:].sign.shape == (1,) and np.shares_memory(stack[1:].sign, sign)
    assert np.shares_memory(stack[1].vectors, vectors) and stack[1].sign.shape == ()
    wide = iso.Cayley(np.ones((5, 1, 6)), phases=np.ones((3, 4)))
    assert wide[1:, [0, 2]].upper.shape == (4, 1, 6) and wide[1:, [0, 2]].phases.shape == (2, 4)
    assert wide[0].upper.shape == (1, 6) and np.shares_memory(wide[0].phases, wide.phases)
    shared = iso.Cayley(np.ones(6)) @ iso.Dense(np.ones((3, 4, 4)))
    assert shared[1:].operators[0] is shared.operators[0]


def test_torch_members_carry_gradients():
    u = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)
    (it.Householder(u)[torch.tensor([2, 0])] @ torch.ones(4, dtype=torch.float64)).square().mul(
        torch.arange(4.0)
    ).sum().backward()
    assert u.grad[[0, 2]].abs().amax((1, 2)).gt(0).all() and not u.grad[1].any()
    assert it.Householder(u)[torch.tensor([True, False, True])].batch_shape == (2,)


# ---------------------------------------------------------------- conversions and text


@FACES
def test_conversions(api, array):
    for op in operators(api, array):
        same = op.astype(np.float64) if api is iso else op.to(torch.float64).to("cpu")
        assert same is op
        for wrong in ("float16", "int64"):
            with pytest.raises(TypeError, match="dtype must be float32, float64"):
                op.astype(wrong) if api is iso else op.to(getattr(torch, wrong))


def test_arrays_of_operators():
    for op in operators(iso, np.asarray):
        assert np.asarray(op, dtype=np.float32).dtype == np.float32
        assert np.array_equal(np.array(op), op.matrix()) and np.linalg.matrix_rank(op) == op.shape[1]
        with pytest.raises(ValueError, match="copy must not be False"):
            np.array(op, copy=False)
    for op in operators(it, torch.as_tensor):
        assert np.asarray(op, dtype=np.float32).dtype == np.float32
        w = np.array(op)
        w[:] = 0
        assert np.asarray(op).any(), "an array of an operator is a copy"
    leaf = it.Dense(torch.eye(2, requires_grad=True))
    for op in (leaf, leaf.H, leaf @ leaf):
        with pytest.raises(RuntimeError, match="requires grad.*detach"):
            np.asarray(op)
        assert np.array_equal(np.asarray(op.detach()), np.eye(2))
        assert op.requires_grad and not op.detach().requires_grad
    with pytest.raises(TypeError, match="^the operator is on meta"):
        np.asarray(it.Dense(torch.eye(2, device="meta")))
    assert iso.Dense(leaf.detach()).weight.shape == (2, 2)


def test_devices():
    """The meta device has shapes, and no values to make an array of."""
    for op in operators(it, torch.as_tensor):
        far = op.to("meta", torch.float32)
        assert (
            far.device.type == "meta"
            and far.dtype is torch.float32
            and far(torch.ones(3, op.shape[1], device="meta")).is_meta
        )
        assert "device='meta'" in repr(far) and "device" not in repr(op)
        with pytest.raises(TypeError, match="is on meta.*to\\('cpu'\\)"):
            np.asarray(far)
    with pytest.raises(TypeError, match="dtype must be a torch.dtype"):
        op.to(dtype="float32")


def test_text():
    u, batch = np.ones((2, 4, 3)), ", batch_shape=(2,), dtype=float64"
    turned, single = "batch_shape=(3,), dtype=torch.complex64", "Dense(p=4, q=3, dtype=float64)"
    for op, text in (
        (iso.Householder(u), "Householder(n=4, m=3" + batch + ")"),
        (iso.Householder(u[0], sign=1), "Householder(n=4, m=3, last='sign', dtype=float64)"),
        (it.Householder(torch.ones(2, 1), phases=torch.ones(3, 2)), f"Householder(n=2, m=1, last='phases', {turned})"),
        (iso.Cayley(np.ones(3), signs=[1, 1, -1]), "Cayley(n=3, last='signs', dtype=float64)"),
        (iso.Dense(u), "Dense(p=4, q=3" + batch + ")"),
        (iso.Dense(u).H, "Adjoint(Dense(p=4, q=3" + batch + "))"),
        (iso.Dense(u[0]).T @ iso.Dense(u), f"Composition(Adjoint({single}), Dense(p=4, q=3{batch}))"),
        (it.Cayley(torch.ones(3), phases=torch.ones(3)), "Cayley(n=3, last='phases', dtype=torch.complex64)"),
    ):  # fmt: skip
        assert repr(op) == text
    many = Declaration("Many", "many", (Argument("factors", "p q", list=True),))
    assert sizes(many, [(2, 3), (4, 1)]) == ["factors=[(2, 3), (4, 1)]"]


def test_scipy():
    rng = np.random.default_rng(4)
    turned = iso.Cayley(ref.normal(rng, 6, dtype=complex))
    for op in (*operators(iso, np.asarray), turned, turned.H, iso.Dense(rng.standard_normal((3, 4)))):
        linear, w = aslinearoperator(op), np.asarray(op)
        x, y = rng.standard_normal(op.shape[1]), rng.standard_normal(op.shape[0])
        close(linear.matvec(x), w @ x, TIGHT)
        close(linear.matvec(x[:, None]), w @ x[:, None], TIGHT)
        close(linear.rmatvec(y), w.conj().T @ y, TIGHT)
        close(linear.rmatvec(y[:, None]), w.conj().T @ y[:, None], TIGHT)
        close(linear.matmat(np.stack([x, x + 1], 1)), w @ np.stack([x, x + 1], 1), TIGHT)
        close(linear.rmatmat(np.stack([y, y + 1], 1)), w.conj().T @ np.stack([y, y + 1], 1), TIGHT)
        assert linear.dtype == op.dtype and linear.shape == op.shape
    solution, info = gmres(aslinearoperator(turned), np.ones(4))
    assert info == 0
    close(turned @ solution, np.ones(4), 1e-4)
    with pytest.raises(TypeError, match=r"single operator, not a stack of batch_shape \(2,\)"):
        aslinearoperator(iso.Dense(np.ones((2, 3, 3))))
