"""The command line on a GPU: `isometry train --backend gpu`, `isometry info`; and the bench of the GPU."""

import json

import pytest
import torch

import bench
import tolerance
from cli_runs import TINY, metrics, tensors
from elsewhere import Elsewhere
from harness.row import worst
from rows import gpu
from test_examples import BLOCK, ON_GPU

COPYING = ("train", "copying", *TINY, "--model")


def test_a_training_and_its_resumption(isometry, tmp_path):
    """Bit by bit as one run on the GPU; of one on the CPU up to rounding, and not more than that."""
    options = (*COPYING, "scornn", "--set", "dropout=0.5", "--set", "num_layers=2")
    for where, count in (("gpu", 6), ("cpu", 6)):
        assert isometry(*options, "--backend", where, "--iterations", count, "--out", where)[0] == 0
    for folder in ("cut", "moved"):
        isometry(*options, "--backend", "gpu", "--iterations", 3, "--out", folder)
    assert isometry("train", "--resume", "cut", "--iterations", 6)[::2] == (0, [])
    assert isometry("train", "--resume", "moved", "--iterations", 6, "--backend", "cpu")[::2] == (0, [])
    assert metrics(tmp_path / "cut")[-1] == metrics(tmp_path / "gpu")[-1]
    assert [f'backend = "{name}"' in (tmp_path / folder / "config.toml").read_text() for folder, name in PLACES] == [
        True
    ] * 4
    found = {folder: tensors(tmp_path / folder) for folder, _ in PLACES}
    weights = [name for name in found["gpu"] if name.startswith("network.")]
    assert all(torch.equal(found["cut"][name], found["gpu"][name]) for name in weights)
    for folder in ("moved", "cpu"):
        assert any(not torch.equal(found[folder][name], found["gpu"][name]) for name in weights), "it ran on the GPU"
        for name in weights:
            tolerance.close(found[folder][name], found["gpu"][name], tolerance.training("float32", 6), name)


PLACES = (("cut", "gpu"), ("gpu", "gpu"), ("moved", "cpu"), ("cpu", "cpu"))
LEFT = {
    "scornn": None,
    "unitary-ornn": None,
    "full-capacity-urnn": None,
    "rnn": None,
    "exprnn": "the GPU has no kernels for W of ExpRNN, which the CPU forms",
    "gru": None,
    "rum": None,
    "lstm": None,
    "goru": "the GPU has no kernels for W of GORU, which the CPU forms",
    "goru cayley": None,
}


@pytest.mark.parametrize("name", LEFT)
def test_what_the_gpu_does_not_compute_is_said(isometry, name):
    model, _, transition = name.partition(" ")
    more = ("--set", f"transition={transition}") if transition else ()
    status, out, err = isometry(*COPYING, model, *more, "--backend", "gpu", "--iterations", 1, "--out", "run")
    assert (status, err) == (0, [])
    assert [line for line in out.splitlines() if "GPU" in line] == ([f"run: {LEFT[name]}"] if LEFT[name] else [])


def test_a_comparison(isometry, tmp_path):
    """Its runs are on the GPU, and go on there."""
    command = ("compare", "copying", *TINY, "--models", "scornn", "--seeds", 1, "--jobs", 1, "--backend", "gpu")
    for count in (2, 3):
        assert isometry(*command, "--iterations", count, "--out", "both")[0] == 0
    assert 'backend = "gpu"' in (tmp_path / "both/scornn-0/config.toml").read_text()
    assert metrics(tmp_path / "both/scornn-0")[-1]["iteration"] == "3"


def test_info_marks_the_adapter_in_use(isometry):
    line = isometry("info")[1].splitlines()[-1]
    assert line.startswith("gpu adapters") and line.count(", used") == 1


def test_the_bench(tmp_path, capsys):
    """Values are right, every row is timed on both sides and with copies."""
    file = tmp_path / "out.json"
    assert bench.main(["gpu", "--quick", "--threads", "1", "--json", str(file)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "left out" not in out
    found = json.loads(file.read_text())["rows"]
    assert len(found) == 5 and all(row["seconds"].keys() >= {"isometry", "with copies", "cpu"} for row in found)


def test_torch_on_cuda_stays_there(monkeypatch):
    """The peers of the bench, on a substitute for a device of CUDA."""
    monkeypatch.setattr(gpu, "DEVICE", "cuda:0")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.nn.RNN, "flatten_parameters", lambda _: None)  # a call of cuDNN
    with Elsewhere():
        for row in gpu.rows(quick=True):
            assert not torch.backends.cuda.matmul.allow_tf32 and not torch.backends.cudnn.allow_tf32
            peer = next(peer for peer in row.peers if peer.name.endswith(", cuda:0"))
            assert worst(peer.results(), row.reference(), row.tolerance)[0] <= 1
            assert [bar.peers for bar in row.bars] == [(peer.name,)]


def test_the_document():
    """All Python blocks of docs/gpu.md, on the adapter under test."""
    blocks = BLOCK.findall(ON_GPU.read_text())
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(compile(block, str(ON_GPU), "exec"), names)
