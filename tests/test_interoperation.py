"""Every block of docs/interoperation.md, with the packages that it is about."""

import re
import sys

import pytest
import torch

import isometry.torch as it
import other_packages
from subprocesses import ROOT, run

pytestmark = other_packages.MARKS

TEXT = (ROOT / "docs/interoperation.md").read_text()
FIRST, *SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^```python program.py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = {section.splitlines()[0]: block for section in SECTIONS for block in BLOCK.findall(section)}


def test_every_section_has_one_block():
    assert len(SECTIONS) == len(SHOWN) + 1 == 8 and len(PROGRAM.findall(TEXT)) == 1


@pytest.mark.parametrize("section", SHOWN)
def test_the_section_runs(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "interoperation"}
    for block in (*BLOCK.findall(FIRST), SHOWN[section]):
        exec(compile(block, f"{section} of docs/interoperation.md", "exec"), names)


def test_the_program_for_torchrun(tmp_path):
    """Both ways of sharing the work have the losses of one process with the whole batch."""
    (tmp_path / "program.py").write_text(PROGRAM.search(TEXT)[1])
    launched = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "program.py"]
    found = [float(line) for line in run(launched, timeout=240, cwd=tmp_path, OMP_NUM_THREADS="1").split()]

    torch.manual_seed(0)
    model = it.nn.ScoRNN(3, 16)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.randn(10, 8, 3)
    for _ in range(3):
        loss = model(x)[0].square().mean()
        optimiser.zero_grad(), loss.backward(), optimiser.step()
    assert found == pytest.approx(2 * [loss.item()], abs=1e-5)
