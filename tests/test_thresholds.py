"""The sizes at which laws of structured arrays are tried are those of the code's thresholds."""

from isometry import _core
from isometry._inverse import procrustes
from support.sizes import SHARED, sizes


def test_sizes_are_on_both_sides():
    small = procrustes._SMALL
    assert {small - 1, small, small + 1} <= set(sizes("procrustes"))
    assert {31, 32, 33} <= set(sizes("cayley"))  # stacks in lanes
    for stem in _core.OBJECTS:
        assert len(sizes(stem, *SHARED)) > 20, stem
