"""The type stub of the compiled module matches the module."""

import sys

from subprocesses import ROOT, run


def test_stub():
    out = run([sys.executable, "-m", "mypy.stubtest", "isometry._core", "--concise"], timeout=280, cwd=ROOT)
    assert "error" not in out.lower() or "no issues" in out.lower(), out
