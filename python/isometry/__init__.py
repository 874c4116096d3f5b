"""Orthogonal and unitary transformations as fast, differentiable building blocks, on NumPy arrays.

Vectors are in the last axis; the dtype determines the field. `isometry.torch` has the same names on tensors.

"""

from isometry import gpu, linalg, metrics, operators, tasks
from isometry._backend import use_backend
from isometry._core import __version__
from isometry._threads import get_num_threads, set_num_threads
from isometry.activations import activate, activate_vjp
from isometry.config import show_config
from isometry.cornn import cornn, cornn_vjp
from isometry.delta import delta_rule, delta_rule_vjp
from isometry.goru import goru, goru_vjp
from isometry.gru import gru, gru_vjp
from isometry.hadamard import hadamard_transform
from isometry.lem import lem, lem_vjp
from isometry.lstm import lstm, lstm_vjp
from isometry.metrics import orthogonality_error
from isometry.operators import *  # noqa: F403
from isometry.realform import complex_matrix, complex_state, real_input, real_matrix, real_state
from isometry.recurrence import recurrence, recurrence_vjp
from isometry.rum import rum, rum_vjp
from isometry.runs import load_run
from isometry.stiefel import cayley_step

__all__ = [
    "__version__",
    "activate",
    "activate_vjp",
    "cayley_step",
    "complex_matrix",
    "complex_state",
    "cornn",
    "cornn_vjp",
    "delta_rule",
    "delta_rule_vjp",
    "get_num_threads",
    "goru",
    "goru_vjp",
    "gpu",
    "gru",
    "gru_vjp",
    "hadamard_transform",
    "lem",
    "lem_vjp",
    "linalg",
    "load_run",
    "lstm",
    "lstm_vjp",
    "metrics",
    "orthogonality_error",
    "real_input",
    "real_matrix",
    "real_state",
    "recurrence",
    "recurrence_vjp",
    "rum",
    "rum_vjp",
    "set_num_threads",
    "show_config",
    "tasks",
    "use_backend",
]
__all__ += operators.__all__
