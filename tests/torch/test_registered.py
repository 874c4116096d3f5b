"""`isometry.integrations.torch.register`: torch's own layers and cells by these kernels, in all ways of torch to call
them, against themselves without it."""

import copy
import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import permutations, product

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils.checkpoint import checkpoint

import isometry.torch as it
from isometry.integrations.torch import register
from subprocesses import script

KINDS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}
T, B, D, N = 7, 3, 4, 5
each_kind = pytest.mark.parametrize("kind", KINDS)


def made(kind, **keywords):
    torch.manual_seed(11)
    return KINDS[kind](D, N, **{"num_layers": 2, "bidirectional": True, **keywords}), torch.randn(T, B, D)


def flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [result.data] if isinstance(result, PackedSequence) else [t for part in result for t in flat(part)]


def trained(net, x, call=None):
    """Values, and the gradients of all parameters."""
    out = flat((call or net)(x))
    net.zero_grad()
    sum(t.square().sum() for t in out).backward()
    return [t.detach() for t in out], [p.grad for p in net.parameters()]


def stored(net, x):
    """The same with what backward needs as bytes until then."""
    with torch.autograd.graph.saved_tensors_hooks(pickle.dumps, pickle.loads):
        return trained(net, x)


def sparse(net, x):
    net.weight_ih_l0 = torch.nn.Parameter(net.weight_ih_l0.detach().to_sparse(), requires_grad=False)
    return torch.no_grad()(net)(x)


def close(ours, theirs, bound=2e-5):
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        assert a.shape == b.shape and a.is_contiguous() == b.is_contiguous()
        assert (a - b).abs().max() <= bound * max(1.0, float(b.detach().abs().max()))


WAYS = {
    "inference": lambda net, x: torch.inference_mode()(net)(x),
    "parameters of inference": lambda net, x: torch.no_grad()(torch.inference_mode()(copy.deepcopy)(net))(x),
    "no gradients": lambda net, x: torch.no_grad()(net)(x),
    "deterministic": lambda net, x: torch.use_deterministic_algorithms(mode=True) or net(x),
    "anomaly": lambda net, x: [torch.autograd.set_detect_anomaly(mode=True), trained(net, x)][1],
    "checkpoint": lambda net, x: trained(net, x, partial(checkpoint, net, use_reentrant=False)),
    "reentrant": lambda net, x: trained(net, x.requires_grad_(), partial(checkpoint, net, use_reentrant=True)),
    "saved tensors": stored,
    "copy": lambda net, x: copy.deepcopy(net)(x),
    "pickle": lambda net, x: pickle.loads(pickle.dumps(net))(x),
    "a column of a batch": lambda net, x: net(x.repeat(1, 2, 2)[:, ::2, :D]),
    "across words": lambda net, x: net(torch.frombuffer(bytearray(338), dtype=x.dtype, offset=2).view_as(x).copy_(x)),
    "sparse": sparse,
    "half": lambda net, x: [t.float() for t in flat(net.bfloat16()(x.bfloat16()))],
    "quantised": lambda net, x: torch.ao.quantization.quantize_dynamic(net, {torch.nn.LSTM, torch.nn.GRU})(x),
    "function": lambda net, x: torch.func.functional_call(net, dict(net.named_parameters()), (x,)),
    "frozen": lambda net, x: torch.jit.freeze(torch.jit.script(torch.nn.Sequential(net).eval()))(x),
    "optimised": lambda net, x: torch.jit.optimize_for_inference(torch.jit.script(torch.nn.Sequential(net).eval()))(x),
}


@pytest.fixture(autouse=True)
def ends():
    yield
    torch.use_deterministic_algorithms(mode=False)
    torch.autograd.set_detect_anomaly(mode=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@each_kind
def test_ways(kind, way):
    net, x = made(kind)
    expected = WAYS[way](copy.deepcopy(net), x)
    with register(always=True):
        found = WAYS[way](net, x)
    close(found, expected, 2e-2 if way in ("half", "quantised") else 2e-5)


@pytest.mark.parametrize("sizes", [*product([1, 2, 60], [1, 3, 33], [1, 70])], ids=str)
@each_kind
def test_sizes(kind, sizes):
    """In both precisions, with and without gradients, padded and packed."""
    steps, batch, n = sizes
    torch.manual_seed(11)
    for dtype, bound in ((torch.float32, 2e-4), (torch.float64, 1e-10)):
        net = KINDS[kind](2, n, num_layers=2, dtype=dtype)
        x = torch.randn(steps, batch, 2, dtype=dtype)
        lengths = torch.linspace(steps, 1, batch).long()
        for given in (x, pack_padded_sequence(x, lengths)):
            with torch.no_grad():
                expected = net(given)
            slopes = trained(net, given)
            with register(always=True) as registration:
                with torch.no_grad():
                    close(net(given), expected, bound)
                close(trained(net, given), slopes, bound)
            assert registration.counts() == {kind: (2, 0)}


@pytest.mark.parametrize("batch_first", [False, True])
@each_kind
def test_results_and_gradients_are_tensors_of_their_own(kind, batch_first):
    """They may be changed in place and detached, one without another."""
    torch.manual_seed(3)
    net, cell = KINDS[kind](D, N, batch_first=batch_first), getattr(torch.nn, KINDS[kind].__name__ + "Cell")(D, N)
    x = torch.randn(1, 1, D)
    state = [torch.zeros(1, 1, N, requires_grad=True) for _ in range(1 + (kind == "lstm"))]
    with register(always=True):
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                found = flat(net(x, tuple(state) if kind == "lstm" else state[0])) + flat(cell(x[0]))
            leaves = [*net.parameters(), *cell.parameters(), *state]
            count = len(found)
            if grad:
                found += torch.autograd.grad(sum(t.square().sum() for t in found), leaves)
            assert len({t.untyped_storage().data_ptr() for t in found}) == len(found)
            assert all(t.is_contiguous() for t in found)
            for t in found[:count]:
                t.mul_(2)
                t.detach_()
            if not grad:
                found[0].untyped_storage().resize_(0)


@each_kind
def test_changes_in_place_are_noticed(kind):
    """As torch notices them: a weight that backward reads, and a result."""
    net, x = made(kind, num_layers=1, bidirectional=False)
    with register(always=True):
        out = net(x)[0]
        with torch.no_grad():
            net.weight_hh_l0.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()
        out = net(x)[0]
        out.detach().zero_()
        assert not flat(net(x))[0].eq(0).all()


@each_kind
def test_backward_reads_the_memory_of_the_call(kind):
    """Not that which `.data` is given later."""
    net, x = made(kind)
    expected = trained(net, x)

    def replaced(x):
        x, out = (given := x.clone()), net(given)
        for t in (x, *net.parameters()):
            t.data = 2 * t.data
        return out

    with register(always=True):
        close(trained(net, x, replaced), expected)


def test_torch_refuses_wrong_arguments():
    x, h = torch.ones(T, B, D), torch.zeros(1, B, N)
    law = True, 1, 0.0, False, False, False
    w, u, b, _ = made("gru", num_layers=1, bidirectional=False)[0].parameters()
    cell = [*made("lstm", num_layers=1, bidirectional=False)[0].parameters()]
    for grad, call in product(
        (True, False),
        (
            lambda: torch.lstm(x, [], cell, *law),
            lambda: torch.lstm_cell(x[0], [], *cell),
            lambda: torch.lstm_cell(x[0], [h[0], h], *cell),
            lambda: torch.gru(x, h, [w, u, b, b.view(3, N)], *law),
            lambda: torch.gru_cell(x[0], h[0], w, u, b.view(3, N), b),
            lambda: torch.gru_cell(x[0], h, w, u, b, b),
        ),
    ):
        with torch.set_grad_enabled(grad), pytest.raises((RuntimeError, IndexError)) as expected:
            call()
        with torch.set_grad_enabled(grad), pytest.raises(type(expected.value)) as found, register(always=True):
            call()
        assert str(found.value) == str(expected.value)


def test_much_padding_is_left_to_torch():
    with register() as registration:
        torch.nn.GRU(D, N)(PackedSequence(torch.ones(163, D), torch.tensor([64] + [1] * 99)))
        assert registration.counts() == {"gru": (0, 1)}


def of_packed(data, sizes, h, weights: list[torch.Tensor]):
    return torch.gru(data, sizes, h, weights, True, 1, 0.0, True, False)


@pytest.mark.filterwarnings("ignore")
def test_a_default_device_does_not_reach_into_a_script():
    net, x = made("gru", num_layers=1, bidirectional=False)
    given = x.flatten(0, 1), torch.tensor([B] * T), torch.zeros(1, B, N), list(net.parameters())
    with register(always=True):
        scripted, expected = torch.jit.script(of_packed), of_packed(*given)
        with torch.device("meta"):
            close(scripted(*given), expected)


def test_removal_while_others_compute():
    net, x = made("gru")
    expected = flat(net(x))
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(lambda: [flat(net(x)) for _ in range(40)]) for _ in range(3)]
        while not all(call.done() for call in calls):
            register(always=True).remove()
    for call in calls:
        for found in call.result():
            close(found, expected)


@pytest.mark.slow
def test_unknown_operators_and_those_of_others():
    """Nothing is registered then; and after a removal nothing is."""
    script(
        """
        import torch
        from isometry.integrations.torch import _operators, _registration, register

        def refused(words):
            try:
                register()
            except RuntimeError as error:
                assert words in str(error) and not left(), error
            else:
                raise AssertionError

        def left():
            has = torch._C._dispatch_has_kernel_for_dispatch_key
            return [o.name for o in known if has("aten::" + o.name, "AutogradCPU")]

        known = _operators.OPERATORS
        odd = known[0]._replace(schema="aten::lstm.input(Tensor input) -> Tensor")
        _registration.OPERATORS = [*known[1:], odd]
        refused("aten::lstm.input of torch")
        _registration.OPERATORS = known
        library = torch.library.Library("aten", "IMPL")
        library.impl("gru_cell", lambda *given: given, "CPU")
        refused("kernel over aten::gru_cell")
        library._destroy()
        with register():
            assert len(left()) == 8
            with register(always=True):
                assert len(left()) == len(known) == 12
            assert len(left()) == 8
        assert not left()
        """
    )


def test_own_layers_are_not_counted():
    net, x = made("lstm")
    with register(always=True) as registration:
        ours = it.nn.from_torch(net)
        ours(x)
        assert registration.counts() == {}


@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")
@each_kind
def test_exported_programs_hold_nothing_of_it(kind):
    net, x = made(kind, bidirectional=False)
    with register(always=True):
        program = torch.export.export(net.eval(), (x,))
    file = io.BytesIO()
    torch.export.save(program, file)
    assert b"isometry" not in file.getvalue()
    close(torch.export.load(io.BytesIO(file.getvalue())).module()(x), net(x))


@pytest.mark.slow
def test_a_fork_is_registered_as_its_parent():
    """A child, and the workers of a DataLoader."""
    script(
        """
        import os, torch
        from isometry.integrations.torch import register

        registration, net, x = register(always=True), torch.nn.LSTM(3, 4), torch.randn(5, 2, 3)
        expected = net(x)[0].detach()
        pid = os.fork()
        if pid == 0:
            right = torch.equal(net(x)[0], expected) and registration.counts() == {"lstm": (2, 0)}
            os._exit(0 if right else 3)
        assert os.waitpid(pid, 0)[1] == 0

        class Outputs(torch.utils.data.Dataset):
            __len__ = lambda self: 4
            __getitem__ = lambda self, i: (net(x)[0].detach(), *registration.counts()["lstm"])

        loader = torch.utils.data.DataLoader(Outputs(), num_workers=2, multiprocessing_context="fork")
        for count, (out, ours, left) in enumerate(loader, 1):
            assert torch.equal(out[0], expected) and ours > 1 and not left
        assert count == 4 and registration.counts() == {"lstm": (1, 0)}
        """
    )


@pytest.mark.slow
def test_two_processes_of_ddp(tmp_path):
    """Their gradients are those of both halves of the batch together."""
    script(
        """
        import os, sys, torch
        import torch.distributed as dist
        from isometry.integrations.torch import register

        net, x = torch.nn.GRU(3, 4, num_layers=2), torch.randn(5, 4, 3)
        net(x)[0].square().sum().backward()
        expected = [p.grad / 2 for p in net.parameters()]
        net.zero_grad()
        child = os.fork()
        rank = int(child == 0)
        dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
        with register(always=True) as registration:
            model = torch.nn.parallel.DistributedDataParallel(net)
            model(x[:, 2 * rank : 2 * rank + 2])[0].square().sum().backward()
        right = registration.counts() == {"gru": (1, 0)}
        right &= all(torch.allclose(p.grad, e, atol=1e-6) for p, e in zip(net.parameters(), expected))
        dist.destroy_process_group()
        if not child:
            os._exit(0 if right else 3)
        assert os.waitpid(child, 0)[1] == 0 and right
        """,
        tmp_path / "store",
    )


@pytest.mark.slow
def test_compiled_code_outlives_a_registration(tmp_path):
    """Compiled with or without one; one cache of Inductor serves both, and holds nothing of it."""
    for first in (True, False):
        script(
            """
            import contextlib, sys, torch
            from isometry.integrations.torch import register

            torch.manual_seed(1)
            net, x = torch.nn.LSTM(3, 4), torch.randn(5, 2, 3)
            cell = torch.nn.GRUCell(4, 4)

            def step(x):
                net.zero_grad()
                out = cell(net(x)[0][-1])
                out.square().sum().backward()
                return out.detach(), *[p.grad for p in net.parameters()]

            expected, compiled = step(x), torch.compile(step)
            for registered in (sys.argv[1] == "True", sys.argv[1] != "True"):
                with register(always=True) if registered else contextlib.nullcontext():
                    torch.testing.assert_close(compiled(x), expected)
            """,
            first,
            timeout=400,
            TORCHINDUCTOR_CACHE_DIR=str(tmp_path),
        )
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and b"isometry" in p.read_bytes()]


@pytest.mark.extra
@pytest.mark.parametrize("order", list(permutations(("torch", "transformers", "sb3", "torchrl"))), ids=".".join)
def test_beside_other_integrations(order):
    """Registered and removed in any order."""
    net, x = made("lstm")
    expected = net(x)
    found = {name: pytest.importorskip(f"isometry.integrations.{name}").register() for name in order}
    with register(always=True) as registration:
        close(net(x), expected)
        assert registration.counts() == {"lstm": (1, 0)}
    for name in sorted(order):
        found[name].remove()
    assert all(a.equal(b) for a, b in zip(flat(net(x)), flat(expected), strict=True))
