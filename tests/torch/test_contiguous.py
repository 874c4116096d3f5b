"""Parameters and buffers are contiguous; parametrizations of weights: values, gradients, structure, refusals."""

import copy
import itertools

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector, parametrize, vector_to_parameters
from torch.nn.utils.parametrizations import orthogonal as torchs

import isometry.torch as it
import tolerance
from derivatives import every_order, same_when_compiled
from layers import KINDS, B, D, T, build, draw
from orthogonal_weights import EVERY, MAPS, TIGHT, Holder, gap, linear, original, q_of
from support import structure
from tolerance import close


def transposed(t):
    """The same numbers with other strides, if there is more than one way; a tensor is of the same class."""
    data = t.detach()
    data = torch.stack((data, data), -1)[..., 0] if data.dim() < 2 else data.mT.contiguous().mT
    return torch.nn.Parameter(data) if isinstance(t, torch.nn.Parameter) else data


def tensors(module):
    return [*module.named_parameters(), *module.named_buffers()]


def contiguous(module):
    """All of them, and what needs it works."""
    wrong = [(name, t.shape, t.stride()) for name, t in tensors(module) if not t.is_contiguous()]
    assert not wrong
    parameters = list(module.parameters())
    vector_to_parameters(parameters_to_vector(parameters).clone(), parameters)
    return module


def every_way(module):
    """Then loaded, also by assignment, and in other formats of memory: the values stay, and the state is as it was."""
    contiguous(module)
    before = {name: t.detach().clone() for name, t in tensors(module)}
    state = {name: transposed(t) for name, t in module.state_dict().items()}
    strides = {name: t.stride() for name, t in state.items()}
    for keywords in ({}, {"assign": True}):
        module.load_state_dict(state, **keywords)
        contiguous(module)
    if all(t.dim() < 5 for _, t in tensors(module)):  # torch has this format of four axes
        module.to(memory_format=torch.channels_last)
    contiguous(copy.deepcopy(module))
    assert {name: t.stride() for name, t in state.items()} == strides
    for name, t in tensors(module):
        assert torch.equal(t.detach(), before[name]), name


def weighted(name, shape, dtype, trivialization, arranged):
    module = Holder(arranged(torch.randn(shape, dtype=dtype)))
    return it.parametrizations.orthogonal(module, "weight", name, use_trivialization=trivialization)


@EVERY
@pytest.mark.parametrize("trivialization", [True, False], ids=["trivialized", "plain"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16], ids=str)
def test_weights(dtype, trivialization, name):
    for shape in ((1, 1), (6, 6), (9, 4), (4, 9), (2, 3, 4), (2, 3, 4, 3), (2, 3, 3, 3), (1, 5)):
        for arranged in (transposed, lambda w: w, lambda w: torch.stack((w, w), -1)[..., 0]):
            module = weighted(name, shape, dtype, trivialization, arranged)
            every_way(module)
            if trivialization or name == "householder":
                module.weight = arranged(torch.randn(shape, dtype=dtype))
                every_way(module)


def test_operators(case):
    """The module of every operator, from arguments and parameters in any layout, of stacks too."""
    rng, n = np.random.default_rng(0), case.size(4)
    for batch in ((), (2, 3)):
        drawn = {k: torch.from_numpy(np.array(a)) for k, a in case.draw(rng, n, batch).items()}
        for kept in (False, True):
            arguments = {
                k: torch.nn.Parameter(transposed(t)) if kept and t.is_floating_point() else transposed(t)
                for k, t in drawn.items()
            }
            operator = case.build(it, arguments, n)
            module = it.nn.OperatorModule(operator)
            before = operator.matrix().detach()
            if kept and case.dtype is np.float64:
                assert any(p is q for p in module.parameters() for q in arguments.values())
            every_way(module)
            assert torch.equal(module.matrix().detach(), before)


test_operators.select = lambda case: case.dtype in (np.float64, np.complex128)


@pytest.mark.parametrize("name", KINDS)
def test_layers(name):
    """Their results too, with the steps first, as those of torch."""
    every_way(build(name, 2, bidirectional=True, trainable_h0=True))
    assert all(t.is_contiguous() for t in build(name, 2)(draw(T, B, D)))  # one direction: nothing is concatenated


def test_adapters():
    """Also from the arrays of other packages."""
    linear = lambda: torch.nn.Linear(8, 3)
    u = torch.randn(8, 4)
    skew = torch.randn(2, 6)
    for adapter in (
        it.adapters.HRA(linear(), 4),
        it.adapters.OFT(linear(), 4),
        *(it.adapters.HRA.from_peft(linear(), a, apply_GS=gs) for a in (u, transposed(u)) for gs in (False, True)),
        *(it.adapters.OFT.from_peft(linear(), a) for a in (skew, transposed(skew))),
    ):
        contiguous(adapter)
        own = {name: t for name, t in adapter.state_dict().items() if not name.startswith("linear")}
        for keywords in ({}, {"assign": True}):
            adapter.load_state_dict({name: transposed(t) for name, t in own.items()}, strict=False, **keywords)
            contiguous(adapter)
        assert contiguous(adapter.merge()).weight.shape == (3, 8)


@pytest.mark.parametrize("name", MAPS)
def test_lbfgs(name):
    """It flattens parameters and gradients."""
    module = weighted(name, (6, 6), torch.float64, False, transposed)
    target = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64))[0]
    optimiser, losses = torch.optim.LBFGS(module.parameters(), lr=0.1), []

    def closure():
        optimiser.zero_grad()
        losses.append((module.weight - target).square().sum())
        losses[-1].backward()
        return losses[-1]

    optimiser.step(closure)
    assert losses[-1] < losses[0]


SHAPES = pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)], ids=str)
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)


# ---------------------------------------------------------------- what torch's tests check


@EVERY
@SHAPES
@TYPES
@pytest.mark.parametrize("trivialization", [True, False], ids=["trivialized", "plain"])
@pytest.mark.parametrize("kind", ["linear", "conv"])
def test_as_torchs_own(kind, trivialization, dtype, shape, name):
    """Orthogonal at all times, initial and assigned values, and gradients of the lower triangle alone; complex
    reflections too."""
    convolution = kind == "conv"
    m = torch.nn.Conv2d(2, 3, shape, dtype=dtype) if convolution else torch.nn.Linear(*shape, dtype=dtype)
    x = torch.randn(2, 2, 7, 7, dtype=dtype) if convolution else torch.randn(3, shape[0], dtype=dtype)
    first = m.weight.detach().clone()
    assert it.parametrizations.orthogonal(m, "weight", name, use_trivialization=trivialization) is m
    assert m.weight.shape == first.shape and gap(m.weight) < 2e-6
    if trivialization or name == "householder":
        close(m.weight.detach(), q_of(first), 3e-6)
        for new in (q_of(torch.randn_like(first)), torch.randn_like(first)):
            m.weight = new
            close(m.weight.detach(), q_of(new), 3e-6)
    else:
        with pytest.raises(NotImplementedError, match="assign to the matrix exponential or the Cayley param"):
            m.weight = first
    optimiser = torch.optim.SGD(m.parameters(), lr=0.1)
    for _ in range(2):
        optimiser.zero_grad()
        m(x).abs().square().sum().sqrt().backward()
        gradient = original(m).grad
        gradient = gradient if gradient.shape[-2] >= gradient.shape[-1] else gradient.mT
        assert gradient.abs().max() > 0
        assert not gradient.triu(1).any()
        assert not gradient.diagonal(dim1=-2, dim2=-1).real.any()
        before = m.weight.detach().clone()
        optimiser.step()
        assert gap(m.weight) < 2e-6 and not torch.equal(m.weight, before)


def test_mistakes():
    m = torch.nn.Linear(3, 4)
    with pytest.raises(ValueError, match="has to be one of"):
        it.parametrizations.orthogonal(m, "weight", "givens")
    with pytest.raises(ValueError, match="Expected a matrix"):
        it.parametrizations.orthogonal(m, "bias")
    with pytest.raises(ValueError, match="no parameter or buffer with name 'phantom'"):
        it.parametrizations.orthogonal(m, "phantom")
    it.parametrizations.orthogonal(m, "weight")
    with pytest.raises(ValueError, match="matrices of shape"):
        m.weight = torch.randn(5, 5)
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is torch.nn.Linear and gap(m.weight) < 1e-6


# ---------------------------------------------------------------- the maps


@EVERY
@pytest.mark.parametrize("shape", [(6, 6), (7, 3), (3, 7), (2, 5, 4), (1, 1), (4, 1), (70, 3), (70, 40)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_values_are_those_of_torch(dtype, shape, name):
    """The same trained tensor gives the same weight (torch has no complex reflections)."""
    if dtype.is_complex and name == "householder":
        with pytest.raises(ValueError, match="does not support complex"):
            torchs(Holder(torch.zeros(3, 3, dtype=dtype)), orthogonal_map=name)
        return
    ours, theirs = (
        function(Holder(torch.zeros(shape, dtype=dtype)), orthogonal_map=name, use_trivialization=False)
        for function in (it.parametrizations.orthogonal, torchs)
    )
    x = torch.randn(shape, dtype=dtype)
    if name == "householder":
        x.diagonal(dim1=-2, dim2=-1).fill_(-1)
    values = []
    for module in (ours, theirs):
        with torch.no_grad():
            original(module).copy_(x)
        w = module.weight
        (w.real * torch.linspace(-1, 1, w.numel(), dtype=torch.float64).view(shape)).sum().backward()
        values.append((w.detach(), original(module).grad))
    for found, expected in zip(*values, strict=True):
        close(found, expected, TIGHT)


@EVERY
@pytest.mark.parametrize(
    "shape,dtype",
    [
        ((4, 2), torch.float64),
        ((3, 3), torch.complex128),
        *(
            pytest.param(shape, dtype, marks=pytest.mark.long)
            for shape in ((3, 3), (2, 4), (4, 2))
            for dtype in (torch.float64, torch.complex128)
        ),
    ],
    ids=str,
)
def test_derivatives_of_every_order(dtype, shape, name):
    """At X = 0 too: the rows below are zero, where the Q of a QR factorisation has no derivative."""
    module = it.parametrizations.orthogonal(linear(*shape, dtype=dtype), orthogonal_map=name)
    for x in (0.5 * torch.randn(shape, dtype=dtype), original(module).detach()):
        every_order(module.parametrizations.weight[0], [x])


@pytest.mark.parametrize("name", ["householder", *(pytest.param(m, marks=pytest.mark.long) for m in MAPS[1:])])
def test_compiled(name):
    module = it.parametrizations.orthogonal(linear(5, 3), orthogonal_map=name)
    same_when_compiled(module.parametrizations.weight[0], [torch.randn(5, 3, dtype=torch.float64)])


@pytest.mark.parametrize("name", ["cayley", "matrix_exp"])
def test_thin_weights_that_are_nearly_square_are_columns_of_square_ones(name, monkeypatch):
    """By the kernels of the operators, which cost less than the maps of k x k matrices."""
    for of_small in ("matrix_exp", "linalg.cholesky_ex"):
        monkeypatch.setattr(f"torch.{of_small}", None)
    module = it.parametrizations.orthogonal(linear(256, 128, dtype=torch.float32), orthogonal_map=name)
    assert gap(module.weight) < 1e-5 and module.weight.is_contiguous()


def test_very_thin_weights():
    """n x n numbers would be 80 GB."""
    for name in MAPS:
        module = it.parametrizations.orthogonal(linear(100_000, 2, dtype=torch.float32), orthogonal_map=name)
        module.weight.square().sum().backward()
        assert gap(module.weight) < 1e-5 and original(module).grad.shape == (100_000, 2)


# ---------------------------------------------------------------- weights with structure

# on both sides of thin weights that are computed as square ones, of small nearest matrices, wide ones, stacks
CASES = (
    ((1, 1), torch.float32),
    ((6, 6), torch.float64),
    ((6, 6), torch.bfloat16),
    ((2, 9, 9), torch.complex64),
    ((4, 9), torch.float32),
    ((70, 3), torch.float64),
    ((70, 3), torch.complex64),
    ((70, 20), torch.float32),
)


def drawn(name, shape, dtype):
    kind = np.dtype(str(dtype).removeprefix("torch.")) if dtype is not torch.bfloat16 else np.dtype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        return torch.from_numpy(structure.draw(name, np.random.default_rng(0), shape, kind)).to(dtype)


@structure.named
@EVERY
def test_any_weight(name, structure):
    """As an initial weight, as the trained tensor without a base; W assigned to itself stays."""
    for shape, dtype in CASES:
        bound = 20 * max(shape[-2:] if dtype is not torch.bfloat16 else (1,)) * torch.finfo(dtype).eps
        for trivialization in (True, False):
            module = it.parametrizations.orthogonal(
                Holder(drawn(structure, shape, dtype)), "weight", name, use_trivialization=trivialization
            )
            w = module.weight
            assert gap(w) <= bound
            (w.real * torch.linspace(-1, 1, w.numel()).view(shape)).sum().backward()
            assert original(module).grad.isfinite().all()
            if trivialization or name == "householder":
                module.weight = before = w.detach().clone()
                assert (module.weight - before).abs().max() <= bound


@pytest.mark.parametrize(
    "name,scale",
    # the squares of reflection vectors are finite
    [(name, scale) for name in MAPS for scale in (1.0, 1e3, 1e9, 1e15, 1e30) if name != "householder" or scale < 1e18],
)
def test_trained_tensors_of_any_size(name, scale):
    """Also of weights so thin that no n x n matrix is formed, in both precisions; and where only the last row is."""
    for dtype, n, row in itertools.product((torch.float32, torch.float64, torch.complex128), (9, 200), (0, -1)):
        module = it.parametrizations.orthogonal(Holder(torch.randn(n, 3, dtype=dtype)), "weight", name)
        with torch.no_grad():
            original(module)[row:].copy_(scale * torch.randn(n, 3, dtype=dtype)[row:])
        module.weight.abs().square().cos().sum().backward()
        assert gap(module.weight) <= 200 * torch.finfo(dtype).eps
        assert original(module).grad.isfinite().all()


# ---------------------------------------------------------------- init


@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7), (4, 3, 2, 2), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_init_is_torchs(dtype, shape):
    found, expected = (
        init(torch.empty(shape, dtype=dtype), gain=1.5, generator=torch.Generator().manual_seed(7))
        for init in (it.init.orthogonal_, torch.nn.init.orthogonal_)
    )
    close(found, expected, tolerance.forward(np.float32 if dtype is torch.float32 else np.float64, 8))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.complex64, torch.complex128], ids=str)
def test_init_of_other_types(dtype):
    wide = it.init.orthogonal_(torch.empty(3, 2, 4, dtype=dtype)).flatten(1)
    assert (
        gap(wide) < {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.complex64: 2e-6, torch.complex128: 1e-14}[dtype]
    )
    turned = it.init.orthogonal_(torch.empty(3, 4, dtype=dtype).mT)
    assert gap(turned) < 2e-2 and turned.shape == (4, 3)
    with pytest.raises(ValueError, match="Only tensors with 2 or more dimensions are supported"):
        it.init.orthogonal_(torch.empty(3, dtype=dtype))
    whole = torch.ones(3, 3, dtype=torch.int64)
    odd = [(other, r"a torch\.Tensor, not ") for other in (3, None, [[1.0, 0.0], [0.0, 1.0]])]
    for other, named in ((whole, "float32"), (whole.bool(), "float32"), *odd):
        with pytest.raises(TypeError, match=f"^tensor must be {named}"):
            it.init.orthogonal_(other)


UNSTORED = {str(dtype).removeprefix("torch."): dtype for dtype in (torch.int8, torch.uint8, torch.int64, torch.bool)}
UNSTORED |= {str(dtype).removeprefix("torch."): dtype for dtype in (torch.float8_e4m3fn, torch.float8_e5m2)}


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder", None])
def test_weights_that_no_map_takes(orthogonal_map):
    """Quantised and sparse ones: the argument and the dtype or layout are named, and the module is as before."""
    wrong = [(torch.eye(4).to(dtype), name) for name, dtype in UNSTORED.items()]
    wrong += [(torch.eye(4).to_sparse(), "torch.sparse_coo"), (torch.eye(4).to_mkldnn(), "torch._mkldnn")]
    for weight, named in wrong:
        module = torch.nn.Linear(4, 4)
        module.weight = torch.nn.Parameter(weight, requires_grad=False)
        with pytest.raises(TypeError, match=f"^weight must be .*{named}"):
            it.parametrizations.orthogonal(module, "weight", orthogonal_map)
        assert type(module) is torch.nn.Linear and list(module._parameters) == ["weight", "bias"]
        with pytest.raises(TypeError, match=f"^tensor must be .*{named}"):
            it.init.orthogonal_(weight)
