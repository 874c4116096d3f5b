"""checkpoint.safetensors: a session's whole state, without pickle.

    network.<name>             parameters and buffers
    best.<name>                those of the best row, of a task that says what is best
    optimizer.<k>.<i>.<name>   state of optimiser k for its i-th parameter (running squares, step counts, ...)
    torch_rng                  state of torch's generator

and in the file's metadata, as JSON: iteration, seconds, the best row and whether the last one is better, the sums of
the row of metrics.csv that has begun, the state of the NumPy generator that draws the batches, and the sizes of the
network.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from isometry.cli.build import make_layer
from isometry.cli.errors import Failure
from isometry.cli.network import Network
from isometry.cli.session import Best, Session
from isometry.cli.settings import Settings

KEY, FORMAT = "isometry", 3


def save(path: Path, session: Session) -> None:
    """Write the checkpoint; the old one stays until the new one is complete."""
    tensors = {f"network.{name}": value for name, value in session.network.state_dict().items()}
    tensors["torch_rng"] = torch.get_rng_state()
    best = session.best
    if best is not None:
        tensors |= {f"best.{name}": value for name, value in best.network.items()}
    scalars: dict[str, Any] = {}
    for name, value in _optimizer_state(session):
        (tensors if isinstance(value, Tensor) else scalars)[name] = value
    facts = {
        "format": FORMAT,
        "iteration": session.iteration,
        "seconds": session.seconds,
        "sums": session.sums,
        "count": session.count,
        "numpy_rng": session.rng.bit_generator.state,
        "scalars": scalars,
        "network": session.network.sizes,
        "best": None if best is None else [best.iteration, best.value],
        "last_is_best": session.last_is_best,
    }
    temporary = path.with_suffix(".partial")
    copies = {name: value.clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
    save_file(copies, temporary, {KEY: json.dumps(facts)})
    umask = os.umask(0)
    os.umask(umask)
    temporary.chmod(0o666 & ~umask)  # safetensors creates files readable by the owner only
    os.replace(temporary, path)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The facts and the tensors of a checkpoint."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise Failure(f"{path}: no checkpoint to go on from") from error
    except Exception as error:  # safetensors has its own exception class for a damaged file
        raise Failure(f"{path}: not a checkpoint of isometry: {error}") from error
    if facts["format"] != FORMAT:
        raise Failure(f"{path}: expected checkpoint format {FORMAT}, got {facts['format']}")
    return facts, tensors


def load(path: Path, session: Session) -> None:
    """Bring a fresh session of the same settings into the state that was saved."""
    facts, tensors = read(path)
    try:
        session.network.load_state_dict(below(tensors, "network."))
        for k, optimizer in enumerate(session.optimizers):
            merged = below(tensors, f"optimizer.{k}.") | below(facts["scalars"], f"optimizer.{k}.")
            state: dict[int, dict[str, Any]] = {}
            for name, value in merged.items():
                index, _, entry = name.partition(".")
                state.setdefault(int(index), {})[entry] = value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": state, "param_groups": groups})
        torch.set_rng_state(tensors["torch_rng"])
        session.rng.bit_generator.state = facts["numpy_rng"]
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        raise Failure(f"{path}: does not fit this run's config.toml: {error}") from error
    session.iteration, session.seconds = facts["iteration"], facts["seconds"]
    session.sums, session.count = facts["sums"], facts["count"]
    if facts["best"] is not None:
        iteration, value = facts["best"]
        session.best = Best(iteration, value, below(tensors, "best."))


def load_network(path: Path, settings: Settings) -> Network:
    """The trained network alone, the best one where the task says what is best, in the state of evaluation."""
    facts, tensors = read(path)
    with torch.random.fork_rng(devices=[]):
        network = Network(make_layer(settings, facts["network"]["inputs"]), **facts["network"])
    prefix = "network." if facts["best"] is None or facts["last_is_best"] else "best."
    try:
        network.load_state_dict(below(tensors, prefix))
    except RuntimeError as error:
        raise Failure(f"{path}: does not fit this run's config.toml: {error}") from error
    return network.eval()


def below(table: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The entries whose name begins with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in table.items() if name.startswith(prefix)}


def _optimizer_state(session: Session) -> list[tuple[str, Any]]:
    return [
        (f"optimizer.{k}.{index}.{name}", value)
        for k, optimizer in enumerate(session.optimizers)
        for index, entries in optimizer.state_dict()["state"].items()
        for name, value in entries.items()
    ]
