"""Every function of the registry: what it refuses, the same bits from any layout and in both packages, derivatives of
every order, transforms and graphs of torch."""

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_flatten

from derivatives import TRANSFORMS, every_member, every_order, same_when_compiled, transform_agrees
from faces import LAYOUTS, TORCH_LAYOUTS, NumpyFace, TorchFace
from registry import DTYPES
from registry.functions import FUNCTIONS, Draw
from tolerance import close, forward, identical

pytestmark = pytest.mark.cpu
NUMPY, TORCH = NumpyFace(), TorchFace()
FIELDS = pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])
SMOOTH = [name for name, entry in FUNCTIONS.items() if entry.smooth]
ACTIVATE = ("activate", "activate, modReLU")
each_smooth = pytest.mark.parametrize("name", SMOOTH)
#: The numbers alone differ by rounding between the packages.
ROUNDED = ("cayley_step", "linalg.procrustes, with its scale", "linalg.procrustes, rotations")


def results(face, name, draw):
    """The arrays that a function gives, and its arguments."""
    entry = FUNCTIONS[name]
    found = entry.of(face, name)(**entry.arguments(face, draw))
    found = found.matrix() if hasattr(found, "matrix") else found
    return [face.home(a) for a in tree_flatten(found)[0] if isinstance(a, (np.ndarray, np.generic, torch.Tensor))]


@pytest.mark.parametrize("package", [NUMPY, TORCH], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", [name for name, entry in FUNCTIONS.items() if entry.refused])
def test_what_is_refused(name, package, seed):
    entry = FUNCTIONS[name]
    for changes, error, message in entry.refused if package.name in entry.faces else ():
        given = {**entry.arguments(package, Draw(seed)), **entry.given(package, changes)}
        with pytest.raises(error, match=message):
            entry.of(package, name)(**given)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", [*SMOOTH, *ACTIVATE, "linalg.cayley"])
def test_both_packages_have_the_same_bits(name, dtype):
    draws = [Draw(np.random.default_rng(0), dtype) for _ in range(2)]
    if FUNCTIONS[name].real and draws[0].complex:
        return
    for one, two in zip(*map(results, (NUMPY, TORCH), (name, name), draws), strict=True):
        if name in ROUNDED:
            close(two, one, forward(dtype, 4))
        else:
            identical(two, one)


GRADIENTS = [name for name in FUNCTIONS if "_vjp" in name and name.replace("_vjp", "") in {*SMOOTH, *ACTIVATE}]
CTS = ("ct", "tau_ct", "o_bar", "state_bar")


@FIELDS
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_numpy_are_those_of_torch(name, dtype, seed):
    entry, forward = FUNCTIONS[name], name.replace("_vjp", "")
    arrays = entry.arrays(Draw(seed, np.float64 if entry.real else dtype))
    found = entry.of(NUMPY, name)(**{**entry.options, **arrays})
    leaves = {k: TORCH.take(a).requires_grad_() for k, a in arrays.items() if k not in CTS}
    named = {FUNCTIONS[forward].renamed.get(k, k): t for k, t in leaves.items()}
    out = entry.of(TORCH, forward)(**{**entry.options, **named})
    cts = [TORCH.take(a) for k, a in arrays.items() if k in CTS]
    expected = torch.autograd.grad(out, list(leaves.values()), cts)
    found = [a for a in tree_flatten(found)[0] if a is not None]
    for g, e in zip(found, expected, strict=True):
        identical(g, TORCH.home(e))


class Placed:
    """A face whose arrays have a memory layout."""

    def __init__(self, face, layout):
        self.layout, self.of = layout, face

    def __getattr__(self, name):
        return getattr(self.of, name)

    def take(self, a):
        return self.of.take(a, self.layout)


@FIELDS
@pytest.mark.parametrize(("package", "layouts"), [(NUMPY, LAYOUTS), (TORCH, TORCH_LAYOUTS)], ids=["numpy", "torch"])
def test_the_layout_changes_no_bit(package, layouts, dtype):
    for name, entry in FUNCTIONS.items():
        if package.name not in entry.faces or (entry.real and dtype is np.complex128):
            continue
        draw = lambda: Draw(np.random.default_rng(0), dtype)
        for layout in layouts if entry.arrays(draw()) else ():
            for found, expected in zip(
                results(Placed(package, layout), name, draw()), results(package, name, draw()), strict=True
            ):
                identical(found, expected, f"{name}, {layout}")


def function(name, rng, dtype=np.float64):
    """The results in one tensor as a function of tensors, and the point."""
    entry = FUNCTIONS[name]
    given = entry.arguments(TORCH, Draw(rng, np.float64 if entry.real else dtype))
    at = {k: given.pop(k) for k, a in list(given.items()) if isinstance(a, torch.Tensor)}

    def call(*tensors):
        found = entry.of(TORCH, name)(**dict(zip(at, tensors, strict=True)), **given)
        return torch.cat([t.flatten() for t in found]) if isinstance(found, tuple) else found

    return call, list(at.values())


@FIELDS
@each_smooth
def test_first_and_second_derivatives(name, dtype, seed):
    """Reverse, forward, batched, reverse over reverse and forward over reverse, against differences."""
    every_order(*function(name, seed, dtype))


@each_smooth
def test_vmap_equals_a_loop(name, seed):
    every_member(*function(name, seed))


@pytest.mark.parametrize("transform", TRANSFORMS)
@each_smooth
def test_transforms_of_functions(name, transform, seed):
    transform_agrees(transform, *function(name, seed), 0)


@each_smooth
def test_compiled(name, seed):
    same_when_compiled(*function(name, seed))
