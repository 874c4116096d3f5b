"""Folders of `isometry train`, loaded for further work in Python."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from isometry._arrays import Array


@dataclass(frozen=True)
class Run:
    """A finished or interrupted training; see `load_run`."""

    layer: Any
    network: Any
    settings: dict[str, Any]
    metrics: dict[str, Array]
    scores: dict[str, Any]


def load_run(folder: str | PathLike[str]) -> Run:
    """Load the folder of an ``isometry train`` run: trained layer, settings and metrics.

    Parameters
    ----------
    folder
        The run's folder: ``runs/<task>-<model>-<seed>``, or what ``--out`` named.

    Returns
    -------
    Run
        An object with the attributes ``layer``, the recurrent layer with its trained weights, a torch module on the
        CPU; ``network``, that layer with its readout, called on x (T, B, inputs); ``settings``, the contents of
        config.toml as a dict; ``metrics``, a dict from the columns of metrics.csv to arrays; ``scores``, the contents
        of scores.toml, empty before the end of a run: iteration, scores on the test data, baselines. Where a task has
        validation data, layer and network are those that did best on it.

    Raises
    ------
    ImportError
        If torch or safetensors is not installed.
    FileNotFoundError
        If the folder holds no run.
    ValueError, RuntimeError
        If a file of the folder is damaged, which the message names, or the class of the user's own model cannot be
        imported.

    Notes
    -----
    A model given as ``package.module:Class`` is imported again, from ``sys.path``. The task is not needed. torch's
    random generator stays as it is.

    Examples
    --------
    >>> import tempfile
    >>> import isometry as iso
    >>> from isometry.cli import main
    >>> folder = tempfile.mkdtemp()
    >>> options = "--hidden 8 --length 5 --iterations 20 --threads 1 --out"
    >>> main(["train", "copying", "--model", "scornn", *options.split(), folder])  # in a shell: isometry train ...
    /tmp...20 iterations...
    0
    >>> run = iso.load_run(folder)
    >>> run.settings["hidden"], run.settings["layer"]["negative_ones"]
    (8, 4)
    >>> run.metrics["iteration"]
    array([ 1., 10., 20.])
    >>> bool(iso.orthogonality_error(run.layer.recurrent_matrix().detach().numpy()) < 20)
    True
    """
    from isometry.cli.errors import missing
    from isometry.cli.run_folder import RunFolder
    from isometry.cli.settings import stored

    if lack := missing(("torch", "safetensors"), "isometry.load_run"):
        raise ImportError(lack)
    from isometry.cli.checkpoint import load_network, read

    files = RunFolder(Path(folder))
    if not files.config.is_file():
        raise FileNotFoundError(f"{files.path} holds no run (no config.toml)")
    saved = read(files.checkpoint)
    settings = stored(files.config)
    network = load_network(saved, files.checkpoint, settings)
    metrics = {name: np.asarray(column) for name, column in files.columns().items()}
    return Run(network.layer, network, dict(settings), metrics, files.read_scores())
