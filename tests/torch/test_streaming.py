"""`layer.step`, one time step per call in any order of axes, and `layer.cached()`, in which W is formed once."""

import contextlib
import copy
import threading
from contextvars import copy_context

import pytest
import torch
from torch.func import functional_call, jvp

import isometry.torch as it
import tolerance
from derivatives import same, score
from isometry import _core
from kernel_calls import recorded
from layers import B, D, N, T, build, close, draw, each_kind, every_form, formed, states, stepped

STREAMS = pytest.mark.parametrize("name", ["ornn", "scornn", "scurnn", "eurnn", "goru", "rum"])


def in_thread(call, *arguments):
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()


def streamed(layer, x, state=None):
    for x_t in x:
        state = stepped(layer, x_t, state)
    return state


@every_form
def test_steps_are_the_sequence(form):
    """Of two layers, cached or not; a cached step is a call of the layer with that W, to the last bit."""
    layer, x = formed(form, 2), draw(T, B, D)
    with torch.no_grad():
        expected = layer(x)[1]
        close(streamed(layer, x[:2]), layer(x[:2])[1], "a step")
        with layer.cached():
            states = [None]
            for x_t in x:
                states.append(stepped(layer, x_t, states[-1]))
                assert torch.equal(states[-1], layer(x_t[None], states[-2])[1])
    close(states[-1], expected, "cached steps")


@every_form
def test_steps_of_one_sequence(form):
    """Without a batch, from a trained state; batch_first says nothing about a step."""
    layer, x = formed(form, batch_first=True, trainable_h0=True), draw(T, 1, D)
    with torch.no_grad(), layer.cached():
        alone = streamed(layer, x[:, 0])
        assert alone.shape == (1, *layer._state)
        assert torch.equal(alone, streamed(layer, x)[:, 0])
    close(streamed(layer, x[:, 0]), alone, "outside")
    close(layer(x.transpose(0, 1))[1][:, 0], alone, "the sequence")


@STREAMS
def test_w_is_formed_once(name, monkeypatch):
    layer, x = build(name), draw(T, B, D)
    layer(x)
    calls = recorded(monkeypatch)
    with torch.no_grad(), layer.cached():
        streamed(layer, x)
        layer(x)
    formed = calls.taken().of("operator_matrix")
    assert len(formed) == (0 if name == "rum" else 1)
    with layer.cached():
        streamed(layer, x).abs().sum().backward()
    assert len(calls.of("operator_matrix")) == len(formed)


@each_kind
def test_matrices_are_packed_once(name, monkeypatch):
    layer, x, pack, made = build(name), draw(T, 9, D), _core.pack, []  # fewer rows are read beside matrices as they lie

    def counted(*arguments):
        made.append(arguments)
        return pack(*arguments)

    monkeypatch.setattr(_core, "pack", counted)
    with torch.no_grad(), layer.cached():
        streamed(layer, x)
    # no matrix W, or one that is formed at every call; else their length, and the packed numbers
    expected = 0 if name in ("delta-product", "rnn-transition") else 2
    assert len(made) == expected


def changes(name):
    """Ways in which a layer's parameters change, seen by a version or not."""
    other = formed(name, seed=5)
    key = "upper_l0" if name == "scornn" else "hidden_bias_l0"

    def optimise(layer):
        for p in layer.parameters():
            p.grad = torch.ones_like(p)
        torch.optim.SGD(layer.parameters(), lr=0.1).step()

    def replace(layer):
        getattr(layer, key).data = getattr(other, key).data

    def inside_inference_mode(layer):
        with torch.inference_mode():
            getattr(layer, key).mul_(2.0)

    return {
        "an optimiser": optimise,
        "load_state_dict": lambda layer: layer.load_state_dict(other.state_dict()),
        "another tensor": replace,
        "another dtype": lambda layer: layer.to(torch.float32).to(torch.float64),
        "inference mode": inside_inference_mode,
        "through .data": lambda layer: getattr(layer, key).data.mul_(2.0).add_(0.5),
        "draws": lambda layer: layer.reset_parameters(),
    } | (
        {"a buffer": lambda layer: layer.signs_l0.neg_()}
        if name == "scornn"
        else {"a state dict of torch": lambda layer: layer.load_state_dict(it.nn.to_torch(other).state_dict())}
    )


CHANGES = [(name, change) for name in ("scornn", "gru-after") for change in changes(name)]


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_changes_are_seen(name, change, cached):
    """Between two steps, and between two calls of one; a call of two steps reads the parameters anew."""
    if cached and change == "through .data":
        return  # the one that only a context does not see
    layer, x, h = formed(name), draw(B, D), draw(1, B, N)
    calls = lambda: (layer.step(x, h), layer(x[None], h)[1])
    with torch.no_grad(), layer.cached() if cached else contextlib.nullcontext():
        before = calls()
        with torch.enable_grad() if change == "draws" else torch.no_grad():
            changes(name)[change](layer)
        after = calls()
    expected = layer(torch.stack([x, x]), h)[0][:1]
    for old, new in zip(before, after, strict=True):
        close(new, expected)
        assert not torch.equal(old, new)


@every_form
def test_gradients_through_steps(form):
    """Those of the sequence; after backward() W is formed again, and its graph with it."""
    layer, x = formed(form, 2), draw(T, B, D)
    layer(x)[1].abs().square().sum().backward()
    expected = [p.grad for p in layer.parameters()]
    with layer.cached():
        for _ in range(2):
            layer.zero_grad()
            streamed(layer, x).abs().square().sum().backward()
            for p, grad in zip(layer.parameters(), expected, strict=True):
                tolerance.close(p.grad, grad, tolerance.sequence_gradient("float64", N, T), "gradient")
        with torch.no_grad():
            assert not streamed(layer, x).requires_grad


@pytest.mark.parametrize("form", [*STREAMS.args[1], "gru-after"])
def test_transforms_inside_a_context(form):
    """Tangents of other parameters are not lost, and nothing of a transform is held; members of one step before."""
    layer, x = formed(form), draw(T, B, D)
    given = {key: p.detach() for key, p in formed(form, seed=3).named_parameters()}
    tangents = {key: torch.ones_like(p) for key, p in given.items()}
    call = lambda p: functional_call(layer, p, (x,))[0]
    value, tangent = jvp(call, (given,), (tangents,))
    first = lambda p: functional_call(layer, p, (x[:1],))[0]
    many = {key: torch.stack([p, 2 * p]) for key, p in given.items()}
    close(torch.func.vmap(first)(many)[1], first({key: 2 * p for key, p in given.items()}))
    with layer.cached(), torch.no_grad():
        own = layer(x)[0]
        found = jvp(call, (given,), (tangents,))
        close(found[0], value)
        close(found[1], tangent)
        assert torch.equal(layer(x)[0], own)
        close(torch.func.vmap(lambda x: layer.step(x), 0)(x), torch.stack([layer.step(x_t) for x_t in x]))


@pytest.mark.parametrize("copied", [False, True])
def test_contexts_are_nested_and_of_one_thread(copied, monkeypatch):
    """`asyncio.to_thread` copies the context, as free-threaded Python does for every thread: W is formed there too."""
    layer, x, found = build("scornn"), draw(B, D), []
    calls = recorded(monkeypatch)

    def there():
        with torch.no_grad():
            found.append(layer.step(x))
            with layer.cached():
                found.extend(layer.step(x) for _ in range(2))
            found.append(layer.step(x))

    with torch.no_grad(), layer.cached():
        expected = layer.step(x)
        with layer.cached():
            assert torch.equal(layer.step(x), expected)
        assert torch.equal(layer.step(x), expected)
        assert len(calls.taken().of("operator_matrix")) == 1
        in_thread(copy_context().run if copied else lambda call: call(), there)
        assert len(calls.taken().of("operator_matrix")) == 3
        layer.step(x)
        assert not calls.of("operator_matrix")
        assert torch.equal(copy.deepcopy(layer).step(x), expected)
    for state in found:
        close(state, expected)


def test_contexts_end_in_any_order(monkeypatch):
    """Nothing is held after the last one."""
    first, second, x = build("scornn"), build("ornn"), draw(B, D)
    calls = recorded(monkeypatch)
    with torch.no_grad():
        contexts = [layer.cached() for layer in (first, second, first)]
        for context in contexts:
            context.__enter__()
        for context in contexts:
            context.__exit__(None, None, None)
        for _ in range(2):
            first.step(x)
            second.step(x)
    assert len(calls.taken().of("operator_matrix")) == 4


@pytest.mark.parametrize("name", ["scornn", "ornn", "eurnn", "goru"])
def test_parameters_that_are_trained_from_now_on(name):
    """Frozen at first; and a W of inference mode is none for a backward pass."""
    layer, x = build(name).requires_grad_(False), draw(T, B, D)
    with layer.cached():
        layer(x)
        layer.requires_grad_(True)
        with torch.inference_mode(), torch.enable_grad():
            layer(x)
        layer(x)[0].abs().sum().backward()
    found = [p.grad for p in layer.parameters()]
    layer.zero_grad()
    layer(x)[0].abs().sum().backward()
    for p, grad in zip(layer.parameters(), found, strict=True):
        tolerance.close(grad, p.grad, tolerance.sequence_gradient("float64", N, T), "gradient")


def test_dropout_between_layers():
    layer, x = it.nn.ORNN(D, N, 2, dropout=0.5), draw(B, D).float()
    with torch.no_grad(), layer.cached():
        torch.manual_seed(0)
        found = layer.step(x)
        torch.manual_seed(0)
        assert torch.equal(layer(x[None])[1], found)
        layer.eval()
        assert torch.equal(layer(x[None])[1], layer.step(x))


@pytest.mark.parametrize("alone", [False, True])
def test_the_memory_of_a_rotational_unit(alone):
    """With lam 1 the state is a pair, and steps are the sequence; in half precision too."""
    layer, x = build("rum", 2, lam=1, trainable_h0=True), draw(T, B, D)
    x = x[:, 0] if alone else x
    state = streamed(layer, x)
    assert state[1].shape == ((2, N, N) if alone else (2, B, N, N))
    close(state[0], layer(x)[1], "steps")
    start = draw(2, N) if alone else draw(2, B, N)
    close(layer.step(x[0], start)[0], layer(x[:1], start)[1], "from a state")
    half = copy.deepcopy(layer).to(torch.bfloat16)
    assert {t.dtype for t in streamed(half, x.bfloat16())} == {torch.bfloat16}
    with pytest.raises(RuntimeError, match="Expected memory size"):
        layer.step(x[0], (start, draw(3, 3)))
    with pytest.raises(TypeError, match=r"hx\[1\] must be a torch.Tensor"):
        layer.step(x[0], (start, 1))


@pytest.mark.parametrize("inside", [False, True])
def test_mistakes_are_those_of_a_call(inside):
    layer, x = build("scurnn", 2), draw(B, D)
    with torch.no_grad():
        context = layer.cached()
        if inside:
            context.__enter__()
        for given, error, words in (
            ((x[None, None],), ValueError, "Expected input of a step to be 1D or 2D, got 4D"),
            ((x.float(),), ValueError, "does not match weight dtype"),
            ((x[:, :2],), RuntimeError, "input.size"),
            ((x, draw(1, B, N)), RuntimeError, "Expected hidden size"),
            ((x[0], draw(2, B, N)), RuntimeError, "hx should also be 2-D"),
            ((x, draw(2, B, N).to(torch.complex64)), TypeError, "hx must have the precision"),
            ((x.numpy(),), TypeError, "input must be a torch.Tensor"),
        ):
            with pytest.raises(error, match=words):
                layer.step(*given)
        assert layer.step(x[:0]).shape == (2, 0, N)
        close(layer.step(x + 0j, draw(2, B, N)), layer.step(x, draw(2, B, N) + 0j), "real and complex arguments")
        if inside:
            context.__exit__(None, None, None)
    with pytest.raises(ValueError, match="one direction"):
        build("ornn", bidirectional=True).step(x)


def test_strided_and_conjugated_arguments():
    layer, x, h = build("scurnn"), draw(D, B) + 1j * draw(D, B, seed=1), draw(N, B, 1) + 1j * draw(N, B, 1, seed=2)
    with torch.no_grad(), layer.cached():
        found = layer.step(x.mH, h.permute(2, 1, 0).conj())
        plain = layer.step(x.mH.resolve_conj().contiguous(), h.permute(2, 1, 0).conj().resolve_conj().contiguous())
    assert torch.equal(found, plain)


@pytest.mark.parametrize("name", ["scornn", "gru"])
def test_a_step_compiles(name):
    """Outside and inside a context, where the graph forms W itself."""
    torch.compiler.reset()
    layer, x, h = build(name), draw(B, D), draw(1, B, N)
    fast = torch.compile(lambda x, h: layer.step(x, h), backend="aot_eager", fullgraph=True)
    expected = layer.step(x, h)
    close(fast(x, h), expected)
    with layer.cached():
        close(fast(x, h), expected)


def outcome(call):
    """What a call gives: a dtype and values, or an error and its message."""
    try:
        found = call()
    except Exception as error:
        return type(error), str(error)
    return found.dtype, found.tolist()


DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.int64)


@pytest.mark.filterwarnings("ignore:Casting complex", "ignore:Complex modules")
@pytest.mark.parametrize("name", [*STREAMS.args[1], "gru", "soft-ornn", "kru", "exprnn-complex"])
@pytest.mark.parametrize("weights", DTYPES[:5], ids=str)
def test_every_dtype_inside_as_outside(name, weights):
    """Of weights, input and state: the same result, or the same error."""
    layer = build(name, dtype=torch.float32).to(weights)
    with torch.no_grad():
        for given in DTYPES:
            x = (10 * draw(B, D)).to(given)
            for state in (None, *DTYPES):
                h = None if state is None else states(layer, 1, B).to(state)
                expected = outcome(lambda x=x, h=h: layer(x[None], h)[1])
                with layer.cached():
                    found = [outcome(lambda x=x, h=h: layer.step(x, h)) for _ in range(2)]
                for inside in found:
                    assert inside[0] == expected[0], (given, state, inside, expected)
                    if isinstance(inside[1], str):
                        assert inside[1] == expected[1]
                    else:
                        bound = tolerance.sequence("float32", N, 1)
                        tolerance.close(torch.tensor(inside[1]), torch.tensor(expected[1]), bound, "a step")


@pytest.mark.parametrize("cached", [True, False])
@every_form
def test_orders_of_the_axes(form, cached):
    """Time first, batch first, without a batch; a step takes no axis of time."""
    layer, x = formed(form), draw(1, B, D)
    with torch.no_grad():
        expected, last = layer(torch.cat([x, x]))[0][:1], layer(x)[1]  # two steps: no call of one
        with layer.cached() if cached else contextlib.nullcontext():
            found = [layer(x), layer(x[:, 0])]
            layer.batch_first = True
            found.append(layer(x.transpose(0, 1)))
            with pytest.raises(ValueError, match="step"):
                layer.step(x)
    for (output, state), turned in zip(found, (expected, expected[:, 0], expected.transpose(0, 1)), strict=True):
        close(output, turned)
        close(state, last if output.dim() == 3 else last[:, 0])


@pytest.mark.parametrize("frozen", [None, "", "bias_l0", "hidden_bias_l0"])
def test_both_biases_of_a_gru(frozen):
    """None, or both with either frozen: values and derivatives of two orders are those of the first of two steps."""
    layer = formed("gru-after", bias=frozen is not None)
    x, h = draw(1, B, D).requires_grad_(), draw(1, B, N, seed=1).requires_grad_()
    for name, p in layer.named_parameters():
        p.requires_grad_(name != frozen)
    inputs, results = [x, h, *(p for p in layer.parameters() if p.requires_grad)], []
    for y in (layer(x, h)[0], layer(torch.cat([x, x]), h)[0][:1]):
        first = torch.autograd.grad(score(y), inputs, create_graph=True)
        results.append([y, *first, *torch.autograd.grad(sum(g.square().sum() for g in first), inputs)])
    same(*results)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_bias_that_is_not_finite_stays_in_its_place(recorded):
    """That of the product is not added to the candidate's own."""
    layer, x = formed("gru-after"), draw(1, B, D)
    with torch.no_grad():
        layer.hidden_bias_l0[2, 0] = torch.inf
    with torch.set_grad_enabled(recorded):
        found = layer(x)[0]
        close(found, layer(torch.cat([x, x]))[0][:1])
    assert found.isfinite().all()
