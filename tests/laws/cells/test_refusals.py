"""A mistake in an argument is refused by every cell in both faces, in words that name the argument."""

import numpy as np
import pytest
import torch

import isometry as iso
from isometry._cells import public
from support.cells import SUBJECTS, NumpyCell, TorchCell, named


def each(subjects):
    """On the GPU the NumPy face refuses marks before it looks at them, and double precision before all else."""
    marked = [pytest.param(s, marks=pytest.mark.cpu) if isinstance(s, NumpyCell) else s for s in subjects]
    return pytest.mark.parametrize("subject", marked, ids=named)


each_plain_subject = each(s for s in SUBJECTS if s.case.plain)
OPTIONS = {
    "an unknown activation": ({"activation": "sine"}, ValueError, "activation must be one of"),
    "no bias for modReLU": ({"activation": "modrelu"}, ValueError, "activation_bias must be"),
    "a slope of one": ({"slope": 1.0}, ValueError, "slope"),
    "long lengths": ({"lengths": [4, 1]}, ValueError, "lengths must lie in"),
    "lengths of three": ({"lengths": [1, 1, 1]}, ValueError, "lengths must"),
    "a negative length": ({"lengths": [-1, 1]}, ValueError, "lengths must lie in"),
    "lengths of a matrix": ({"lengths": [[1, 1]]}, ValueError, "lengths must"),
    "one length": ({"lengths": 3}, ValueError, "lengths must"),
    "lengths that are fractions": ({"lengths": np.ones(2)}, TypeError, "lengths must be integers"),
    "lengths that are bools": ({"lengths": np.ones(2, bool)}, TypeError, "lengths must be integers"),
    "a state without marks": ({"starts": None}, ValueError, "start_state must not be given without starts"),
    "text for a flag": ({"reverse": "no"}, TypeError, "reverse must be a bool"),
    "no backend": ({"backend": "tpu"}, ValueError, "backend"),
    "no output": ({"output": "first"}, ValueError, "output"),
    "no checkpoint": ({"checkpoint": "all"}, ValueError, "checkpoint"),
    "marks that are numbers": ({"starts": np.zeros((3, 2))}, TypeError, "starts must be bool"),
    "a bias of other units": (
        {"activation": "modrelu", "activation_bias": np.zeros(9, np.float32)},
        ValueError,
        r"activation_bias must have shape \(4,\).*, not \(9,\)$",
    ),
    "a bias without modReLU": (
        {"activation_bias": np.zeros(4, np.float32)},
        ValueError,
        "activation_bias must not be given",
    ),
    "a negative slope": ({"activation": "leaky_relu", "slope": -0.1}, ValueError, "slope"),
    "marks of other steps": ({"starts": np.zeros((2, 2), bool)}, ValueError, "starts must have"),
    "marks of other sequences": ({"starts": np.zeros((3, 3), bool)}, ValueError, "starts must have"),
    "marks of units": ({"starts": np.zeros((3, 2, 1), bool)}, ValueError, "starts must have"),
    "one mark": ({"starts": True}, ValueError, "starts must have"),
    "marks of one axis": ({"starts": np.zeros(3, bool)}, ValueError, "starts must have"),
}


def refused(subject, rng, error, words, change=None, options=None):
    arrays = {name: subject.take(a) for name, a in subject.case.draw(rng, marked=True, single=True).items()}
    given = {"starts": np.zeros((3, 2), bool), **subject.case.options(), **(options or {})}
    given |= {name: subject.take(a) for name, a in given.items() if getattr(a, "dtype", None) == np.float32}
    with pytest.raises(error, match=words):
        subject.run({**arrays, **(change(arrays) if change else {})}, **given)


@pytest.mark.parametrize("mistake", OPTIONS)
@each_plain_subject
def test_options(subject, mistake, seed):
    options, *refusal = OPTIONS[mistake]
    absent = set() if subject.case.cell.activations else {"activation", "activation_bias", "slope", "backend"}
    absent |= {"checkpoint"} if isinstance(subject, NumpyCell) else set()
    if not absent & {*options}:
        refused(subject, seed, *refusal, options=options)


@pytest.mark.parametrize("name", ["oplu", "oplu_halves", "modrelu_realrep"])
@each(s for s in SUBJECTS if s.case.cell.activations and (s.case.plain or s.case.variant == "complex, by W"))
def test_activations_of_pairs(subject, name, seed):
    """Of an even number of units; modReLU of real forms takes no complex states."""
    for n, words in (3, "must have an even number"), (4, "must be real"):
        if n == 3 or (name == "modrelu_realrep" and subject.case.kind.dtype is np.complex128):
            arrays = {key: subject.take(a) for key, a in subject.case.draw(seed, n).items()}
            with pytest.raises(ValueError, match=f"(transition|state) {words}"):
                subject.run(arrays, activation=name)


@each_plain_subject
def test_settings(subject, seed):
    """Of the cell alone; the others are those of a call."""
    case = subject.case
    lead, given = case.given(
        {name: subject.take(a) for name, a in case.draw(seed, single=True).items()}, subject.package
    )
    for settings, error, words in case.cell.mistakes:
        own = {name: subject.take(a) if isinstance(a, np.ndarray) else a for name, a in settings.items()}
        with pytest.raises(error, match=words):
            getattr(subject.package, case.cell.stem)(*lead, **given | own)


@each(s for s in SUBJECTS if s.case.plain or s.case.kind.more)
def test_arrays(subject, seed):
    """Of another shape, type or precision, each alone; NumPy widens types, and looks for NaN."""
    cell, narrow = subject.case.cell, isinstance(subject, TorchCell)
    of_two = {cell.first[1]: "|".join(cell.first), "start_state": "start_state"} if len(cell.first) > 1 else {}
    for name in {**cell.arrays, **subject.case.kind.more, "start_state": ""}:
        called = of_two.get(name, name)
        change = lambda wrong, name=name: lambda arrays: {name: wrong(arrays[name])}
        for wrong in (lambda a: a[..., :-1], lambda a: a[None, None]):
            if name != "x":
                refused(subject, seed, ValueError, f"({called}) must have", change(wrong))
        if narrow:
            refused(subject, seed, TypeError, called, change(torch.Tensor.double))
        else:
            refused(subject, seed, ValueError, called, change(lambda a: a + np.float32(np.nan)))
        if cell.stem != "recurrence":
            refused(subject, seed, TypeError, f"({called}) must be real", change(lambda a: a + 0j))
            if narrow and name not in of_two:
                refused(subject, seed, TypeError, called, change(lambda _: 1.0))
    for wrong in (lambda a: a[:0], lambda a: a[:, :0], lambda a: a[0]):
        refused(subject, seed, ValueError, "x must have shape", change_of_x(wrong))
    if narrow:
        refused(subject, seed, TypeError, "x must be", change_of_x(torch.Tensor.long))


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.case.plain and len(s.case.cell.first) > 1], ids=named)
def test_a_state_of_two_parts_is_a_pair(subject, seed):
    case = subject.case
    _, given = case.given({name: subject.take(a) for name, a in case.draw(seed).items()}, subject.package)
    one = given[case.cell.first[0]]
    for wrong in (one, (one,)):
        with pytest.raises(TypeError, match="start_state"):
            getattr(subject.package, case.cell.stem)(**given, starts=np.zeros((3, 2), bool), start_state=wrong)


@each_plain_subject
def test_a_cell_without_kernels_on_the_gpu(subject, seed):
    """The CPU computes it whatever `use_backend` says; the GPU, asked for by name, is refused."""
    if not public(subject.case.cell.stem).cpu_only:
        return
    arrays = {name: subject.take(a) for name, a in subject.case.draw(seed).items()}
    expected = subject.case.call(subject.package, arrays)
    with iso.use_backend("gpu"):
        found = subject.case.call(subject.package, arrays, starts=np.zeros((3, 2), bool))
    assert (found == expected).all()
    refused(subject, seed, NotImplementedError, "no kernels on the GPU", options={"backend": "gpu"})


@each(s for s in SUBJECTS if isinstance(s, NumpyCell) and s.case.plain)
def test_states_of_other_arguments(subject, seed):
    """Of other numbers, and of other marks."""
    case = subject.case
    arrays, starts = case.draw(seed), np.zeros((3, 2), bool)
    starts[2] = True
    lead, given = case.given(arrays, subject.package)
    forward, pull = (getattr(subject.package, case.cell.stem + end) for end in ("", "_vjp"))
    moved = forward(*lead, **given | {"x": given["x"] + 1})
    for wrong in (moved, forward(*lead, **given, starts=starts)):
        with pytest.raises(ValueError, match="states must be what"):
            pull(*lead, **given, states=wrong, ct=wrong)


def change_of_x(wrong):
    return lambda arrays: {"x": wrong(arrays["x"])}
