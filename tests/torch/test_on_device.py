"""Sequences on devices without kernels: which take them step by step, and where a derivative needs care."""

import pytest
import torch

import isometry.torch as it
from isometry.torch import on_device
from isometry.torch.formulas import recurrence, rum
from isometry.torch.formulas.activation import activate
from isometry.torch.formulas.sequence import Law, states
from isometry.torch.on_device.activation import READABLE, SORTING, Phi

T, B, D, N = 7, 4, 3, 5


def drawn(seed, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=dtype) / 2).requires_grad_()


def test_activations_whose_derivative_needs_more_take_the_formula():
    assert not on_device.serves("recurrence", Law("modrelu_realrep", 0.1, (0.0,)), N)
    assert not on_device.serves("goru", Law("oplu", 0.1, (0.0,)), N)
    assert not on_device.serves("recurrence", Law("leaky_relu", 0.0, (0.0,)), N)
    assert not on_device.serves("rum", Law("relu", 0.1, (1.0, None)), N)
    assert not on_device.serves("rum", Law("relu", 0.1, (0.0, None)), 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", [*READABLE, *SORTING])
def test_activations_of_numbers_that_are_not_finite(name, dtype):
    """Values and derivatives of the formula, of all pairs, ties too; the imaginary parts in another order."""
    if name == "modrelu" and dtype.is_complex:
        return
    own = torch.tensor([0.0, -0.0, 1.5, -1.5, torch.nan, torch.inf, -torch.inf], dtype=torch.float64)
    a, b = torch.cartesian_prod(own, own).unbind(-1)
    z = torch.cat((a, b)) if name == "oplu_halves" else torch.stack((a, b), -1).flatten()
    bias = torch.full_like(z, -0.5) if name == "modrelu" else None
    z = (torch.complex(z, z.flip(0)) if dtype.is_complex else z).expand(3, -1).clone().requires_grad_()
    y, g = activate(z, name, bias), drawn(3, *z.shape, dtype=dtype).detach()
    found, phi, bar = z.detach().clone(), Phi(name, 0.1, bias), g.clone()
    keeps = phi.keeps(found)
    kept = None if keeps is None else torch.empty(keeps[0], dtype=keeps[1])
    phi.apply_(found, kept)
    torch.testing.assert_close(found, y.detach(), equal_nan=True)
    pull = phi.derivative(found, kept)
    if pull is not None:
        pull(slice(None), g, bar)
    torch.testing.assert_close(bar, torch.autograd.grad(y, z, g)[0], equal_nan=True)


def test_a_layer_on_a_device_is_compiled_with_one_loop_and_exported_in_operations_of_torch():
    layer, x, graphs = it.nn.GRU(D, N).to("meta"), torch.empty(T, B, D, device="meta"), []
    torch._dynamo.reset()
    torch.compile(layer, backend=lambda graph, _: graphs.append(graph) or graph, fullgraph=True)(x)
    assert len(graphs) == 1 and len(list(graphs[0].graph.nodes)) < 60
    program = torch.export.export(layer, (x,))
    assert not any("isometry" in str(node.target) for node in program.graph.nodes)


@pytest.mark.parametrize("eta", [None, 2.0])
def test_degenerate_rotations(eta):
    """e zero, tau zero, opposite, of one direction, tiny and huge: the values and gradients of the formula."""
    x = torch.zeros(7, 1, D, dtype=torch.float64, requires_grad=True)
    e = torch.zeros(7, N, dtype=torch.float64)
    tau = torch.zeros(7, N, dtype=torch.float64)
    e[1, 0] = tau[2, 1] = 1.0
    e[3], tau[3] = 1.0, -1.0
    e[4], tau[4] = 1.0, 2.0
    e[5, 0], tau[5, 1] = 1e-200, 1e-180
    e[6, 0], tau[6, 1] = 1e200, 1e180
    grads = []
    for run in (on_device.states, lambda _, *rest: states(rum.formula, *rest)):
        found = []
        for k in range(7):
            b = torch.cat((torch.zeros(N, dtype=torch.float64), tau[k], e[k])).requires_grad_()
            w = torch.zeros(2 * N, N, dtype=torch.float64, requires_grad=True)
            u = torch.zeros(3 * N, D, dtype=torch.float64)
            h0 = drawn(3, 1, N)
            law = Law("tanh", 0.1, (0.0, eta))
            arguments = (x[k : k + 1], w, u, b, h0, None, None)
            y = run("rum", law, None, False, None, *arguments)[0]
            found += [y, *torch.autograd.grad((y * torch.arange(1.0, N + 1)).sum(), (b, w, h0))]
        grads.append(found)
    for value, expected in zip(*grads, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-18])
def test_a_small_argument_of_complex_modrelu(size, dtype):
    """With a positive bias |z| is lost in |f| = |z| + b."""
    x = (size * drawn(1, 1, B, D, dtype=dtype).detach()).requires_grad_()
    w, v = torch.zeros(N, N, dtype=dtype), drawn(2, N, D, dtype=dtype).detach()
    own = torch.full((N,), 0.5, dtype=x.real.dtype)
    arguments = (Law("modrelu", 0.1, (0.0,)), None, False, w, x, v, None, None, own)
    ct = drawn(3, 1, B, N, dtype=dtype).detach()
    found, expected = (
        torch.autograd.grad(run(*arguments)[0], x, ct)[0]
        for run in (
            lambda *rest: on_device.states("recurrence", *rest),
            lambda *rest: states(recurrence.formula, *rest),
        )
    )
    assert (found - expected).abs().max() < 20 * torch.finfo(dtype).eps * expected.abs().max()
