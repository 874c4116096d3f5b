"""Recurrent layers with orthogonal or unitary matrices, used like ``torch.nn.RNN``."""

from .exprnn import ExpRNN
from .full_capacity_urnn import FullCapacityURNN
from .gru import GRU
from .ornn import ORNN
from .scornn import ScoRNN
from .scurnn import ScuRNN
from .unitary_ornn import UnitaryORNN

__all__ = ["GRU", "ORNN", "ExpRNN", "FullCapacityURNN", "ScoRNN", "ScuRNN", "UnitaryORNN"]
