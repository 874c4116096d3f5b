"""Determinants under autograd twice, vmap and torch.compile."""

import numpy as np
import torch

import isometry.torch as it
from faces import tensor
from registry import real_of
from subjects import TorchSubject
from tolerance import TIGHT


def drawn(case, seed, batch):
    """The determinant as a function of the trained arguments, and these."""
    subject = TorchSubject.draw(case, seed, 3, batch)
    if "sign" in subject.arguments:  # differences stay within -1..1
        subject = subject.with_arguments(sign=0.9 * subject.arguments["sign"])
    leaves = {k: tensor(a).requires_grad_(k not in case.object.fixed) for k, a in subject.arguments.items()}
    names = [name for name, t in leaves.items() if t.requires_grad]
    options = subject.options
    made = lambda *given: case.object.build(it, {**leaves, **dict(zip(names, given, strict=True)), **options})
    call = lambda *given: made(*given).det()
    return call, [leaves[name] for name in names]


def test_derivatives(case, seed):
    call, given = drawn(case, seed, (2,))
    assert torch.autograd.gradcheck(call, given)
    assert torch.autograd.gradgradcheck(call, given)


test_derivatives.select = lambda case: case.square and real_of(case.dtype) is np.float64


def test_compiled_and_mapped(case, seed):
    call, given = drawn(case, seed, ())
    found = call(*given)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(call, fullgraph=True, backend="eager")(*given), found, rtol=0, atol=TIGHT)
    mapped = torch.func.vmap(call)(*[torch.stack((a, a)) for a in given])
    torch.testing.assert_close(mapped, torch.stack((found, found)), rtol=0, atol=TIGHT)


test_compiled_and_mapped.select = lambda case: case.square and case.first and real_of(case.dtype) is np.float64
