"""Every law accepts a right operator made of the reference, and rejects the wrong ones it exists to catch."""

import numpy as np
import pytest

from laws import broken
from laws.test_adjoint import adjoint
from laws.test_batch import broadcast, stacked
from laws.test_buffers import overwritten
from laws.test_dense import dense
from laws.test_layouts import same_bits, untouched
from laws.test_recurrence import bptt, cut, loop
from laws.test_threads import threaded
from laws.test_unitary import unitary
from laws.test_vjp import differences, vjp
from registry import Case

REAL = Case("householder", "sign", np.float64)
SINGLE = Case("householder", "plain", np.float32)
COMPLEX = Case("householder", "phases", np.complex128)
COMPLEX_SINGLE = Case("cayley", "diagonal, phases", np.complex64)
BROAD = (REAL, SINGLE, COMPLEX, COMPLEX_SINGLE)
TWISTED = (COMPLEX, COMPLEX_SINGLE)
DOUBLE = (REAL, COMPLEX)

ONE, STACK = (), (3,)

# law, arguments beside the subject and the generator, batch shape, dtypes, the operators it must reject
TABLE = [
    (unitary, (), ONE, BROAD, (broken.Scaled, broken.NanInOneCell)),
    (unitary, (), STACK, BROAD, (broken.Scaled, broken.NanInOneCell)),
    (adjoint, (), ONE, BROAD, (broken.NanInOneCell, broken.AdjointNotTransposed)),
    (adjoint, (), ONE, TWISTED, (broken.AdjointUnconjugated,)),
    (dense, (), ONE, BROAD, (broken.Transposed, broken.Scaled, broken.NanInOneCell)),
    (dense, (), ONE, TWISTED, (broken.Unconjugated, broken.AdjointUnconjugated)),
    (dense, (), STACK, BROAD, (broken.BatchIndexIgnored, broken.Transposed)),
    (vjp, (), ONE, BROAD, (broken.ZeroGradient, broken.ScaledGradient, broken.NanGradient, broken.NanInOneCell)),
    (vjp, (), ONE, TWISTED, (broken.UnconjugatedGradient,)),
    (vjp, (), STACK, BROAD, (broken.RowsNotSummed, broken.ZeroGradient)),
    (differences, (), ONE, DOUBLE, (broken.ZeroGradient, broken.ScaledGradient, broken.NanGradient)),
    (differences, (), ONE, (COMPLEX,), (broken.UnconjugatedGradient,)),
    (stacked, (), STACK, BROAD, (broken.BatchIndexIgnored, broken.NanInOneCell)),
    (broadcast, ((4, 3),), STACK, BROAD, (broken.BatchIndexIgnored, broken.RowsNotSummed)),
    (same_bits, ("strided",), ONE, (), ()),
    (same_bits, ("fortran",), ONE, BROAD, (broken.StridesIgnored, *broken.STRIDES_IGNORED)),
    (same_bits, ("reversed",), ONE, (), ()),
    (untouched, (), ONE, BROAD, (broken.ArgumentModified, broken.ArgumentReturned)),
    (threaded, (), ONE, BROAD, (broken.DependsOnThreads,)),
    (
        loop,
        (),
        ONE,
        BROAD,
        (broken.InitialStateIgnored, broken.LastStepSkipped, broken.SequencesMixed, broken.NanInOneCell),
    ),
    (cut, (), ONE, BROAD, (broken.InitialStateIgnored, broken.LastStepSkipped, broken.SequencesMixed)),
    (bptt, (), ONE, BROAD, (broken.ZeroGradient, broken.ScaledGradient, broken.StateGradientZero, broken.NanGradient)),
    (bptt, (), ONE, TWISTED, (broken.UnconjugatedGradient, broken.Unconjugated)),
]
NAMES = {wrong: name for name, wrong in vars(broken).items() if isinstance(wrong, type)}
NAMES |= {wrong: wrong.__name__ for wrong in broken.STRIDES_IGNORED}
REJECT = [
    pytest.param(law, extra, batch, case, wrong, id=f"{law.__name__}-{NAMES[wrong]}-{k}-{case}")
    for k, (law, extra, batch, cases, wrongs) in enumerate(TABLE)
    for case in cases
    for wrong in wrongs
]


def laws(case):
    """Every law that has something to say about the case."""
    skip = {unitary: not case.object.unitary, differences: case not in DOUBLE}
    skip |= dict.fromkeys((loop, cut, bptt), case.variant in ("wide", "tall"))
    return [(law, extra, batch) for law, extra, batch, _, _ in TABLE if not skip.get(law, False)]


def test_the_textbook_obeys_every_law(case, seed):
    for law, extra, batch in laws(case):
        law(broken.Textbook.draw(case, seed, 6, batch), seed, *extra)


@pytest.mark.parametrize("law,extra,batch,at,wrong", REJECT)
def test_the_law_rejects(law, extra, batch, at, wrong, seed):
    subject = wrong.draw(at, seed, 6, batch)
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        law(subject, seed, *extra)


@pytest.mark.parametrize("at", BROAD, ids=str)
def test_the_law_of_buffers(at, seed, poison, monkeypatch):
    overwritten(broken.Textbook.draw(at, seed), seed, poison, monkeypatch)


@pytest.mark.parametrize("wrong", [broken.CellUnwritten, *broken.CELL_UNWRITTEN], ids=lambda wrong: wrong.__name__)
@pytest.mark.parametrize("at", BROAD, ids=str)
def test_the_law_of_buffers_rejects_an_unwritten_cell(at, wrong, seed, poison, monkeypatch):
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        overwritten(wrong.draw(at, seed), seed, poison, monkeypatch)
