"""The operators in plain torch, as a careful user would write them: the peers, and the float64 references.

`x` are rows, and the results are rows W x.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu, pad

import isometry.torch as it

#: h -> W h on rows.
Step = Callable[[Tensor], Tensor]


def half_signs(n: int) -> Tensor:
    """D of a scoRNN whose second half is -1."""
    return torch.cat((torch.ones(n // 2), -torch.ones(n - n // 2)))


def polar(angles: Tensor) -> Tensor:
    return torch.polar(torch.ones_like(angles), angles)


# ---------------------------------------------------------------- reflections: W = I - U T^-1 U^T


def wy_triangle(u: Tensor) -> Tensor:
    """T = striu(U^T U) + diag(U^T U) / 2."""
    gram = u.T @ u
    return torch.triu(gram, 1) + 0.5 * torch.diag(torch.diagonal(gram))


def wy_matrix(u: Tensor) -> Tensor:
    eye = torch.eye(u.shape[0], dtype=u.dtype, device=u.device)
    return eye - u @ torch.linalg.solve_triangular(wy_triangle(u), u.T, upper=True)


def wy_apply(u: Tensor, x: Tensor) -> Tensor:
    return x - torch.linalg.solve_triangular(wy_triangle(u), (x @ u).T, upper=True).T @ u.T


# ---------------------------------------------------------------- skew matrices


def skew(p: Tensor) -> Tensor:
    """A from the strict upper triangle of p."""
    a = torch.triu(p, 1)
    return a - a.mH


def packed(matrix: Tensor) -> Tensor:
    """The strict upper triangle, row by row."""
    i, j = torch.triu_indices(matrix.shape[-1], matrix.shape[-1], 1)
    return matrix[..., i, j]


def cayley(p: Tensor, signs: Tensor | float = 1.0) -> Tensor:
    """W = (I + A)^-1 (I - A) D by one solve."""
    a, eye = skew(p), torch.eye(p.shape[-1], dtype=p.dtype, device=p.device)
    return torch.linalg.solve(eye + a, (eye - a).expand_as(a)) * signs


def cayley_checked(p: Tensor, signs: Tensor | float = 1.0) -> Tensor:
    """The same as (2 (I + A)^-1 - I) D on one thread, with the residual checked, for the reference: torch's batched
    solve is wrong with several threads on some CPUs.
    """
    a, eye, threads = skew(p), torch.eye(p.shape[-1], dtype=p.dtype), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        w = 2 * torch.linalg.inv(eye + a) - eye
    finally:
        torch.set_num_threads(threads)
    residual = float(((eye + a) @ w - (eye - a)).detach().abs().max())
    if residual > 1e-10:
        raise ArithmeticError(f"the float64 reference has a residual of {residual:.1e}")
    return w * signs


def exponential(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """exp(A) = Q diag(e^{i lambda}) Q^H, lambda and Q, by the eigenvectors of the Hermitian -i A."""
    values, q = torch.linalg.eigh(-1j * a)
    w = (q * polar(values).unsqueeze(-2)) @ q.mH
    return w if a.is_complex() else w.real, values, q


class _Exponential(Function):
    """exp(A), with A_bar = Q [(Q^H W_bar Q) * conj(Phi)] Q^H, Phi_jk = e^{i (l_j + l_k) / 2} sinc((l_j - l_k) / 2)."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        w, *saved = exponential(a)
        ctx.save_for_backward(*saved)
        return w

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, bar: Tensor) -> Tensor:
        values, q = ctx.saved_tensors
        half, column, row = polar(-values / 2), values.unsqueeze(-1), values.unsqueeze(-2)
        phi = half.unsqueeze(-1) * half.unsqueeze(-2) * torch.sinc((column - row) / (2 * torch.pi))
        a_bar = q @ ((q.mH @ bar.to(q.dtype) @ q) * phi) @ q.mH
        return a_bar if bar.is_complex() else a_bar.real


def exponential_closed(p: Tensor) -> Tensor:
    found: Tensor = _Exponential.apply(skew(p))
    return found


# ---------------------------------------------------------------- rotations of one direction to another


def unit(x: Tensor) -> Tensor:
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def rotate_by_reflections(start: Tensor, end: Tensor, x: Tensor) -> Tensor:
    """H(a + b) H(a) x of unit vectors a, b."""
    a = unit(start)
    for u in (a, unit(a + unit(end))):
        x = x - 2 * (x * u).sum(-1, keepdim=True) * u
    return x


# ---------------------------------------------------------------- Kronecker products


def kronecker_einsum(factors: Sequence[Tensor], x: Tensor) -> Tensor:
    y = x.reshape(-1, *[w.shape[1] for w in factors])
    axes = "abcdefghijklmnopqrstuvwxy"[: y.dim()]
    for f, w in enumerate(factors):
        y = torch.einsum(f"z{axes[f + 1]},{axes}->{axes.replace(axes[f + 1], 'z')}", w, y)
    return y.reshape(len(x), -1)


# ---------------------------------------------------------------- Fourier products


def fourier_step(phases: Tensor, vectors: Tensor, order: Tensor) -> Step:
    """The factors by torch.fft, one by one, with reflections I - w w^H as two thin products."""
    d = polar(phases)
    first, second = (v * (math.sqrt(2.0) / torch.linalg.vector_norm(v)) for v in vectors.unbind())

    def apply(x: Tensor) -> Tensor:
        y = torch.fft.fft(x * d[0], norm="ortho")
        y = (y - (y @ first.conj())[:, None] * first)[:, order] * d[1]
        y = torch.fft.ifft(y, norm="ortho")
        return (y - (y @ second.conj())[:, None] * second) * d[2]

    return apply


# ---------------------------------------------------------------- meshes


class Mesh(NamedTuple):
    """A brick mesh of `depth` layers, or (None) the fft layout.

    The peers turn all angles into two arrays at once; a layer is then p x + q x', x' the partners.
    """

    n: int
    depth: int | None

    @property
    def layers(self) -> int:
        return self.depth or self.n.bit_length() - 1

    def random(self, dtype: torch.dtype, rng: torch.Generator | None = None) -> dict[str, Tensor]:
        """Its angles."""
        op = it.Mesh.random(
            self.n, layers=self.depth, layout="brick" if self.depth else "fft", dtype=dtype, generator=rng
        )
        return {name: t for name in ("theta", "phi", "phases") if (t := getattr(op, name)) is not None}

    def operator(self, theta: Tensor, phi: Tensor | None = None, phases: Tensor | None = None) -> it.Mesh:
        layout: Any = "brick" if self.depth else "fft"
        return it.Mesh(theta, n=self.n, layers=self.layers, layout=layout, phi=phi, phases=phases)

    def factors(self, theta: Tensor, phi: Tensor | None) -> Iterator[tuple[int, int, int, Tensor, Tensor]]:
        """Of every layer, in the order of application: first row, pairs, their distance; p and q on the pairs."""
        s, c = theta.sin(), theta.cos()
        e = None if phi is None else polar(-phi)
        p = torch.stack((s, -s) if e is None else (s * e, -s + 0j))
        q = torch.stack((c, c) if e is None else (c + 0j, c * e))
        end = len(theta)
        for k in reversed(range(self.layers)):
            start, distance = (k % 2, 1) if self.depth else (0, self.n >> (k + 1))
            pairs = (self.n - start) // 2
            own = (t[:, end - pairs : end].unflatten(1, (-1, distance)).transpose(0, 1) for t in (p, q))
            yield start, pairs, distance, *own
            end -= pairs

    def by_slices(self, theta: Tensor, phi: Tensor | None = None, *phases: Tensor) -> Step:
        """Pairs as slices of a view, whose two halves are exchanged."""
        ready, last = list(self.factors(theta, phi)), [polar(t) for t in phases]

        def apply(x: Tensor) -> Tensor:
            for start, pairs, distance, p, q in ready:
                blocks = x[:, start : start + 2 * pairs].unflatten(1, (-1, 2, distance))
                y = torch.addcmul(p * blocks, q, blocks.flip(2)).flatten(1)
                x = y if 2 * pairs == x.shape[1] else torch.cat((x[:, :start], y, x[:, start + 2 * pairs :]), 1)
            return x * last[0] if last else x

        return apply

    def by_index(self, theta: Tensor, phi: Tensor | None = None, *phases: Tensor) -> Step:
        """Partners gathered by their index; an element without a partner is its own, with p = 1 and q = 0."""
        ready, last = [], [polar(t) for t in phases]
        for start, pairs, distance, p, q in self.factors(theta, phi):
            edges, partner = (start, self.n - start - 2 * pairs), torch.arange(self.n)
            blocks = partner[start : start + 2 * pairs].unflatten(0, (-1, 2, distance))
            partner[start : start + 2 * pairs] = blocks.flip(1).flatten()
            ready.append((partner, pad(p.flatten(), edges, value=1.0), pad(q.flatten(), edges, value=0.0)))

        def apply(x: Tensor) -> Tensor:
            for partner, p, q in ready:
                x = torch.addcmul(p * x, q, x[:, partner])
            return x * last[0] if last else x

        return apply

    def peers(self) -> dict[str, Callable[..., Step]]:
        return {"torch slices": self.by_slices, "torch index": self.by_index}


# ---------------------------------------------------------------- bounded singular values, activations


def sigma(logits: Tensor, margin: float) -> Tensor:
    return 1 + margin * torch.tanh(logits / 2)


def bounded_svd(u: Tensor, logits: Tensor, v: Tensor, margin: float) -> Tensor:
    return (u * sigma(logits, margin)) @ v.mT


def modrelu(z: Tensor, bias: Tensor) -> Tensor:
    if not z.is_complex():
        return torch.sign(z) * torch.relu(z.abs() + bias)
    r = z.abs()
    return z * (torch.relu(r + bias) / r)


def leaky(z: Tensor, bias: Tensor) -> Tensor:
    return leaky_relu(z + bias, 0.1)


def tanh(z: Tensor) -> Tensor:
    """tanh of a real number, or of both parts of a complex one."""
    return torch.view_as_complex(torch.tanh(torch.view_as_real(z))) if z.is_complex() else torch.tanh(z)
