"""`nn.parameter_groups`: the transitions with a learning rate of their own."""

import pytest
import torch

import isometry.torch as it
from layers import N, build


def test_parameter_groups():
    """All parameters once: the transitions with their rate; of the GRU and the RUM there are none."""
    layers = torch.nn.ModuleList([build("ornn", 2), build("rum"), build("gru"), build("goru"), build("delta-product")])
    model = torch.nn.ModuleDict({"layers": layers, "again": layers[0], "readout": torch.nn.Linear(N, 1)})
    fast, slow = it.nn.parameter_groups(model, lr=1e-2, recurrent_lr=1e-3)
    assert (fast["lr"], slow["lr"]) == (1e-2, 1e-3)
    ids = [id(p) for group in (fast, slow) for p in group["params"]]
    assert len(ids) == len(set(ids)) and set(ids) == {id(p) for p in model.parameters()}
    expected = [p for layer in layers for p in layer.recurrent_parameters()]
    assert len(slow["params"]) == len(expected) and {id(p) for p in slow["params"]} == {id(p) for p in expected}
    for layer in (build("rum"), build("gru")):
        assert list(layer.recurrent_parameters()) == []
        (group,) = it.nn.parameter_groups(layer, lr=0.1, recurrent_lr=0.2)
        assert group["lr"] == 0.1 and len(group["params"]) == len(list(layer.parameters()))
    optimiser = torch.optim.Adam(it.nn.parameter_groups(model, lr=1e-2, recurrent_lr=1e-3))
    assert [group["lr"] for group in optimiser.param_groups] == [1e-2, 1e-3]


def test_what_is_no_module():
    for wrong in (3, None, [build("gru")], torch.zeros(2), build("gru").parameters()):
        with pytest.raises(TypeError, match=r"^module must be a torch\.nn\.Module, not "):
            it.nn.parameter_groups(wrong, lr=0.1, recurrent_lr=0.1)
