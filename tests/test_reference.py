"""The reference on values known by hand. Its gradients are those of the package, which are those of differences."""

import numpy as np

import reference as ref
from tolerance import TIGHT, close


def test_one_reflection():
    close(ref.householder([[1.0], [1.0]]), [[0, -1], [-1, 0]], TIGHT)
    close(ref.householder(np.array([[1.0], [1j]])), [[0, 1j], [-1j, 0]], TIGHT)
    close(ref.householder([[3.0]]), [[-1.0]], TIGHT)


def test_two_reflections_are_a_rotation_by_twice_the_angle():
    angle = 0.3
    u = np.array([[np.cos(angle), 1.0], [np.sin(angle), 0.0]])
    c, s = np.cos(2 * angle), np.sin(2 * angle)
    close(ref.householder(u), [[c, -s], [s, c]], TIGHT)


def test_last_factors():
    close(ref.householder(np.zeros((2, 0)), sign=-1.0), [[1, 0], [0, -1]], TIGHT)
    close(ref.householder(np.zeros((2, 0)), phases=[0.0, np.pi / 2]), [[1, 0], [0, 1j]], TIGHT)


def test_packing_goes_row_by_row():
    close(ref.skew([1.0, 2, 3]), [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]], TIGHT)
    close(ref.skew(np.array([1 + 2j]), [5.0, 6.0]), [[5j, 1 + 2j], [-1 + 2j, 6j]], TIGHT)


def test_cayley_of_one_entry_is_a_rotation():
    """tan(t/2) gives the angle t: W = [[cos t, -sin t], [sin t, cos t]]."""
    t = 0.7
    close(ref.cayley([np.tan(t / 2)]), [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]], TIGHT)
    close(ref.cayley([0.0], signs=[1.0, -1.0]), [[1, 0], [0, -1]], TIGHT)
    close(ref.cayley(np.zeros(1, complex), diagonal=[1.0, 0.0]), [[-1j, 0], [0, 1]], TIGHT)


def test_a_rotation_of_the_plane():
    angle = 0.4
    c, s = np.cos(angle), np.sin(angle)
    close(ref.rotation([2.0, 0.0], [3 * c, 3 * s]), [[c, -s], [s, c]], TIGHT)
    close(ref.rotation([0.0, 1.0, 0.0], [0.0, 0.0, 1.0]), [[1, 0, 0], [0, 0, -1], [0, 1, 0]], TIGHT)
    close(ref.rotation([1.0, 2.0], [2.0, 4.0]), np.eye(2), TIGHT)
    grads = ref.rotation_vjp([[0.0, 0.0], [1.0, 0.0]], [1.0, 0.0], [1.0, 0.0])  # d sin(angle)
    close(grads["start"], [0, -1], TIGHT)
    close(grads["end"], [0, 1], TIGHT)


def test_a_rotation_of_the_plane_by_almost_half_a_turn():
    """The angle is as well conditioned there as anywhere."""
    c, s = np.cos(1e-5), np.sin(1e-5)
    a, b = (np.array([np.cos(angle), np.sin(angle)]) for angle in (0.7, 0.7 + np.pi - 1e-5))
    close(ref.rotation(a, b), [[-c, -s], [s, -c]], TIGHT)
    grads = ref.rotation_vjp([[0.0, 0.0], [1.0, 0.0]], a, b)  # d sin(angle)
    close(grads["start"], [-c * a[1], c * a[0]], TIGHT)
    close(grads["end"], [c * b[1], -c * b[0]], TIGHT)


def test_a_product_of_two_hadamard_matrices():
    h = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    close(ref.hadamard(np.ones((1, 2))), h, TIGHT)
    close(ref.hadamard(np.array([[1.0, 2.0], [3.0, -1.0]])), [[1, 4], [2, 2]], TIGHT)
    grads = ref.hadamard_vjp([[0.0, 0.0], [1.0, 0.0]], np.array([[5.0, 7.0]]))  # W[1, 0] = signs[0] / sqrt 2
    close(grads["signs"], [[1 / np.sqrt(2), 0]], TIGHT)


def test_singular_values_by_hand():
    p = 2 * np.arctanh([0.5, -0.5])
    close(ref.bounded_svd([[0, 1], [1, 0]], p, np.eye(2), 0.5), [[0, 0.75], [1.25, 0]], TIGHT)
    close(ref.bounded_svd([[1j], [0]], [0.0], [[1j], [0], [0]], 0.5), [[1, 0, 0], [0, 0, 0]], TIGHT)


def test_a_circulant_matrix_by_hand():
    """The eigenvalues 1 and i of two frequencies: half their sum on the diagonal, half their difference beside it."""
    a, b = (1 + 1j) / 2, (1 - 1j) / 2
    assert np.allclose(ref.circulant([0, np.pi / 2]), [[a, b], [b, a]])
    assert np.allclose(ref.circulant_vjp([[1j, 0], [0, 1j]], [0, np.pi / 2])["phases"], [1, 0])


def test_blocks_of_a_mesh():
    """theta = pi/2 leaves a pair but for the sign of its second, theta = 0 exchanges it; the rightmost acts first."""
    close(ref.mesh([np.pi / 2, 0.0], 3, layers=2), [[1, 0, 0], [0, 0, -1], [0, 1, 0]], TIGHT)
    close(ref.mesh([np.pi / 2, 0.0], 3, layers=2, first="right"), [[0, 1, 0], [1, 0, 0], [0, 0, -1]], TIGHT)
    close(ref.mesh([0.0], 2, layers=1, phi=[np.pi / 2], phases=[np.pi, 0.0]), [[0, -1], [-1j, 0]], TIGHT)
    assert ref.mesh_pairs(8, layout="fft")[1] == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert ref.mesh_pairs(5, 2) == [[(0, 1), (2, 3)], [(1, 2), (3, 4)]]


def test_rotations_of_chosen_planes():
    """A quarter turn takes x_i to y_j, and -x_j to y_i; the last acts first."""
    half = np.pi / 2
    close(ref.givens([half], [(0, 2)], 3), [[0, 0, -1], [0, 1, 0], [1, 0, 0]], TIGHT)
    close(ref.givens([half], [(2, 0)], 3), [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], TIGHT)
    close(ref.givens([half, half], [(0, 1), (1, 2)], 3), [[0, 0, 1], [1, 0, 0], [0, 1, 0]], TIGHT)
    grads = ref.givens_vjp([[0.0, 0.0], [1.0, 0.0]], [0.0, np.pi], [(0, 1), (1, 0)], 2)  # d sin(a - b) = cos(a - b)
    close(grads["angles"], [-1, 1], TIGHT)


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
