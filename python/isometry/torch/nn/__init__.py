"""Recurrent layers with orthogonal or unitary matrices, used like ``torch.nn.RNN``."""

from .eurnn import EURNN
from .gru import GRU
from .kru import KRU
from .ornn import ORNN
from .scornn import ScoRNN
from .scurnn import ScuRNN
from .soft_ornn import SoftORNN
from .unitary_ornn import UnitaryORNN

__all__ = ["EURNN", "GRU", "KRU", "ORNN", "ScoRNN", "ScuRNN", "SoftORNN", "UnitaryORNN"]
