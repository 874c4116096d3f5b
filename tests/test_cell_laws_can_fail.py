"""Every law of cells rejects the cells that are wrong in what it says."""

import numpy as np
import pytest

import derivatives
import support.broken
from faces import TorchFace
from laws.cells import broken
from laws.cells.test_derivatives import compiled, formula, function, members, orders, unwanted
from laws.cells.test_devices import kernels
from laws.cells.test_ensembles import by_members
from laws.cells.test_time import checkpointed, cut, for_all, last, padded, padded_formula, pieces, unmarked
from laws.cells.test_values import finite, single, textbook
from registry.cells import CASES, CELLS, CellCase
from support.cells import TorchCell

UNEQUAL = {"lengths": [5, 7, 3, 7]}


def spoiled(case, fault, function):
    """The cell of a package in which a function is wrong."""
    return TorchCell(case, TorchFace(support.broken.broken("torch", fault, function)))


def threaded(subject, rng):
    derivatives.threads_and_layouts_change_no_bit(*function(subject, rng))


#: law, what it takes beside the subject and the generator, the cells it must reject
TABLE = [
    (textbook, {"single": False}, (broken.states_scaled, broken.transposed, broken.no_initial_state)),
    (textbook, {"single": False, "lengths": [2, 5, 3], "reverse": True}, (broken.no_lengths, broken.one_direction)),
    (single, {}, (broken.gradient_scaled,)),
    (finite, {"kind": "zero"}, (broken.not_finite,)),
    (orders, {}, (broken.gradient_scaled, broken.gradient_missing)),
    (formula, {}, (broken.formula_scaled,)),
    (members, {}, (broken.batch_seen,)),
    (compiled, {}, (broken.graph_seen, broken.graph_broken)),
    (unwanted, {}, (broken.always_recorded,)),
    (pieces, UNEQUAL, (broken.no_start_state, broken.late_marks, broken.no_lengths, broken.gradients_across_marks)),
    (pieces, {"marked": "each", **UNEQUAL}, (broken.unmarked_states_read,)),
    (pieces, {"marked": False, "reverse": True, **UNEQUAL}, (broken.sequences_mixed,)),
    (pieces, {"reverse": True, **UNEQUAL}, (broken.one_direction,)),
    (unmarked, {}, (broken.marks_seen,)),
    (kernels, {}, (broken.states_scaled, broken.gradient_scaled)),
    (padded, UNEQUAL, (broken.padding_read,)),
    (padded_formula, UNEQUAL, (broken.padding_read,)),
    (cut, {}, (broken.no_initial_state,)),
    (for_all, {}, (broken.row_for_all,)),
    (checkpointed, {}, (broken.checkpoint_seen,)),
    (last, {}, (broken.first_for_last,)),
    (threaded, {}, (broken.threads_seen, broken.layout_seen)),
]
REJECT = [
    pytest.param(law, given, wrong, id=f"{law.__name__}-{name}-{k}")
    for k, (law, given, wrongs) in enumerate(TABLE)
    for wrong in wrongs
    for name in [next(name for name, value in vars(broken).items() if value is wrong)]
]


@pytest.mark.parametrize("stem", ["recurrence", "gru"])
@pytest.mark.parametrize("law,given,wrong", REJECT)
def test_the_law_rejects(law, given, wrong, stem, seed, threads):  # noqa: ARG001  the fixture restores the budget
    subject = spoiled(CellCase(CELLS[stem], next(iter(CELLS[stem].variants))), wrong, stem)
    with pytest.raises((AssertionError, RuntimeError)), np.errstate(all="ignore"):
        law(subject, seed, **given)


BLOCKS = (textbook, {"single": False}, broken.blocks_turned), (orders, {}, broken.blocks_without_gradient)


@pytest.mark.parametrize("law,given,wrong", BLOCKS)
def test_the_law_of_blocks_rejects(law, given, wrong, seed):
    with pytest.raises((AssertionError, RuntimeError)):
        law(spoiled(CellCase(CELLS["recurrence"], "by blocks"), wrong, "Cayley"), seed, **given)


def test_the_law_of_ensembles_rejects(seed):
    with pytest.raises(AssertionError):
        by_members(spoiled(CASES[0], broken.members_turned, CASES[0].cell.stem), seed)
