"""Layers, parametrised weights and the delta rule on a CUDA device: the values of the CPU, no waiting for values,
capture in a graph, compilation."""

import contextlib
import copy

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence

import isometry.torch as it
from elsewhere import flat
from layers import FORMS, KINDS, OF_CELLS, B, D, T, build, draw, formed, states, stepped

each_form = pytest.mark.parametrize("form", list(dict.fromkeys((*KINDS, *FORMS))))
SETTINGS = {"num_layers": 2, "bidirectional": True, "trainable_h0": True}


def moved(layer):
    """The layer and its twin on the device."""
    return layer, copy.deepcopy(layer).cuda()


def results(layer, *given):
    """The states, the last, and the gradients of the parameters and of x."""
    given = [t.detach().clone().requires_grad_() if isinstance(t, torch.Tensor) else t for t in given]
    layer.zero_grad()
    out, last = layer(*given)
    out = out.data if isinstance(out, PackedSequence) else out
    (out.abs().square().cos().sum() + last.abs().sum()).backward()
    grads = {name: p.grad for name, p in layer.named_parameters()}
    return {"output": out, "last": last, **grads, **{str(k): t.grad for k, t in enumerate(given) if hasattr(t, "grad")}}


def agree(found, expected, tolerance=1e-9):
    assert found.keys() == expected.keys()
    for name, t in expected.items():
        if t is None:
            assert found[name] is None, name
            continue
        assert found[name].is_cuda and found[name].dtype == t.dtype, name
        gap = (found[name].detach().cpu() - t.detach()).abs().max()
        assert gap <= tolerance * max(1.0, t.detach().abs().max()), (name, float(gap))


@each_form
def test_values_and_gradients(form):
    here, there = moved(formed(form, **SETTINGS))
    x, h = draw(T, B, D), states(here, 4, B)
    agree(results(there, x.cuda()), results(here, x))
    agree(results(there, x.cuda(), h.cuda()), results(here, x, h))
    packed = lambda t: PackedSequence(t, torch.tensor((B, B, 2, 1, 1)))
    flat = draw(2 * B + 4, D)
    agree(results(there, packed(flat.cuda())), results(here, packed(flat)))


@each_form
def test_steps(form):
    here, there = moved(formed(form))
    x = draw(B, D)
    with torch.no_grad():
        for context in (type(here).cached, contextlib.nullcontext):
            with context(here), context(there):
                for a, b in zip(flat(stepped(there, x.cuda())), flat(stepped(here, x)), strict=True):
                    assert a.is_cuda and (a.cpu() - b).abs().max() <= 1e-9


@contextlib.contextmanager
def waiting_is_refused():
    """torch raises an error where the host would wait for a value."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_waiting_is_refused():
    x = torch.ones(3, device="cuda")
    with waiting_is_refused(), pytest.raises(RuntimeError, match="synchronizing"):
        x.sum().item()


@each_form
def test_nothing_waits(form):
    """Forward and backward, in single precision too, whose paths differ."""
    for dtype in (torch.float64, torch.float32):
        layer = formed(form, **SETTINGS, dtype=dtype).cuda()
        x = draw(T, B, D).to("cuda", dtype)
        with waiting_is_refused():
            out, last = layer(x)
            (out.abs().square().sum() + last.abs().sum()).backward()


@each_form
def test_a_training_step_in_a_graph(form):
    """A graph captured once gives in every replay the losses of the same steps without it."""
    torch.manual_seed(0)
    layer = formed(form, dtype=torch.float32)
    eager, captured = layer.cuda(), copy.deepcopy(layer).cuda()
    batches = [draw(T, B, D, seed=k).float().cuda() for k in range(6)]

    def steps(layer):
        optimiser = torch.optim.Adam(layer.parameters(), lr=1e-3, capturable=True)

        def step(x):
            optimiser.zero_grad(set_to_none=True)
            loss = (layer(x)[0].abs().square() - 0.5).square().mean()
            loss.backward()
            optimiser.step()
            return loss

        return step

    step = steps(eager)
    expected = [float(step(x).detach()) for x in batches]
    step, x = steps(captured), batches[0].clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    found = []
    with torch.cuda.stream(side):
        for batch in batches[:3]:
            x.copy_(batch)
            found.append(float(step(x).detach()))
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(x)
    for batch in batches[3:]:
        x.copy_(batch)
        graph.replay()
        found.append(float(loss.detach()))
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["ornn", "scornn", "exprnn", "urnn", *OF_CELLS])
def test_compiled(name):
    here, there = moved(build(name))
    x = draw(T, B, D)
    agree(results(torch.compile(there), x.cuda()) | {}, results(torch.compile(here), x) | {})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", [name for name in KINDS if not KINDS[name](D, 6).is_complex])
def test_autocast(name, dtype):
    layer = build(name, dtype=torch.float32).cuda()
    x = torch.randn(T, B, D, device="cuda")
    with torch.autocast("cuda", dtype):
        out, _ = layer(x)
    exact, _ = layer(x)
    out.float().square().sum().backward()
    assert (out.float() - exact).abs().max() < 0.1 and all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5), (300, 64)], ids=str)
@pytest.mark.parametrize("name", ["cayley", "matrix_exp", "householder"])
def test_parametrised_weights(name, shape):
    torch.manual_seed(0)
    layer = torch.nn.Linear(*shape[::-1], dtype=torch.float64)
    it.parametrizations.orthogonal(layer, orthogonal_map=name)
    here, there = moved(layer)
    for one in (here, there):
        one.weight.cos().sum().backward()
    tall = there.weight if shape[0] >= shape[1] else there.weight.mT
    assert it.orthogonality_error(tall.detach()) < 20
    agree({"w": there.weight}, {"w": here.weight})
    agree({k: p.grad for k, p in there.named_parameters()}, {k: p.grad for k, p in here.named_parameters()})


@pytest.mark.parametrize("gates", [False, True])
def test_the_delta_rule(gates):
    given = [draw(2, 150, 2, 6, seed=k) for k in range(3)] + [draw(2, 150, 2, seed=3).sigmoid()]
    given += [-draw(2, 150, 2, seed=4).sigmoid()] if gates else []

    def run(device):
        leaves = [t.to(device).requires_grad_() for t in given]
        o, s = it.delta_rule(*leaves[:4], g=leaves[4] if gates else None, normalise=True)
        (o.cos().sum() + s.square().sum()).backward()
        return {"o": o, "s": s, **{str(k): t.grad for k, t in enumerate(leaves)}}

    agree(run("cuda"), run("cpu"))
