"""The recurrences: their functions, and what these share."""

from .goru import goru
from .gru import gru
from .lstm import lstm
from .recurrence import recurrence
from .rum import rum

__all__ = ["goru", "gru", "lstm", "recurrence", "rum"]
