"""checkpoint.safetensors: a session's whole state, without pickle.

    network.<name>             parameters and buffers
    optimizer.<k>.<i>.<name>   state of optimiser k for its i-th parameter (running squares, step counts, ...)
    torch_rng                  state of torch's generator

and in the file's metadata, as JSON: iteration, seconds, the state of the NumPy generator that draws the batches.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isometry.cli.errors import Failure, require
from isometry.cli.session import Session

KEY, FORMAT = "isometry", 1


def save(path: Path, session: Session) -> None:
    """Write the checkpoint; the old one is replaced only once the new one is complete."""
    tensors = {f"network.{name}": value.contiguous() for name, value in session.network.state_dict().items()}
    tensors["torch_rng"] = torch.get_rng_state()
    scalars: dict[str, Any] = {}
    for name, value in _optimizer_state(session):
        if isinstance(value, Tensor):
            tensors[name] = value.contiguous()
        else:
            scalars[name] = value
    facts = {
        "format": FORMAT,
        "iteration": session.iteration,
        "seconds": session.seconds,
        "numpy_rng": session.rng.bit_generator.state,
        "scalars": scalars,
    }
    temporary = path.with_suffix(".partial")
    save_file = require("safetensors.torch").save_file
    save_file({name: value.clone() for name, value in tensors.items()}, temporary, {KEY: json.dumps(facts)})
    umask = os.umask(0)
    os.umask(umask)
    temporary.chmod(0o666 & ~umask)  # safetensors creates files readable by the owner only
    os.replace(temporary, path)


def load(path: Path, session: Session) -> None:
    """Restore the saved state in a fresh session of the same settings."""
    try:
        with require("safetensors").safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise Failure(f"{path}: no checkpoint to go on from") from error
    except Exception as error:  # safetensors has its own exception class for a damaged file
        raise Failure(f"{path}: not a checkpoint of isometry: {error}") from error
    if facts["format"] != FORMAT:
        raise Failure(f"{path}: expected checkpoint format {FORMAT}, got {facts['format']}")
    try:
        session.network.load_state_dict(_below(tensors, "network."))
        for k, optimizer in enumerate(session.optimizers):
            merged = _below(tensors, f"optimizer.{k}.") | _below(facts["scalars"], f"optimizer.{k}.")
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


def _optimizer_state(session: Session) -> list[tuple[str, Any]]:
    return [
        (f"optimizer.{k}.{index}.{name}", value)
        for k, optimizer in enumerate(session.optimizers)
        for index, entries in optimizer.state_dict()["state"].items()
        for name, value in entries.items()
    ]


def _below(table: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in table.items() if name.startswith(prefix)}
