"""The type stub of the compiled module matches the module."""

import sys

import pytest

from subprocesses import ROOT, run

pytestmark = pytest.mark.slow


def test_stub(tmp_path):
    allowed = tmp_path / "allowed"
    allowed.write_text("isometry._core.__all__\n")  # PyO3 makes it of all names, of which each is compared
    stubtest = "-m", "mypy.stubtest", "isometry._core", "--concise", "--allowlist", str(allowed)
    out = run([sys.executable, *stubtest], timeout=280, cwd=ROOT)
    assert "error" not in out.lower() or "no issues" in out.lower(), out
