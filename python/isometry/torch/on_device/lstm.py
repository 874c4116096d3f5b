"""c <- f * c + i * g, h = o * tanh(c), with gates i, f, g, o of W h + d; states are (h, c)."""

from typing import Any

import torch
from torch import Tensor

from .activation import Phi
from .history import Flags, History


def matrices(_weight: None, _x: Tensor, w: Tensor, *_: Any) -> tuple[Tensor]:
    """W."""
    return (w,)


class Steps:
    """d (T, B, 4 n) and W (4 n, n)."""

    def __init__(self, _phi: Phi, _settings: tuple[float | None, ...], drive: Tensor, weight: Tensor) -> None:
        self.drive, self.weight, self.size = drive, weight, weight.shape[1]

    def saved(self, count: int) -> tuple[Tensor, ...]:
        """Gates and tanh(c) of as many steps."""
        shape = count, self.drive.shape[1]
        self.gates, self.tanh = self.drive.new_empty(*shape, 4 * self.size), self.drive.new_empty(*shape, self.size)
        return self.gates, self.tanh

    def step(self, t: int, k: int, h: Tensor, out: Tensor) -> None:
        """The state after step t, whose gates are the k-th that are saved."""
        n, gates, tanh = self.size, self.gates[k], self.tanh[k]
        before, c = h.split(n, -1)
        new, new_c = out.split(n, -1)
        torch.addmm(self.drive[t], before, self.weight.mT, out=gates)
        i, f, g, o = gates.split(n, -1)
        gates[:, : 2 * n].sigmoid_()
        g.tanh_()
        o.sigmoid_()
        torch.mul(f, c, out=new_c)
        new_c.addcmul_(i, g)
        torch.tanh(new_c, out=tanh)
        torch.mul(o, tanh, out=new)

    def start(self, history: History, saved: tuple[Tensor, ...]) -> None:
        """Prepares the way back. With the cotangents h_bar and c_bar and s = c_bar + h_bar o (1 - tanh(c)^2), those of
        the arguments are s g i (1 - i), s c' f (1 - f), s i (1 - g^2) and h_bar tanh(c) o (1 - o).
        """
        n, (gates, tanh) = self.size, saved
        i, f, g, o = gates.split(n, -1)
        self.before, c = history.before.split(n, -1)
        self.f, self.into_s = f, o * (1 - tanh * tanh)
        self.from_s = torch.stack((g * i * (1 - i), c * f * (1 - f), i * (1 - g * g)), -2)
        self.into_o = tanh * o * (1 - o)
        self.bars = torch.empty_like(self.drive)

    def adjoint(self, t: int, g: Tensor, into: Tensor | None, out: Tensor) -> Tensor:
        """The cotangent of the states before step t, added to `into`, from that of the states after it."""
        n, bars = self.size, self.bars[t]
        h_bar, c_bar = g.split(n, -1)
        before, c_before = out.split(n, -1)
        s = torch.addcmul(c_bar, h_bar, self.into_s[t])
        torch.mul(s.unsqueeze(1), self.from_s[t], out=bars.unflatten(-1, (4, n))[:, :3])
        torch.mul(h_bar, self.into_o[t], out=bars[:, 3 * n :])
        if into is None:
            torch.mul(s, self.f[t], out=c_before)
            torch.mm(bars, self.weight, out=before)
        else:
            h_into, c_into = into.split(n, -1)
            torch.addcmul(c_into, s, self.f[t], out=c_before)
            torch.addmm(h_into, bars, self.weight, out=before)
        return out

    def gradients(self, wanted: Flags) -> tuple[Tensor | None, ...]:
        """Those of d, no activation's bias, and W."""
        drive, _, weight = wanted
        return (
            self.bars if drive else None,
            None,
            self.bars.flatten(0, 1).mT @ self.before.flatten(0, 1) if weight else None,
        )
