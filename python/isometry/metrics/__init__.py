"""Measures: the distance of a matrix from orthonormal columns, and errors of predicted sequences."""

from isometry.metrics.masked_mse import masked_mse
from isometry.metrics.nmse import nmse
from isometry.metrics.orthogonality_error import orthogonality_error

__all__ = ["masked_mse", "nmse", "orthogonality_error"]
