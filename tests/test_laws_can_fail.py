"""Every law rejects the wrong operators that it exists to detect."""

import copy
from importlib import import_module

import numpy as np
import pytest

from elsewhere import Elsewhere, ElsewhereSubject
from laws import broken
from laws import broken_packages as packages
from laws.test_check_finite import functions, methods, of_method, propagates, refuses
from laws.test_copies import duplicated, duplicated_layer
from laws.test_determinant import determinant, inverse
from laws.test_devices import unseen, unseen_layer
from laws.test_expressions import converts, picks, products
from laws.test_formulas import agree
from laws.test_layouts import broadcast, overwritten, same_bits, untouched
from laws.test_operators import dense, differences, unitary, vjp
from laws.test_precision import activations_mix, arguments_mix, layer_mixes, rows_mix
from laws.test_recurrence import bptt, loop
from laws.test_structure import apart as members_apart
from laws.test_structure import everywhere
from laws.test_threads import threaded
from laws.test_training import pair, together
from layers import LAYERS, build
from registry import Case
from subjects import IN_FACE, NumpySubject, TorchSubject

REAL = Case("householder", "sign", np.float64)
SINGLE = Case("householder", "plain", np.float32)
COMPLEX = Case("householder", "phases", np.complex128)
COMPLEX_SINGLE = Case("cayley", "diagonal, phases", np.complex64)
MINUS = Case("householder", "plain", np.float64)  # three reflections
ANY = Case("dense", "square", np.float64)
BROAD = (REAL, SINGLE, COMPLEX, COMPLEX_SINGLE)
TWISTED = (COMPLEX, COMPLEX_SINGLE)
DOUBLE = (REAL, COMPLEX)

ONE, STACK = (), (3,)

# law, arguments beside the subject and the generator, batch shape, dtypes, the operators it must reject
TABLE = [
    (unitary, (), ONE, BROAD, (broken.Scaled, broken.NanInOneCell)),
    (dense, (), ONE, BROAD, (broken.Transposed, broken.Scaled, broken.NanInOneCell, broken.AdjointNotTransposed)),
    (dense, (), ONE, TWISTED, (broken.Unconjugated, broken.AdjointUnconjugated)),
    (dense, (), STACK, BROAD, (broken.BatchIndexIgnored, broken.NanInOneCell)),
    (vjp, (), ONE, BROAD, (broken.ZeroGradient, broken.ScaledGradient, broken.NanGradient, broken.NanInOneCell)),
    (vjp, (), ONE, TWISTED, (broken.UnconjugatedGradient,)),
    (vjp, (), STACK, BROAD, (broken.RowsNotSummed, broken.ZeroGradient)),
    (differences, (), ONE, DOUBLE, (broken.ZeroGradient, broken.ScaledGradient, broken.NanGradient)),
    (differences, (), ONE, (COMPLEX,), (broken.UnconjugatedGradient,)),
    (determinant, (), ONE, (*DOUBLE, COMPLEX_SINGLE), (broken.Scaled, broken.NanInOneCell)),
    (determinant, (), ONE, TWISTED, (broken.Unconjugated, broken.DeterminantWithoutSign)),
    (determinant, (), ONE, DOUBLE, (broken.ZeroGradient, broken.ScaledGradient, broken.NanGradient)),
    (determinant, (), ONE, (SINGLE, MINUS), (broken.DeterminantOfRounding,)),
    (determinant, (), ONE, (MINUS,), (broken.DeterminantWithoutSign,)),
    (determinant, (), STACK, TWISTED, (broken.BatchIndexIgnored,)),
    (inverse, (), ONE, (SINGLE, COMPLEX), (broken.AdjointNotTransposed, broken.Scaled, broken.NanInOneCell)),
    (inverse, (), ONE, TWISTED, (broken.AdjointUnconjugated, broken.UnconjugatedGradient)),
    (inverse, (), ONE, (SINGLE, COMPLEX), (broken.ZeroGradient, broken.ScaledGradient, broken.NanGradient)),
    (inverse, (), STACK, (SINGLE, *TWISTED), (broken.BatchIndexIgnored,)),
    (inverse, (), ONE, (ANY,), (broken.InverseOfAnything,)),
    (broadcast, ((4, 3),), STACK, BROAD, (broken.BatchIndexIgnored, broken.RowsNotSummed)),
    (same_bits, ("fortran",), ONE, BROAD, (broken.StridesIgnored,)),
    (untouched, (), ONE, BROAD, (broken.ArgumentModified, broken.ArgumentReturned)),
    (threaded, (), ONE, BROAD, (broken.DependsOnThreads,)),
    (loop, (), ONE, BROAD, (broken.InitialStateIgnored, broken.SequencesMixed, broken.NanInOneCell)),
    (bptt, (), ONE, BROAD, (broken.ZeroGradient, broken.ScaledGradient, broken.StateGradientZero, broken.NanGradient)),
    (bptt, (), ONE, TWISTED, (broken.UnconjugatedGradient, broken.Unconjugated)),
    (products, (), ONE, BROAD, (broken.Transposed, broken.ColumnsTakenForRows)),
    (products, (), ONE, TWISTED, (broken.RightProductWithTheAdjoint, broken.Unconjugated)),
    (products, (), STACK, BROAD, (broken.BatchIndexIgnored,)),
    (picks, (), (2, 3), BROAD, (broken.IndexedAlongTheLastAxis, broken.FirstOfAStack)),
]
NAMES = {wrong: name for name, wrong in vars(broken).items() if isinstance(wrong, type)}
REJECT = [
    pytest.param(law, extra, batch, case, wrong, id=f"{law.__name__}-{NAMES[wrong]}-{k}-{case}")
    for k, (law, extra, batch, cases, wrongs) in enumerate(TABLE)
    for case in cases
    for wrong in wrongs
]


@pytest.mark.parametrize("law,extra,batch,at,wrong", REJECT)
def test_the_law_rejects(law, extra, batch, at, wrong, seed):
    subject = wrong.draw(at, seed, 6, batch).unchecked()  # NaN reaches the law
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        law(subject, seed, *extra)


@pytest.mark.parametrize("at", BROAD, ids=str)
def test_the_law_of_buffers_rejects_an_unwritten_cell(at, seed, poison, monkeypatch):
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        overwritten(broken.CellUnwritten.draw(at, seed).unchecked(), seed, poison, monkeypatch)


@pytest.mark.parametrize("at", BROAD, ids=str)
def test_the_law_of_conversions(at, seed):
    for wrong in (packages.ConvertsNothing, packages.DropsTheImaginaryPart):
        rejects(converts, wrong.draw(at, seed, 6), seed)


# ---------------------------------------------------------------- laws of arguments with structure

STRUCTURE = [
    (everywhere, ("sparse",), ONE, (broken.NanWhereZero,)),
    (everywhere, ("repeated_rows",), ONE, (broken.GradientNanWhereCopied, broken.ZeroGradient)),
    (members_apart, (), STACK, (broken.NanSpreads, broken.BatchIndexIgnored)),
]


@pytest.mark.parametrize("law,extra,batch,wrongs", STRUCTURE, ids=lambda value: getattr(value, "__name__", ""))
def test_the_laws_of_structure(law, extra, batch, wrongs, seed):
    for wrong in wrongs:
        for at in BROAD:
            subject = wrong.draw(at, seed, 6, batch)
            with pytest.raises(AssertionError), np.errstate(all="ignore"):
                for _ in range(20):  # a class need not have what is wrong in every draw
                    law(subject, seed, *extra)


# ---------------------------------------------------------------- laws of the package, not of an operator


def rejects(law, *arguments):
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        law(*arguments)


CARELESS = [packages.never_looks, packages.always_looks, packages.overlooks_infinity, packages.names_nobody]


@pytest.mark.parametrize("name", functions(np.random.default_rng(0), np.complex128))
def test_the_law_of_check_finite(name, seed):
    """For every function: variants that never check, always check, or omit any one argument."""
    arguments, call = functions(seed, np.complex128)[name]
    inverse = name.endswith("from_matrix")
    refuses(call, arguments, inverse)
    for wrong in (*CARELESS, *map(packages.overlooks, arguments)):
        if not (inverse and wrong is packages.always_looks):  # an inverse map always checks
            rejects(refuses, wrong(call), arguments, inverse)


@pytest.mark.parametrize("at", BROAD, ids=str)
def test_the_law_of_check_finite_in_methods(at, seed):
    subject = NumpySubject.draw(at, seed, 4)
    for method, rest in methods(subject, seed).items():
        arguments = {**subject.arguments, **rest}
        for wrong in (*CARELESS, *map(packages.overlooks, arguments)):
            rejects(refuses, wrong(of_method(subject, method)), arguments)
    rejects(propagates, packages.LosesNan.draw(at, seed, 4), seed)


@pytest.mark.parametrize("law", [arguments_mix, rows_mix, layer_mixes, activations_mix])
@pytest.mark.parametrize("wrong", [packages.PromotesInSilence, packages.RefusesWithoutNames])
@pytest.mark.parametrize("at", [REAL, COMPLEX_SINGLE], ids=str)
def test_the_laws_of_precision(law, wrong, at, seed):
    rejects(law, wrong.draw(at, seed, 6), seed)


@pytest.mark.parametrize("at", BROAD, ids=str)
def test_the_law_of_formulas(at, seed):
    kernel = TorchSubject.draw(at, seed, 6)
    twin = lambda cls: cls(at, kernel.arguments, n=6)
    wrongs = (broken.Transposed, broken.Scaled, broken.NanInOneCell, broken.ZeroGradient, broken.ScaledGradient)
    for wrong in (*wrongs, *((broken.UnconjugatedGradient, broken.Unconjugated) if at in TWISTED else ())):
        rejects(agree, kernel, twin(wrong), seed)


# module -> the layers whose forward it serves
LOOKING = {"operators._declared": ["ornn", "unitary-ornn", "scornn"], "sequences._sequence": LAYERS}


@pytest.mark.parametrize("module", LOOKING)
def test_the_law_of_devices(module, seed, monkeypatch):
    """A package in which one module reads the values of all its arguments."""
    monkeypatch.setattr(import_module(f"isometry.torch.{module}"), "visible", packages.looks_everywhere)
    for name in LOOKING[module]:
        with Elsewhere() as device:
            rejects(unseen_layer, build(name, num_layers=2, bidirectional=True, trainable_h0=True), device)
    for case in (REAL, COMPLEX, Case("cayley", "signs", np.float32)):
        if module != "sequences._sequence":
            with Elsewhere() as device:
                rejects(unseen, ElsewhereSubject.draw(case, seed, 5), seed, device)


def test_the_law_of_copies(face, seed):
    subject = IN_FACE[face].draw(Case("cayley", "diagonal, phases", np.complex64), seed, 4)
    duplicated(subject, seed, copy.deepcopy)
    for wrong in (packages.itself, packages.with_changed_values, copy.copy):
        rejects(duplicated, subject, seed, wrong)
    rejects(duplicated, subject, seed, copy.deepcopy, False)


@pytest.mark.parametrize("wrong", [packages.itself, copy.copy, packages.without_buffers])
def test_the_law_of_copies_of_layers(wrong):
    layer = build("scornn", 2, bidirectional=True, trainable_h0=True, negative_ones=2)
    next(layer.parameters()).requires_grad_(False)
    rejects(duplicated_layer, layer, wrong)


@pytest.mark.parametrize("name", ["ornn", "scurnn"])
def test_the_law_of_training(name):
    layer, twin = pair(name)
    rejects(together, packages.gradients_scaled(layer), twin)
