"""Programs written for torch's layers: the order of arguments, names in messages, and the exporters of torch."""

import warnings

import pytest
import torch

import isometry.torch as it
from layers import NAMES, B, D, N, T, draw

PLAIN = [name for name in NAMES if name in ("RNN", "GRU", "LSTM")]
each = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("name", PLAIN)
def test_arguments_in_torchs_order(name):
    """As many as torch takes, except proj_size, with other values than the defaults."""
    order = ["num_layers", *(["nonlinearity"] if name == "RNN" else []), "bias", "batch_first", "dropout"]
    values = {"num_layers": 2, "nonlinearity": "relu", "bias": False, "batch_first": True, "dropout": 0.5}
    given = [values[key] for key in order] + [True]
    theirs, ours = getattr(torch.nn, name)(D, N, *given), getattr(it.nn, name)(D, N, *given)
    for key in (*order, "bidirectional"):
        assert getattr(ours, key) == getattr(theirs, key) == {**values, "bidirectional": True}[key]
    if name != "GRU":  # whose weights have another shape
        ours.load_state_dict(theirs.state_dict())
        torch.testing.assert_close(ours.eval()(draw(B, T, D).float())[0], theirs.eval()(draw(B, T, D).float())[0])


@each
def test_constructors_name_the_class_that_was_written(name):
    kind = getattr(it.nn, name)
    mine = type("Mine", (kind,), {})
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) got an unexpected keyword argument 'units'"):
        kind(D, N, units=3)
    with pytest.raises(
        TypeError, match=rf"^{name}\.__init__\(\) missing 1 required positional argument: 'hidden_size'"
    ):
        kind(D)
    with pytest.raises(TypeError, match=r"^Mine\.__init__\(\) missing 2 required"):
        mine()
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) takes from 3 to \d positional"):
        kind(*range(1, 15))


@each
def test_a_warning_of_the_constructor_names_the_line(name):
    keywords = {"heads": 2} if name == "DeltaProduct" else {}
    for kind in (getattr(it.nn, name), type("Mine", (getattr(it.nn, name),), {})):
        with pytest.warns(UserWarning, match="dropout option") as found:
            kind(D, 8, dropout=0.5, **keywords)
        assert found[0].filename == __file__


@each
def test_script_names_what_to_do(name):
    model = torch.nn.Sequential(torch.nn.Linear(D, D), getattr(it.nn, name)(D, 8))
    for module in (model, model[1]):
        with (
            warnings.catch_warnings(),
            pytest.raises(
                NotImplementedError, match=rf"^{name} cannot be compiled by torch\.jit\.script: .*onnx\.export"
            ),
        ):
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.jit.script(module)


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", ["GRU", "ScoRNN"])
def test_onnx_names_what_to_do(name):
    with pytest.raises(Exception, match=r"call isometry\.integrations\.onnx\.export"):
        torch.onnx.export(getattr(it.nn, name)(D, N), (draw(T, B, D).float(),), dynamo=True, verbose=False)


def test_marks_of_a_wrong_shape_name_the_right_one():
    for first in (False, True):
        layer, x = it.nn.GRU(D, N, batch_first=first).double(), draw(B, T, D) if first else draw(T, B, D)
        right = rf"\({B}, {T}\)" if first else rf"\({T}, {B}\)"
        with pytest.raises(ValueError, match=rf"^starts must .*, {right}, not \({T + 1}, {B}\)"):
            layer(x, starts=torch.zeros(T + 1, B, dtype=torch.bool))
    with pytest.raises(ValueError, match=rf"^starts must .*, \({T}, 1\), not \({B}, {T}\)"):
        it.nn.GRU(D, N).double()(draw(T, D), starts=torch.zeros(B, T, dtype=torch.bool))
