"""`--device`: where torch's tensors are. No other device is at hand: names, refusals, and what is sent there."""

import pytest
import torch

from cli_runs import TINY, metrics
from isometry.cli.build import as_batch
from isometry.cli.resolve import resolve
from isometry.cli.session import Session


def test_the_cpu_by_name(isometry, tmp_path):
    """The default, and what config.toml says; a run goes on with either."""
    options = ("train", "copying", "--model", "scornn", *TINY)
    assert isometry(*options, "--iterations", 4, "--device", "cpu", "--out", "a")[0] == 0
    assert isometry(*options, "--iterations", 4, "--out", "b")[0] == 0
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    assert 'device = "cpu"' in (tmp_path / "b/config.toml").read_text()
    assert isometry("train", "--resume", "a", "--iterations", 6, "--device", "cpu")[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--device", "tpu"), "--device must be cpu, cuda, mps or xpu, or one of several, as cuda:1, not 'tpu'"),
        (("--device", "meta"), "--device must be cpu, cuda"),
        (("--device", "cuda:one"), "--device must be cpu, cuda"),
        (("--device", "cuda:99"), "--device cuda:99: torch has no such device here"),
        (("--device", "xpu"), "--device xpu: torch has no such device here"),
    ],
)
def test_devices_that_are_not_there(refused, words, said):
    assert said in refused("train", "copying", "--model", "rnn", *TINY, "--iterations", 2, *words)


def test_an_update_is_computed_on_the_device():
    """On the meta device, which has no values: the update is made, and the loss cannot be read."""
    settings = {"task": "copying", "model": "scornn", "length": 5, "hidden": 8, "batch": 4}
    session = Session(resolve(settings, None))
    session.device = torch.device("meta")
    session.network.to("meta")
    x, target = as_batch(session.task.draw(session.rng), session.device)
    assert x.device == target.device == session.device
    with pytest.raises(RuntimeError, match="meta"):
        session.step()
    assert session.iteration == 1
    assert all(p.grad.device.type == "meta" for p in session.network.parameters())
