"""Orthogonal and unitary weights of any module."""

from .orthogonal import orthogonal

__all__ = ["orthogonal"]
