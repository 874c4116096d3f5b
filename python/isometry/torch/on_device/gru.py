"""h <- z * h + (1 - z) * c with gates z and r; c = phi(W_h (r * h) + d) or phi(r * (W_h h + c_h) + d)."""

from typing import Any

import torch
from torch import Tensor

from .activation import Phi
from .history import Flags, History


def matrices(weight: Tensor | None, *arrays: Any) -> tuple[Tensor | None, ...]:
    """c_h, W_z and W_r, W_h."""
    _, w, *_, hidden_bias, _ = arrays
    return hidden_bias, w[:2].flatten(0, 1), w[2] if weight is None else weight


class Steps:
    """d (T, B, 3 n) of z, r and c; c_h or None; W_z and W_r (2 n, n); W_h."""

    def __init__(
        self,
        phi: Phi,
        settings: tuple[float | None, ...],
        drive: Tensor,
        hidden_bias: Tensor | None,
        gates: Tensor,
        weight: Tensor,
    ) -> None:
        self.phi, self.after, self.drive = phi, bool(settings[0]), drive
        self.of_gates, self.weight, self.hidden_bias = gates, weight, hidden_bias
        self.size = weight.shape[0]

    def saved(self, count: int) -> tuple[Tensor, ...]:
        """Gates, c, and with reset after W_h h + c_h, or r * h, of as many steps."""
        n, shape = self.size, (count, self.drive.shape[1])
        self.gates, self.c = self.drive.new_empty(*shape, 2 * n), self.drive.new_empty(*shape, n)
        self.product = self.drive.new_empty(*(shape if self.after else (1, shape[1])), n)
        return (self.gates, self.c, self.product) if self.after else (self.gates, self.c)

    def step(self, t: int, k: int, h: Tensor, out: Tensor) -> None:
        """The state after step t, whose gates are the k-th that are saved."""
        n = self.size
        from_x, into_c = self.drive[t].split((2 * n, n), -1)
        gates, c, product = self.gates[k], self.c[k], self.product[k if self.after else 0]
        torch.addmm(from_x, h, self.of_gates.mT, out=gates)
        gates.sigmoid_()
        z, r = gates.split(n, -1)
        if self.after:
            if self.hidden_bias is None:
                torch.mm(h, self.weight.mT, out=product)
            else:
                torch.addmm(self.hidden_bias, h, self.weight.mT, out=product)
            torch.addcmul(into_c, r, product, out=c)
        else:
            torch.mul(r, h, out=product)
            torch.addmm(into_c, product, self.weight.mT, out=c)
        self.phi.apply_(c)
        torch.lerp(c, h, z, out=out)

    def start(self, history: History, saved: tuple[Tensor, ...]) -> None:
        """Prepares the way back. With g the cotangent of h, P = W_h h + c_h, the cotangents of the arguments are, of c,
        a_bar = g (1 - z) phi', of z, g (h - c) z (1 - z), and of r, r (1 - r) times a_bar P or h W_h^T a_bar.
        """
        self.history, n = history, self.size
        gates, c = saved[:2]
        self.c, before = c, history.before
        self.z, self.r = gates.split(n, -1)
        of_c = 1 - self.z
        pull = self.phi.derivative(c)
        self.into_z = (before - c) * self.z * of_c
        self.into_c = of_c
        if pull is not None:
            pull(slice(None), of_c, self.into_c)
        self.into_r = self.r * (1 - self.r) * (saved[2] if self.after else before)
        self.before = before
        self.bars = torch.empty_like(self.drive)
        # of W_h's product: with reset after it is r * a_bar
        self.own = torch.empty_like(c) if self.after else self.bars[..., 2 * n :]

    def adjoint(self, t: int, g: Tensor, into: Tensor | None, out: Tensor) -> Tensor:
        """The cotangent of the states before step t, added to `into`, from that of the states after it."""
        n, bars = self.size, self.bars[t]
        z_bar, r_bar, a_bar = bars.split(n, -1)
        torch.mul(g, self.into_c[t], out=a_bar)
        torch.mul(g, self.into_z[t], out=z_bar)
        if into is None:
            torch.mul(g, self.z[t], out=out)
        else:
            torch.addcmul(into, g, self.z[t], out=out)
        if self.after:
            torch.mul(a_bar, self.into_r[t], out=r_bar)
            torch.mul(a_bar, self.r[t], out=self.own[t])
            out.addmm_(self.own[t], self.weight)
        else:
            of_product = torch.mm(a_bar, self.weight)
            torch.mul(of_product, self.into_r[t], out=r_bar)
            out.addcmul_(of_product, self.r[t])
        return out.addmm_(bars[:, : 2 * n], self.of_gates)

    def gradients(self, wanted: Flags) -> tuple[Tensor | None, ...]:
        """Those of d, the activation's bias, c_h, the gates' weights, and W_h."""
        drive, bias, hidden_bias, gates, weight = wanted
        n, before, bars = self.size, self.before.flatten(0, 1), self.bars.flatten(0, 1)
        own = self.own.flatten(0, 1)
        read = before if self.after else before * self.r.flatten(0, 1)
        return (
            self.bars if drive else None,
            self.phi.bias_gradient(self.c, self.bars[..., 2 * n :]) if bias else None,
            own.sum(0) if hidden_bias else None,
            bars[:, : 2 * n].mT @ before if gates else None,
            own.mT @ read if weight else None,
        )
