"""Adapters for a whole model: what is replaced, trained, saved, merged and restored; refusals change nothing."""

import copy

import pytest
import torch
from torch import nn

import isometry.torch as it
from isometry.torch.adapters import HRA, OFT
from support import modules

attach, detach, merge = it.adapters.attach, it.adapters.detach, it.adapters.merge


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.v_proj, self.norm = nn.Linear(8, 8), nn.Linear(8, 8, bias=False), nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(x + self.v_proj(self.q_proj(x).tanh()))


def model():
    torch.manual_seed(0)
    shared = nn.Linear(8, 8)
    made = nn.ModuleDict({"blocks": nn.Sequential(Block(), Block()), "head": nn.Sequential(shared, nn.ReLU(), shared)})
    made["blocks"][1].norm.requires_grad_(False)
    return made


def run(made, x):
    return made["head"](made["blocks"](x))


def randomised(made):
    with torch.no_grad():
        for key, p in made.named_parameters():
            if p.requires_grad and key.rpartition(".")[2] == "upper":
                p.normal_()
    return made


@pytest.mark.parametrize(("kind", "options"), [("OFT", {"block_size": 4}), ("HRA", {"r": 2})])
def test_life_of_an_adapter(kind, options, capsys):
    made, x = model(), torch.randn(5, 8)
    start, trained = run(made, x), {name for name, p in made.named_parameters() if p.requires_grad}
    state = copy.deepcopy(made.state_dict())
    assert attach(made, kind, ["q_proj", "head.0"], **options) is made
    said = capsys.readouterr().out
    count = sum(p.numel() for p in made.parameters() if p.requires_grad)
    assert ", ".join(f"{key}={value}" for key, value in options.items()) in repr(made)
    assert f"attached {kind} to 3 layers: {count:,} of {sum(p.numel() for p in made.parameters()):,} " in said
    assert torch.allclose(run(made, x), start, atol=1e-6)
    adapter = {"OFT": OFT, "HRA": HRA}[kind]
    assert type(made["blocks"][1].q_proj) is adapter and made["head"][0] is made["head"][2]
    randomised(made)
    optimiser = torch.optim.SGD([p for p in made.parameters() if p.requires_grad], lr=0.1)
    run(made, x).square().sum().backward()
    assert all(p.grad.any() for p in made.parameters() if p.requires_grad)
    optimiser.step()
    learned, after = it.adapters.adapter_state_dict(made), run(made, x)
    assert len(learned) == 4 and not any("linear" in key for key in learned)
    assert all(torch.equal(made.state_dict()[k.replace("q_proj.", "q_proj.linear.")
               if "q_proj" in k else k.replace("head.0.", "head.0.linear.").replace("head.2.", "head.2.linear.")], v)
               for k, v in state.items())  # fmt: skip

    other = attach(model(), kind, ["q_proj", "head.0"], **options)
    found = other.load_state_dict(learned, strict=False)
    assert not found.unexpected_keys and torch.allclose(run(other, x), after, atol=1e-6)

    merged = merge(copy.deepcopy(made))
    assert torch.allclose(run(merged, x), after, atol=1e-5) and list(merged.state_dict()) == list(state)
    assert {name for name, p in merged.named_parameters() if p.requires_grad} == trained
    detach(made)
    assert torch.equal(run(made, x), start)
    assert {name for name, p in made.named_parameters() if p.requires_grad} == trained
    assert all(torch.equal(a, b) for a, b in zip(made.state_dict().values(), state.values(), strict=True))


def test_a_function_chooses_and_a_second_kind_joins():
    made, x = model().double().eval(), torch.randn(5, 8, dtype=torch.float64)
    attach(made, "OFT", lambda _, layer: layer.bias is None, block_size=2)
    attach(made, "HRA", "blocks.0.q_proj", r=2)
    assert type(made["blocks"][0].v_proj) is OFT and type(made["blocks"][0].q_proj) is HRA
    names = {name for name, p in made.named_parameters() if p.requires_grad}
    assert names == {"blocks.0.v_proj.upper", "blocks.1.v_proj.upper", "blocks.0.q_proj.vectors"}
    assert not made["blocks"][0].q_proj.training and made["blocks"][0].q_proj.vectors.dtype == torch.float64
    assert run(made, x).dtype == torch.float64
    assert sum(p.requires_grad for p in detach(made).parameters()) == sum(p.requires_grad for p in model().parameters())


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (["q_porj"], "no linear layer is called 'q_porj'; there is 'q_proj'"),
        (["q_proj", "norm"], "'norm' is a LayerNorm, not a torch.nn.Linear"),
        (["blocks"], "'blocks' is a Sequential"),
        ([], "at least one"),
        (lambda *_: False, "chose none of the 6 linear layers"),
    ],
)
def test_refusals_change_nothing(targets, said):
    made = model()
    before = [(name, p.requires_grad) for name, p in made.named_parameters()]
    with pytest.raises(ValueError, match=said):
        attach(made, "OFT", targets, block_size=4)
    with pytest.raises(ValueError, match="block_size"):
        attach(made, "OFT", "q_proj", block_size=3)
    assert [(name, p.requires_grad) for name, p in made.named_parameters()] == before


def test_other_refusals():
    made = attach(model(), "HRA", "q_proj", r=2)
    hooked = attach(model(), "HRA", "q_proj", r=2)
    hooked["blocks"][0].q_proj.linear.register_forward_hook(lambda *_: None)
    for call, error, said in (
        (lambda: attach(nn.Linear(4, 4), "OFT", "x"), TypeError, "single one"),
        (lambda: attach(model(), "LoRA", "q_proj"), ValueError, "kind must be"),
        (lambda: attach(made, "HRA", "q_proj", r=2), ValueError, "'q_proj' has an adapter already"),
        (lambda: merge(made["blocks"][0].q_proj), TypeError, "single layer"),
        (lambda: merge(hooked), ValueError, "hooks"),
    ):
        with pytest.raises(error, match=said):
            call()
    assert type(hooked["blocks"][1].q_proj) is HRA
    plain = model()
    assert detach(plain) is merge(plain) is plain


def tied():
    """A head that shares the weight of the embedding; a norm and a bias that the user froze."""
    made = nn.ModuleDict({"embedding": nn.Embedding(6, 8), "blocks": nn.Sequential(Block(), Block())})
    made["head"] = nn.Sequential(nn.Linear(8, 6))
    made["head"][0].weight = made["embedding"].weight
    made["blocks"][0].norm.requires_grad_(False)
    made["blocks"][1].q_proj.bias.requires_grad_(False)
    return made


def twins():
    """Two layers of one weight, one layer in two places; all is frozen but a norm."""
    made = nn.ModuleDict({"blocks": nn.Sequential(Block(), Block()), "head": nn.Sequential(nn.Linear(8, 8))})
    made["blocks"][1].q_proj.weight = made["blocks"][0].q_proj.weight
    made["head"].append(made["blocks"][0].v_proj)
    made.requires_grad_(False)["blocks"][0].norm.requires_grad_(True)
    return made


def by_hand(made):
    made["blocks"][0].q_proj = OFT(made["blocks"][0].q_proj, 4)
    made["blocks"][1].q_proj = HRA(made["blocks"][1].q_proj, 2)


def again(made):
    attach(made, "OFT", "blocks.0.q_proj", block_size=4)
    made["head"].append(nn.Linear(2, 2))
    attach(made, "HRA", "blocks.1.q_proj", r=2)


ATTACHED = {
    "whole": lambda made: attach(made, "OFT", ["q_proj", "head.0"], block_size=4),
    "a part": lambda made: attach(made["blocks"], "HRA", "q_proj", r=2),
    "the head": lambda made: attach(made["head"], "HRA", "0", r=2),
    "again": again,
    "a part, then the whole": lambda made: [attach(made["head"], "OFT", "0", block_size=4), again(made)],
    "by hand": by_hand,
    "by hand, then the whole": lambda made: [by_hand(made), attach(made, "HRA", "0.v_proj", r=2)],
}


def flags(made):
    return {name: p.requires_grad for name, p in made.named_parameters(remove_duplicate=False)}


@pytest.mark.parametrize("copied", [name for name in modules.COPIES if name != "frozen"])
@pytest.mark.parametrize("attached", ATTACHED)
def test_what_was_trained_is_trained_again(attached, copied):
    """Every parameter: shared, frozen by the user, in a part of the model, copied in between, added afterwards."""
    for make in (tied, twins, model):
        if (make, attached, copied) == (tied, "the head", "loaded"):
            continue  # the embedding, frozen with the head alone, no longer shares its weight
        for end in (merge, detach):
            made = make().double()
            before = flags(made)
            ATTACHED[attached](made)
            made = modules.COPIES[copied](made)
            assert any(type(module) in (OFT, HRA) for module in made.modules())
            made["more"] = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False))
            after = flags(end(made))
            assert {name: after[name] for name in before} == before
            assert all(trained != name.startswith("more.1") for name, trained in after.items() if name not in before)
            attach(made, "HRA", "v_proj", r=2)
            assert flags(end(made)) == after


@pytest.mark.parametrize("kind", ["OFT", "HRA"])
def test_a_single_adapter_gives_back_what_was_trained(kind):
    for weight, bias in ((True, True), (True, False), (False, True), (False, False)):
        linear = nn.Linear(8, 4)
        linear.weight.requires_grad_(weight)
        linear.bias.requires_grad_(bias)
        linear.tag, linear.weight.tag = "a", "b"
        adapter = {"OFT": OFT, "HRA": HRA}[kind](linear, 2)
        assert adapter.merge().weight.tag == "b"
        for made in (adapter, copy.deepcopy(adapter)):
            merged = made.merge()
            assert (merged.weight.requires_grad, merged.bias.requires_grad) == (weight, bias)
            assert merged.tag == "a" and vars(merged).keys() - vars(nn.Linear(1, 1)).keys() == {"tag"}


def taken_over(made):
    layer = nn.Linear(8, 8)
    layer.weight, layer.bias = made[1].weight, made[1].bias
    made[1] = layer


@pytest.mark.parametrize("end", [merge, detach])
def test_parameters_that_move_while_the_model_is_adapted(end):
    """To another name, another module, into and out of what computes a weight: they are trained afterwards."""
    moves = {**{name: lambda made, f=f: f(made[1], "weight") for name, f in modules.COMPUTED.items()}, "": taken_over}
    for name, move in moves.items():
        made = attach(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), "HRA", "0", r=2)
        move(made)
        assert all(flags(end(made)).values()), name


ADDED = {
    **{name: lambda module, _, add=add: add(module) for name, add in modules.HOOKS.items()},
    **modules.COMPUTED,
    **modules.ADDITIONS,
    **modules.PARAMETRISED,
}


def test_what_was_added_is_not_lost():
    """To the layer: calls have it, detach gives it back, merge refuses it by name. To the adapter: both refuse it."""
    x = torch.randn(3, 8)
    for name, add in ADDED.items():
        made = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).eval()
        add(made[1], "weight")
        layer, expected, before = made[1], made(x), flags(made)
        attach(made, "OFT", ["0", "1"], block_size=4)
        assert [key for key, trained in flags(made).items() if trained] == ["0.upper", "1.upper"]
        torch.testing.assert_close(made(x), expected)
        with pytest.raises(ValueError, match="^1: linear has .* remove "):
            merge(made)
        with pytest.raises(ValueError, match="^linear has .* remove "):
            made[1].merge()
        assert type(made[0]) is OFT, name
        detach(made)
        assert made[1] is layer and flags(made) == before
    for name, add in {**modules.HOOKS, **modules.ADDITIONS}.items():
        if name.endswith("of a weight"):
            continue  # of the parameter of an adapter, which leaves with it
        made = attach(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), "HRA", ["0", "1"], r=2)
        add(made[1]) if name in modules.HOOKS else add(made[1], "vectors")
        for end in (merge, detach):
            with pytest.raises(ValueError, match="^1 has hooks or other additions"):
                end(made)
        assert type(made[0]) is HRA and not made[0].linear.weight.requires_grad, name
        with pytest.raises(ValueError, match="^the adapter has hooks"):
            made[1].merge()


@pytest.mark.parametrize("kind", ["OFT", "HRA"])
@pytest.mark.parametrize("name", [*modules.COMPUTED, *modules.PARAMETRISED])
def test_the_weight_is_that_of_a_call(kind, name):
    """Where a forward pre-hook or a parametrization computes it, after the parameters have changed."""
    linear, x = nn.Linear(8, 4, dtype=torch.float64), torch.randn(3, 8, dtype=torch.float64)
    ADDED[name](linear, "weight")
    if name in ("pruned at random", "pruned twice", "a hook of one's own"):  # the others are of matrices alone
        ADDED[name](linear, "bias")
    adapter = {"OFT": OFT, "HRA": HRA}[kind](linear, 2).eval()
    with torch.no_grad():
        for p in linear.parameters():
            p.mul_(1.5).add_(0.1)
        weight, bias = adapter.weight, adapter.bias
        torch.testing.assert_close(x @ weight.mT + bias, adapter(x))
    assert adapter.weight.requires_grad


def test_places_that_a_call_does_not_read():
    """A compiled, distributed or sharded layer, or one that an attribute holds: named, and nothing changes."""

    class Holder(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.fc, self.layers = layer, (layer,)

    holders = {"_orig_mod": modules.WRAPPERS["compiled"], "fc": Holder}
    with modules.Process():
        for path, make in (holders | {"module": modules.WRAPPERS["distributed"]}).items():
            made = nn.Sequential(nn.Linear(8, 8), make(nn.Linear(8, 8)))
            with pytest.raises(ValueError, match=f"^targets: '1.{path}' is "):
                attach(made, "OFT", lambda *_: True, block_size=4)
            assert type(made[0]) is nn.Linear and all(flags(made).values())
        made = modules.WRAPPERS["sharded"](nn.Sequential(nn.Linear(8, 8)))
        with pytest.raises(ValueError, match="^targets: '0' is inside an FSDPModule"):
            attach(made, "HRA", "0", r=2)
        with pytest.raises(TypeError, match="^the weight of linear must be whole"):
            OFT(made[0], 4)
    for path, make in holders.items():
        adapter = OFT(nn.Linear(8, 8), 4)
        made = nn.Sequential(attach(nn.Sequential(nn.Linear(8, 8)), "OFT", "0", block_size=4), make(adapter))
        for end in (merge, detach):
            with pytest.raises(ValueError, match=f"^model: '1.{path}' is "):
                end(made)
        assert type(made[0][0]) is OFT


def test_a_compiled_model_reads_its_layers():
    """It calls the adapters, then the merged layers."""
    made = modules.WRAPPERS["compiled"](nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)))
    x = torch.randn(3, 8)
    made(x)
    attach(made, "HRA", "1", r=2)
    randomised(made)
    turned = made(x)
    turned.sum().backward()
    assert all((p.grad is not None) is p.requires_grad for p in made.parameters())
    torch.testing.assert_close(merge(made)(x), turned)


def quantised(dtype):
    linear = nn.Linear(8, 8)
    linear.weight = nn.Parameter(linear.weight.detach().to(dtype), requires_grad=False)
    return linear


def sparse():
    linear = nn.Linear(8, 8)
    linear.weight = nn.Parameter(linear.weight.detach().to_sparse())
    return linear


@pytest.mark.parametrize("kind", ["OFT", "HRA"])
def test_weights_that_no_adapter_takes(kind):
    """One message for a closed list of dtypes; layouts; whatever is refused is not left frozen."""
    dtypes = (torch.int8, torch.uint8, torch.int32, torch.bool, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2)
    wrong = {str(dtype).removeprefix("torch."): quantised(dtype) for dtype in dtypes} | {"torch.sparse_coo": sparse()}
    wrong["complex128"] = nn.Linear(8, 8, dtype=torch.complex128)
    for named, linear in wrong.items():
        made = nn.ModuleDict({"good": nn.Linear(8, 8), "bad": linear})
        before = flags(made)
        for call, where in (
            (lambda made=made: attach(made, kind, ["good", "bad"]), "bad: the weight of linear"),
            (lambda linear=linear: {"OFT": OFT, "HRA": HRA}[kind](linear, 2), "the weight of linear"),
        ):
            with pytest.raises(TypeError, match=f"^{where} must be .*{named}"):
                call()
        assert flags(made) == before and type(made["good"]) is nn.Linear
    other = type("Linear", (nn.Module,), {"__module__": "quantised"})()
    with pytest.raises(TypeError, match=r"^linear must be a torch\.nn\.Linear, not quantised\.Linear"):
        OFT(other)
    with pytest.raises(ValueError, match="^model has a parameter without a value yet, '1.weight'"):
        attach(nn.Sequential(nn.Linear(8, 8), nn.LazyLinear(2)), kind, "0")
    linear = nn.Linear(8, 8)
    linear.bias = nn.Parameter(torch.zeros(8, dtype=torch.int32), requires_grad=False)
    with pytest.raises(TypeError, match="^the bias of linear must be float16, .*, not int32"):
        OFT(linear, 4)


def test_wrong_kinds_name_their_argument():
    for call in (detach, merge, it.adapters.adapter_state_dict, lambda wrong: attach(wrong, "OFT", "0")):
        for wrong in (3, None, [nn.Linear(2, 2)], torch.zeros(2)):
            with pytest.raises(TypeError, match=r"^model must be a torch\.nn\.Module, not "):
                call(wrong)
    for wrong in (3, None, 2.5, nn.Linear(8, 8), [nn.Linear(8, 8)], [3], b"0"):
        with pytest.raises(TypeError, match="^targets must be names or a function, not "):
            attach(model(), "OFT", wrong)
