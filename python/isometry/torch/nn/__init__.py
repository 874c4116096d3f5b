"""Recurrent layers with orthogonal or unitary matrices, used like ``torch.nn.RNN``."""

from .gru import GRU
from .ornn import ORNN
from .scornn import ScoRNN
from .scurnn import ScuRNN
from .unitary_ornn import UnitaryORNN
from .urnn import URNN

__all__ = ["GRU", "ORNN", "URNN", "ScoRNN", "ScuRNN", "UnitaryORNN"]
