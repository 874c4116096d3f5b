"""h <- phi(W h + d_t), or W h + d_t with an activation of the input, which is then part of d."""

from typing import Any

import torch
from torch import Tensor

from .activation import IDENTITY, Phi
from .history import Flags, History


def matrices(weight: Tensor, *_: Any) -> tuple[Tensor]:
    """W."""
    return (weight,)


class Steps:
    """d (T, B, n) and W."""

    def __init__(self, phi: Phi, settings: tuple[float | None, ...], drive: Tensor, weight: Tensor) -> None:
        self.phi, self.drive, self.weight = IDENTITY if settings[0] else phi, drive, weight
        self.kept: Tensor | None = None

    def step(self, t: int, k: int, h: Tensor, out: Tensor) -> None:
        """The state after step t, the k-th that is saved."""
        torch.addmm(self.drive[t], h, self.weight.mT, out=out)
        self.phi.apply_(out, None if self.kept is None else self.kept[k])

    def saved(self, count: int) -> tuple[Tensor, ...]:
        """What the activation keeps of as many steps."""
        keeps = self.phi.keeps(self.drive[0])
        if keeps is None:
            return ()
        shape, kind = keeps
        self.kept = self.drive.new_empty((count, *shape), dtype=kind)
        return (self.kept,)

    def start(self, history: History, saved: tuple[Tensor, ...]) -> None:
        """Prepares the way back over the states."""
        self.history, self.bars = history, torch.empty_like(history.states)
        self.pull = self.phi.derivative(history.states, *saved)
        self.back = self.weight.conj().resolve_conj()

    def adjoint(self, t: int, g: Tensor, into: Tensor | None, out: Tensor) -> Tensor:
        """The cotangent of the states before step t, added to `into`, from that of the states after it."""
        if self.pull is None:
            self.bars[t].copy_(g)
        else:
            self.pull(t, g, self.bars[t])
        if into is None:
            return torch.mm(self.bars[t], self.back, out=out)
        return torch.addmm(into, self.bars[t], self.back, out=out)

    def gradients(self, wanted: Flags) -> tuple[Tensor | None, ...]:
        """Those of d, the activation's bias, and W."""
        drive, bias, weight = wanted
        return (
            self.bars if drive else None,
            self.phi.bias_gradient(self.history.states, self.bars) if bias and self.phi is not IDENTITY else None,
            self.history.product(self.bars) if weight else None,
        )
