"""A mistake in an argument is refused by every cell, in words that name the argument."""

import numpy as np
import pytest
import torch

from faces import tensor
from registry.cells import CASES, each_plain_cell
from support.cells import TorchCell

OPTIONS = {
    "an unknown activation": ({"activation": "sine"}, ValueError, "activation must be one of"),
    "no bias for modReLU": ({"activation": "modrelu"}, ValueError, "activation_bias must be"),
    "a slope of one": ({"slope": 1.0}, ValueError, "slope"),
    "long lengths": ({"lengths": [4, 1]}, ValueError, "lengths must lie in"),
    "lengths of three": ({"lengths": [1, 1, 1]}, ValueError, "lengths must"),
    "a negative length": ({"lengths": [-1, 1]}, ValueError, "lengths must lie in"),
    "a state without marks": ({"starts": None}, ValueError, "start_state must not be given without starts"),
    "text for a flag": ({"reverse": "no"}, TypeError, "reverse must be a bool"),
    "no backend": ({"backend": "tpu"}, ValueError, "backend"),
    "no output": ({"output": "first"}, ValueError, "output"),
    "no checkpoint": ({"checkpoint": "all"}, ValueError, "checkpoint"),
    "marks that are numbers": ({"starts": np.zeros((3, 2))}, TypeError, "starts must be bool"),
    "a bias of other units": (
        {"activation": "modrelu", "activation_bias": torch.zeros(9)},
        ValueError,
        r"activation_bias must have shape \(4,\).*, not \(9,\)$",
    ),
    "marks of other steps": ({"starts": np.zeros((2, 2), bool)}, ValueError, "starts must have"),
}


def refused(subject, rng, error, words, change=None, options=None):
    arrays = {name: tensor(a) for name, a in subject.case.draw(rng, marked=True, single=True).items()}
    given = {"starts": np.zeros((3, 2), bool), **subject.case.options(), **(options or {})}
    with pytest.raises(error, match=words):
        subject.run({**arrays, **(change(arrays) if change else {})}, **given)


@pytest.mark.parametrize("mistake", OPTIONS)
@each_plain_cell
def test_options(cell, mistake, seed):
    options, *refusal = OPTIONS[mistake]
    if cell.cell.activations or not {"activation", "slope", "backend"} & {*options}:
        refused(TorchCell(cell), seed, *refusal, options=options)


@pytest.mark.parametrize("cell", [c for c in CASES if c.plain or c.kind.more], ids=str)
def test_arrays(cell, seed):
    """Of another shape, type or precision, each alone."""
    of_two = {"c0": "h0|c0", "start_state": "start_state"} if len(cell.cell.first) > 1 else {}
    for name in {**cell.cell.arrays, **cell.kind.more, "start_state": ""}:
        called = of_two.get(name, name)
        change = lambda wrong, name=name: lambda arrays: {name: wrong(arrays[name])}
        for wrong in (lambda a: a[..., :-1], lambda a: a[None, None]):
            if name != "x":
                refused(TorchCell(cell), seed, ValueError, f"({called}) must have", change(wrong))
        refused(TorchCell(cell), seed, TypeError, called, change(torch.Tensor.double))
        if cell.cell.stem != "recurrence":
            refused(TorchCell(cell), seed, TypeError, f"({called}) must be real", change(lambda a: a + 0j))
            if name not in of_two:
                refused(TorchCell(cell), seed, TypeError, called, change(lambda _: 1.0))
    for wrong in (lambda a: a[:0], lambda a: a[:, :0], lambda a: a[0]):
        refused(TorchCell(cell), seed, ValueError, "x must have shape", change_of_x(wrong))
    refused(TorchCell(cell), seed, TypeError, "x must be", change_of_x(torch.Tensor.long))


def change_of_x(wrong):
    return lambda arrays: {"x": wrong(arrays["x"])}
