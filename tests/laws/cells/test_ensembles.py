"""A call of an ensemble is, to the last bit, one call per member."""

import numpy as np
import pytest

import reference as ref
from derivatives import every_member, every_order, same_when_compiled
from faces import tensor
from support.cells import SUBJECTS, TorchCell, named
from tolerance import close, identical, sequence_gradient

pytestmark = pytest.mark.cpu
MEMBERS, BATCH, STEPS, FEATURES = 3, 4, 5, 2
N = 33  # W of up to 32 rows may be formed one per lane in a stack, with other roundings than alone
OPTIONS = {
    "plain": {},
    "lengths": {"lengths": [2, 5, 1, 3]},
    "reverse": {"lengths": [5, 4, 2, 2], "reverse": True},
    "the last state": {"lengths": [2, 5, 0, 3], "output": "last"},
    "marks": {"lengths": [2, 5, 1, 3], "starts": np.random.default_rng(1).random((STEPS, BATCH)) < 0.3},
    "marks of each member": {"starts": np.random.default_rng(2).random((STEPS, MEMBERS, BATCH)) < 0.3, "reverse": True},
}
OPTIONS |= {
    f"{name}, a state for each": {**OPTIONS[name], "marked": "each"} for name in ("marks", "marks of each member")
}
ENSEMBLES = [s for s in SUBJECTS if len(s.case.own) < 2 and s.case.kind.numpy]


def by_members(subject, rng, shared=False, n=N, marked=True, **options):
    """States and gradients; those of what all members share are sums over them."""
    case, given = subject.case, {**options, **subject.case.options("modrelu")}
    kept = given.get("output") != "last" or isinstance(subject, TorchCell)  # what the NumPy face has gradients of
    marked = marked if "starts" in options else False
    timed = ("x", "start_state") if marked == "each" else ("x",)  # with the members behind the steps
    arrays = case.draw(rng, n, STEPS, BATCH, FEATURES, "modrelu", MEMBERS, marked=marked)
    each = (*case.own, "w", "start_state")  # of each member
    whole = {name: a for name, a in arrays.items() if shared and name not in each}
    for name, a in whole.items():
        arrays[name] = a[:, :1] if name == "x" else a[0]
    found = subject.states(arrays, **given)
    ct = ref.normal(rng, *found.shape, dtype=case.dtype())
    grads = subject.vjp(arrays, ct, **given) if kept else {}
    axis, alone = int(found.ndim == 4), []
    for i in range(MEMBERS):
        own = {name: a[i] for name, a in arrays.items() if name not in whole}
        own |= {name: arrays[name] for name in whole}
        own |= {name: np.ascontiguousarray(arrays[name][:, 0 if name in whole else i]) for name in timed}
        around = {**given, "starts": options["starts"][:, i]} if marked and options["starts"].ndim == 3 else given
        one = subject.states(own, **around)
        identical(found.take(i, axis), one, f"member {i}")
        if kept:
            alone.append(subject.vjp(own, np.ascontiguousarray(ct.take(i, axis)), **around))
    for name, g in grads.items():
        members = np.stack([one[name] for one in alone], int(name in timed))
        if name not in whole:
            identical(g, members, f"gradient of {name}")
        else:
            total = members.sum(int(name == "x"), keepdims=name == "x")
            close(
                g, total, 4 * sequence_gradient(found.dtype, n, STEPS), f"gradient of {name}", float(np.linalg.norm(ct))
            )


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("shared", [False, True], ids=["own arrays", "shared arrays"])
@pytest.mark.parametrize("subject", ENSEMBLES, ids=named)
def test_each_member_is_a_call_of_its_own(subject, shared, option, seed, threads):  # noqa: ARG001  restores the budget
    for budget in (1, 2):
        subject.package.set_num_threads(budget)
        by_members(subject, seed, shared, **OPTIONS[option])


@pytest.mark.parametrize("subject", [s for s in ENSEMBLES if s.case.plain], ids=named)
def test_marks_of_other_members_are_refused(subject, seed):
    drawn = subject.case.draw(seed, steps=4, members=MEMBERS, marked=True)
    take = tensor if isinstance(subject, TorchCell) else np.asarray
    arrays, width = {name: take(a) for name, a in drawn.items()}, drawn["start_state"].shape[-1]
    run = lambda starts, **wrong: subject.case.call(
        subject.package, arrays | wrong, starts=starts, **subject.case.options()
    )
    for shape in ((4, 1, 2), (3, 4, 2), (4, 3)):
        with pytest.raises(ValueError, match="starts must have shape"):
            run(np.zeros(shape, bool))
    for shape in ((2, 2), (4, 2, 2), (3, 3, 2)):
        with pytest.raises(ValueError, match=r"start_state must have shape \(T, E, B, n\)"):
            run(np.zeros((4, 2), bool), start_state=take(np.zeros((*shape, width))))


#: A state of all members and sequences, and one of each member.
NARROW = {"(n,)": lambda a: a[0, 0], "(1, n)": lambda a: a[0, :1], "(E, 1, n)": lambda a: a[:, :1]}


@pytest.mark.parametrize("output", ["states", "last"])
@pytest.mark.parametrize("shape", NARROW)
@pytest.mark.parametrize("subject", ENSEMBLES, ids=named)
def test_one_state_for_many(subject, shape, output, seed):
    """Initial, before marks, or a memory: as if every member and sequence had it; its gradient is the sum of theirs."""
    case, starts = subject.case, np.random.default_rng(4).random((STEPS, BATCH)) < 0.3
    arrays = case.draw(seed, 6, STEPS, BATCH, FEATURES, members=MEMBERS, marked=True)
    names = [name for name in (*case.cell.first, "r0", "start_state") if name in arrays]
    if shape != "(n,)" and case.cell.stem != "recurrence":  # only whose h0 has such shapes
        names = ["start_state"]
    last = {"output": "last"} if output == "last" else {}
    given = {"lengths": [2, 5, 0, 3], "starts": starts, **last, **case.options()}
    one = arrays | {name: NARROW[shape](arrays[name]) for name in names}
    wide = arrays | {name: np.broadcast_to(one[name], arrays[name].shape).copy() for name in names}
    found = subject.states(one, **given)
    identical(found, subject.states(wide, **given), "states")
    if output == "states" or isinstance(subject, TorchCell):
        ct = ref.normal(seed, *found.shape, dtype=case.dtype())
        bars, every = (subject.vjp(a, ct, **given) for a in (one, wide))
        for name in names:
            g, bound = every[name], case.kind.loss * sequence_gradient(np.float64, 6, STEPS)
            total = g.sum(tuple(range(1 if shape == "(E, 1, n)" else 0, 2)))
            close(bars[name], total.reshape(one[name].shape), 4 * bound, f"gradient of {name}")


TORCH = [s for s in ENSEMBLES if isinstance(s, TorchCell) and (s.case.plain or s.case.variant == "by W")]
MODES = [
    s if str(s.case) in ("recurrence, by factors", "rum, rotations") else pytest.param(s, marks=pytest.mark.long)
    for s in TORCH
]


@pytest.mark.parametrize("subject", MODES, ids=named)
@pytest.mark.slow
def test_every_mode_of_torch(subject, seed):
    """Orders and directions, batches, and compiled without a graph break."""
    arrays = subject.case.draw(seed, 4, 3, 2, FEATURES, members=MEMBERS, marked="each")
    starts = np.random.default_rng(3).random((3, MEMBERS, 2)) < 0.4
    f, at = subject.function(arrays, starts=starts, lengths=[2, 3], **subject.case.options())
    every_order(f, at)
    every_member(f, at)
    same_when_compiled(f, at)
