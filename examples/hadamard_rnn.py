"""A recurrent network whose matrix is n signs: h_t = relu(H D h_{t-1} + V x_t + b), H Hadamard's, D = diag(+-1).

The matrix is orthogonal whatever the signs are, a step takes n log n additions, and W is stored in n bits. The signs
are fixed, or trained through a straight-through estimator: forward takes the signs of real numbers u, backward passes
their gradient on to u. (After Foucault, Mamalet, Malgouyres: HadamRNN, ICLR 2025.)

The network reads eight digits, one of them marked, and tells that one after DELAY blanks.

    python examples/hadamard_rnn.py [--delay 50] [--updates 400]
"""

from __future__ import annotations

import argparse

import torch

import isometry.torch as it

DIGITS, SHOWN, HIDDEN, BATCH = 8, 8, 128, 64


class SignRNN(torch.nn.Module):
    """Signs of n real numbers, trained or fixed, in a Hadamard recurrence."""

    def __init__(self, inputs: int, hidden: int, outputs: int, trained: bool) -> None:
        super().__init__()
        self.u = torch.nn.Parameter(torch.randn(1, hidden), requires_grad=trained)
        self.input_weight = torch.nn.Parameter(torch.randn(hidden, inputs) / inputs**0.5)
        self.bias = torch.nn.Parameter(torch.zeros(hidden))
        self.readout = torch.nn.Linear(hidden, outputs)

    def transition(self) -> it.Hadamard:
        """The signs of u, with the gradient of u itself."""
        signs = torch.where(self.u < 0, -1.0, 1.0)
        return it.Hadamard(self.u + (signs - self.u).detach())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = it.recurrence(self.transition(), x, self.input_weight, bias=self.bias, activation="relu")
        return self.readout(states[-1])


def batch(delay: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences (T, B, DIGITS + 1): digits one-hot, the last input marks one of them."""
    shown = torch.randint(DIGITS, (SHOWN, BATCH), generator=generator)
    marked, each = torch.randint(SHOWN, (BATCH,), generator=generator), torch.arange(BATCH)
    x = torch.zeros(SHOWN + delay, BATCH, DIGITS + 1)
    x[:SHOWN, :, :DIGITS] = torch.nn.functional.one_hot(shown, DIGITS).float()
    x[marked, each, DIGITS] = 1.0
    return x, shown[marked, each]


def train(trained: bool, delay: int, updates: int) -> float:
    """The share of right answers in the last tenth of the updates."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = SignRNN(DIGITS + 1, HIDDEN, DIGITS, trained)
    start = model.u.detach().sign()
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    right: list[float] = []
    for _ in range(updates):
        x, target = batch(delay, generator)
        logits = model(x)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits, target).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        right.append((logits.argmax(-1) == target).float().mean().item())
    turned = int((model.u.detach().sign() != start).sum())
    w = model.transition().matrix().detach()
    drift = (w @ w.T - torch.eye(HIDDEN)).abs().max().item()
    score = sum(right[-max(1, updates // 10) :]) / max(1, updates // 10)
    kind = f"trained signs, {turned} of {HIDDEN} turned" if trained else "fixed signs"
    print(f"{kind}: {score:.0%} right (chance {1 / DIGITS:.0%}), max |W W^T - I| = {drift:.0e}")
    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=int, default=50, help="blanks before the answer")
    parser.add_argument("--updates", type=int, default=400)
    options = parser.parse_args()
    for trained in (False, True):
        train(trained, options.delay, options.updates)


if __name__ == "__main__":
    main()
