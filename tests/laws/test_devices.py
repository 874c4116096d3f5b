"""Values of tensors that are not on the CPU are not read: each read would synchronise with the device.

Only `from_matrix` fetches its matrix: it computes on the host.
"""

import contextlib

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import PackedSequence
from torch.utils._python_dispatch import TorchDispatchMode

import isometry.torch as it
import reference as ref
from elsewhere import DEVICE, Elsewhere, ElsewhereSubject, destination, flat, is_far
from laws.calls import others
from laws.test_functions import SMOOTH, function
from layers import FORMS, HEADED, KINDS, B, D, N, T, build, draw, each_kind, formed, states, stepped
from tolerance import UNITARITY


def unseen(subject, rng, device):
    """Every call of the operator, the activations and a recurrence."""
    n_out, n_in = subject.reference().shape[-2:]
    lead = subject.batch_shape
    x, ct = (ref.normal(rng, 3, *lead, k, dtype=subject.dtype) for k in (n_in, n_out))
    w_bar = ref.normal(rng, *lead, n_out, n_in, dtype=subject.dtype)
    calls = {
        "the operator": lambda s: s.operator(),
        "matrix": lambda s: s.matrix(),
        "apply": lambda s: s.apply(x),
        "apply_adjoint": lambda s: s.apply_adjoint(ct),
        "apply_vjp": lambda s: s.apply_vjp(x, ct),
        "matrix_vjp": lambda s: s.matrix_vjp(w_bar),
        **others(subject, rng),
    }
    for name, call in calls.items():
        device.fetched.clear()
        call(subject)
        allowed = (["cpu"], ["numpy"]) if name == "from_matrix" else ([],)  # once
        assert device.fetched in allowed, f"{name} fetched values: {device.fetched}"


class Unread(TorchDispatchMode):
    """Refuses the operations for which the host would wait for a value, also where torch itself calls them; lengths on
    the CPU may be read. `matrix_exp` chooses the degree of its polynomial on the host."""

    READS = ("_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__.split(".")[0]
        numbers = args and isinstance(args[0], torch.Tensor) and (is_far(args[0]) or args[0].dtype.is_floating_point)
        if name in ("linalg_matrix_exp", "_linalg_check_errors") or (name in self.READS and numbers):
            raise AssertionError(f"{name} waits for a value")
        return func(*args, **(kwargs or {}))


@pytest.fixture
def device():
    with Elsewhere() as device:
        yield device


@pytest.fixture
def watched():
    """The device, with torch's own operations watched; no value is checked there."""
    with Unread(), Elsewhere() as device:
        yield device


def test_operators(case, watched, seed):
    unseen(ElsewhereSubject.draw(case, seed, 5), seed, watched)
    unseen(ElsewhereSubject.draw(case, seed, 4, (3,)), seed, watched)


# Whether a value is read does not depend on the dtype: one for each variant.
test_operators.select = lambda case: (
    case.dtype is (np.float32 if "r" in case.object.variants[case.variant].fields else np.complex64)
)

LAYER = {"num_layers": 2, "bidirectional": True, "trainable_h0": True}


def unseen_layer(layer, device):
    """Forward with and without states, with packed sequences, and backward; and W."""
    layer, send = device.send(layer), device.send
    x, lengths = send(draw(T, B, D)), (B, B, 2, 1, 1)
    packed = PackedSequence(send(draw(sum(lengths), D)), torch.tensor(lengths))
    for arguments in ((x,), (x, send(states(layer, 4, B))), (x[:, 0],), (packed,)):
        out, last = layer(*arguments)
        out = out.data if isinstance(out, PackedSequence) else out
        assert out.device == last.device == DEVICE
        (out.abs().square().sum() + last.abs().sum()).backward()
    if hasattr(layer, "recurrent_matrix"):
        assert layer.recurrent_matrix().device == DEVICE
    layer.reset_parameters()
    assert not device.fetched, f"a layer fetched values: {device.fetched}"


@pytest.mark.parametrize("form", list(dict.fromkeys((*KINDS, *FORMS, *HEADED))))
def test_layers(form, watched):
    unseen_layer(formed(form, **LAYER), watched)


@pytest.mark.parametrize("keywords", [{"sign": "soft"}, {"reflections": 2}, {"nonlinearity": "modrelu"}], ids=str)
def test_layers_with_other_keywords(keywords, watched):
    unseen_layer(build("ornn", **LAYER, **keywords), watched)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=["real", "complex"])
@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)], ids=str)
@pytest.mark.parametrize("name", ["cayley", "matrix_exp", "householder"])
def test_parametrised_weights(name, shape, dtype, watched):
    """Only the exponential waits, inside torch."""
    for trivialization in (True, False):
        with torch.utils._python_dispatch._disable_current_modes():
            layer = torch.nn.Linear(*shape[::-1], dtype=dtype)
            it.parametrizations.orthogonal(layer, orthogonal_map=name, use_trivialization=trivialization)
        watched.send(layer)
        if name == "matrix_exp":
            with pytest.raises(AssertionError, match="linalg_matrix_exp"):
                _ = layer.weight
        else:
            w = layer.weight
            assert w.device == DEVICE
            w.abs().square().cos().sum().backward()
    assert not watched.fetched


@pytest.mark.parametrize("name", [*SMOOTH, "activate, modReLU"])
def test_functions(name, watched):
    """With gradients."""
    with torch.utils._python_dispatch._disable_current_modes():
        f, at = function(name, np.random.default_rng(0), np.float32)
    found = f(*[watched.send(t).requires_grad_() for t in at])
    assert found.device == DEVICE
    found.sum().backward()
    assert not watched.fetched


def test_functions_of_fla_and_adapters(watched):
    send = lambda *shape: watched.send(draw(*shape).float()).requires_grad_()
    q, k, v = (send(2, 70, 2, 6) for _ in range(3))
    beta, g = send(2, 70, 2), send(2, 70, 2)
    found = it.fla.chunk_gated_delta_rule(q, k, v, g, beta, use_gate_in_kernel=True, A_log=send(2))[0]
    assert found.device == DEVICE
    found.sum().backward()
    for adapter in (it.adapters.HRA, it.adapters.OFT):
        layer = watched.send(adapter(torch.nn.Linear(8, 8), 4))
        layer(send(4, 8)).sum().backward()
    assert not watched.fetched


def test_other_ways_to_an_operator(device, seed):
    """From a skew matrix, from a trapezoid, with a Python number and tensors."""
    a, u = ref.normal(seed, 4, 4), ref.normal(seed, 4, 4)
    it.Cayley.from_skew(device.send(torch.from_numpy(a - a.T))).matrix()
    u = device.send(torch.from_numpy(u))
    it.Householder.from_trapezoid(u).matrix()
    assert it.Householder(u, sign=-1).matrix().device == DEVICE
    with pytest.raises(ValueError, match="sign"):
        it.Householder(u, sign=1.5)
    it.orthogonality_error(u)
    assert not device.fetched


def test_the_watch_refuses_what_waits(watched):
    t = watched.send(torch.eye(3))
    waits = (torch.nonzero, torch.matrix_exp, lambda t: torch.linalg.solve(t, t))
    for look in (lambda t: bool(t[0, 0]), lambda t: t[0, 0].item(), *waits):
        with pytest.raises(AssertionError, match="waits for a value"):
            look(t)
    torch.linalg.solve_ex(t, t)


class Arrivals(Elsewhere):
    """Lists the operations that bring values from the host."""

    def __init__(self):
        super().__init__()
        self.copied = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        place = destination(func.__name__, args, kwargs or {})
        here = args and isinstance(args[0], torch.Tensor) and not is_far(args[0])
        if place == DEVICE and (here if func.__name__ == "to" else func.__name__ in ("tensor", "as_tensor")):
            self.copied.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_numbers_are_not_copied_to_the_device(seed):
    """They are filled in there."""
    with Arrivals() as device:
        u = device.send(torch.from_numpy(ref.normal(seed, 4, 4)))
        p = device.send(torch.zeros(4, dtype=torch.float64))
        margin, sign = it.BoundedSvd(u, p, u, margin=0.5), it.Householder(u, sign=-1)
        assert margin.matrix().device == sign.matrix().device == DEVICE
        layer = device.send(build("soft-ornn"))
        assert layer(device.send(draw(T, B, D)))[0].device == DEVICE
    assert not device.copied and not device.fetched


class WithoutDoublePrecision(Elsewhere):
    """Stands for "mps", which has no tensors of double precision and solves no complex systems; nor triangular ones
    here, since they are slow."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if "solve" in func.__name__ and ("triangular" in func.__name__ or args[0].is_complex()):
            raise RuntimeError(f"{func.__name__} on MPS")
        if func == torch.Tensor.device.__get__ and is_far(args[0]):
            return torch.device("mps")
        there = lambda a: DEVICE if a == "mps" or a == torch.device("mps") else a
        kwargs = {key: there(a) if key == "device" else a for key, a in (kwargs or {}).items()}
        args = [there(a) if isinstance(a, torch.device) else a for a in args]
        result = super().__torch_function__(func, types, args, kwargs)
        for t in flat((result,)):
            if is_far(t) and t.dtype in (torch.float64, torch.complex128):
                raise TypeError("the MPS framework doesn't support float64")
        return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=["real", "complex"])
def test_random_operators_of_a_device_without_double_precision(dtype):
    with WithoutDoublePrecision():
        made = [
            it.Dense.random(6, dtype=dtype, device="mps"),
            it.BoundedSvd.random(6, margin=0.0, dtype=dtype, device="mps"),
            it.Cayley.random(6, dtype=dtype, device="mps"),
            it.Exponential.random(6, dtype=dtype, device="mps"),
            it.Householder.random(6, dtype=dtype, device="mps"),
        ]
        if not dtype.is_complex:
            made.append(it.Rotation.random(6, dtype=dtype, device="mps"))
    for op in made:
        assert op.dtype is dtype
        assert it.orthogonality_error(op.matrix()) < UNITARITY


@pytest.mark.parametrize("name", ["cayley", "matrix_exp", "householder"])
@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5), (300, 5)], ids=str)
def test_weights_of_a_device_without_double_precision(name, shape):
    """Made orthogonal, trained and measured there."""
    with WithoutDoublePrecision() as device:
        layer = device.send(torch.nn.utils.skip_init(torch.nn.Linear, *shape[::-1]))
        torch.nn.init.normal_(layer.weight)
        it.parametrizations.orthogonal(layer, orthogonal_map=name)
        original = layer.parametrizations.weight.original
        with torch.no_grad():
            original.add_(torch.randn_like(original).tril_())
        w = layer.weight
        w.square().cos().sum().backward()
        assert w.device.type == "mps" and original.grad.isfinite().all()
        tall = w.detach() if shape[0] > shape[1] else w.detach().mT
        assert it.orthogonality_error(tall) < UNITARITY


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=["real", "complex"])
def test_systems_of_that_device_are_solved_by_products(dtype):
    """Rows by reflections, products of them, Cayley transforms and the delta rule, with gradients: the numbers of the
    CPU."""
    u, x, a = draw(12, 5).to(dtype), draw(3, 12).to(dtype), draw(15).to(dtype)
    tau, (q, k, v, beta) = torch.full((5,), 0.15, dtype=dtype), draw(4, 1, 70, 2, 6).float()
    calls = {
        "rows": (lambda u, x: it.Householder(u).apply(x), (u, x)),
        "matrix": (lambda u: it.Householder(u).matrix(), (u,)),
        "ormqr": (lambda u, tau, x: it.linalg.ormqr(u, tau, x, left=False), (u, tau, x)),
        "cayley": (lambda a: it.Cayley(a).matrix(), (a,)),
        "delta": (
            lambda q, k, v, beta: it.delta_rule(q, k, v, beta[..., 0].sigmoid(), normalise=True)[0],
            (q, k, v, beta),
        ),
    }
    for name, (call, given) in calls.items():
        here, there = ([t.detach().clone().requires_grad_() for t in given] for _ in range(2))
        expected = call(*here)
        expected.abs().square().cos().sum().backward()
        with WithoutDoublePrecision() as device:
            found = call(*map(device.send, there))
            assert found.device.type == "mps"
            found.abs().square().cos().sum().backward()
        for a, b in zip((found, *[t.grad for t in there]), (expected, *[t.grad for t in here]), strict=True):
            assert (a - b).detach().abs().max() < 2e-5 * b.detach().abs().max(), name


def test_the_default_device_does_not_move_what_kernels_write():
    """On the meta device: results of a size that torch allocates."""
    op = it.Cayley(torch.zeros(256 * 255 // 2))
    with torch.device("meta"):
        w = op.matrix()
    assert (w - torch.eye(256)).abs().max() < 1e-6


def test_lengths(device, seed):
    """Values on the device are not read, their number is checked; those on the CPU, as torch packs them, are
    checked."""
    op = it.Householder(device.send(torch.from_numpy(ref.normal(seed, 4, 2))))
    x, v = (device.send(torch.from_numpy(ref.normal(seed, *shape))) for shape in ((5, 3, 2), (4, 2)))
    run = lambda lengths: it.recurrence(op, x, v, lengths=lengths)
    here = run([2, 5, 3])
    there = run(device.send(torch.tensor([2, 5, 3])))
    with pytest.raises(ValueError, match="lengths"):
        run([2, 6, 3])
    with pytest.raises(ValueError, match="lengths"):
        run(device.send(torch.tensor([2])))
    assert not device.fetched
    here, there = (np.asarray(t.tolist()) for t in (here, there))
    assert np.array_equal(here, there) and not here[2:, 0].any()


def test_the_stand_in_tells_what_is_fetched(device):
    """Every way to read a value is counted, and nothing else."""
    t = device.send(torch.ones(3))
    assert (t.device, t.is_cuda, t.is_cpu, type(t), t.shape) == (DEVICE, True, False, torch.Tensor, (3,))
    assert (2 * t[:2]).device == torch.eye(2, device=DEVICE).device == t.new_zeros(1).device == DEVICE
    assert torch.ones(3).device.type == "cpu"
    assert not device.fetched
    looks = (
        bool, float, int, torch.Tensor.item, torch.Tensor.numpy, torch.Tensor.cpu, torch.Tensor.tolist, np.asarray,
        lambda t: t.to("cpu"), lambda t: t.to(torch.device("cpu")), lambda t: t.to(torch.ones(1)),
        lambda t: torch.equal(t, t), lambda t: 1 in t, torch.nonzero,
    )  # fmt: skip
    for k, look in enumerate(looks, 1):
        look(t[0])
        assert len(device.fetched) >= k, look
    with pytest.raises(RuntimeError, match="same device"):
        t + torch.ones(3)


@pytest.mark.cpu
@each_kind
def test_another_default_device(name):
    """Layers and arguments on the CPU stay there: sequences of one length and of several, packed, and single steps."""
    layer, x, lengths = build(name, **LAYER), draw(T, B, D), torch.tensor([T, T, 2, 1])
    alone = build(name, trainable_h0=True, last_only=True)
    packed = PackedSequence(draw(int(lengths.sum()), D), (torch.arange(T)[:, None] < lengths).sum(1))

    def results():
        layer.zero_grad()
        output, last = layer(packed)
        output.data.abs().sum().backward()
        yield from (
            output.data,
            last,
            layer(x)[0],
            *alone(packed),
            *layer(x[:, 0]),
            *[p.grad for p in layer.parameters()],
        )
        for context in (contextlib.nullcontext, alone.cached):
            with torch.no_grad(), context():
                yield stepped(alone, x[0])
        if hasattr(layer, "recurrent_matrix"):
            yield layer.recurrent_matrix()

    here = list(results())
    with torch.device("meta"):
        there = list(results())
    assert all(map(torch.equal, there, here))


@pytest.mark.cpu
def test_lists_under_another_default_device():
    """Of lengths and places: values that are read."""
    x, w, v = draw(T, 3, D), draw(3, N, N), draw(3, N, D)
    delta = draw(1, T, 2, N), draw(1, T, 2, N), draw(1, T, 2, N), draw(1, T, 2)
    calls = (
        lambda: it.recurrence(it.Dense(w[0]), x, v[0], lengths=[2, 5, 3]),
        lambda: it.recurrence(it.Dense(w[0]), x, v[0], lengths=[2, 0, 3], output="last"),
        lambda: it.gru(x, w, v, lengths=[2, 5, 3]),
        lambda: it.recurrence(it.Dense(w), x[:, None], v, lengths=[2, 5, 3], output="last"),
        lambda: torch.func.vmap(lambda x: it.gru(x, w, v, lengths=[2, 5, 3], output="last"))(x[None])[0],
        lambda: it.delta_rule(*delta, cu_seqlens=[0, 2, T])[0],
    )
    for call in calls:
        here = call()
        with torch.device("meta"):
            assert torch.equal(call(), here)
