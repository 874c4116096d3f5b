"""Computations on tensors, inside of a block of the GPU and of the CPU, and their gradients."""

import torch

import isometry.torch as it
import tolerance

N, T, B, D = 12, 4, 3, 5


def draw(rng, *shape, dtype=torch.float32):
    a = rng.standard_normal(shape)
    return torch.from_numpy(a + 1j * rng.standard_normal(shape) if dtype.is_complex else a).to(dtype)


def leaves(tensors):
    return [t.detach().clone().requires_grad_(t.is_floating_point() or t.is_complex()) for t in tensors]


def close(found, expected, what="value"):
    assert found.dtype == expected.dtype
    found, expected = (t.detach().resolve_conj() for t in (found, expected))
    tolerance.close(found, expected, tolerance.sequence_gradient("float32", N, T), what)


def score(out):
    """A smooth real number that is not constant for orthogonal W."""
    weight = torch.linspace(0.5, 2.0, out.shape[-1])
    return (weight * (out.abs().square() + out.real)).sum()


def gradients(f, at, **keywords):
    """f and the gradients of its score."""
    at = leaves(at)
    out = f(*at)
    asked = [t for t in at if t.requires_grad]
    return out, torch.autograd.grad(score(out), asked, allow_unused=True, **keywords)


def same(f, at, **keywords):
    """Values and gradients of f inside of a block of the GPU and of the CPU."""
    results = []
    for backend in ("gpu", "cpu"):
        with it.use_backend(backend):
            results.append(gradients(f, at, **keywords))
    (found, bars), (expected, expected_bars) = results
    close(found, expected)
    for k, (bar, expected_bar) in enumerate(zip(bars, expected_bars, strict=True)):
        assert (bar is None) == (expected_bar is None)
        if bar is not None:
            close(bar, expected_bar, f"gradient {k}")
