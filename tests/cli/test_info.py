"""`isometry info` and `python -m isometry`."""

import subprocess
import sys

import isometry as iso


def test_info(isometry):
    status, out, err = isometry("info")
    assert (status, err) == (0, [])
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if line.strip())
    assert lines["isometry"] == iso.__version__
    assert {"python", "numpy", "torch", "simd", "threads"} <= set(lines)
    assert "gpu adapters" in out


def test_module_is_the_script():
    """The same program by `python -m`, and it needs no torch for `info`."""
    program = "import sys; sys.modules['torch'] = None; from isometry.cli import main; sys.exit(main(['info']))"
    for command in ([sys.executable, "-m", "isometry", "info"], [sys.executable, "-c", program]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "") and "threads" in done.stdout
