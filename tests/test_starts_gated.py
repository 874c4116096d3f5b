"""Marks of cells with gates, at the seam: values and gradients are those of separate calls."""

from itertools import pairwise

import numpy as np
import pytest

from isometry import _core

CELLS = ["before", "after", "rum", "sphere"]


class Unit:
    """A cell with arrays of its own, and its calls of the extension."""

    def __init__(self, kind, rng, n, d):
        self.kind, self.n = kind, n
        self.gru = kind in ("before", "after")
        w, u, b = ((3, n, n), (3, n, d), (3, n)) if self.gru else ((2 * n, n), (3 * n, d), (3 * n,))
        self.weights = [0.5 * rng.standard_normal(s) for s in (w, u, b)]

    def given(self, x, h0, lengths, reverse, starts):
        settings = (self.kind == "after",) if self.gru else (False, 1.5 if self.kind == "sphere" else None)
        marks, state = (None, None) if starts is None else starts
        arrays = (x, *self.weights, h0, None, None, state)
        return "gru" if self.gru else "rum", None, arrays, ("tanh", 0.1, settings), (lengths, reverse, marks)

    def run(self, x, h0, ct, threads, starts=None, lengths=None, reverse=False, checkpoint=False):
        """The states, and the gradients by name."""
        given = self.given(x, h0, lengths, reverse, starts)
        steps, batch, _ = x.shape
        states = np.empty((steps, batch, self.n))
        count = 4 if not self.gru or self.kind == "after" else 3
        saved = np.empty((count, steps, batch, self.n))
        written = states
        if checkpoint:
            borders = np.empty((_core.recurrence_marks("sqrt", steps, batch, count), batch, self.n))
            written, saved = (states, np.empty((batch, self.n)), borders, "sqrt"), None
        read = (None, *written[1:]) if checkpoint else written
        bars = {"x": np.empty_like(x)} | {k: np.empty_like(a) for k, a in zip("wub", self.weights, strict=True)}
        bars["h0"] = np.empty_like(h0)
        own = None if starts is None else np.empty_like(starts[1])
        _core.sequence(*given, (written, None, saved), threads)
        arrays = (*bars.values(), None, None, own)
        _core.sequence_vjp(*given, (read, None, saved), (ct, None), arrays, (), threads)
        return states, bars | {"start_state": own}


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("kind", CELLS)
def test_values_and_gradients_are_those_of_separate_calls(kind, seed):
    rng = np.random.default_rng(seed)
    n, d, steps, batch = int(rng.integers(2, 20)), 2, int(rng.integers(1, 60)), int(rng.integers(1, 40))
    unit, reverse = Unit(kind, rng, n, d), bool(rng.integers(2))
    lengths = np.sort(rng.integers(1, steps + 1, batch))[::-1].copy() if rng.integers(2) else None
    ends = [steps] * batch if lengths is None else list(lengths)
    marks = rng.random((steps, batch)) < [0.05, 0.4][int(rng.integers(2))]
    x, ct = rng.standard_normal((steps, batch, d)), rng.standard_normal((steps, batch, n))
    h0, own = rng.standard_normal((2, batch, n))
    total = {"x": np.zeros_like(x), "h0": np.zeros_like(h0), "start_state": np.zeros_like(h0)}
    total |= {name: np.zeros_like(a) for name, a in zip("wub", unit.weights, strict=True)}
    expected = np.zeros((steps, batch, n))
    for j in range(batch):
        cuts = [0, *[t for t in range(1, ends[j]) if marks[t, j]], ends[j]]
        for a, b in pairwise(cuts):
            outer = b == ends[j] if reverse else a == 0 and not marks[0, j]
            piece = (np.ascontiguousarray(v[a:b, j : j + 1]) for v in (x, ct))
            part, part_ct = piece
            first = np.ascontiguousarray((h0 if outer else own)[j : j + 1])
            states, bars = unit.run(part, first, part_ct, 1, reverse=reverse)
            expected[a:b, j : j + 1] = states
            total["x"][a:b, j : j + 1] = bars["x"]
            total["h0" if outer else "start_state"][j] += bars["h0"][0]
            for name in "wub":
                total[name] += bars[name]
    starts = marks.astype(np.int64), own
    found = [unit.run(x, h0, ct, k, starts, lengths, reverse) for k in (1, 2)]
    found.append(unit.run(x, h0, ct, 2, starts, lengths, reverse, checkpoint=True))
    for states, bars in found:
        assert np.array_equal(states, found[0][0])
        for name, bar in bars.items():
            assert np.array_equal(bar, found[0][1][name]), name
    np.testing.assert_allclose(found[0][0], expected, rtol=1e-9, atol=1e-11)
    for name, bar in total.items():
        np.testing.assert_allclose(found[0][1][name], bar, rtol=1e-8, atol=1e-9, err_msg=name)


def test_marks_of_a_memory_are_refused():
    x, w, u, b = np.ones((3, 2, 1)), np.ones((4, 2)), np.ones((6, 1)), np.ones(6)
    law, steps = ("tanh", 0.1, (True, None)), (None, False, np.zeros((3, 2), np.int64))
    results = np.empty((3, 2, 2)), np.empty((2, 2, 2)), None
    with pytest.raises(NotImplementedError, match="starts"):
        _core.sequence("rum", None, (x, w, u, b, *[None] * 4), law, steps, results, 1)
