"""The formula of the GRU with an operator as W_h."""

from .gru import formula, operands

__all__ = ["formula", "operands"]
