"""Recurrent layers with orthogonal or unitary matrices, used like ``torch.nn.RNN``."""

from .goru import GORU
from .gru import GRU
from .ornn import ORNN
from .scornn import ScoRNN
from .scurnn import ScuRNN
from .unitary_ornn import UnitaryORNN

__all__ = ["GORU", "GRU", "ORNN", "ScoRNN", "ScuRNN", "UnitaryORNN"]
