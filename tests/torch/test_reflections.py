"""Layers whose reflection vectors shrink: weight decay changes no reflection, and ends no training."""

import pytest
import torch

import isometry.torch as it
from isometry.torch.nn._reflections import scaled
from layers import B, D, T, build, draw
from tolerance import UNITARITY

REFLECTING = {
    "ornn": {},
    "ornn-few": {"reflections": 3},
    "ornn-soft": {"sign": "soft"},
    "unitary-ornn": {},
    "soft-ornn": {},
    "urnn": {},
    "goru": {"transition": "householder"},
}
each = pytest.mark.parametrize("name", REFLECTING)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def layer(name, **keywords):
    kind = name if name in ("unitary-ornn", "soft-ornn") else name.partition("-")[0]
    return build(kind, **REFLECTING[name], **keywords)


def vectors(layer):
    """The parameters that hold reflection vectors, without the last column of one that is a sign."""
    for name, p in layer.named_parameters():
        if name in ("vectors_l0", "u_l0", "v_l0"):
            square = p.dim() == 2 and p.shape[0] == p.shape[1]
            yield p[:, :-1] if square and not layer.is_complex else p


def mapped(layer, factor):
    with torch.no_grad():
        for u in vectors(layer):
            u.mul_(factor)
    return layer


@each
def test_decay_without_gradient_ends_no_training(name):
    """Sequences of one step from h_0 = 0 have no gradient there; vectors decay until they are zero."""
    own = layer(name)
    optimizer = torch.optim.AdamW(own.parameters(), lr=0.1, weight_decay=9.9)
    for _ in range(200):
        optimizer.zero_grad()
        own(draw(1, B, D))[0].abs().square().sum().backward()
        optimizer.step()
    assert all(not u.any() for u in vectors(own))
    if name not in ("soft-ornn", "ornn-soft"):  # which are orthogonal for some parameters only
        w = own.recurrent_matrix().detach()
        assert it.orthogonality_error(w) < UNITARITY
    optimizer.zero_grad()
    own(draw(T, B, D))[0].abs().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in own.parameters())
    optimizer.param_groups[0]["weight_decay"] = 0.0
    optimizer.step()
    assert all(u.any() for u in vectors(own)), "zero vectors can be trained"
    assert own(draw(T, B, D))[0].isfinite().all()


@each
@DTYPES
def test_a_power_of_two_changes_nothing(name, dtype):
    """W and the states have the same bits; the gradient is divided by the factor."""
    small = 2.0 ** (-100 if dtype is torch.float32 else -700)
    one, two = layer(name, dtype=dtype), mapped(layer(name, dtype=dtype), small)
    assert torch.equal(one.recurrent_matrix(), two.recurrent_matrix())
    x = draw(T, B, D, dtype=dtype)
    found = []
    for own in (one, two):
        output = own(x)[0]
        (1e-3 * output.abs().square().sum()).backward()
        found.append((output.detach(), own))
    assert torch.equal(found[0][0], found[1][0])
    for (key, a), b in zip(one.named_parameters(), two.parameters(), strict=True):
        factor = small if key in ("vectors_l0", "u_l0", "v_l0") else 1.0
        if factor != 1.0 and a.dim() == 2 and a.shape[0] == a.shape[1]:
            assert torch.equal(a.grad[:, -1], b.grad[:, -1])
            assert torch.equal(a.grad[:, :-1], b.grad[:, :-1] * factor)
        else:
            assert torch.equal(a.grad, b.grad * factor)


@each
def test_transforms_and_graphs(name):
    """Where values cannot be looked at, small and zero vectors serve as well."""
    own = mapped(layer(name), 0.0)
    x, given = draw(T, B, D), {key: p.detach() for key, p in own.named_parameters()}

    def loss(parameters):
        return torch.func.functional_call(own, parameters, (x,))[0].abs().square().sum()

    gradients = torch.func.grad(loss)(given)
    loss(dict(own.named_parameters())).backward()
    for key, p in own.named_parameters():
        assert torch.allclose(gradients[key], p.grad, atol=1e-9), key
    torch.compiler.reset()
    compiled = torch.compile(own, backend="aot_eager", fullgraph=True)
    assert torch.allclose(compiled(x)[0], own(x)[0], atol=1e-12)


@DTYPES
def test_scales(dtype):
    """Exact powers of two over the whole range, with denormal numbers; NaN stays."""
    info = torch.finfo(dtype)
    lengths = torch.tensor([info.tiny * info.eps, info.tiny, 1e-9, 1.0, 3.0, info.max], dtype=dtype)
    u = torch.stack((lengths, lengths / 2))
    out = scaled(u)
    assert ((out[0] >= info.eps) & (out[0] < 4)).all()
    m, _ = torch.frexp(u[0])
    assert torch.equal(torch.frexp(out[0])[0], m)
    assert torch.equal(scaled(torch.zeros(3, 1, dtype=dtype)).T, torch.tensor([[0.0, 0.0, 1.0]], dtype=dtype))
    assert scaled(torch.tensor([[float("nan")], [1.0]], dtype=dtype)).isnan().any()


def test_by_hand_zero_vectors_are_refused():
    for make in (it.Householder, it.Householder.from_trapezoid):
        with pytest.raises(ValueError, match="zero reflection vector"):
            make(torch.zeros(3, 2))
