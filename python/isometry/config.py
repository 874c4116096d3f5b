"""The configuration in use: versions, instruction set, threads."""

import platform

import numpy as np

from isometry import _core, _threads


def show_config() -> None:
    """Print the version of the package, the instruction set of the kernels and the number of threads.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.show_config()  # doctest: +ELLIPSIS
    isometry ...
    """
    show(threads=_threads.get_num_threads())


def show(**face: object) -> None:
    """Print the lines common to both faces, then those of the calling face."""
    lines = {"python": platform.python_version(), "numpy": np.__version__, **face}
    print(f"isometry {_core.__version__}")
    for name, value in {**_core.config(), **lines}.items():
        if name != "version":
            print(f"  {name}: {', '.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")
