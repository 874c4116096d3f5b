"""Recurrent layers with orthogonal or unitary matrices, used like ``torch.nn.RNN``."""

from .gru import GRU
from .ornn import ORNN
from .rum import RUM
from .scornn import ScoRNN
from .scurnn import ScuRNN
from .unitary_ornn import UnitaryORNN

__all__ = ["GRU", "ORNN", "RUM", "ScoRNN", "ScuRNN", "UnitaryORNN"]
