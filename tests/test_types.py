"""Types survive expressions and calls, the stub of the compiled module matches it, words from a list are checked."""

import sys

import pytest

import typed_use
from subprocesses import ROOT, run

pytestmark = pytest.mark.slow

#: Calls with a word that is none of those allowed.
WRONG = """
import torch, isometry as iso, isometry.torch as it
x, w, op = torch.ones(4, 2, 3), torch.ones(3, 3), it.Dense(torch.eye(3))
it.recurrence(op, x, w, checkpoint="no")
it.recurrence(op, x, w, output="all")
it.recurrence(op, x, w, activation_on="output")
it.gru(op, x, w, w, reset="never")
iso.recurrence(iso.Dense.random(3), x.numpy(), output="all")
it.nn.ScoRNN(3, 4, checkpoint="no")
it.nn.GRU(3, 4, reset="never")
it.nn.GORU(3, 4, reset="never")
it.nn.EURNN(3, 4, layout="mesh")
it.Mesh.random(4, layout="mesh")
it.optim.CayleyRMSprop([w], 0.1, scaling="max")
it.nn.ScoRNN(3, 4)(x.numpy())
"""


def mypy(path):
    """What mypy says of a file."""
    flags = ["--no-error-summary", "--config-file", str(ROOT / "pyproject.toml")]
    return run([sys.executable, "-m", "mypy", *flags, str(path)], timeout=280, cwd=ROOT, check=False).stdout


def test_types_survive():
    """The program is right when it runs, and for mypy."""
    assert typed_use.op.H.H is typed_use.op
    assert "error" not in mypy(typed_use.__file__)


def test_words_outside_the_list_are_errors(tmp_path):
    path = tmp_path / "words.py"
    path.write_text(WRONG)
    found = {int(line.split(":")[1]) for line in mypy(path).splitlines() if ": error:" in line}
    lines = WRONG.splitlines()
    missed = [line for number, line in enumerate(lines, 1) if number > 3 and number not in found]
    assert not missed and min(found) > 3


def test_stub(tmp_path):
    allowed = tmp_path / "allowed"
    allowed.write_text("isometry._core.__all__\n")  # PyO3 makes it of all names, of which each is compared
    stubtest = "-m", "mypy.stubtest", "isometry._core", "--concise", "--allowlist", str(allowed)
    out = run([sys.executable, *stubtest], timeout=280, cwd=ROOT)
    assert "error" not in out.lower() or "no issues" in out.lower(), out
