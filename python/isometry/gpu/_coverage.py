"""What has kernels on the GPU. The CPU computes the rest, and forms the matrices of other objects."""

from isometry import _core


def has_cell(name: str) -> bool:
    """Whether there are kernels for a cell, or for its form without an operator."""
    *_, dense, _ = _core.CELLS[name]
    return (dense or name) in _core.gpu_cells()


def has_object(stem: str) -> bool:
    """Whether there are kernels for an object."""
    return stem in _core.gpu_objects()
