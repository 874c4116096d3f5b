"""Shared by tests of torch's differentiation modes: points, a real score, and the modes applied to a function.

Everything is in double precision; two computations of the same number differ by rounding only.
"""

import numpy as np
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, jvp, vmap

import isometry.torch as it
import reference as ref
import tolerance
from faces import tensor

#: name -> (real function of one tensor, point) -> result.
TRANSFORMS = {
    "jvp": lambda f, at: jvp(f, (at,), (torch.ones_like(at),))[1],
    "grad": lambda f, at: grad(f)(at),
    "vmap": lambda f, at: vmap(f)(torch.stack([at, 2 * at - 1])),
    "vmap of grad": lambda f, at: vmap(grad(f))(torch.stack([at, 2 * at - 1])),
}


def draw(rng, *shape, dtype=np.float64):
    """Standard normal numbers."""
    return tensor(ref.normal(rng, *shape, dtype=dtype))


def leaves(tensors):
    """Fresh copies that require a gradient."""
    return [t.detach().clone().requires_grad_() for t in tensors]


def of_operator(case, rng, call, rows=0, axis=1, n=4):
    """call(op, x) as a function of the operator's arguments and of x, so many rows for an axis of W, and a point to
    differentiate at. Without rows x is None."""
    n = case.size(n)
    at = {name: tensor(a) for name, a in case.draw(rng, n).items()}
    fixed = {name: at.pop(name) for name in case.object.fixed if name in at}
    # the compiler traces `build`: what it draws is drawn here, in tensors
    options = {k: torch.as_tensor(a) if isinstance(a, np.ndarray) else a for k, a in case.options(n).items()}
    build = lambda given: case.object.build(it, {**fixed, **given, **options})
    if "sign" in at:
        at["sign"] = 0.5 * at["sign"]  # in the interior, so that differences can step in both directions
    if rows:
        at["x"] = draw(rng, rows, build(at).shape[axis], dtype=case.dtype)

    def f(*tensors):
        given = dict(zip(at, tensors, strict=True))
        x = given.pop("x", None)
        return call(build(given), x)

    return f, list(at.values())


def score(out):
    """A smooth real number that is not constant for orthogonal W."""
    weight = torch.linspace(0.5, 2.0, out.shape[-1], dtype=torch.float64)
    return (weight * (out.abs().square() + out.real)).sum()


def gradients(f, at, **keywords):
    """Gradients of the score of f at fresh leaves."""
    at = leaves(at)
    return torch.autograd.grad(score(f(*at)), at, **keywords)


def same(found, expected, what="value"):
    """One tensor, or every tensor of a sequence."""
    if isinstance(expected, torch.Tensor):
        found, expected = (found,), (expected,)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype, f"{what} is {a.dtype}, expected {b.dtype}"
        a, b = (t.detach().resolve_conj() for t in (a, b))
        tolerance.close(a, b, tolerance.sequence_gradient("float64", 8, 4), what)


def threads_and_layouts_change_no_bit(f, at):
    """Of the values and gradients of f; the caller restores the number of threads."""
    it.set_num_threads(1)
    expected = [f(*at), *gradients(f, at)]
    strided = [torch.stack((t, t), -1)[..., 0] for t in at]
    for budget, point in ((2, at), (3, at), (2, strided)):
        it.set_num_threads(budget)
        for a, b in zip((f(*point), *gradients(f, point)), expected, strict=True):
            tolerance.identical(a.detach(), b.detach(), f"{budget} threads")


def what_is_not_asked_for_is_not_computed(f, at):
    """A call that needs no gradient records nothing, and a gradient alone has the bits that it has among all."""
    everything = gradients(f, at)
    assert not f(*at).requires_grad
    for k, expected in enumerate(everything):
        point = [t.detach().requires_grad_(i == k) for i, t in enumerate(at)]
        tolerance.identical(torch.autograd.grad(score(f(*point)), point[k])[0], expected, "a gradient alone")


def every_order(f, at):
    """Reverse, forward and batched derivatives against differences, then those of the gradient."""
    assert gradcheck(f, leaves(at), fast_mode=True, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, leaves(at), fast_mode=True, check_fwd_over_rev=True)


def every_member(f, at):
    """vmap over all arguments together, and over each alone, against one call per member."""
    many = [torch.stack([t, 1.5 * t + 0.1, 0.1 - t]) for t in at]
    for mapped in (range(len(at)), *((k,) for k in range(len(at)))):
        axes = tuple(0 if k in mapped else None for k in range(len(at)))
        arguments = [many[k] if k in mapped else t for k, t in enumerate(at)]
        alone = [f(*(many[k][i] if k in mapped else t for k, t in enumerate(at))) for i in range(3)]
        same(vmap(f, in_dims=axes)(*arguments), torch.stack(alone), f"vmap over {axes}")


def of_one(f, at, k):
    """The score of f as a function of argument k alone."""
    return lambda t: score(f(*at[:k], t, *at[k + 1 :]))


def transform_agrees(transform, f, at, k):
    """One of TRANSFORMS of the score as a function of argument k, against autograd and calls one by one."""
    gradient, loss = gradients(f, at)[k], of_one(f, at, k)
    found = TRANSFORMS[transform](loss, at[k])
    if transform == "jvp":
        same(found, gradient.sum().real)
    elif transform == "vmap":
        same(found, torch.stack([loss(at[k]), loss(2 * at[k] - 1)]))
    else:
        same(found if transform == "grad" else found[0], gradient)


def compiled(f, fullgraph=True):
    """Compiled by the compiler's front end and middle end, after a reset."""
    torch.compiler.reset()
    return torch.compile(f, backend="aot_eager", fullgraph=fullgraph)


def same_when_compiled(f, at):
    """States and gradients without a graph break, in a first and in a later call, and under vmap."""
    fast = compiled(f)
    for point in (at, [1.1 * t for t in at]):
        same(fast(*point), f(*point), "states")
        same(gradients(fast, point), gradients(f, point), "gradient")
    same(vmap(f)(*(t[None] for t in at))[0], fast(*at), "vmap")


def same_dual_numbers_when_compiled_before(f, at, k, trained=False):
    """A graph compiled without tangents is not used for them, as it would silently drop them."""
    loss, way = of_one(f, at, k), torch.ones_like(at[k])
    fast, point = compiled(loss, fullgraph=False), leaves(at)[k] if trained else at[k]
    fast(point)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(fast(forward_ad.make_dual(point, way))).tangent
    same(found, TRANSFORMS["jvp"](loss, at[k]))
