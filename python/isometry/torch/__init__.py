"""Orthogonal and unitary transformations on torch tensors, differentiable.

The same names as in `isometry`, on tensors; recurrent layers are in `isometry.torch.nn`.
"""

import torch as _torch

from .. import _core, _threads, config
from .._backend import use_backend
from .._core import __version__
from .._threads import set_num_threads
from . import linalg, operators, optim, sequences
from .activations import activate
from .delta import delta_rule
from .hadamard import hadamard_transform
from .operators import *  # noqa: F403
from .realform import complex_matrix, complex_state, orthogonality_error, real_input, real_matrix, real_state
from .sequences import *  # noqa: F403
from .stiefel import cayley_step

from . import adapters, fla, init, nn, parametrizations  # isort: skip  (the layers import the names above)

# torch's threads spin for milliseconds after each of its operations; sharing its team avoids competing for the cores.
_core.adopt_openmp()


def get_num_threads() -> int:
    """The number of threads that a call on tensors may use.

    Returns
    -------
    int
        What `set_num_threads` or the environment variable ISOMETRY_NUM_THREADS set, else `torch.get_num_threads()`.

    Examples
    --------
    >>> import isometry.torch as it
    >>> it.get_num_threads() >= 1
    True
    """
    return _threads.chosen() or _torch.get_num_threads()


def show_config() -> None:
    """Print the version of the package, the instruction set of the kernels, torch's version and the thread budget.

    Examples
    --------
    >>> import isometry.torch as it
    >>> it.show_config()  # doctest: +ELLIPSIS
    isometry ...
    """
    config.show(torch=_torch.__version__, threads=get_num_threads())


__all__ = [
    "__version__",
    "activate",
    "adapters",
    "cayley_step",
    "complex_matrix",
    "complex_state",
    "delta_rule",
    "fla",
    "get_num_threads",
    "hadamard_transform",
    "init",
    "linalg",
    "nn",
    "optim",
    "orthogonality_error",
    "parametrizations",
    "real_input",
    "real_matrix",
    "real_state",
    "set_num_threads",
    "show_config",
    "use_backend",
]
__all__ += operators.__all__
__all__ += sequences.__all__
