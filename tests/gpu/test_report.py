"""benches/gpu_report.py: one of its sections."""

import gpu_report


def test_tiles_of_every_shape():
    said = list(gpu_report.tiles(True))
    text = [line for line in said if isinstance(line, str)]
    assert all(line for line in said if isinstance(line, bool))
    assert sum(line.startswith(("| 64 x 64", "| 256 x")) for line in text) == 2
