"""Linear systems by products, as on "mps": values and derivatives of tensors on the CPU that are sent this way."""

import pytest
import torch

from derivatives import every_order
from isometry.torch.formulas import _solve
from isometry.torch.formulas._solve import solve, triangular

COUNT = 16


@pytest.fixture
def _by_products(monkeypatch):
    monkeypatch.setattr(_solve, "by_products", lambda _: True)


def drawn(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


def of_reflections(vectors):
    """The upper triangle of the compact WY form."""
    gram = vectors.mH @ vectors
    return gram.triu(1) + torch.diag_embed(gram.diagonal(dim1=-2, dim2=-1) / 2)


def of_keys(k, rate):
    """The unit lower triangle of the delta rule."""
    return (rate * (k @ k.mT)).tril(-1) + torch.eye(k.shape[-2], dtype=k.dtype)


#: Lower triangles of n rows, well and badly conditioned.
TRIANGLES = {
    "tall vectors": lambda n, dtype: of_reflections(drawn(COUNT, 2 * n, n, dtype=dtype)).mT,
    "more vectors than rows": lambda n, dtype: of_reflections(drawn(COUNT, n // 8 + 1, n, dtype=dtype)).mT,
    "vectors alike": lambda n, dtype: of_reflections(drawn(COUNT, 2 * n, n, dtype=dtype) + 3).mT,
    "keys": lambda n, _: of_keys(torch.nn.functional.normalize(drawn(COUNT, n, 8), dim=-1), 2 * torch.rand(n, 1)),
    "one key": lambda n, _: of_keys(torch.ones(COUNT, n, 1, dtype=torch.float64), 2.0),
    "random": lambda n, dtype: drawn(COUNT, n, n, dtype=dtype).tril(-1) / 2 + torch.eye(n),
    "a factor of Cholesky": lambda n, _: torch.linalg.cholesky(torch.eye(n) + 9 * (x := drawn(COUNT, 4 * n, n)).mT @ x),
    "Kahan's": lambda n, _: torch.logspace(0, -2, n)[:, None] * (torch.eye(n) - 0.3 * torch.ones(COUNT, n, n).tril(-1)),
}


def distance(x, expected):
    """Relative, the median of a stack."""
    return ((x - expected).norm(dim=(-2, -1)) / expected.norm(dim=(-2, -1))).median()


def errors(monkeypatch, run, m, b, exact):
    """Of the solve and of products, in single precision."""
    single = torch.complex64 if m.is_complex() else torch.float32
    m, b = m.to(single), b.to(single)
    wide = m.to(exact), b.to(exact)
    expected, found = run(*wide), [run(m, b)]
    monkeypatch.setattr(_solve, "by_products", lambda _: True)
    found.append(run(m, b))
    return [distance(x, expected) for x in found]


@pytest.mark.parametrize("n", [7, 64, 200])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("kind", TRIANGLES)
def test_as_accurate_as_the_solve(kind, dtype, n, monkeypatch):
    m, b = TRIANGLES[kind](n, dtype).to(dtype), drawn(COUNT, n, 5, dtype=dtype)
    of_solve, of_products = errors(monkeypatch, lambda m, b: triangular(m, b, upper=False), m, b, dtype)
    assert of_products <= 2 * of_solve


@pytest.mark.parametrize("size", [0.1, 1, 30])
@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_as_accurate_as_the_solve_of_a_skew_matrix(dtype, n, size, monkeypatch):
    """I + A of a Cayley transform."""
    a = size * drawn(COUNT, n, n, dtype=dtype)
    eye = torch.eye(n, dtype=dtype)
    m = eye + a - a.mH
    of_solve, of_products = errors(monkeypatch, solve, m, 2 * eye - m, dtype)
    assert of_products <= 2 * of_solve


SIDES = pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
ENDS = pytest.mark.parametrize("upper", [True, False], ids=["upper", "lower"])
UNITS = pytest.mark.parametrize("unit", [True, False], ids=["unit", ""])


PRODUCTS = pytest.mark.usefixtures("_by_products")


@PRODUCTS
@SIDES
@ENDS
@UNITS
@pytest.mark.parametrize("n", [1, 4, 5])
def test_sides(n, unit, upper, left):
    """With what stands on a unit diagonal not read."""
    m = drawn(2, 3, n, n)
    m = m.triu(int(unit)) if upper else m.tril(-int(unit))
    b = drawn(2, 3, n, 2) if left else drawn(2, 3, 2, n)
    expected = torch.linalg.solve_triangular(m, b, upper=upper, left=left, unitriangular=unit)
    torch.testing.assert_close(triangular(m, b, upper=upper, unit=unit, left=left), expected, rtol=1e-9, atol=1e-9)


@PRODUCTS
def test_no_rows():
    assert triangular(drawn(2, 0, 0), drawn(2, 0, 3), upper=False).shape == (2, 0, 3)


@PRODUCTS
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_derivatives_of_every_order(dtype):
    m, b = torch.eye(3) + 0.3 * drawn(3, 3, dtype=dtype), drawn(3, 2, dtype=dtype)
    every_order(lambda m, b: triangular(m.tril(), b, upper=False), [m, b])
    every_order(lambda m, b: triangular(m.triu(), b.mT, upper=True, left=False), [m, b])
    every_order(solve, [m, b])


@PRODUCTS
def test_vmap():
    m, b = torch.eye(3) + 0.3 * drawn(4, 3, 3), drawn(3, 2)
    found = torch.vmap(lambda m: solve(m, b))(m)
    torch.testing.assert_close(found, torch.linalg.solve(m, b.expand(4, 3, 2)))
