"""States are those of the definition, in single and double precision; gradients in single those in double."""

import numpy as np
import pytest
import torch

import isometry as iso
from reference import normal
from registry.cells import CELLS, each_cell
from support import structure
from support.cells import SUBJECTS, NumpyCell, TorchCell, each_subject, named
from tolerance import close, sequence, sequence_gradient

SIZES = {"n": 6, "steps": 5, "batch": 3, "d": 2}
OPTIONS = {"plain": {}, "lengths": {"lengths": [2, 5, 3]}, "reverse": {"lengths": [5, 3, 4], "reverse": True}}


def textbook(subject, rng, single, lengths=None, reverse=False, sizes=None, every=True):
    """With every activation."""
    case, sizes = subject.case, sizes or SIZES
    options = {} if lengths is None else {"lengths": lengths, "reverse": reverse}
    for name in case.activations() if every else ["tanh"]:
        arrays = case.draw(rng, **sizes, activation=name, single=single)
        found = subject.states(arrays, **options, **case.options(name))
        assert found.dtype == case.dtype(single)
        expected = case.reference(arrays, **options, **case.options(name))
        close(found, expected, case.kind.loss * sequence(found.dtype, sizes["n"], sizes["steps"]), f"{name}: states")


def real_arrays(subject, rng):
    """Real arrays of a complex transition have real gradients."""
    case = subject.case
    arrays = case.draw(rng, **SIZES, activation="modrelu")
    arrays |= {name: a.real.copy() for name, a in arrays.items() if name not in case.own}
    wide = {name: a if name == "activation_bias" else a.astype(complex) for name, a in arrays.items()}
    found, expected = (subject.states(a, **case.options("modrelu")) for a in (arrays, wide))
    close(found, expected, sequence(np.float64, 6, 5), "states")
    ct = normal(rng, *found.shape, dtype=found.dtype)
    bars, whole = (subject.vjp(a, ct, **case.options("modrelu")) for a in (arrays, wide))
    for name, g in bars.items():
        assert g.dtype == arrays[name].dtype
        close(g, whole[name] if name in case.own else whole[name].real, sequence_gradient(np.float64, 6, 5), name)


def single(subject, rng, lengths=None, reverse=False):
    """Gradients in single precision are those in double."""
    case, options = subject.case, {} if lengths is None else {"lengths": lengths, "reverse": reverse}
    for name in case.activations():
        arrays = case.draw(rng, **SIZES, activation=name, single=True)
        given = {**options, **case.options(name)}
        ct = normal(rng, *subject.states(arrays, **given).shape, dtype=case.dtype(True))
        wide = {key: a.astype(np.promote_types(a.dtype, np.float64)) for key, a in arrays.items()}
        found = subject.vjp(arrays, ct, **given)
        with iso.use_backend("cpu"):
            expected = TorchCell(case).vjp(wide, ct.astype(case.dtype()), **given)
        bound = 4 * case.kind.loss * sequence_gradient(np.float32, 6, 5)
        for key, g in expected.items():
            assert found[key].dtype == arrays[key].dtype
            close(found[key], g, bound, f"{name}: gradient of {key}", 0.03 * float(np.linalg.norm(ct)))


def finite(subject, rng, kind):
    """Arguments with structure: the states of the definition where it has some, and finite gradients."""
    case = subject.case
    arrays = case.draw(rng, **SIZES)
    drawn = {name: structure.draw(kind, rng, a.shape, a.dtype) for name, a in arrays.items()}
    drawn |= {name: arrays[name] for name in (*case.own, "r0") if name in arrays}  # of operators: laws of their own
    with np.errstate(all="ignore"):
        expected = case.reference(drawn, **case.options())
    found = subject.states(drawn, **case.options())
    assert np.isfinite(found).all()
    assert all(np.isfinite(g).all() for g in subject.vjp(drawn, np.ones_like(found), **case.options()).values())
    if case.cell.stem != "rum":  # whose rotation is no continuous function of e and tau where they are opposite or zero
        close(found, expected, case.kind.loss * sequence(np.float64, 6, 5) * 4, kind)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["single", "double"])
@each_subject
def test_states_are_those_of_the_definition(subject, dtype, option, seed):
    textbook(subject, seed, dtype is np.float32, **OPTIONS[option])


@pytest.mark.parametrize("sizes", [(2, 1, 1, 1), (2, 1, 7, 1), (16, 9, 1, 3), (34, 3, 17, 2), (66, 4, 5, 20)], ids=str)
@each_subject
def test_sizes(subject, sizes, seed):
    """Of one step and sequence, and across the widths of vectors."""
    textbook(subject, seed, True, sizes=dict(zip(("n", "steps", "batch", "d"), sizes, strict=True)), every=False)


#: n, steps, batch, d: of one step; and on both sides of the most rows and the fewest features whose product is taken
#: ahead of its steps, in blocks that divide nothing.
AHEAD = [(34, 1, 1, 40), (34, 37, 1, 32), (20, 37, 1, 31), (20, 9, 8, 33), (20, 5, 9, 33)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", AHEAD, ids=str)
@each_subject
def test_few_rows_of_many_features(subject, sizes, reverse, seed):
    """Of equal lengths, and of others."""
    named_sizes = dict(zip(("n", "steps", "batch", "d"), sizes, strict=True))
    lengths = [sizes[1] - (5 * i) % sizes[1] for i in range(sizes[2])]
    for given in ([sizes[1]] * sizes[2], lengths):
        textbook(subject, seed, True, given, reverse, named_sizes, every=False)


@pytest.mark.parametrize("option", OPTIONS)
@each_subject
def test_gradients_in_single_precision(subject, option, seed):
    single(subject, seed, **OPTIONS[option])


@pytest.mark.cpu
@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.case.variant == "complex, by W"], ids=named)
def test_real_arrays_of_a_complex_transition(subject, seed):
    real_arrays(subject, seed)


@pytest.mark.cpu
@each_cell
def test_arguments_with_structure(cell, seed):
    for kind in structure.CLASSES:
        if kind not in structure.SCALED:
            finite(TorchCell(cell), seed, kind)


@pytest.mark.cpu
@each_cell
def test_autocast_widens_half_precision(cell, seed):
    """Also for the operator of a transition; no product is narrowed on the way."""
    subject = TorchCell(cell)
    arrays = cell.draw(seed, **SIZES, single=True)
    f, at = subject.function(arrays, **cell.options())
    half = [t if t.is_complex() or name in cell.own else t.bfloat16() for name, t in zip(arrays, at, strict=True)]
    with torch.autocast("cpu", torch.bfloat16):
        found = f(*half)
    assert torch.equal(found, f(*(t if t.is_complex() else t.float() for t in half)))


def test_every_face_is_among_them():
    assert {s.case.cell.stem for s in SUBJECTS if isinstance(s, NumpyCell)} == set(CELLS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["single", "double"])
@each_subject
def test_of_nothing(subject, dtype, seed):
    """Without features all is as with one that is zero; no step and no sequence are refused, as by every cell."""
    case, options = subject.case, subject.case.options()
    arrays, none = (case.draw(seed, **{**SIZES, "d": d}, single=dtype is np.float32) for d in (1, 0))
    arrays["x"] = np.zeros_like(arrays["x"])
    none |= {name: a for name, a in arrays.items() if a.shape == none[name].shape}
    expected, found = (subject.states(a, **options) for a in (arrays, none))
    bound = case.kind.loss * sequence(found.dtype, SIZES["n"], SIZES["steps"])
    close(found, expected, bound, "states")
    ct = normal(seed, *found.shape, dtype=found.dtype)
    bars, expected = (subject.vjp(a, ct, **options) for a in (none, arrays))
    for name, g in bars.items():
        assert g.shape == none[name].shape
        if g.size:
            close(g, expected[name], 4 * bound, name, float(np.linalg.norm(ct)))
    for size in ("steps", "batch"):
        with pytest.raises(ValueError, match="T >= 1 and B >= 1"):
            subject.states(case.draw(seed, **{**SIZES, size: 0}), **options)
