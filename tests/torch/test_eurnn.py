"""EURNN: its parameters and fields, and what capacity and layout decide."""

import pytest

import isometry.torch as it


def parameters(**keywords):
    layer = it.nn.EURNN(3, 8, **keywords)
    return {name.removesuffix("_l0"): tuple(p.shape) for name, p in layer.named_parameters()}


def test_parameters_are_those_of_the_mesh():
    """2 P + n real numbers if complex, P if real (section 25)."""
    shared = {"weight_ih": (8, 3, 2), "activation_bias": (8,)}
    assert parameters(capacity=3) == {**shared, "theta": (11,), "phi": (11,), "phases": (8,)}
    assert parameters(layout="fft") == {**shared, "theta": (12,), "phi": (12,), "phases": (8,)}
    assert parameters(complex=False) == {**shared, "weight_ih": (8, 3), "theta": (7,)}
    recurrent = it.nn.EURNN(3, 8, num_layers=2, complex=False).recurrent_parameters()
    assert [tuple(p.shape) for p in recurrent] == [(7,), (7,)]


def test_what_is_refused():
    for keywords, said in (
        ({"capacity": 0}, "^capacity must be at least 1"),
        ({"layout": "cube"}, "^layout must be 'brick' or 'fft'"),
        ({"layout": "fft", "capacity": 5}, r"^capacity must be log2\(hidden_size\) = 3 with layout 'fft', not 5"),
    ):
        with pytest.raises(ValueError, match=said):
            it.nn.EURNN(3, 8, **keywords)
    assert it.nn.EURNN(3, 8, layout="fft", capacity=3).capacity == it.nn.EURNN(3, 8, layout="fft").capacity == 3
    with pytest.raises(ValueError, match="^hidden_size must be a power of two"):
        it.nn.EURNN(3, 6, layout="fft")
    with pytest.raises(TypeError, match="^complex must be a bool"):
        it.nn.EURNN(3, 6, complex="no")
