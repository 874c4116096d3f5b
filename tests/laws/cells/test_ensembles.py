"""A call of an ensemble is, to the last bit, one call per member."""

import numpy as np
import pytest
import torch

import reference as ref
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
        subject.face.set_num_threads(budget)
        by_members(subject, seed, shared, **OPTIONS[option])


@pytest.mark.parametrize("subject", [s for s in ENSEMBLES if isinstance(s, TorchCell)], ids=named)
def test_transforms_of_ensembles(subject, seed):
    """vmap and forward mode, with marks."""
    options = {"starts": OPTIONS["marks of each member"]["starts"], **subject.case.options()}
    arrays = subject.case.draw(seed, 6, STEPS, BATCH, FEATURES, members=MEMBERS, marked="each")
    f, at = subject.function(arrays, **options)
    expected = f(*at)
    found = torch.func.vmap(f)(*(t[None] for t in at))[0]
    close(found, expected, subject.case.kind.loss * sequence_gradient(np.float64, 6, STEPS))
    _, tangent = torch.func.jvp(lambda start: f(*at[:-1], start), (at[-1],), (at[-1],))
    assert tangent.any()
