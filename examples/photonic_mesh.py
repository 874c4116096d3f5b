"""A photonic mesh fitted to a measured unitary matrix: what noise costs, and how many layers it takes.

A chip of Mach-Zehnder interferometers is a mesh: layers of 2 x 2 blocks on neighbouring waveguides. The unitary matrix
U that it should have is known from a measurement, M = U + sigma E, where the noise E is as large as U. The angles come

    - from the nearest unitary matrix, the polar factor of M, by `Mesh.from_matrix(M, nearest=True)`, in n layers;
    - from training on |W - M|^2 from random starts, for any number of layers. All starts are one stack of meshes.

A mesh W is judged by its infidelity to the true U, 1 - |tr U^H W|^2 / (|U|^2 |W|^2). M itself has sigma^2; half of the
noise is orthogonal to the unitary matrices, so that the polar factor has sigma^2 / 2.

    python examples/photonic_mesh.py [--out FILE.png] [--quick]
"""

import argparse
import time

import numpy as np
import torch
from matplotlib.figure import Figure

import isometry as iso
import isometry.torch as it

N, STARTS, SIGMAS, SIGMA = 8, 16, [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1], 1e-2


def gaussian(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Complex matrices whose squared norm is N on average, as that of a unitary matrix."""
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / (2 * N) ** 0.5


def infidelity(w: np.ndarray, u: np.ndarray) -> np.ndarray:
    square = lambda a: (np.abs(a) ** 2).sum((-2, -1))
    return 1 - np.abs((u.conj() * w).sum((-2, -1))) ** 2 / (square(u) * square(w))


def trained(m: np.ndarray, layers: int, updates: int) -> np.ndarray:
    """STARTS meshes for each of the matrices m (k, N, N), those nearest to M first."""
    target, rng = torch.from_numpy(m)[:, None], torch.Generator().manual_seed(layers)
    pairs = len(it.Mesh.random(N, layers=layers).theta)
    uniform = lambda count: 2 * torch.pi * torch.rand(len(m), STARTS, count, generator=rng, dtype=torch.float64)
    theta, phi, phases = angles = [uniform(count).requires_grad_() for count in (pairs, pairs, N)]
    optimiser = torch.optim.Adam(angles, lr=0.05)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    for _ in range(updates):
        w = it.Mesh(theta, n=N, layers=layers, phi=phi, phases=phases).matrix()
        distance = (w - target).abs().square().sum((-2, -1))
        optimiser.zero_grad()
        distance.sum().backward()
        optimiser.step()
        decay.step()
    return w.detach().take_along_dim(distance.argsort(-1)[..., None, None], 1).numpy()


def main(out: str | None, quick: bool) -> None:
    rng, updates, start = np.random.default_rng(0), 4 if quick else 2000, time.perf_counter()
    u = iso.linalg.procrustes(gaussian(rng, N, N))  # from the Haar measure
    measured = np.stack([u + sigma * gaussian(rng, N, N) for sigma in SIGMAS])
    found = {"M itself": measured, "from_matrix": iso.Mesh.from_matrix(measured, nearest=True).matrix()}
    found["trained"] = trained(measured, N, updates)[:, 0]
    print(f"{len(SIGMAS) * STARTS} meshes of {N} layers, {updates} updates: {time.perf_counter() - start:.1f} s")
    rows = {name: infidelity(w, u) for name, w in found.items()}
    for k, sigma in enumerate(SIGMAS):
        print(f"sigma {sigma:5}:", ", ".join(f"{name} {values[k]:.1e}" for name, values in rows.items()))
    at = SIGMAS.index(SIGMA)
    depths = {layers: infidelity(trained(measured[[at]], layers, updates)[0], u) for layers in range(1, N + 4)}
    for layers, values in depths.items():
        print(f"{layers:2} layers: best of {STARTS} starts {values[0]:.1e}, worst {values.max():.1e}")
    if out:
        draw(out, rows, depths, rows["from_matrix"][at])


def draw(out: str, rows: dict[str, np.ndarray], depths: dict[int, np.ndarray], exact: float) -> None:
    figure = Figure(figsize=(5, 7.6), layout="constrained")
    upper, lower = figure.subplots(2, 1)
    upper.loglog(SIGMAS, np.stack(list(rows.values()), -1), "o--", label=list(rows))
    lower.semilogy(list(depths), list(depths.values()), "o", color="C2", alpha=0.3, markersize=4)
    lower.semilogy(list(depths), [a[0] for a in depths.values()], "C2x--", label=f"trained, best of {STARTS} starts")
    lower.axhline(exact, color="C1", label=f"from_matrix, {N} layers")
    upper.set(xlabel="noise sigma of the measurement", ylabel="infidelity to U", title=f"n = {N}, {N} layers")
    lower.set(xlabel="layers", ylabel="infidelity to U", title=f"n = {N}, sigma = {SIGMA}")
    upper.legend(frameon=False)
    lower.legend(frameon=False)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    parser.add_argument("--quick", action="store_true", help="4 updates instead of 2,000")
    main(**vars(parser.parse_args()))
