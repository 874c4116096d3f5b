"""What the reference says of kinks, lengths, directions and marks, on values known by hand; its matrices and gradients
are those of the package, of which gradients are differences."""

import numpy as np

import reference as ref
from tolerance import TIGHT, close


def test_activations_on_known_values():
    z = np.array([-2.0, 1.0, 3.0, 3.0])
    close(ref.activate(z, "relu"), [0, 1, 3, 3], TIGHT)
    close(ref.activate(z, "leaky_relu"), [-0.2, 1, 3, 3], TIGHT)
    close(ref.activate(z, "oplu"), [1, -2, 3, 3], TIGHT)
    close(ref.activate(z, "oplu_halves"), [3, 3, -2, 1], TIGHT)
    close(ref.activate(z, "modrelu", bias=np.full(4, -1.5)), [-0.5, 0, 1.5, 1.5], TIGHT)
    close(ref.activate(np.array([3 + 4j, 0]), "modrelu", bias=np.array([5.0, 5.0])), [6 + 8j, 0], TIGHT)
    close(ref.activate(np.array([3.0, 4.0]), "modrelu_realrep", bias=np.array([-2.5])), [1.5, 2.0], TIGHT)
    close(ref.activate(np.array([-1 + 2j]), "relu"), [2j], TIGHT)


def test_derivatives_at_kinks():
    zero, one = np.zeros((1, 2)), np.ones((1, 2))
    close(ref.activate_vjp(zero, "relu", one)[0], zero, 0.0)
    close(ref.activate_vjp(zero, "leaky_relu", one)[0], 0.1 * one, TIGHT)
    close(ref.activate_vjp(zero, "oplu", np.array([[1.0, 2.0]]))[0], [[1, 2]], 0.0)
    z_bar, b_bar = ref.activate_vjp(zero, "modrelu", one, bias=np.ones(2))
    close(z_bar, zero, 0.0)
    close(b_bar, np.zeros(2), 0.0)


def test_recurrence_by_hand():
    """h_t = h_{t-1} + x_t counts; reversed it counts from the end, in each sequence from its own."""
    x, one = np.ones((3, 2, 1)), np.eye(1)
    run = lambda **k: ref.recurrence(one, x, one, activation="identity", **k)[..., 0]
    close(run(), [[1, 1], [2, 2], [3, 3]], TIGHT)
    close(run(h0=np.array([[1.0], [2.0]])), [[2, 3], [3, 4], [4, 5]], TIGHT)
    close(run(lengths=[3, 1]), [[1, 1], [2, 0], [3, 0]], TIGHT)
    close(run(lengths=[3, 2], reverse=True), [[3, 2], [2, 1], [1, 0]], TIGHT)


def test_marks_by_hand():
    """The count starts again at a mark, from the state of starts; a mark at step 0 keeps h0 out, but in the other
    direction, where the piece of the last step reads h0.
    """
    x, one, h0 = np.ones((3, 2, 1)), np.eye(1), np.array([[1.0], [2.0]])
    run = lambda *marks, **k: ref.recurrence(
        one, x, one, h0=h0, activation="identity", starts=np.array([[t in marks, False] for t in range(3)]), **k
    )[..., 0]
    close(run(1), [[2, 3], [1, 4], [2, 5]], TIGHT)
    close(run(1, start_state=np.array([[10.0], [20.0]])), [[2, 3], [11, 4], [12, 5]], TIGHT)
    close(run(0, start_state=np.array([10.0])), [[11, 3], [12, 4], [13, 5]], TIGHT)
    close(run(1, reverse=True), [[1, 5], [3, 4], [2, 3]], TIGHT)
    close(run(0, 2, reverse=True, start_state=np.array([10.0])), [[12, 5], [11, 4], [2, 3]], TIGHT)
    close(run(2, lengths=[2, 3]), [[2, 3], [3, 4], [0, 5]], TIGHT)


def test_orthogonality_error_counts_in_units_of_n_eps():
    w = np.eye(2)
    w[0, 1] = 8 * np.finfo(float).eps
    assert ref.orthogonality_error(w) == 4.0


def test_haar_is_unitary():
    for dtype in (np.float64, np.complex128):
        assert ref.orthogonality_error(ref.haar(np.random.default_rng(4), 8, dtype)) <= 20
