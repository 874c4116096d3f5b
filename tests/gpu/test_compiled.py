"""Compiled functions with `backend="gpu"`: in one piece, with the keyword and in a block."""

import pytest
import torch

import isometry.torch as it
from derivatives import compiled
from gpu_tensors import close, score

N, T, B, D = 6, 4, 3, 5
KINDS = {"real": torch.float32, "complex": torch.complex64}
each_kind = pytest.mark.parametrize("dtype", KINDS.values(), ids=KINDS)


def draw(seed, *shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def eye(like):
    return torch.eye(N, dtype=like.dtype)


ENDS = torch.tensor([2, 4, 1])
#: name -> computation from a parameter u (N, 3) and rows x (T, B, N).
COMPUTATIONS = {
    "apply": lambda u, x, **k: it.Householder(u).apply(x, **k),
    "apply_adjoint": lambda u, x, **k: it.Householder(u).apply_adjoint(x, **k),
    "matrix": lambda u, x, **k: it.Householder(u).matrix(**k) + x[0, 0],
    "through the matrix": lambda u, x, **k: it.Exponential(u.flatten()[: N * (N - 1) // 2]).apply(x, **k),
    "product": lambda u, x, **k: (it.Householder(u) @ it.Householder(2 * u[:, :1]).H).apply(x, **k),
    "matrix of a product": lambda u, x, **k: (it.Householder(u) @ it.Householder(2 * u)).matrix(**k) + x[0, 0],
    "recurrence": lambda u, x, **k: it.recurrence(it.Householder(u), x, eye(u), **k),
    "lengths": lambda u, x, **k: it.recurrence(it.Householder(u), x, eye(u), lengths=ENDS, reverse=True, **k),
}
#: torch 2.11 does not compile the product of two objects.
COMPILED = [name for name in COMPUTATIONS if "product" not in name or torch.__version__ >= (2, 12)]
each_computation = pytest.mark.parametrize("name", COMPILED)


def pulled(out, *at):
    return torch.autograd.grad(score(out), at)


def computed(name, dtype, calls):
    u, x = draw(0, N, 3, dtype=dtype).requires_grad_(), draw(1, T, B, N, dtype=dtype).requires_grad_()
    expected = COMPUTATIONS[name](u, x)
    bars = pulled(expected, u, x)
    calls.clear()
    return COMPUTATIONS[name], u, x, expected, bars


@each_kind
@each_computation
def test_the_keyword_in_one_piece(name, dtype, calls):
    """Value and gradients on the backend that the keyword names, whatever block is around."""
    f, u, x, expected, bars = computed(name, dtype, calls)
    for keyword, block in (("gpu", "cpu"), ("cpu", "gpu"), ("gpu", "gpu")):
        fast = compiled(lambda u, x: f(u, x, backend=keyword))
        with it.use_backend(block):
            out = fast(u, x)
        close(out, expected, keyword)
        for found, bar in zip(pulled(out, u, x), bars, strict=True):
            close(found, bar, "gradient")
        assert calls.taken().backends == {keyword}


@each_kind
@each_computation
def test_one_graph_in_every_block(name, dtype, calls):
    """It follows the block that it is called in, and a gradient the call it belongs to."""
    f, u, x, expected, bars = computed(name, dtype, calls)
    fast, outs = compiled(f), {}
    fast(u, x)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for backend in ("gpu", "cpu"):
            with it.use_backend(backend):
                calls.clear()
                outs[backend] = fast(u, x)
                assert calls.taken().backends == {backend}
            close(outs[backend], expected, backend)
    for backend, other in (("gpu", "cpu"), ("cpu", "gpu")):
        with it.use_backend(other):
            found = pulled(outs[backend], u, x)
        assert calls.taken().backends == {backend}
        for k in range(2):
            close(found[k], bars[k], f"gradient {k}")


def test_a_wrong_keyword_is_refused_in_one_piece():
    u, x = draw(0, N, 3), draw(1, T, B, N)
    for name in ("apply", "matrix", "recurrence"):
        with pytest.raises(Exception, match="backend must be 'cpu' or 'gpu', not 'cuda'"):
            compiled(lambda u, x: COMPUTATIONS[name](u, x, backend="cuda"))(u, x)


def test_double_precision_is_refused_in_one_piece():
    u, x = draw(0, N, 3, dtype=torch.float64), draw(1, T, B, N, dtype=torch.float64)
    for name in ("apply", "matrix", "recurrence"):
        fast = compiled(COMPUTATIONS[name])
        fast(u, x)
        with it.use_backend("gpu"), pytest.raises(TypeError, match="float32 and complex64"):
            fast(u, x)


@pytest.mark.parametrize("name", ["ORNN", "ScuRNN", "GRU", "GORU", "RUM"])
def test_layers_in_a_block(name, calls):
    """Two layers and directions."""
    torch.manual_seed(0)
    layer, x = getattr(it.nn, name)(D, N, 2, bidirectional=True), draw(1, T, B, D)
    expected, _ = layer(x)
    bars = torch.autograd.grad(score(expected), list(layer.parameters()))
    calls.clear()
    fast = compiled(layer)
    with it.use_backend("gpu"):
        out, _ = fast(x)
    close(out, expected)
    for found, bar in zip(torch.autograd.grad(score(out), list(layer.parameters())), bars, strict=True):
        close(found, bar, "gradient")
    assert calls.backends == {"gpu"}
