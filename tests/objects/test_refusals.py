"""Arguments that constructors and `random` refuse, in both faces; what is wrong with any array the fuzz draws."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it

A, U = np.arange(6.0), np.arange(1.0, 9).reshape(4, 2)
LOST = np.array([[1.0, 0], [2, 0], [3, 0], [4, 0]])  # a column of zeros
V, T = ValueError, TypeError
#: Arguments that are taken, of which one or two are changed.
TAKEN = {
    "BoundedSvd": {"u": np.eye(3), "logits": np.zeros(3), "v": np.eye(3), "margin": 0.1},
    "Exponential": {"upper": np.ones(3)},
    "FourierProduct": {
        "phases": np.zeros((3, 3)),
        "vectors": np.ones((2, 3), complex),
        "permutation": np.array([2, 0, 1]),
    },
    "Givens": {"angles": np.zeros(2), "pairs": [[0, 1], [1, 3]], "n": 4},
    "Hadamard": {"signs": np.ones((1, 4))},
    "Householder": {"vectors": U},
    "Kronecker": {"factors": [np.eye(2)]},
    "Mesh": {"theta": np.zeros(3), "n": 4, "layers": 2},
    "Rotation": {"start": np.ones(3), "end": np.ones(3)},
}
ONCE = r"^permutation must hold each of 0\.\.2 once"
CHANGES = [
    *(("BoundedSvd", {"margin": m}, V, r"^margin must lie in \[0, 1\]") for m in (1.01, -0.01, np.nan)),
    ("BoundedSvd", {"margin": "0.1"}, T, "^margin must be a number"),
    ("BoundedSvd", {"logits": np.zeros(2)}, V, r"^logits must have shape \(\*, r\) with r = 3"),
    ("BoundedSvd", {"v": np.eye(3)[:, :2]}, V, r"^v must have shape \(\*, k, r\)"),
    ("Exponential", {"upper": np.ones(4)}, V, r"^upper must have n\(n-1\)/2 entries"),
    ("Exponential", {"upper": np.ones(3) + 0j, "diagonal": np.ones(2)}, V, r"^diagonal must have .* with n = 3"),
    ("Exponential", {"diagonal": np.ones(3)}, V, "^diagonal must not be given with a real upper"),
    ("FourierProduct", {"permutation": np.array([[0, 1, 2], [0, 1, 1]])}, V, ONCE),
    ("FourierProduct", {"permutation": np.array([0, 1, 1])}, V, f"{ONCE}, got 1"),
    ("FourierProduct", {"permutation": np.array([1, 2, 3])}, V, f"{ONCE}, got 3"),
    ("FourierProduct", {"permutation": np.array([-1, 0, 1])}, V, f"{ONCE}, got -1"),
    ("FourierProduct", {"permutation": np.array([1, 0])}, V, r"^permutation must have shape \(\*, n\) with n = 3, not"),
    ("FourierProduct", {"permutation": np.zeros(3)}, T, "^permutation must be integers"),
    ("FourierProduct", {"vectors": np.array([[1, 1, 1], [0, 0, 0]], complex)}, V, "^vectors must not contain a zero"),
    ("FourierProduct", {"vectors": np.full((2, 3), 1e200 + 0j)}, V, "^vectors must not contain .* overflows"),
    ("FourierProduct", {"vectors": np.ones((2, 3))}, T, "^vectors must be complex"),
    ("FourierProduct", {"vectors": np.ones((3, 3), complex)}, V, r"^vectors must have shape \(\*, 2, n\)"),
    ("FourierProduct", {"phases": np.zeros((2, 3))}, V, r"^phases must have shape \(\*, 3, n\)"),
    ("FourierProduct", {"phases": np.zeros((4, 2, 3))}, V, r"^phases must have shape \(\*, 3, n\)"),
    ("Givens", {"n": 0}, V, "^n must be at least 1"),
    ("Givens", {"n": 3}, V, r"^pairs must hold two different integers of 0\.\.2 each, got \(1, 3\)"),
    ("Givens", {"pairs": [[0, -1], [1, 3]]}, V, r"^pairs must hold two different .* of 0\.\.3 each, got \(0, -1\)"),
    ("Givens", {"pairs": [[0, 1], [2, 2]]}, V, r"got \(2, 2\)"),
    ("Givens", {"pairs": [[0, 1]]}, V, r"^pairs must have shape \(\*, m, 2\) with m = 2, not \(1, 2\)"),
    ("Givens", {"pairs": [[0, 1, 2], [1, 2, 3]]}, V, r"^pairs must have shape \(\*, m, 2\)"),
    ("Givens", {"angles": np.zeros(())}, V, r"^angles must have shape \(\*, m\)"),
    ("Givens", {"pairs": np.array([[0.0, 1.0], [1.0, 3.0]])}, T, "^pairs must be"),
    ("Hadamard", {"signs": np.ones((0, 12))}, V, r"^signs must have .* with k, n >= 1, not \(0, 12\)$"),
    *(("Householder", {"vectors": u}, V, "vectors") for u in (LOST, LOST + 0j, np.stack([U, LOST]))),
    *(("Householder", {"vectors": u}, V, "vectors") for u in (1e-200 * U, 1e200 * U, (1e20 * U).astype(np.float32))),
    ("Householder", {"sign": 1j}, (V, T), "sign"),
    *(("Kronecker", {"factors": list(map(np.ones, s))}, V, "factors") for s in ([], [(2, 2), (2,)], [(2, 0)])),
    ("Kronecker", {"factors": [np.ones((2, 2, 2)), np.ones((3, 2, 2))]}, V, "factors"),
    *(("Kronecker", {"factors": bad}, T, "^factors must be a sequence") for bad in (None, 3, "ab")),
    ("Mesh", {"layers": None}, V, "^layers must be given with layout 'brick'; only 'fft'"),
    ("Mesh", {"layers": 0}, V, "^layers must be at least 1"),
    ("Mesh", {"n": 0}, V, "^n must be at least 1"),
    ("Mesh", {"layout": "cube"}, V, "^layout must be"),
    ("Mesh", {"first": "middle"}, V, "^first must be"),
    ("Mesh", {"layout": "fft", "n": 6, "layers": None}, V, "^n must be a power of two"),
    ("Mesh", {"layout": "fft", "layers": 5}, V, "^layers must be None or log2 n = 2"),
    ("Mesh", {"layout": "fft", "layers": None, "first": "right"}, V, "^first must be 'left'"),
    ("Mesh", {"theta": np.zeros(4)}, V, r"^theta must have shape \(\*, pairs\) with pairs = 3, not \(4,\)"),
    ("Mesh", {"theta": np.zeros((2, 4))}, V, r"^theta must have shape \(\*, pairs\) with pairs = 3"),
    ("Mesh", {"signs": np.array([1.0, 1.0, 0.5, 1.0])}, V, r"^signs must be \+1 or -1"),
    ("Rotation", {"start": np.ones(())}, V, r"^start must have shape \(\*, n\)"),
    ("Rotation", {"end": np.ones(4)}, V, r"^end must have shape \(\*, n\) with n = 3"),
]
#: Of `random`: all but n and the keywords.
DRAWN = [
    *(("BoundedSvd", 3, {"margin": m}, V, r"^margin must lie in \[0, 1\]") for m in (1.01, -0.01, np.nan)),
    *((name, 3, {"dtype": "float32"}, T, "^dtype must be complex") for name in ("Circulant", "FourierProduct")),
    *((name, 4, {"dtype": "complex64"}, T, "^dtype must be real") for name in ("Hadamard", "Rotation")),
    ("Givens", 3, {"m": 2, "dtype": "complex64"}, T, "^dtype must be real"),
    ("Givens", 1, {"m": 2}, V, "^m must be 0 with n = 1"),
    ("Hadamard", 4, {"rounds": 0}, V, "^rounds must be at least 1, not 0$"),
    ("Kronecker", 6, {"factor_sizes": [2, 2]}, V, "^factor_sizes must multiply up to n = 6"),
    ("Mesh", 4, {}, V, "^layers must be given"),
    *((name, 0, {}, V, "^n must be") for name in ("Exponential", "FourierProduct")),
]
each_package = pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])


def given(package, value):
    """Arrays, or a list of them, as the package takes them."""
    if isinstance(value, list):
        return [given(package, one) for one in value]
    return torch.from_numpy(np.array(value)) if package is it and isinstance(value, np.ndarray) else value


@each_package
@pytest.mark.parametrize(("name", "change", "error", "message"), CHANGES)
def test_constructors(package, name, change, error, message):
    arguments = {key: given(package, value) for key, value in {**TAKEN[name], **change}.items()}
    with pytest.raises(error, match=message):
        getattr(package, name)(**arguments)


@each_package
@pytest.mark.parametrize(("name", "n", "keywords", "error", "message"), DRAWN)
def test_random(package, name, n, keywords, error, message):
    if "dtype" in keywords:
        keywords = {**keywords, "dtype": getattr(np if package is iso else torch, keywords["dtype"])}
    with pytest.raises(error, match=message):
        getattr(package, name).random(n, **keywords)


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_changed_is_taken(name):
    for package in (iso, it):
        getattr(package, name)(**{key: given(package, value) for key, value in TAKEN[name].items()})
