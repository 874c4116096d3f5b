"""A recurrent network whose matrix is n signs: h_t = H D h_{t-1} + V x_t + b, H Hadamard's matrix, D = diag(+-1).

The matrix is orthogonal whatever the signs are, a step takes n log n additions, and W is stored in n bits. The signs
are fixed, or trained through a straight-through estimator: forward takes the signs of real numbers u, backward passes
their gradient on to u. (After Foucault, Mamalet, Malgouyres: HadamRNN, ICLR 2025, which has no activation between the
steps of the copying problem either.)

The network reads six digits, then DELAY blanks, and then tells all six.

    python examples/hadamard_rnn.py [--delay 200] [--updates 300]
"""

from __future__ import annotations

import argparse

import torch

import isometry.torch as it

DIGITS, SHOWN, HIDDEN, BATCH = 8, 6, 128, 64


class SignRNN(torch.nn.Module):
    """Signs of n real numbers, trained or fixed, in a Hadamard recurrence."""

    def __init__(self, inputs: int, hidden: int, outputs: int, trained: bool) -> None:
        super().__init__()
        self.u = torch.nn.Parameter(0.02 * torch.randn(1, hidden), requires_grad=trained)
        self.input_weight = torch.nn.Parameter(torch.randn(hidden, inputs) / inputs**0.5)
        self.bias = torch.nn.Parameter(torch.zeros(hidden))
        self.readout = torch.nn.Linear(hidden, outputs)

    def transition(self) -> it.Hadamard:
        """The signs of u, with the gradient of u itself."""
        signs = torch.where(self.u < 0, -1.0, 1.0)
        return it.Hadamard(self.u + (signs - self.u).detach())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = it.recurrence(self.transition(), x, self.input_weight, bias=self.bias, activation="identity")
        return self.readout(states[-1]).unflatten(-1, (SHOWN, DIGITS))


def batch(delay: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences (T, B, DIGITS) of digits, one-hot, and blanks, zeros; and the digits (B, SHOWN)."""
    shown = torch.randint(DIGITS, (SHOWN, BATCH), generator=generator)
    x = torch.zeros(SHOWN + delay, BATCH, DIGITS)
    x[:SHOWN] = torch.nn.functional.one_hot(shown, DIGITS).float()
    return x, shown.T


def train(trained: bool, delay: int, updates: int) -> float:
    """The share of right answers in the last tenth of the updates."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = SignRNN(DIGITS, HIDDEN, SHOWN * DIGITS, trained)
    start = model.u.detach().sign()
    rest = [p for name, p in model.named_parameters() if name != "u"]
    # a sign that turns changes all later states: seldom
    optimiser = torch.optim.Adam([{"params": rest, "lr": 3e-3}, {"params": [model.u], "lr": 1e-4}])
    right: list[float] = []
    for _ in range(updates):
        x, target = batch(delay, generator)
        logits = model(x)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
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
    parser.add_argument("--delay", type=int, default=200, help="blanks before the answer")
    parser.add_argument("--updates", type=int, default=300)
    options = parser.parse_args()
    for trained in (False, True):
        train(trained, options.delay, options.updates)


if __name__ == "__main__":
    main()
