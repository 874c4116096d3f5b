"""The optimisers of matrices: their steps, pairs, options, and the manners of a torch optimiser."""

import copy

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import isometry.torch as it
from tolerance import UNITARITY

KINDS = {
    "sgd": (it.optim.CayleySGD, {}),
    "elementwise": (it.optim.CayleyRMSprop, {}),
    "norm": (it.optim.CayleyRMSprop, {"scaling": "norm"}),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def draw(*shape, seed=0, dtype=torch.complex128):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def haar(n, seed=0, dtype=torch.complex128):
    return it.Dense.random(n, generator=torch.Generator().manual_seed(seed), dtype=dtype).weight


def make(kind, params, **options):
    cls, own = KINDS[kind]
    return cls(params, **{"lr": 0.05} | own | options)


def run(optimizer, p, gradients):
    for g in gradients:
        p.grad = g.clone()
        optimizer.step()
    return p.detach()


@EACH
def test_steps_are_cayley_steps_of_the_scaled_gradient(kind):
    w, gradients = haar(4), [draw(4, 4, seed=k) for k in (1, 2, 3)]
    found = run(make(kind, [p := torch.nn.Parameter(w.clone())]), p, gradients)
    average = torch.zeros(4, 4, dtype=torch.float64)
    for g in gradients:
        squares = g.abs() ** 2
        average = 0.9 * average + 0.1 * (squares.mean() if kind == "norm" else squares)
        scaled = g if kind == "sgd" else g / (average.sqrt() + 1e-8)
        w = it.cayley_step(w, scaled, 0.05)
    torch.testing.assert_close(found, w, rtol=1e-13, atol=1e-13)


@EACH
@pytest.mark.parametrize("batch", [(), (3,)])
def test_pairs_are_complex_matrices(kind, batch):
    w = haar(5).expand(*batch, 5, 5).clone()
    gradients = [draw(*batch, 5, 5, seed=k) for k in range(3)]
    own = torch.nn.Parameter(torch.view_as_real(w.clone()).clone())
    pairs = run(make(kind, [own]), own, [torch.view_as_real(g) for g in gradients])
    whole = run(make(kind, [p := torch.nn.Parameter(w)]), p, gradients)
    torch.testing.assert_close(torch.view_as_complex(pairs), whole, rtol=1e-14, atol=1e-14)


def test_a_shape_that_may_be_both_is_decided_by_the_option():
    p = torch.nn.Parameter(torch.zeros(2, 2, 2))
    with pytest.raises(ValueError, match="pairs=True or False"):
        it.optim.CayleySGD([p], lr=0.1)
    with torch.no_grad():
        p[:] = torch.eye(2)
    p.grad = draw(2, 2, 2, dtype=torch.float32)
    stack = torch.stack([it.cayley_step(w, g, 0.1) for w, g in zip(p.detach(), p.grad, strict=True)])
    it.optim.CayleySGD([{"params": [p], "pairs": False}], lr=0.1).step()
    torch.testing.assert_close(p.detach(), stack)
    with torch.no_grad():
        p.copy_(torch.view_as_real(torch.eye(2) + 0j))
    step = it.cayley_step(torch.eye(2) + 0j, torch.view_as_complex(p.grad), 0.1)
    it.optim.CayleySGD([p], lr=0.1, pairs=True).step()
    torch.testing.assert_close(torch.view_as_complex(p.detach()), step)


@EACH
@pytest.mark.parametrize("again", [False, True])
def test_w_stays_unitary(kind, again):
    """Hundreds of steps in single precision; with the option to rounding."""
    p = torch.nn.Parameter(haar(8, dtype=torch.complex64))
    optimizer = make(kind, [p], lr=1e-2, reorthogonalize=again)
    target = haar(8, seed=9, dtype=torch.complex64)
    first = last = None
    for _ in range(800):
        optimizer.zero_grad()
        last = (p - target).abs().square().sum()
        first = last if first is None else first
        last.backward()
        optimizer.step()
    assert it.orthogonality_error(p.detach()) < (2 if again else UNITARITY)
    assert last < 0.1 * first


@EACH
def test_manners(kind):
    """Groups with own rates, schedulers, closures, missing gradients, copies and state that goes on bit by bit."""
    a, b, c = (torch.nn.Parameter(haar(3, seed=s, dtype=torch.float64)) for s in range(3))
    start = [p.detach().clone() for p in (a, b, c)]
    optimizer = make(kind, [{"params": [a]}, {"params": [b], "lr": 0.0}, {"params": [c]}])
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    gradients = [draw(3, 3, seed=k, dtype=torch.float64) for k in range(6)]
    b.grad = gradients[0].clone()
    run(optimizer, a, gradients[:3])
    assert not torch.equal(a, start[0])
    assert torch.equal(b, start[1])
    assert torch.equal(c, start[2])
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.025
    other = copy.deepcopy(a)
    resumed = make(kind, [{"params": [other]}, {"params": [b]}, {"params": [c]}], lr=9.0)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    b.grad = None
    assert torch.equal(run(optimizer, a, gradients[3:]), run(resumed, other, gradients[3:]))
    losses = []
    assert optimizer.step(lambda: losses.append(torch.is_grad_enabled()) or 3.0) == 3.0
    assert losses == [True]


@EACH
def test_a_step_too_long_names_the_rate(kind):
    p = torch.nn.Parameter(torch.eye(5, dtype=torch.float64))
    before = p.detach().clone()
    with pytest.raises(ValueError, match="^lr must keep"):
        run(make(kind, [p], lr=1e30), p, [torch.ones(5, 5, dtype=torch.float64).triu(1)])  # A is singular
    assert torch.equal(p, before)


@EACH
def test_bits_do_not_depend_on_layout_or_threads(kind):
    """With the step that orthogonalises again."""
    gradients = [draw(3, 40, 40, seed=k) for k in range(2)]
    found = []
    for threads, layout in ((1, lambda t: t), (2, lambda t: t), (2, lambda t: t.mT.contiguous().mT)):
        torch.set_num_threads(threads)
        w = haar(40).expand(3, 40, 40).clone()
        p = torch.nn.Parameter(layout(w))
        found.append(run(make(kind, [p], reorthogonalize=True), p, [layout(g) for g in gradients]))
    assert all(torch.equal(w, found[0]) for w in found)


@EACH
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_rate_that_is_a_tensor(kind, shape):
    """The steps of a number, a later value from the next step on, schedulers, state, and no read on the host."""
    lr = torch.full(shape, 0.05, dtype=torch.float64)
    gradients = [draw(4, 4, seed=k) for k in range(4)]
    own, other = (torch.nn.Parameter(haar(4)) for _ in range(2))
    optimizer, plain = make(kind, [own], lr=lr), make(kind, [other])
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    assert torch.equal(run(optimizer, own, gradients[:2]), run(plain, other, gradients[:2]))
    lr.fill_(0.01)
    plain.param_groups[0]["lr"] = 0.01
    assert torch.equal(run(optimizer, own, gradients[2:3]), run(plain, other, gradients[2:3]))
    resumed = make(kind, [copied := torch.nn.Parameter(own.detach().clone())], lr=lr.clone())
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == 0.005
    assert resumed.param_groups[0]["lr"].item() == 0.01
    with Reads() as reads:
        run(optimizer, own, gradients[3:])
    assert not reads.count
    run(resumed, copied, gradients[3:])
    assert not torch.equal(own, copied)


class Reads(TorchDispatchMode):
    """How many numbers of tensors are read on the host."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def test_what_is_refused():
    p = torch.nn.Parameter(torch.eye(3))
    rates = (torch.zeros(2), torch.tensor(1), torch.tensor(-1.0), torch.tensor(float("nan")), torch.zeros(0), -1.0)
    for name, value in (*(("lr", rate) for rate in rates), ("alpha", 1.0), ("eps", 0.0), ("scaling", "max")):
        with pytest.raises(ValueError, match=f"^{name} must"):
            it.optim.CayleyRMSprop([p], **{"lr": 0.1, name: value})
    with pytest.raises(TypeError, match="^reorthogonalize must be a bool"):
        it.optim.CayleySGD([p], lr=0.1, reorthogonalize="yes")
    for shape, options in (((3, 2), {}), ((3,), {}), ((3, 3), {"pairs": True}), ((3, 3, 2), {"pairs": False})):
        with pytest.raises(ValueError, match="^a parameter must be"):
            it.optim.CayleySGD([torch.nn.Parameter(torch.zeros(shape))], lr=0.1, **options)
    optimizer = it.optim.CayleySGD([p], lr=0.1)
    with pytest.raises(ValueError, match="^lr must"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.eye(2))], "lr": -1.0})
    assert len(optimizer.param_groups) == 1


WRONG = {
    "float16": torch.eye(3, dtype=torch.float16),
    "bfloat16": torch.eye(3, dtype=torch.bfloat16),
    "pairs in bfloat16": torch.view_as_real(torch.eye(3) + 0j).bfloat16(),
    "int64": torch.eye(3, dtype=torch.int64),
    "uint8": torch.eye(3, dtype=torch.uint8),
    "bool": torch.eye(3, dtype=torch.bool),
    "float8_e4m3fn": torch.eye(3).to(torch.float8_e4m3fn),
    "sparse_coo": torch.eye(3).to_sparse(),
    "mkldnn": torch.eye(3).to_mkldnn(),
}


@EACH
@pytest.mark.parametrize("name", WRONG)
def test_parameters_that_no_step_takes(kind, name):
    """Refused with dtype or layout: by the constructor, by a new group, and by a step after the model was converted."""
    wrong, right = (torch.nn.Parameter(t, requires_grad=False) for t in (WRONG[name], torch.eye(3)))
    told = f"^a parameter must be .* not .*{name.rpartition(' ')[2]}"
    with pytest.raises(TypeError, match=told):
        make(kind, [right, wrong])
    optimizer = make(kind, [right])
    with pytest.raises(TypeError, match=told):
        optimizer.add_param_group({"params": [wrong]})
    assert len(optimizer.param_groups) == 1
    if wrong.layout is torch.strided and wrong.is_floating_point() and wrong.itemsize == 2 and wrong.dim() == 2:
        right.data, right.grad = wrong.data, wrong.data.clone()
        with pytest.raises(TypeError, match=told):
            optimizer.step()


@EACH
def test_sparse_gradients_are_refused(kind):
    p = torch.nn.Parameter(torch.eye(3, dtype=torch.float64))
    optimizer = make(kind, [p])
    p.grad = torch.eye(3, dtype=torch.float64).to_sparse()
    with pytest.raises(TypeError, match="^the gradient of a parameter must be a dense .* torch.sparse_coo"):
        optimizer.step()
    assert torch.equal(p, torch.eye(3, dtype=torch.float64))


@EACH
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"lr": -1.0}, "^lr must"),
        ({"lr": float("nan")}, "^lr must"),
        ({"lr": None}, "^lr must be a number"),
        ({"pairs": True}, "^a parameter must be"),
        ({"reorthogonalize": 1}, "^reorthogonalize must be a bool"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(kind, change, told):
    p = torch.nn.Parameter(haar(4))
    optimizer = make(kind, [p])
    run(optimizer, p, [draw(4, 4)])
    state, before = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0] |= change
    with pytest.raises((TypeError, ValueError), match=told):
        optimizer.load_state_dict(state)
    assert repr(optimizer.state_dict()) == repr(before)


def test_averages_of_another_shape_are_refused():
    """Of another scaling, or another parameter."""
    p = torch.nn.Parameter(haar(4))
    for one, other, shape in (("norm", "elementwise", (1, 1)), ("elementwise", "norm", (4, 4))):
        optimizer = make(one, [p])
        run(optimizer, p, [draw(4, 4)])
        state = copy.deepcopy(optimizer.state_dict())
        state["param_groups"][0]["scaling"] = "elementwise" if other == "elementwise" else "norm"
        with pytest.raises(ValueError, match=rf"^square_avg must have shape .* not \({shape[0]}, {shape[1]}\)"):
            make(other, [p]).load_state_dict(state)
    smaller = make("elementwise", [torch.nn.Parameter(haar(3))])
    with pytest.raises(ValueError, match="^square_avg must have shape"):
        smaller.load_state_dict(
            copy.deepcopy(optimizer.state_dict()) | {"param_groups": smaller.state_dict()["param_groups"]}
        )


@EACH
def test_states_of_other_optimisers_keep_the_options(kind):
    """What the state does not say is as the optimiser was made."""
    p = torch.nn.Parameter(haar(4))
    optimizer = make(kind, [p], reorthogonalize=True)
    optimizer.load_state_dict(torch.optim.SGD([p], lr=0.5).state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.5 and optimizer.param_groups[0]["reorthogonalize"]
    run(optimizer, p, [draw(4, 4)])
    assert it.orthogonality_error(p.detach()) < 2


NO_STEP = {"rate": {"lr": 0.0}, "tensor": {"lr": torch.zeros((), dtype=torch.float64)}, "gradient": {}}


@pytest.mark.parametrize("why", NO_STEP)
@pytest.mark.parametrize("form", ["real", "complex", "pairs", "stack", "single"])
@pytest.mark.parametrize("again", [False, True])
@EACH
def test_no_step_keeps_the_bits(kind, again, form, why):
    """A rate or a gradient of zero, as torch.distributed makes a state; also for one matrix of a stack."""
    dtype = {"real": torch.float64, "stack": torch.float64, "single": torch.complex64}.get(form, torch.complex128)
    w = draw(*(3,) * (form == "stack"), 5, 5, dtype=dtype)
    w.view(-1)[:3] = -torch.zeros(3, dtype=dtype)
    g = draw(*w.shape, seed=1, dtype=dtype)
    if why == "gradient":
        g[: 1 if form == "stack" else None] = 0
    before, g = map(torch.view_as_real, (w, g)) if form == "pairs" else (w, g)
    run(make(kind, [p := torch.nn.Parameter(before.clone())], reorthogonalize=again, **NO_STEP[why]), p, [g])
    as_bits = lambda t: (torch.view_as_real(t) if t.is_complex() else t).detach().contiguous().view(torch.uint8)
    still = 1 if why == "gradient" and form == "stack" else len(w)
    assert torch.equal(as_bits(p[:still]), as_bits(before[:still]))
    assert still == len(w) or not torch.equal(p[1:], before[1:])
