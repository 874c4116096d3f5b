"""checkpoint.safetensors: a session's whole state, without pickle.

    network.<name>             parameters and buffers
    best.<name>                those of the best row, of a task that says what is best
    optimizer.<k>.<i>.<name>   state of optimiser k for its i-th parameter (running squares, step counts, ...)
    torch_rng                  state of torch's generator

and in the file's metadata, as JSON: iteration, seconds, the best row and whether the last one is better, the sums of
the row of metrics.csv that has begun, the state of the NumPy generator that draws the batches, and the sizes of the
network.
"""

import copy
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save_file
from torch import Tensor

from isometry.cli.build import make_layer
from isometry.cli.errors import Failure, UsageError
from isometry.cli.files import replacing
from isometry.cli.network import Network
from isometry.cli.session import Best, Session
from isometry.cli.settings import Settings
from isometry.readers._file import regular

KEY, FORMAT = "isometry", 3
SIZE = 8  # bytes before the header of the file, the number of its bytes
#: The entries of the metadata besides the format, and their types.
FACTS: dict[str, Any] = {
    "iteration": int,
    "seconds": int | float,
    "sums": dict,
    "count": int,
    "numpy_rng": dict,
    "scalars": dict,
    "network": dict,
    "best": list | None,
    "last_is_best": bool,
}


def save(path: Path, session: Session) -> None:
    """Write the checkpoint; the old one stays until the new one is complete."""
    tensors = {f"network.{name}": value for name, value in session.network.state_dict().items()}
    tensors["torch_rng"] = torch.get_rng_state()
    best = session.best
    if best is not None:
        tensors |= {f"best.{name}": value for name, value in best.network.items()}
    scalars: dict[str, Any] = {}
    for k, optimizer in enumerate(session.optimizers):
        for index, entries in optimizer.state_dict()["state"].items():
            for name, value in entries.items():
                (tensors if isinstance(value, Tensor) else scalars)[f"optimizer.{k}.{index}.{name}"] = value
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
        "measure": session.measure,
    }
    copies = {name: value.cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
    with replacing(path) as temporary:
        try:
            save_file(copies, temporary, {KEY: json.dumps(facts)})
        except SafetensorError as error:  # of the disk
            raise Failure(f"{path}: {error}") from error
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # safetensors creates files readable by the owner only


def read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The facts and the tensors of a checkpoint."""
    if not path.exists():
        raise Failure(f"{path}: no checkpoint to go on from")
    try:
        data = regular(path).read_bytes()  # safe_open takes no path that is not UTF-8
        tensors = tensors_of(data)
        header = json.loads(data[SIZE : SIZE + int.from_bytes(data[:SIZE], "little")])
        facts = json.loads(header["__metadata__"][KEY])
        if facts["format"] != FORMAT:
            raise ValueError(f"expected checkpoint format {FORMAT}, got {facts['format']}")
        for name, kinds in FACTS.items():
            if not isinstance(facts[name], kinds):
                raise TypeError(f"{name} is {facts[name]!r}")
    except Exception as error:  # safetensors has its own exception class for a damaged file
        raise Failure(f"{path}: not a checkpoint of isometry: {_said(error)}") from error
    return facts, tensors


def load(path: Path, session: Session) -> None:
    """Restore the saved state into a fresh session of the same settings."""
    facts, tensors = read(path)
    try:
        if facts["network"] != session.network.sizes:
            raise ValueError(f"a network of {facts['network']}, not of {session.network.sizes}")
        if (measure := facts.get("measure", session.measure)) != session.measure:  # earlier versions did not write it
            raise ValueError(f"the best network is that of {measure}, not of {session.measure}")
        if facts["best"] is not None:
            iteration, value = facts["best"]
            session.best = Best(int(iteration), float(value), below(tensors, "best."))
            session.network.load_state_dict(session.best.network)
        session.network.load_state_dict(below(tensors, "network."))
        for k, optimizer in enumerate(session.optimizers):
            merged = below(tensors, f"optimizer.{k}.") | below(facts["scalars"], f"optimizer.{k}.")
            _load_optimizer(optimizer, merged)
        torch.set_rng_state(tensors["torch_rng"])
        session.rng.bit_generator.state = facts["numpy_rng"]
        session.iteration, session.seconds = facts["iteration"], float(facts["seconds"])
        session.sums, session.count = {name: float(v) for name, v in facts["sums"].items()}, facts["count"]
        if session.sums.keys() != ({"loss", *session.scored} if session.count else set()):
            raise ValueError(f"sums of {', '.join(session.sums) or 'nothing'} over {session.count} updates")
    except Exception as error:
        raise Failure(f"{path}: does not fit this run's config.toml: {_said(error)}") from error


def _load_optimizer(optimizer: torch.optim.Optimizer, entries: dict[str, Any]) -> None:
    """Restore the state <i>.<name> of an optimiser, which must have the form that its own updates produce."""
    twin = copy.deepcopy(optimizer)
    for group in twin.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    twin.step()
    form, groups = twin.state_dict()["state"], optimizer.state_dict()["param_groups"]
    state: dict[int, dict[str, Any]] = {}
    for name, value in entries.items():
        index, _, entry = name.partition(".")
        state.setdefault(int(index), {})[entry] = value
    for k, found in state.items():
        if form[k].keys() != found.keys():
            raise ValueError(f"parameter {k} of an optimiser has the state {', '.join(found)}")
        for entry, value in found.items():
            if _form(value) != _form(form[k][entry]):
                raise ValueError(f"{entry} of parameter {k} of an optimiser is {_form(value)}")
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _form(value: Any) -> Any:
    return (value.shape, value.dtype) if isinstance(value, Tensor) else type(value)


def load_network(saved: tuple[dict[str, Any], dict[str, Tensor]], path: Path, settings: Settings) -> Network:
    """The trained network alone of what `read` has read, the best one where the task says what is best, in the state
    of evaluation.
    """
    facts, tensors = saved
    prefix = "network." if facts["best"] is None or facts["last_is_best"] else "best."
    try:
        with torch.random.fork_rng(devices=[]):
            network = Network(make_layer(settings, facts["network"]["inputs"]), **facts["network"])
        network.load_state_dict(below(tensors, prefix))
    except UsageError:  # of config.toml
        raise
    except Exception as error:
        raise Failure(f"{path}: does not fit this run's config.toml: {_said(error)}") from error
    return network.eval()


def _said(error: Exception) -> str:
    """The message of an error of another library; that of a KeyError is the name alone."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error) or type(error).__name__


def below(table: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The entries whose name begins with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in table.items() if name.startswith(prefix)}
