"""The sizes at which laws of structured arrays are tried are those of the code's thresholds."""

from isometry import _core
from isometry._inverse import procrustes
from support.sizes import SHARED, numbers, sizes


def test_how_a_threshold_is_recognised():
    """Constants of any visibility, shifts, values of a build without tests, comparisons of a size; no other numbers."""
    assert numbers("pub(super) const SMALL: usize = 8;\n    const BLOCK: usize = 1 << 4;") == {8, 16}
    assert numbers("const PANEL: usize = if cfg!(test) { 8 } else { 32 };") == {32}
    assert numbers("const MANY: usize = 1_000;") == {1000}
    assert numbers("if n <= 24 || rows == 5 {") == {24, 5}
    assert numbers("_SMALL = 12\n") == {12}
    assert numbers("let x = [8]; const EPS: f64 = 4.0; n <= limit; size <= 7") == set()


def test_sizes_are_on_both_sides():
    small = procrustes._SMALL
    assert {small - 1, small, small + 1} <= set(sizes("procrustes"))
    assert {31, 32, 33} <= set(sizes("cayley"))  # stacks in lanes
    for stem in _core.OBJECTS:
        assert len(sizes(stem, *SHARED)) > 20, stem
