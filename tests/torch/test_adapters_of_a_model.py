"""Adapters for a whole model: what is replaced, trained, saved, merged and restored; refusals change nothing."""

import copy

import pytest
import torch
from torch import nn

import isometry.torch as it
from isometry.torch.adapters import HRA, OFT

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
    assert f"attached {kind} to 3 layers: {count:,} of {sum(p.numel() for p in made.parameters()):,} " in said
    assert torch.allclose(run(made, x), start, atol=1e-6)
    adapter = {"OFT": OFT, "HRA": HRA}[kind]
    assert type(made["blocks"][1].q_proj) is adapter and made["head"][0] is made["head"][2]
    randomised(made)
    optimiser = torch.optim.SGD([p for p in made.parameters() if p.requires_grad], lr=0.1)
    run(made, x).square().sum().backward()
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
    with pytest.raises(TypeError, match="single one"):
        attach(nn.Linear(4, 4), "OFT", "x")
    with pytest.raises(ValueError, match="kind must be"):
        attach(model(), "LoRA", "q_proj")
    with pytest.raises(TypeError, match="targets must be"):
        attach(model(), "OFT", [3])
    made = attach(model(), "HRA", "q_proj", r=2)
    with pytest.raises(ValueError, match="'q_proj' has an adapter already"):
        attach(made, "HRA", "q_proj", r=2)
    with pytest.raises(TypeError, match="single layer"):
        merge(made["blocks"][0].q_proj)
    made["blocks"][0].q_proj.linear.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="hooks"):
        merge(made)
    assert type(made["blocks"][1].q_proj) is HRA
    plain = model()
    assert detach(plain) is merge(plain) is plain


def test_layers_of_torch_read_the_weight():
    """A TransformerEncoderLayer has fast paths of its own."""
    layer, x = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(), torch.randn(2, 5, 16)
    before = layer(x)
    attach(layer, "OFT", ["linear1", "linear2", "out_proj"], block_size=4)
    assert torch.allclose(layer(x), before, atol=1e-5)
    with torch.no_grad():
        assert torch.allclose(layer(x), before, atol=1e-5)
