"""A sequence is computed as if it were alone and its steps as if they were called one by one: lengths, marks, cuts,
checkpoints, the last state, threads and layouts."""

import numpy as np
import pytest

import derivatives
import reference as ref
from laws.cells.test_derivatives import function
from registry.cells import CASES, each_cell
from support.cells import SUBJECTS, TorchCell, each_subject, named
from tolerance import close, identical, sequence, sequence_gradient

pytestmark = pytest.mark.cpu
LENGTHS = {"whole": None, "lengths": [5, 7, 3, 7], "sorted": [7, 7, 5, 3]}


def marks():
    """In every column but one; at step 0, in neighbours, behind an end."""
    starts = np.zeros((7, 4), bool)
    starts[[2, 3, 5, 0, 4, 6, 1], [0, 0, 0, 1, 1, 2, 3]] = True
    return starts


def pieces(subject, rng, marked=True, lengths=None, reverse=False, sizes=(7, 4, 4), starts=None, **options):
    """Values and gradients are those of a call for each sequence, and for each piece of it between marks."""
    case, (steps, batch, n) = subject.case, sizes
    arrays = case.draw(rng, n, steps, batch, marked=marked)
    starts = starts if starts is not None or not marked else marks()
    if marked == "each":
        arrays["start_state"][~starts] = np.nan  # never read
    given = {"reverse": reverse, **case.options()}
    around = ({} if lengths is None else {"lengths": lengths}) | ({"starts": starts} if marked else {})
    found = subject.states(arrays, **given, **around, **options)
    ct = ref.normal(rng, *found.shape, dtype=case.dtype())
    grads = subject.vjp(arrays, ct, **given, **around, **options)
    expected, total = np.zeros_like(found), {name: np.zeros_like(a) for name, a in arrays.items()}
    for s in range(batch):
        length = steps if lengths is None else lengths[s]
        if length == 0:
            expected[:, s] = found[:, s]
            continue
        order = list(ref.pieces(s, length, reverse, starts if marked else None))
        for taken, start in order:
            a, b = min(taken), max(taken) + 1
            row = lambda name: arrays[name][s : s + 1]
            at = (b if reverse else a, s) if marked == "each" else s  # of the state before the mark
            own = arrays["start_state"][at][None] if start != "h0" else None
            first = {name: row(name) for name in case.cell.first} if own is None else case.begin(own)
            part = {k: v for k, v in arrays.items() if k not in ("start_state", "r0")}
            part |= {"x": arrays["x"][a:b, s : s + 1], **first}
            if "r0" in arrays and start == "h0":
                part["r0"] = row("r0")
            ends = a == 0 if reverse else b == length  # its memory is what is left
            bar = ct[a:b, s : s + 1]
            if case.memory:
                bar = np.concatenate((bar, ct[steps:, s : s + 1] * ends))
            states = subject.states(part, **given)
            expected[a:b, s : s + 1] = states[: b - a]
            if ends:
                expected[steps:, s : s + 1] = states[b - a :]
            bars = subject.vjp(part, bar, **given)
            total["x"][a:b, s : s + 1] = bars.pop("x")
            before = [bars.pop(name) for name in case.cell.first]
            if start == "h0":
                for name, g in zip(case.cell.first, before, strict=True):
                    total[name][s] += g[0]
            else:
                total["start_state"][at] += np.concatenate(before, -1)[0]
            if "r0" in bars:
                total["r0"][s] += bars.pop("r0")[0]
            for name, g in bars.items():
                total[name] += g
    bound, size = case.kind.loss * sequence(np.float64, n, steps), float(np.linalg.norm(ct))
    close(found, expected, bound, "states")
    if lengths is not None:
        assert not any(found[length:steps, s].any() for s, length in enumerate(lengths))
    for name, g in total.items():
        close(grads[name], g, 4 * bound, f"gradient of {name}", size)
    if marked == "each":
        assert not grads["start_state"][~starts].any()


def unmarked(subject, rng):
    """Marks of no step; the state that marked ones would begin with has the gradient zero."""
    arrays, options = subject.case.draw(rng, 6, 9, 20, marked=True), subject.case.options()
    marked = {**options, "starts": np.zeros((9, 20), bool)}
    found, plain = subject.states(arrays, **marked), {name: a for name, a in arrays.items() if name != "start_state"}
    identical(found, subject.states(plain, **options), "states")
    ct = ref.normal(rng, *found.shape, dtype=subject.case.dtype())
    grads, expected = subject.vjp(arrays, ct, **marked), subject.vjp(plain, ct, **options)
    assert not grads.pop("start_state").any()
    for name, g in expected.items():
        identical(grads[name], g, f"gradient of {name}")


def padded(subject, rng, lengths, reverse=False):
    """NaN behind the end of a sequence reaches no state and no gradient."""
    case = subject.case
    arrays = case.draw(rng, steps=7, batch=4)
    spoiled = {**arrays, "x": arrays["x"].copy()}
    for s, length in enumerate(lengths):
        spoiled["x"][length:, s] = np.nan
    given = {"lengths": lengths, "reverse": reverse, **subject.face.unchecked, **case.options()}
    found, expected = (subject.states(a, **given) for a in (spoiled, arrays))
    identical(found, expected, "states")
    ct = ref.normal(rng, *expected.shape, dtype=case.dtype())
    grads = [subject.vjp(a, ct, **given) for a in (spoiled, arrays)]
    for name, g in grads[1].items():
        identical(grads[0][name], g, f"gradient of {name}")


def padded_formula(subject, rng, lengths, reverse=False):
    """The same of the gradients by torch operations."""
    f, at = function(subject, rng, sizes={"steps": 7, "batch": 4}, lengths=lengths, reverse=reverse)
    spoiled, k = [t.clone() for t in at], len(subject.case.own)
    for s, length in enumerate(lengths):
        spoiled[k][length:, s] = float("nan")
    expected = derivatives.gradients(f, at, create_graph=True)
    derivatives.same(derivatives.gradients(f, spoiled, create_graph=True), expected, "gradient")


def cut(subject, rng):
    """The last state, and the memory, are all that the rest of a sequence needs."""
    case, given = subject.case, subject.case.options()
    arrays = case.draw(rng, 6, 7, 2)
    whole = subject.states(arrays, **given)
    head = subject.states({**arrays, "x": arrays["x"][:3]}, **given)
    rest = {**arrays, "x": arrays["x"][3:], **case.begin(head[2])}
    if case.memory:
        rest["r0"] = np.ascontiguousarray(np.moveaxis(head[3:], 0, 1))
    tail = subject.states(rest, **given)
    found = np.concatenate((head[:3], tail))
    close(found, whole, case.kind.loss * sequence(np.float64, 6, 7), "states")
    if case.cell.stem != "recurrence":  # where W is applied by factors or as a matrix, by the length
        identical(found, whole, "states")


def for_all(subject, rng):
    """One initial state, and one memory, serve all sequences."""
    case, given = subject.case, subject.case.options()
    arrays = case.draw(rng)
    names = [name for name in (*case.cell.first, "r0") if name in arrays]
    rows = {name: arrays[name][0] for name in names}
    wide = {name: np.stack([rows[name]] * 2) for name in names}
    one, every = ({**arrays, **some} for some in (rows, wide))
    found = subject.states(one, **given)
    identical(found, subject.states(every, **given), "states")
    ct = ref.normal(rng, *found.shape, dtype=case.dtype())
    bars, expected = (subject.vjp(a, ct, **given) for a in (one, every))
    for name in names:
        bound = case.kind.loss * sequence_gradient(np.float64, 4, 3)
        close(bars[name], expected[name].sum(0), bound, f"gradient of {name}")


def checkpointed(subject, rng, **options):
    """Segments that are computed again change no bit."""
    case = subject.case
    arrays = case.draw(rng, 6, 600, 4, marked=options.pop("marked", "starts" in options))
    given = {**options, **case.options()}
    found = subject.states(arrays, checkpoint="sqrt", **given)
    identical(found, subject.states(arrays, **given), "states")
    ct = ref.normal(rng, *found.shape, dtype=case.dtype())
    expected = subject.vjp(arrays, ct, **given)
    for name, g in subject.vjp(arrays, ct, checkpoint="sqrt", **given).items():
        identical(g, expected[name], f"gradient of {name}")


def last(subject, rng, reverse=False, **options):
    """The last state alone is that of all states; of a sequence without a step it is the first one."""
    case, lengths = subject.case, [0, 5, 2, 3]
    arrays = case.draw(rng, steps=5, batch=4)
    given = {"lengths": lengths, "reverse": reverse, **case.options()}
    states = subject.states(arrays, **given)
    found = subject.states(arrays, output="last", **given, **options)
    found, memory = (found[0], found[1:]) if case.memory else (found, states[5:])
    identical(memory, states[5:], "memory")
    ends = [0 if reverse else max(length - 1, 0) for length in lengths]
    expected = states[ends, range(4)]
    expected[0] = np.concatenate([arrays[name][0] for name in case.cell.first], -1)
    identical(found, expected, "the last state")
    if not isinstance(subject, TorchCell):  # the gradient is that of all states
        return
    ct, wide = ref.normal(rng, *found.shape, dtype=case.dtype()), np.zeros_like(states)
    wide[ends[1:], range(1, 4)] = ct[1:]
    own = np.concatenate((ct[None], 0 * states[5:])) if case.memory else ct
    grads, whole = subject.vjp(arrays, own, output="last", **given, **options), subject.vjp(arrays, wide, **given)
    for name, g in case.begin(ct).items():
        whole[name][0] += g[0]
    for name, g in whole.items():
        close(grads[name], g, case.kind.loss * sequence_gradient(np.float64, 4, 5), f"gradient of {name}")


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("marked", [False, True, "each"], ids=["", "marks", "a state for each mark"])
@pytest.mark.parametrize("lengths", LENGTHS)
@each_subject
def test_every_sequence_is_a_call_of_its_own(subject, lengths, marked, reverse, seed):
    pieces(subject, seed, marked, LENGTHS[lengths], reverse)


@each_subject
def test_many_marks_of_many_steps(subject, seed):
    """Gradients are summed in chunks, of halves of the batch, and a single sequence is shared by columns."""
    for marked, sizes in ((True, (60, 1, 8)), ("each", (40, 17, 6))):
        starts = seed.random(sizes[:2]) < 0.2
        pieces(subject, seed, marked, sizes=sizes, starts=starts, reverse=bool(seed.integers(2)))


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if not s.case.memory], ids=named)
def test_marks_of_nothing_change_no_bit(subject, seed):
    """Kernels take no marks of a memory."""
    unmarked(subject, seed)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@each_subject
def test_padding_reaches_nothing(subject, reverse, seed):
    padded(subject, seed, [5, 7, 3, 7], reverse)
    if isinstance(subject, TorchCell):
        padded_formula(subject, seed, [5, 7, 3, 7], reverse)


@each_subject
def test_a_sequence_may_be_cut_anywhere(subject, seed):
    cut(subject, seed)


@each_subject
def test_one_initial_state_for_all(subject, seed):
    for_all(subject, seed)


@pytest.mark.parametrize("option", ["plain", "lengths", "marks", "a state for each mark"])
@pytest.mark.parametrize("cell", [c for c in CASES if not c.memory], ids=str)
def test_checkpoints_change_no_bit(cell, option, seed):
    """A memory has none, since backward obtains it from the one behind."""
    starts = {"starts": seed.random((600, 4)) < 0.02}
    options = {"plain": {}, "lengths": {"lengths": [600, 3, 599, 300], "reverse": True}, "marks": starts}
    options["a state for each mark"] = {**starts, "marked": "each", "reverse": bool(seed.integers(2))}
    checkpointed(TorchCell(cell), seed, **options[option])


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@each_subject
def test_the_last_state(subject, reverse, seed):
    last(subject, seed, reverse)
    if isinstance(subject, TorchCell) and not subject.case.memory:
        last(subject, seed, reverse, checkpoint="sqrt")


@pytest.mark.alone
@each_cell
def test_threads_and_layouts_change_no_bit(cell, seed, threads):  # noqa: ARG001  the fixture restores the budget
    sizes = {"n": 48 if cell.cell.stem == "rum" else 96, "steps": 30, "batch": 32, "d": 5, "single": True}
    for options in ({}, {"starts": seed.random((30, 32)) < 0.1, "marked": "each"}):
        derivatives.threads_and_layouts_change_no_bit(*function(TorchCell(cell), seed, sizes=sizes, **options))


@pytest.mark.parametrize("members", [None, 3], ids=["one", "an ensemble"])
@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.case.plain and not isinstance(s, TorchCell)], ids=named)
def test_only_the_states_at_marks_must_be_finite(subject, members, seed):
    arrays = subject.case.draw(seed, members=members, marked="each")
    arrays["start_state"][1, ..., 0, 0] = np.nan  # before step 1 of the first sequence
    starts = np.array([[1, 1], [0, 1], [1, 1]], bool)
    assert np.isfinite(subject.states(arrays, starts=starts, **subject.case.options())).all()
    starts[1, 0] = True
    with pytest.raises(ValueError, match="start_state must be finite"):
        subject.states(arrays, starts=starts, **subject.case.options())
