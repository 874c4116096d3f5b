"""Inside grad, vjp and vmap of torch.func the kernels compute; their values are those of plain calls and formulas."""

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, grad_and_value, jvp, stack_module_state, vjp, vmap

import isometry.torch as it
from derivatives import (
    TRANSFORMS,
    compiled,
    draw,
    gradients,
    leaves,
    of_one,
    same,
    same_dual_numbers_when_compiled_before,
    score,
)
from isometry._core import CELLS
from isometry.torch.formulas.activation import activate as formula
from kernel_calls import recorded
from layers import KINDS, OF_CELLS
from programs import BATCH, FEATURES, STEPS, N, programs
from registry.cells import CELLS as REGISTERED

each_case = pytest.mark.parametrize("name", programs(np.random.default_rng(0)))
#: One of every kind, for slow transforms.
each_kind = pytest.mark.parametrize(
    "name",
    [
        *("apply", "matrix", "a stack", "recurrence, by W", "lengths", "goru, by factors", "rum, memory"),
        *("ormqr", "geqrf", "delta", "oft"),
    ],
)


def loss_of(name, rng):
    """The score of a case, a point, and which argument is which."""
    f, at = programs(rng)[name]
    return lambda *at: score(f(*at)), at, tuple(range(len(at)))


def pulled(calls):
    """Whether a kernel computed a gradient."""
    return any(call.kernel.endswith("_vjp") for call in calls)


@each_case
def test_grad_calls_the_kernels(name, seed, monkeypatch):
    """Values and gradients of grad_and_value and vjp are those of backward."""
    f, at = programs(seed)[name]
    loss, every = lambda *at: score(f(*at)), tuple(range(len(at)))
    expected = gradients(f, at)
    calls = recorded(monkeypatch)
    found, value = grad_and_value(loss, argnums=every)(*at)
    assert pulled(calls.taken())
    same(value, loss(*at))
    same(found, expected, "gradient")
    out, pull = vjp(f, *at)  # its backward pass runs after the transform
    same(out, f(*at))
    calls.clear()
    same(pull(torch.ones_like(out)), torch.autograd.grad(f(*(own := leaves(at))).sum(), own), "vjp")
    assert pulled(calls)


@each_case
@pytest.mark.parametrize("axis", [0, pytest.param(-1, marks=pytest.mark.long)])
def test_vmap_of_grad_equals_a_loop(name, axis, seed, monkeypatch):
    """Over every argument alone and over all, along the first axis and the last; a batch takes as many
    calls of kernels as one member, but for cells with gates.
    """
    loss, at, every = loss_of(name, seed)
    many = [torch.stack([t, 0.5 * t, 0.1 - t], axis) for t in at]
    calls = recorded(monkeypatch)
    for mapped in (every, *((k,) for k in every)):
        given = [many[k] if k in mapped else t for k, t in enumerate(at)]
        calls.clear()
        dims = tuple(axis if k in mapped else None for k in every)
        found = vmap(grad(loss, argnums=every), dims)(*given)
        count = len(calls.taken())
        for i in range(3):
            own = [many[k].select(axis, i) if k in mapped else t for k, t in enumerate(at)]
            same([g[i] for g in found], grad(loss, argnums=every)(*own), f"member {i} over {mapped}")
        gated = name.partition(",")[0] in set(REGISTERED) - {"recurrence"}
        if not gated and not any(each in name for each in ("activate", "packed", "oft")):
            assert count == len(calls) / 3


@each_kind
def test_transforms_of_transforms(name, seed):
    """Second derivatives of every kind, against autograd's; batches of batches."""
    loss, at, _ = loss_of(name, seed)
    one = lambda t: loss(t, *at[1:])
    way = draw(seed, *at[0].shape)
    leaf = leaves(at)[0]
    first = torch.autograd.grad(one(leaf), leaf, create_graph=True)[0]
    second = torch.autograd.grad((first * way).sum(), leaf)[0]
    same(grad(lambda t: (grad(one)(t) * way).sum())(at[0]), second, "grad of grad")
    same(jvp(grad(one), (at[0],), (way,))[1], second, "jvp of grad")
    outer = leaves(at)[0]
    same(torch.autograd.grad((grad(one)(outer) * way).sum(), outer)[0], second, "backward of grad")
    same(vjp(grad(one), at[0])[1](way)[0], second, "vjp of grad")
    many = torch.stack([at[0], 0.5 * at[0], 0.1 - at[0], 2 * at[0]]).unflatten(0, (2, 2))
    found = vmap(vmap(grad(one)), in_dims=1, out_dims=1)(many)
    same(found, vmap(grad(one))(many.flatten(0, 1)).unflatten(0, (2, 2)), "vmap of vmap")
    same(grad(lambda t: vmap(one)(t).sum())(many[0]), vmap(grad(one))(many[0]), "grad of vmap")
    same(vmap(grad(lambda t: vmap(one)(t).sum()))(many), found, "vmap of grad of vmap")


@pytest.mark.parametrize("name", ["recurrence, by W", "apply"])
def test_a_pullback_kept_for_later(name, seed):
    """Its tensors carry the wrappers of a transform that has ended, also inside another one."""
    f, at = programs(seed)[name]
    out, pull = vjp(f, *at)
    ct, way = draw(seed, *out.shape), draw(seed, *out.shape)
    expected = pull(way)[0]
    same(jvp(lambda ct: pull(ct)[0], (ct,), (way,)), (pull(ct)[0], expected), "jvp")
    same(vmap(lambda ct: pull(ct)[0])(torch.stack([ct, way]))[1], expected, "vmap")
    same(grad(lambda ct: (pull(ct)[0] * expected).sum())(ct), vjp(lambda ct: pull(ct)[0], ct)[1](expected)[0], "grad")


def test_lengths_of_a_batch(seed):
    """Each member has its own."""
    f = lambda x, ends: score(it.recurrence(it.Cayley(upper), x, v, lengths=ends))
    upper, v, x = draw(seed, 6), draw(seed, N, FEATURES), draw(seed, 2, STEPS, BATCH, FEATURES)
    ends = torch.tensor([[1, 3], [3, 2]])
    found = vmap(grad(f))(x, ends)
    same(found, torch.stack([grad(f)(x[i], ends[i]) for i in range(2)]))


def test_a_length_of_all_members(seed):
    """The length of one sequence serves all that vmap runs over."""
    v, x, h0 = draw(seed, N, FEATURES), draw(seed, STEPS, BATCH, FEATURES), draw(seed, BATCH, N)
    for op in (it.Cayley(draw(seed, 6)), it.Householder(draw(seed, N, 1))):
        step = lambda x, h0, op=op: it.recurrence(op, x[:, None], v, h0=h0[None], lengths=[1])[:, 0]
        same(vmap(step, (1, 0), 1)(x, h0), torch.stack([step(x[:, b], h0[b]) for b in range(BATCH)], 1), "states")


def test_compiled_for_any_number_of_steps(seed):
    """New lengths of the sequence neither break the graph nor unroll the loop."""
    f, (a, x, *rest) = programs(seed)["recurrence, by W"]
    fast = compiled(lambda x: f(a, x, *rest))
    for steps in (5, 7, 9):
        x = draw(seed, steps, *x.shape[1:])
        same(fast(x), f(a, x, *rest), f"{steps} steps")


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_and_graphs(transform, inside, seed):
    """The transform inside the compiled function, without a graph break, and around it."""
    f, at = programs(seed)["recurrence, by W"]
    loss = of_one(f, at, 0)
    whole = lambda t: TRANSFORMS[transform](loss, t)
    fast = compiled(whole if inside else loss, fullgraph=inside)
    same(fast(at[0]) if inside else TRANSFORMS[transform](fast, at[0]), whole(at[0]))


def test_dual_numbers_through_a_function_compiled_before_of_what_is_trained(seed):
    same_dual_numbers_when_compiled_before(*programs(seed)["recurrence, by W"], 0, trained=True)


def test_an_inner_gradient_of_a_constant_of_the_outer(seed):
    """Each level differentiates its own argument alone."""
    f, (upper, x, v, *rest) = programs(seed)["recurrence, by W"]
    inner = lambda x, v: grad(lambda x: score(f(upper, x, v, *rest)))(x).square().sum()
    leaf = v.clone().requires_grad_()
    point = x.clone().requires_grad_()
    first = torch.autograd.grad(score(f(upper, point, leaf, *rest)), point, create_graph=True)[0]
    same(grad(inner, argnums=1)(x, v), torch.autograd.grad(first.square().sum(), leaf)[0])


def test_without_recording_around_the_transform(seed):
    f, at = programs(seed)["recurrence, by W"]
    with torch.no_grad():
        found = grad(lambda *at: score(f(*at)), argnums=(0, 1))(*at)
    same(found, gradients(f, at)[:2])
    with torch.no_grad():
        assert not vmap(f)(*(t[None].requires_grad_() for t in at)).requires_grad


@pytest.mark.parametrize("name", ["recurrence, by W", "gru, before", "apply", "matrix"])
def test_forward_mode_and_other_devices_take_the_formula(name, seed, monkeypatch):
    """Kernels have no tangents, and no values of the meta device."""
    f, at = programs(seed)[name]
    calls = recorded(monkeypatch)
    jvp(grad(lambda *at: score(f(*at))), tuple(at), tuple(torch.ones_like(t) for t in at))
    grad(lambda *at: f(*at).abs().sum())(*(t.to("meta") for t in at))
    assert not [call for call in calls if call.kernel not in ("operator_matrix",)]


@pytest.mark.parametrize("name", ["ornn", "scornn", "eurnn", *OF_CELLS])
def test_models_side_by_side(name, seed, monkeypatch):
    """vmap(grad) of a layer by functional_call over its stacked parameters takes one call of its cell each way."""
    models = [KINDS[name](2, 4, dtype=torch.float64) for _ in range(3)]
    x = draw(seed, STEPS, BATCH, 2)
    parameters, buffers = stack_module_state(models)
    loss = lambda parameters, buffers, x: score(functional_call(models[0], (parameters, buffers), (x,))[0])
    calls = recorded(monkeypatch)
    found = vmap(grad(loss), in_dims=(0, 0, None))(parameters, buffers, x)
    assert pulled(calls)
    cell = CELLS[models[0]._cell][-2] or models[0]._cell  # a GORU with W as a matrix is a GRU
    of_cells = [call.kernel for call in calls if call.kernel.partition("_")[0] in CELLS]
    assert of_cells == [f"{cell}_ensemble", f"{cell}_ensemble_vjp"]
    for i, model in enumerate(models):
        score(model(x)[0]).backward()
        for key, p in model.named_parameters():
            same(found[key][i], p.grad, key)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("name", ["modrelu", "modrelu_realrep"])
def test_modrelu_of_denormal_numbers(name, dtype):
    """They are zeros, in the values and gradients of the formula, too: their inverses overflow."""
    if name == "modrelu_realrep" and dtype.is_complex:
        dtype = dtype.to_real()
    limits = np.finfo(str(dtype.to_real()).removeprefix("torch."))
    parts = torch.tensor([3.0, -3.0, 0.0, 1e6], dtype=dtype.to_real()) * float(limits.smallest_subnormal)
    z = torch.complex(parts, parts.flip(0)) if dtype.is_complex else parts
    for size in (-0.5, 0.0, 0.5):
        bias = torch.full((2 if name == "modrelu_realrep" else 4,), size, dtype=dtype.to_real())
        own, other = leaves([z, bias]), leaves([z, bias])
        found, expected = it.activate(own[0], name, bias=own[1]), formula(other[0], name, other[1])
        same(found, expected)
        grads = [torch.autograd.grad(y.abs().sum(), at) for y, at in ((found, own), (expected, other))]
        for a, b in zip(*grads, strict=True):
            same(a, b)
