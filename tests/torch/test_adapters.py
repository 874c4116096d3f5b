"""Adapters: what they compute, which parameters train, how they merge, and the arguments they refuse."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import isometry.torch as it
import reference as ref
from derivatives import every_member, every_order
from isometry.torch.operators._blocks import blocks
from support import modules
from tolerance import close, forward, gradient

KINDS = pytest.mark.parametrize("kind", ["OFT", "HRA"])
FLOATS = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
N, OUT, BLOCK, R = 12, 5, 4, 6


def layer(dtype=torch.float64, out=OUT, bias=True):
    return torch.nn.Linear(N, out, bias=bias, dtype=dtype)


def adapted(kind, linear, rng=None):
    """An adapter, turned away from the identity if there is a generator."""
    adapter = it.adapters.OFT(linear, block_size=BLOCK) if kind == "OFT" else it.adapters.HRA(linear, r=R)
    if rng is not None:
        own = parameter(adapter)
        own.data = torch.from_numpy(ref.normal(rng, *own.shape)).to(own.dtype)
    return adapter


def parameter(adapter):
    """The one that is trained."""
    (name,) = [name for name, p in adapter.named_parameters() if p.requires_grad]
    assert name == ("upper" if isinstance(adapter, it.adapters.OFT) else "vectors")
    return getattr(adapter, name)


def turning(adapter):
    """Q of y = linear(Q x), from the definition."""
    own = parameter(adapter).detach().double().numpy()
    if isinstance(adapter, it.adapters.HRA):
        return ref.householder(own)
    q, b = np.zeros((N, N)), adapter.block_size
    for k, upper in enumerate(own):
        q[k * b : (k + 1) * b, k * b : (k + 1) * b] = ref.cayley(upper)
    return q


@FLOATS
@KINDS
@pytest.mark.parametrize("shape", [(N,), (3, N), (2, 50, N), (0, N)], ids=str)
def test_values_and_gradients(kind, shape, dtype, seed):
    """Few and many inputs: a wide and a narrow layer take either side of the turn."""
    for out in (2, 40):
        adapter = adapted(kind, layer(dtype, out), seed)
        x, ct = (torch.from_numpy(ref.normal(seed, *s)).to(dtype) for s in (shape, (*shape[:-1], out)))
        x.requires_grad_()
        q, w = turning(adapter), adapter.linear.weight.detach().double().numpy()
        name = str(dtype).removeprefix("torch.")
        with torch.no_grad():
            expected = x.double().numpy() @ (w @ q).T + adapter.linear.bias.double().numpy()
            close(adapter(x), expected, forward(name, N), "without gradients")
        y = adapter(x)
        close(y.detach(), expected, forward(name, N))
        assert y.dtype == dtype
        y.backward(ct)
        close(x.grad, ct.double().numpy() @ w @ q, forward(name, N), "gradient of x")
        own = parameter(adapter).detach().double().numpy()
        q_bar = w.T @ ct.double().numpy().reshape(-1, out).T @ x.detach().double().numpy().reshape(-1, N)
        if kind == "HRA":
            expected = ref.householder_vjp(q_bar, own)["vectors"]
        else:
            blocked = [q_bar[k : k + BLOCK, k : k + BLOCK] for k in range(0, N, BLOCK)]
            expected = np.stack([ref.cayley_vjp(b, u)["upper"] for b, u in zip(blocked, own, strict=True)])
        close(parameter(adapter).grad, expected, gradient(name, N, 30), "gradient of the parameter")
        assert adapter.linear.weight.grad is None and adapter.linear.bias.grad is None


@KINDS
def test_derivatives_of_every_mode(kind, seed):
    for out in (1, 40):  # HRA: on the weight, on the inputs
        adapter = adapted(kind, layer(out=out), seed)
        name = "upper" if kind == "OFT" else "vectors"
        call = lambda p, x, adapter=adapter, name=name: torch.func.functional_call(adapter, {name: p}, (x,))
        at = [parameter(adapter).detach(), torch.randn(40, N, dtype=torch.float64)]
        every_order(call, at)
        every_member(call, at)


def test_blocks_of_any_layout(seed):
    """Rows in any order of memory; rectangular blocks; gradients of one argument alone."""
    w, x = (torch.from_numpy(ref.normal(seed, *s)) for s in ((3, 2, 5), (4, 7, 3, 5)))
    expected = np.einsum("kpq,...kq->...kp", w, x)
    for rows in (x, x.transpose(0, 1).contiguous().transpose(0, 1), x.expand(2, *x.shape)[1]):
        close(blocks(w, rows), expected, forward("float64", 5))
        for given in ((w.clone().requires_grad_(), rows), (w, rows.clone().requires_grad_())):
            (leaf,) = [t for t in given if t.requires_grad]
            own = torch.autograd.grad(blocks(*given).square().sum(), leaf)[0]
            wide = torch.autograd.grad(torch.einsum("kpq,...kq->...kp", *given).square().sum(), leaf)[0]
            close(own, wide, gradient("float64", 5))


@KINDS
@pytest.mark.parametrize("out", [2, 40])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_merge_keeps_the_function(kind, dtype, out, seed):
    adapter = adapted(kind, layer(dtype, out, bias=out > 2), seed).eval()
    weight = adapter.linear.weight.clone()
    merged = adapter.merge()
    assert type(merged) is torch.nn.Linear and merged.weight.dtype == dtype and not merged.training
    assert (merged.bias is None) == (adapter.linear.bias is None)
    exact = torch.from_numpy(weight.double().numpy() @ turning(adapter))
    close(merged.weight.detach().double(), exact, 2 * torch.finfo(dtype).eps)
    assert torch.equal(weight, adapter.linear.weight)
    x = torch.randn(50, N, dtype=dtype)
    close(merged(x).detach().double(), adapter(x).detach().double(), 8 * torch.finfo(dtype).eps)


@KINDS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(kind, dtype):
    """The parameter is float32 beside a layer in half precision; a module in half precision rounds it once."""
    adapter = adapted(kind, layer(dtype))
    assert parameter(adapter).dtype == torch.float32
    parameter(adapter).data.normal_(std=0.3)
    x = torch.randn(6, N).to(dtype)
    close(adapter.rotate(x).float().detach(), x.float().numpy() @ turning(adapter).T, torch.finfo(dtype).eps)
    adapter.to(dtype)
    y = adapter(x)
    assert y.dtype == dtype and parameter(adapter).dtype == dtype
    close(adapter.rotate(x).float().detach(), x.float().numpy() @ turning(adapter).T, torch.finfo(dtype).eps)
    y.float().square().sum().backward()
    assert parameter(adapter).grad.dtype == dtype and parameter(adapter).grad.isfinite().all()


@KINDS
def test_under_autocast(kind, seed):
    adapter = adapted(kind, layer(torch.float32), seed)
    x = torch.randn(4, N)
    with torch.autocast("cpu", torch.bfloat16):
        y, rounded = adapter(x), adapter(x.bfloat16())
    assert y.dtype == torch.bfloat16 == rounded.dtype
    close(y.float().detach(), adapter(x).detach(), 0.03)
    close(rounded.float().detach(), adapter(x).detach(), 0.03)


def test_vectors_that_decay_to_zero_end_no_training():
    """Inputs of zeros give no gradient: decay shortens the vectors until they are zero."""
    adapter = adapted("HRA", layer(torch.float32))
    optimizer = torch.optim.AdamW([adapter.vectors], lr=0.1, weight_decay=9.9)
    for _ in range(60):
        optimizer.zero_grad()
        adapter(torch.zeros(3, N)).square().sum().backward()
        optimizer.step()
    with torch.no_grad():
        adapter.vectors[:, :2] = 0
    x = torch.randn(3, N)
    close(adapter(x).detach(), adapter.linear(x).detach(), 1e-6, "pairs are equal still")
    assert torch.autograd.grad(adapter(x).square().sum(), adapter.vectors)[0].isfinite().all()


@KINDS
def test_compiled_with_one_graph(kind, seed):
    adapter = adapted(kind, layer(torch.float32), seed)
    x = torch.randn(9, N)
    compiled = torch.compile(adapter, fullgraph=True, backend="aot_eager")
    close(compiled(x).detach(), adapter(x).detach(), forward("float32", N))


def test_a_block_of_one_and_of_all():
    x = torch.randn(3, N)
    linear = torch.nn.Linear(N, 3)
    assert torch.equal(it.adapters.OFT(linear, 1)(x), linear(x))
    assert it.adapters.OFT(linear, N).upper.shape == (1, N * (N - 1) // 2)
    empty = it.adapters.OFT(torch.nn.utils.skip_init(torch.nn.Linear, 0, 3), 2)
    assert empty.rotate(torch.zeros(4, 0)).shape == (4, 0)


def test_what_is_refused():
    linear = layer(torch.float32)
    for make in (it.adapters.OFT, it.adapters.HRA):
        for other in (torch.nn.Conv1d(3, 3, 1), torch.eye(3), None):
            with pytest.raises(TypeError, match=r"linear must be a torch\.nn\.Linear"):
                make(other)
        with pytest.raises(TypeError, match="the weight of linear must be float16, .*, not complex64"):
            make(layer(torch.complex64))
        lazy = torch.nn.LazyLinear(3)
        with pytest.raises(ValueError, match="linear has no weight yet"):
            make(lazy)
        lazy(torch.zeros(1, N))
        assert make(lazy, 2).in_features == N
    for size, error in ((5, ValueError), (0, ValueError), (24, ValueError), (2.0, TypeError)):
        with pytest.raises(error, match="block_size"):
            it.adapters.OFT(linear, size)
    for r, error in ((0, ValueError), (3, ValueError), (-2, ValueError), ("8", TypeError)):
        with pytest.raises(error, match="r must be"):
            it.adapters.HRA(linear, r)
    assert all(p.requires_grad for p in linear.parameters()), "frozen by a call that failed"
    for adapter in (adapted("OFT", linear), adapted("HRA", linear)):
        for count in (2, 100):  # of many inputs the rows of the weight are turned
            with torch.no_grad(), pytest.raises(TypeError, match="x is float64"):
                adapter(torch.zeros(count, N, dtype=torch.float64))
        for call, count in ((adapter.rotate, 2), (adapter, 2), (adapter, 100)):
            with (
                torch.no_grad(),
                pytest.raises(ValueError, match=r"x must have shape \(\.\.\., in_features\) with n = 12"),
            ):
                call(torch.zeros(count, N + 1))
        for call in (adapter, adapter.rotate):
            with pytest.raises(TypeError, match="x must be a torch.Tensor"):
                call([1.0])


def test_weights_of_peft_that_do_not_fit():
    linear = torch.nn.Linear(24, 10)
    for shape in ((3, 27), (2, 28), (28,), (3, 1, 28), (1, 10)):
        with pytest.raises(ValueError, match="weight must have"):
            it.adapters.OFT.from_peft(linear, torch.zeros(shape))
    for shape in ((23, 2), (24,), (24, 0)):
        with pytest.raises(ValueError, match="u must have shape"):
            it.adapters.HRA.from_peft(linear, torch.zeros(shape))
    with pytest.raises(ValueError, match="in_features = 24 and 24 >= r >= 1, not \\(24, 25\\)"):
        it.adapters.HRA.from_peft(linear, torch.ones(24, 25), apply_GS=True)
    for wrong in ({"dtype": torch.complex64}, {"dtype": torch.int64}):
        with pytest.raises(TypeError, match="^weight must be"):
            it.adapters.OFT.from_peft(linear, torch.zeros(3, 28, **wrong))
        with pytest.raises(TypeError, match="^u must be"):
            it.adapters.HRA.from_peft(linear, torch.zeros(24, 2, **wrong))
    for bound in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="eps must be at least 0"):
            it.adapters.OFT.from_peft(linear, torch.zeros(3, 28), eps=bound)
    with pytest.raises(TypeError, match="eps must be a number"):
        it.adapters.OFT.from_peft(linear, torch.zeros(3, 28), eps="1")
    assert linear.weight.requires_grad, "frozen by a call that failed"


def test_weights_of_peft_are_taken_without_drawing():
    linear, before = layer(), torch.random.get_rng_state()
    it.adapters.HRA.from_peft(linear, torch.ones(N, 3))
    it.adapters.OFT.from_peft(linear, torch.zeros(N // BLOCK, BLOCK * (BLOCK - 1) // 2))
    assert torch.equal(torch.random.get_rng_state(), before)


class Shifted(torch.nn.Linear):
    """A layer with a forward of its own."""

    def forward(self, x):
        return super().forward(x) + 1


@KINDS
def test_layers_that_are_more_than_their_weight(kind, seed):
    """A forward of its own, hooks, pruned weights: few and many rows agree, and a second backward pass works."""
    hooked, pruned, patched, before = layer(), layer(), layer(), layer()
    hooked.register_forward_hook(lambda *call: call[-1] * 2)
    before.register_full_backward_pre_hook(lambda _, ct: (3 * ct[0],))
    patched.forward = lambda x: torch.nn.Linear.forward(patched, x) - 1
    torch.nn.utils.prune.random_unstructured(pruned, "weight", 0.5)
    x = torch.from_numpy(ref.normal(seed, 500, N)).requires_grad_()
    for linear in (Shifted(N, OUT, dtype=torch.float64), hooked, pruned, patched, before):
        adapter = adapted(kind, linear, seed)
        with torch.no_grad():
            close(adapter(x)[:1], adapter(x[:1]), 1e-12)
        for _ in range(2):
            adapter(x).sum().backward()
        parameter(adapter).requires_grad_(False)
        of = lambda x, adapter=adapter: torch.autograd.grad(adapter(x).sum(), x)[0]
        close(of(x)[:1], of(x[:1].detach().requires_grad_()), 1e-12)
        with pytest.raises(ValueError, match="linear has a forward or hooks of its own"):
            adapter.merge()


@KINDS
def test_hooks_of_all_modules_see_the_layer(kind, seed):
    """Of few and many rows: profilers, counters, recorders of activations."""
    adapter, seen = adapted(kind, layer(), seed), []
    hook = torch.nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(module))
    try:
        for count in (1, 500):
            adapter(torch.zeros(count, N, dtype=torch.float64))
    finally:
        hook.remove()
    assert seen == [adapter.linear, adapter] * 2


@KINDS
@pytest.mark.parametrize("grad", [True, False])
def test_exported_for_any_number_of_inputs(kind, grad, seed):
    adapter = adapted(kind, layer(torch.float32, out=2), seed)
    with torch.set_grad_enabled(grad):
        program = torch.export.export(adapter, (torch.randn(7, N),), dynamic_shapes={"x": {0: torch.export.Dim("B")}})
        for count in (1, 500):
            x = torch.randn(count, N)
            close(program.module()(x).detach(), adapter(x).detach(), forward("float32", N))


@KINDS
def test_inside_a_transformer(kind):
    """Whose fast path reads the weights of its layers."""
    model = torch.nn.TransformerEncoderLayer(N, 2, dim_feedforward=24, batch_first=True, dtype=torch.float64).eval()
    x = torch.randn(3, 5, N, dtype=torch.float64)
    for name in ("linear1", "linear2"):
        adapter = it.adapters.OFT(getattr(model, name), 4) if kind == "OFT" else it.adapters.HRA(getattr(model, name))
        torch.nn.init.normal_(parameter(adapter), std=0.3)
        setattr(model, name, adapter)
        linear = adapter.linear
        assert (adapter.in_features, adapter.out_features) == (linear.in_features, linear.out_features)
        assert adapter.bias is linear.bias and adapter.weight.requires_grad
    with torch.no_grad():
        fast = model(x)
    merged = copy.deepcopy(model)
    for name in ("linear1", "linear2"):
        setattr(merged, name, getattr(model, name).merge())
    close(model(x).detach(), merged(x).detach(), 1e-12)
    close(fast, merged(x).detach(), 1e-12)


@pytest.mark.parametrize("name", [*modules.COMPUTED, "parametrised, scaled"])
@KINDS
def test_what_computes_the_parameter_of_an_adapter(kind, name):
    """`weight` is that of a call, the state and training have what it is computed of."""
    add = {**modules.COMPUTED, **modules.PARAMETRISED}[name]
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)), torch.randn(3, 8)
    it.adapters.attach(model, kind, "0", **({"block_size": 8} if kind == "OFT" else {"r": 2}))
    torch.nn.init.normal_(parameter(model[0]))  # a norm divides by that of the first
    add(model[0], model[0]._trained)
    model(x)
    trained = {key: p for key, p in model.named_parameters() if p.requires_grad}
    assert trained and trained.keys() <= it.adapters.adapter_state_dict(model).keys() < model.state_dict().keys()
    with torch.no_grad():
        for p in trained.values():
            p.copy_(torch.randn_like(p))
    weight = model[0].weight
    torch.testing.assert_close(x @ weight.T + model[0].bias, model[0](x), rtol=1e-4, atol=1e-4)
    it.adapters.attach(model, "HRA", "1", r=2)
    assert all(p.requires_grad for p in trained.values())


class Stored(torch.nn.Linear):
    """As some quantisers keep a layer: its class and weight alone are other ones."""

    def __init__(self, linear, dtype):
        super().__init__(linear.in_features, linear.out_features)
        self.weight = torch.nn.Parameter(linear.weight.detach().to(dtype), requires_grad=False)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.to(x.dtype), self.bias)


QUANTISERS = {
    "dynamic": lambda m: torch.ao.quantization.quantize_dynamic(m, {torch.nn.Linear}, inplace=True),
    "int8": lambda m: setattr(m[0], "linear", Stored(m[0].linear, torch.int8)),
    "float8": lambda m: setattr(m[0], "linear", Stored(m[0].linear, torch.float8_e4m3fn)),
}


@pytest.mark.parametrize("quantiser", QUANTISERS)
@pytest.mark.filterwarnings("ignore:torch.ao:DeprecationWarning")
@KINDS
def test_a_layer_that_was_quantised(kind, quantiser):
    """The adapter still computes; what needs the weight says why it is not there."""
    model, x = torch.nn.Sequential(adapted(kind, layer(torch.float32))), torch.randn(3, N)
    QUANTISERS[quantiser](model)
    assert model(x).shape == (3, OUT)
    name = r"torch\.ao\S*Linear" if quantiser == "dynamic" else "Stored"
    readers = {"weight": lambda: model[0].weight, "bias": lambda: model[0].bias, "merge": model[0].merge}
    readers["0: merge"] = lambda: it.adapters.merge(model)
    for reader, read in readers.items():
        with pytest.raises(TypeError, match=rf"^{reader} needs .* quantised .* {name}\. Merge"):
            read()
    assert it.adapters.detach(model)[0](x).shape == (3, OUT)
