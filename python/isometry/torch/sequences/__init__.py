"""The recurrences: their functions, and what these share."""

from .cornn import cornn
from .goru import goru
from .gru import gru
from .lem import lem
from .lstm import lstm
from .recurrence import recurrence
from .rum import rum

__all__ = ["cornn", "goru", "gru", "lem", "lstm", "recurrence", "rum"]
