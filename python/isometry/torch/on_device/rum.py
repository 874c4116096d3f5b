"""h <- u * h + (1 - u) * k, k = phi(e + R h), with (u', tau) = W h + d, u = sigma(u') and R = H(w) H(a) from e to tau.

a and b are e and tau normalised, w = (a + b) / |a + b|. Without the memory of rotations; n > 2. Letters of the gradient
as in docs/math/rotation.md.
"""

from typing import Any

import torch
from torch import Tensor

from ..formulas.rotation import unit
from .activation import Phi
from .history import Flags, History


def matrices(_weight: None, _x: Tensor, w: Tensor, *_: Any) -> tuple[Tensor]:
    """W."""
    return (w,)


def along(u: Tensor, x: Tensor) -> Tensor:
    """2 u.x, a number per row."""
    return (u * x).sum(-1, keepdim=True).mul_(2)


def between(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """a + b, its length, and where that is zero to rounding."""
    v = a + b
    size = (v * v).sum(-1, keepdim=True).sqrt_()
    return v, size, size <= 8 * torch.finfo(v.dtype).eps


def inverse(x: Tensor, direction: Tensor) -> Tensor:
    """1 / |x| from x / |x|, of any scale."""
    return direction.abs().amax(-1, keepdim=True) / x.abs().amax(-1, keepdim=True)


class Steps:
    """d (T, B, 2 n) and e (T, B, n) in one array; W (2 n, n)."""

    def __init__(self, phi: Phi, settings: tuple[float | None, ...], drive: Tensor, weight: Tensor) -> None:
        self.phi, self.eta, self.drive, self.weight = phi, settings[1], drive, weight
        self.size = weight.shape[-1]
        self.from_x, self.e = drive.split((2 * self.size, self.size), -1)

    def saved(self, count: int) -> tuple[Tensor, ...]:
        """u and tau; k; w, zero where R = I; with eta, eta / |h'|."""
        n, shape = self.size, (count, self.drive.shape[1])
        self.a, self.some = unit(self.e)
        self.inner = self.drive.new_empty(*shape, 2 * n)
        self.k, self.w = self.drive.new_empty(*shape, n), self.drive.new_empty(*shape, n)
        self.into_h = self.drive.new_empty(*shape, 1) if self.eta is not None else self.drive.new_empty(0)
        # R of opposite directions: a turn by pi in the plane of a and the axis on which |a| is smallest
        axis = torch.zeros_like(self.a).scatter(-1, self.a.abs().argmin(-1, keepdim=True), 1.0)
        across = axis - (axis * self.a).sum(-1, keepdim=True) * self.a
        self.across = across / across.square().sum(-1, keepdim=True).sqrt()
        return self.inner, self.k, self.w, self.into_h

    def step(self, t: int, k: int, h: Tensor, out: Tensor) -> None:
        """The state after step t, whose arrays are the k-th that are saved."""
        n, inner, own, w = self.size, self.inner[k], self.k[k], self.w[k]
        torch.addmm(self.from_x[t], h, self.weight.mT, out=inner)
        keep, tau = inner.split(n, -1)
        keep.sigmoid_()
        b, others = unit(tau)
        a, live = self.a[t], self.some[t] & others
        v, size, opposite = between(a, b)
        turned = torch.where(opposite, self.across[t], v.div_(size))
        torch.where(live, turned, torch.zeros_like(turned), out=w)
        p = torch.addcmul(h, along(a, h), a, value=-1).where(live, h)
        y = torch.addcmul(p, along(w, p), w, value=-1)
        torch.add(self.e[t], y, out=own)
        self.phi.apply_(own)
        torch.lerp(own, h, keep, out=out)
        if self.eta is not None:
            direction, some = unit(out)
            length = out.square().sum(-1, keepdim=True).sqrt_()
            self.into_h[k].copy_(torch.where(some, self.eta / length, 0))
            torch.where(some, self.eta * direction, torch.zeros_like(out), out=out)

    def start(self, history: History, saved: tuple[Tensor, ...]) -> None:
        """Prepares the way back over the states."""
        self.history, self.before = history, history.before
        self.inner, self.k, self.w, self.into_h = saved
        keep, tau = self.inner.split(self.size, -1)
        self.keep, free = keep, 1 - keep
        self.into_u = (self.before - self.k) * keep * free
        self.into_k = free
        pull = self.phi.derivative(self.k)
        if pull is not None:
            pull(slice(None), free, self.into_k)
        (a, some), (self.b, others) = unit(self.e), unit(tau)
        live = some & others
        _, size, opposite = between(a, self.b)
        self.smooth = live & ~opposite
        self.into_v = torch.where(self.smooth, 1 / size, 0)
        self.into_tau, self.into_e = (
            torch.where(self.smooth, inverse(x, y), 0) for x, y in ((tau, self.b), (self.e, a))
        )
        self.a = torch.where(live, a, torch.zeros_like(a))
        self.p = torch.addcmul(self.before, along(self.a, self.before), self.a, value=-1)
        self.alpha, self.gamma = along(self.a, self.before), along(self.w, self.p)
        self.bars, self.turning = torch.empty_like(self.drive), torch.empty_like(self.k)

    def adjoint(self, t: int, g: Tensor, into: Tensor | None, out: Tensor) -> Tensor:
        """The cotangent of the states before step t, added to `into`, from that of the states after it."""
        n, bars, a, w = self.size, self.bars[t], self.a[t], self.w[t]
        u_bar, tau_bar, k_bar = bars.split(n, -1)
        if self.eta is not None:  # g <- eta / |h'| (g - y y.g), y = h / eta
            y = self.history.states[t] / self.eta
            g = torch.addcmul(g, along(y, g), y, value=-0.5) * self.into_h[t]
        torch.mul(g, self.into_u[t], out=u_bar)
        torch.mul(g, self.into_k[t], out=k_bar)
        delta = along(w, k_bar)
        q = torch.addcmul(k_bar, delta, w, value=-1)
        beta = along(a, q)
        # v_bar = (-gamma k' - delta p + gamma delta w) / |a + b|
        v_bar = torch.addcmul(-self.gamma[t] * q, delta, self.p[t], value=-1).mul_(self.into_v[t])
        # s = -alpha q - beta x + alpha beta a, its part along a apart
        s = torch.addcmul(self.alpha[t] * q, beta, self.before[t])
        torch.sub(v_bar, s, out=self.turning[t])
        b = self.b[t]
        torch.mul(torch.addcmul(v_bar, along(b, v_bar), b, value=-0.5), self.into_tau[t], out=tau_bar)
        torch.addcmul(q, beta, a, value=-1, out=out)
        out.addcmul_(g, self.keep[t])
        if into is not None:
            out.add_(into)
        return out.addmm_(bars[:, : 2 * n], self.weight)

    def gradients(self, wanted: Flags) -> tuple[Tensor | None, ...]:
        """Those of d and e, the activation's bias, and W."""
        drive, bias, weight = wanted
        n, k_bar = self.size, self.bars[..., 2 * self.size :]
        own = self.phi.bias_gradient(self.k, k_bar) if bias else None
        if drive:
            k_bar += torch.addcmul(self.turning, along(self.a, self.turning), self.a, value=-0.5) * self.into_e
        return self.bars if drive else None, own, self.history.product(self.bars[..., : 2 * n]) if weight else None
