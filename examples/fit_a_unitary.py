"""Which operator to fit: L-BFGS from a random start to unitary matrices drawn from the Haar measure.

    python examples/fit_a_unitary.py [--n 16] [--seeds 3] [--iterations 3000]

The loss is the squared distance |W - Q|^2, the sum over the entries; every operator has n^2 real parameters or more and
can represent every Q. The table has the loss at the end and the iterations it took, for every seed. If Q is known,
`Householder.from_matrix` gives the operator at once: this is for losses that show Q through data only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

import isometry.torch as it


def haar(n: int, seed: int) -> Tensor:
    """A unitary matrix from the Haar measure: Q of a QR factorisation whose R has a positive diagonal."""
    z = torch.randn(n, n, dtype=torch.complex128, generator=torch.Generator().manual_seed(seed))
    q, r = torch.linalg.qr(z)
    return q * (r.diagonal() / r.diagonal().abs())


def operators(n: int, seed: int) -> dict[str, tuple[list[Tensor], Callable[..., it.Operator]]]:
    """Name -> random parameters, and the operator made of them."""
    draw = torch.Generator().manual_seed(1000 + seed)
    real = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=draw)
    pairs = n * (n - 1) // 2
    skew = lambda: 0.1 * torch.complex(real(pairs), real(pairs))
    return {
        "Householder, phases": (
            [torch.complex(real(n, n), real(n, n)), real(n)],
            lambda vectors, phases: it.Householder(vectors, phases=phases),
        ),
        "Exponential": ([skew(), 0.1 * real(n)], lambda upper, diagonal: it.Exponential(upper, diagonal=diagonal)),
        "Cayley, phases": (
            [skew(), 0.1 * real(n), real(n)],
            lambda upper, diagonal, phases: it.Cayley(upper, diagonal=diagonal, phases=phases),
        ),
        "Mesh, n layers": (
            [real(pairs), real(pairs), real(n)],
            lambda theta, phi, phases: it.Mesh(theta, n=n, layers=n, phi=phi, phases=phases),
        ),
    }


def fitted(parameters: list[Tensor], operator: Callable[..., it.Operator], q: Tensor, most: int) -> tuple[float, int]:
    """The loss at the end, and the iterations."""
    for p in parameters:
        p.requires_grad_()
    optimiser = torch.optim.LBFGS(
        parameters,
        max_iter=most,
        max_eval=10 * most,
        history_size=50,
        line_search_fn="strong_wolfe",
        tolerance_grad=1e-12,
        tolerance_change=1e-16,
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = (operator(*parameters).matrix() - q).abs().square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    return loss().item(), optimiser.state[parameters[0]]["n_iter"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=3000)
    options = parser.parse_args()
    print("| operator | loss (iterations) of each seed |")
    print("|---|---|")
    for name in operators(options.n, 0):
        runs = [
            fitted(*operators(options.n, seed)[name], haar(options.n, seed), options.iterations)
            for seed in range(options.seeds)
        ]
        cells = ", ".join(f"{loss:.0e} ({iterations:,})" for loss, iterations in runs)
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
