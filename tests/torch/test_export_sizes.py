"""`torch.export` with free sizes: no size of the arguments becomes a condition, equal to others or not."""

import numpy as np
import pytest
import torch
from torch.export import Dim, export

import isometry.torch as it
from layers import KINDS, B, D, T
from registry import CASES

N = 6
FREE = {0: Dim("T", min=2), 1: Dim("B", min=2)}
STACK = 4
#: One dtype of each field: shapes are checked alike for all.
OPERATORS = [case for case in CASES if np.dtype(case.dtype) in (np.float32, np.complex64)]

#: A mask reads states, which are no outputs there.
REFUSED = [("delta-product", "mask")]


class Called(torch.nn.Module):
    """A layer with marks, a mask or neither."""

    def __init__(self, layer, argument):
        super().__init__()
        self.layer, self.argument = layer, argument

    def forward(self, x, beside):
        return self.layer(x, **({} if self.argument is None else {self.argument: beside}))


@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, argument) for name in KINDS for argument in (None, "starts", "mask") if (name, argument) not in REFUSED],
)
def test_layers(name, argument):
    module = Called(KINDS[name](D, N, trainable_h0=True), argument)
    drawn = lambda t, b: (torch.randn(t, b, D), torch.rand(t, b) < 0.6)
    program = export(module, drawn(T, B), dynamic_shapes=(FREE, FREE)).module()
    for sizes in ((7, 2), (D, N), (2, D)):
        at = drawn(*sizes)
        for found, expected in zip(program(*at), module(*at), strict=True):
            torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("subject", [case for case in OPERATORS if case.first], ids=str)
def test_stacks_of_operators(subject, seed):
    """As many rows as members, as sizes of a member, and others."""
    n = subject.size(N)
    op = subject.build(it, {k: torch.from_numpy(a) for k, a in subject.draw(seed, n, (STACK,)).items()}, n)
    dtype, width = op.dtype, op.shape[-1]
    module = it.nn.OperatorModule(op)
    program = export(module, (torch.randn(5, STACK, width, dtype=dtype),), dynamic_shapes=({0: FREE[0]},)).module()
    for rows in (STACK, width, 7):
        x = torch.randn(rows, STACK, width, dtype=dtype)
        torch.testing.assert_close(program(x), op(x))


@pytest.mark.parametrize("subject", OPERATORS, ids=str)
def test_operators_of_arguments(subject, seed):
    """The stack is free, too: as many members as sizes of a member."""
    n = subject.size(N)
    names = list(subject.draw(seed, n, (STACK,)))

    class Made(torch.nn.Module):
        def forward(self, x, *given):
            return subject.build(it, dict(zip(names, given, strict=True)), n)(x)

    def drawn(count):
        arguments = [torch.from_numpy(a) for a in subject.draw(seed, n, (count,)).values()]
        op = subject.build(it, dict(zip(names, arguments, strict=True)), n)
        return torch.randn(count, op.shape[-1], dtype=op.dtype), *arguments

    free = {0: Dim("members", min=2)}
    program = export(Made(), drawn(5), dynamic_shapes=(free, (free,) * len(names))).module()
    for count in (N, n, 2, len(names) + 2):
        at = drawn(count)
        torch.testing.assert_close(program(*at), Made()(*at))
