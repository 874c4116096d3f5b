"""The formula of the GRU with an operator as W_h."""

from .gru import formula

__all__ = ["formula"]
