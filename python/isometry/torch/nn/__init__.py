"""Recurrent layers with orthogonal or unitary matrices, used like ``torch.nn.RNN``, and a module for any operator."""

from .cornn import CoRNN
from .delta_product import DeltaProduct
from .eurnn import EURNN
from .exprnn import ExpRNN
from .from_torch import from_torch
from .full_capacity_urnn import FullCapacityURNN
from .goru import GORU
from .gru import GRU
from .kru import KRU
from .lem import LEM
from .lstm import LSTM
from .operator_module import OperatorModule
from .ornn import ORNN
from .parameter_groups import parameter_groups
from .real_state import RealState
from .rnn import RNN
from .rum import RUM
from .scornn import ScoRNN
from .scurnn import ScuRNN
from .soft_ornn import SoftORNN
from .to_torch import to_torch
from .unitary_ornn import UnitaryORNN
from .urnn import URNN

__all__ = [
    "EURNN",
    "GORU",
    "GRU",
    "KRU",
    "LEM",
    "LSTM",
    "ORNN",
    "RNN",
    "RUM",
    "URNN",
    "CoRNN",
    "DeltaProduct",
    "ExpRNN",
    "FullCapacityURNN",
    "OperatorModule",
    "RealState",
    "ScoRNN",
    "ScuRNN",
    "SoftORNN",
    "UnitaryORNN",
    "from_torch",
    "parameter_groups",
    "to_torch",
]
