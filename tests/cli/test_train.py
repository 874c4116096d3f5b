"""`isometry train`: its folder, the same run from a seed or a config, devices, held-out data; `isometry info`."""

import math
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

import isometry as iso
import isometry as isometry_package
import isometry.torch as it
from cli_runs import FILES, TINY, metrics, same_run, tensors
from isometry import _core
from isometry.cli import registry
from isometry.cli.build import as_batch, make_task
from isometry.cli.network import Network
from isometry.cli.resolve import resolve
from isometry.cli.session import Session
from task_data import small
from tolerance import UNITARITY

MODELS = registry.names("model")
EVERY = [(task, model) for task in registry.names("task") for model in MODELS]
FEW = {"scornn", "scurnn", "lstm"}  # a real layer, a complex one, one of torch
PAIRS = [
    pair if pair[0] == "copying" or pair[1] in FEW else pytest.param(*pair, marks=pytest.mark.long) for pair in EVERY
]
# the scores of each task; those with data test their best network
SCORES = {
    "adding": [],
    "copying": ["recall"],
    "digits": ["valid_loss", "accuracy"],
    "pixels": ["valid_loss", "accuracy"],
    "permuted-pixels": ["valid_loss", "accuracy"],
    "characters": ["valid_bits"],
    "waveform": ["nmse"],
    "next-frame": ["valid_mse"],
    "permutations": ["accuracy", "accuracy_within", "accuracy_beyond"],
}
# models without a W to report
WITHOUT = {"delta-product", *(cell for cell, (*_, operator, _) in _core.CELLS.items() if not operator)}
SOFT = {"rnn", "soft-ornn", "kru"}  # models whose W is not, or only nearly, orthogonal


@pytest.mark.parametrize(("task", "model"), PAIRS)
def test_every_pair_trains(isometry, tmp_path, task, model):
    """Each task with each model writes its folder, prints its baselines, and its losses are finite."""
    options = small(task, tmp_path)
    status, out, err = isometry("train", task, "--model", model, *options, "--iterations", 2, "--out", "run")
    assert (status, err) == (0, [])
    assert {p.name for p in (tmp_path / "run").iterdir()} == FILES
    rows = metrics(tmp_path / "run")
    assert [row["iteration"] for row in rows] == ["1", "2"]
    names = ["iteration", "loss", "baseline", "orthogonality_error", *SCORES[task]]
    assert all(list(row) == names for row in rows)
    assert all(math.isfinite(float(row[name])) for row in rows for name in ("loss", "baseline", *SCORES[task]))
    error = float(rows[-1]["orthogonality_error"])
    assert math.isnan(error) if model in WITHOUT else error < 20 or model in SOFT
    assert out.splitlines()[1].startswith("run: baselines: ")
    tested = SCORES[task] != [] and task != "copying"
    assert "\nrun: loss" in out and tested == out.splitlines()[-1].startswith("run: test ")
    run = isometry_package.load_run(tmp_path / "run")
    assert (set(run.scores["test"]) != set()) == tested and run.network is not None


def test_a_row_is_the_mean_of_its_batches(isometry, tmp_path):
    """Loss and score are means since the row before, e(W) is that of the moment."""
    options = ("train", "copying", "--model", "scornn", *TINY, "--iterations", 13)
    isometry(*options, "--log-every", 1, "--out", "every")
    isometry(*options, "--log-every", 5, "--out", "fifth")
    every, fifth = metrics(tmp_path / "every"), metrics(tmp_path / "fifth")
    assert [row["iteration"] for row in fifth] == ["1", "5", "10", "13"]
    for row, first, last in zip(fifth, (1, 2, 6, 11), (1, 5, 10, 13), strict=True):
        for name in ("loss", "recall"):
            batches = [float(one[name]) for one in every[first - 1 : last]]
            assert float(row[name]) == pytest.approx(sum(batches) / len(batches), rel=1e-12)
        assert row["orthogonality_error"] == every[last - 1]["orthogonality_error"]


@pytest.mark.parametrize(
    ("task", "length", "expected"),
    [("copying", 1000, 0.020387), ("copying", 2000, 0.010294), ("adding", 400, 1 / 6), ("digits", None, math.log(10))],
)
def test_baselines(task, length, expected):
    """As the papers print them."""
    settings = resolve({"task": task, "model": "rnn", "length": length, "batch": 2})
    assert make_task(settings).baseline == pytest.approx(expected, rel=1e-4)


def test_plain_lines_without_a_terminal(isometry):
    """Output other than a terminal gets lines with loss, baseline, speed and e(W), at every tenth of the
    iterations."""
    _, out, err = isometry("train", "copying", "--model", "scornn", *TINY, "--iterations", 30, "--out", "run")
    assert err == []
    first, baselines, *lines, last = out.splitlines()
    assert first == "run: 144 parameters" and last.startswith("run: loss")
    assert baselines == "run: baselines: blanks, then guesses: 0.8318"
    assert [line.split()[1] for line in lines] == ["1/30", "10/30", "20/30", "30/30"]
    assert all(word in line for line in lines for word in ("loss", "baseline", "e(W)", "it/s"))


def test_a_seed_gives_the_same_run_again(isometry, tmp_path):
    """Losses, errors and every tensor of the checkpoint are bitwise equal; another seed gives another run."""
    for seed, out in ((3, "a"), (3, "b"), (4, "c")):
        isometry("train", "adding", "--model", "scornn", *TINY, "--iterations", 12, "--seed", seed, "--out", out)
    a, b, c = (metrics(tmp_path / name) for name in "abc")
    assert a == b and a != c
    first, second = tensors(tmp_path / "a"), tensors(tmp_path / "b")
    assert first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def test_a_config_gives_the_same_run_again(isometry, tmp_path):
    """config.toml holds everything: --config alone repeats the run, and an option overrules it."""
    options = ("--set", "negative_ones=2", "--optimizer", "adam", "--set", "marker_offset=0", "--seed", 5)
    isometry("train", "copying", "--model", "scornn", *TINY, *options, "--iterations", 4, "--out", "a")
    status, _, err = isometry("train", "--config", tmp_path / "a" / "config.toml", "--out", "b")
    assert (status, err) == (0, [])
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    assert (tmp_path / "a" / "config.toml").read_text() == (tmp_path / "b" / "config.toml").read_text()
    isometry("train", "--config", tmp_path / "a" / "config.toml", "--hidden", 4, "--iterations", 1, "--out", "c")
    found = tomllib.loads((tmp_path / "c" / "config.toml").read_text())
    assert (found["hidden"], found["iterations"], found["seed"]) == (4, 1, 5)
    assert found["layer"]["negative_ones"] == 2 and found["optimizer"] == "adam"


def test_the_penalty_keeps_the_factors_near_unitary(refused, isometry, tmp_path):
    """It is part of what is minimised, not of the loss that is shown."""
    options = ("--model", "kru", *TINY, "--recurrent-lr", 0.05, "--iterations", 20)
    for weight in (0, 10):
        isometry("train", "copying", *options, "--penalty", weight, "--out", f"weight{weight}")
    free, held = (metrics(tmp_path / f"weight{weight}") for weight in (0, 10))
    assert free[0]["loss"] == held[0]["loss"]
    assert float(held[-1]["orthogonality_error"]) < 0.5 * float(free[-1]["orthogonality_error"])
    assert "--penalty" in refused("train", "copying", "--model", "scornn", *TINY, "--penalty", 1)


def test_folders_are_never_overwritten(refused, isometry, tmp_path):
    """Without --out the second run gets another name; --out with a run in it is an error."""
    options = ("train", "copying", "--model", "rnn", *TINY, "--iterations", 1)
    for _ in range(2):
        assert isometry(*options)[0] == 0
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"copying-rnn-0", "copying-rnn-0-2"}
    assert "--resume" in refused(*options, "--out", "runs/copying-rnn-0")


@pytest.mark.parametrize("hidden", [2, 9])
def test_a_free_matrix_stays_unitary(refused, isometry, tmp_path, hidden):
    """W of the full-capacity uRNN by Cayley steps; a matrix of pairs (2, 2, 2) too."""
    options = ("train", "adding", "--model", "full-capacity-urnn", *TINY, "--hidden", hidden, "--recurrent-lr", 0.01)
    isometry(*options, "--iterations", 60, "--out", "run")
    errors = [float(row["orthogonality_error"]) for row in metrics(tmp_path / "run")]
    assert 0 < max(errors) < UNITARITY
    line = refused("train", "adding", "--model", "scornn", *TINY, "--recurrent-optimizer", "cayley-sgd")
    assert "--recurrent-optimizer cayley-sgd" in line


def test_a_scornn_learns_the_copying_problem(isometry, tmp_path):
    """With a short delay the loss falls well below the baseline within a few hundred updates."""
    options = ("--hidden", 48, "--length", 10, "--batch", 20, "--recurrent-lr", 1e-3, "--iterations", 400)
    isometry("train", "copying", "--model", "scornn", *options, "--out", "run")
    last = metrics(tmp_path / "run")[-1]
    assert float(last["loss"]) < 0.5 * float(last["baseline"]) and float(last["recall"]) > 0.5


def test_a_loss_that_is_not_finite_ends_the_run(isometry):
    """A rate that is far too large gives exit status 1 and one line."""
    options = ("--hidden", 6, "--length", 5, "--iterations", 500, "--lr", 1e20, "--optimizer", "sgd")
    status, _, err = isometry("train", "adding", "--model", "rnn", *options, "--clip", 0)
    assert status == 1 and len(err) == 1 and "--lr" in err[0]


DIGITS = ("train", "digits", "--model", "scornn", "--hidden", 5, "--batch", 4, "--threads", 1, "--lr", 0.1)


class Shifted:
    """The readout must be near 1 when training, but near 0.5 when validating: the best network is in between."""

    inputs, outputs, last_only, best = 1, 1, True, ("gap", min)
    aim = 0.5

    def draw(self, rng):
        return rng.random((3, 4, 1)), torch.ones(4, 1)

    def loss(self, values, target):
        return (values - target).square().mean()

    def evaluate(self, network):
        return {"gap": (network(torch.full((3, 2, 1), 0.5)) - self.aim).abs().mean()}

    def test(self, network):
        return {"output": network(torch.full((3, 2, 1), 0.5)).mean()}


class Towards(Shifted):
    """Training never reaches what validates: the last network is the best."""

    aim = 3.0


def trained(isometry, monkeypatch, task, *options):
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Shifted=Shifted, Towards=Towards))
    given = ("--task", f"mine:{task.__name__}", "--model", "rnn", "--hidden", 4, "--lr", 0.003)
    status, out, err = isometry("train", *given, "--threads", 1, "--out", "run", *options)
    assert (status, err) == (0, [])
    return out


@pytest.mark.parametrize(("task", "iterations"), [(Shifted, 200), (Shifted, 203), (Towards, 30), (Towards, 27)])
def test_the_best_network_is_tested(isometry, monkeypatch, tmp_path, task, iterations):
    """The row with the smallest gap, whose network `load_run` gives back; also where it is an odd last one."""
    out = trained(isometry, monkeypatch, task, "--iterations", iterations)
    rows = metrics(tmp_path / "run")
    best = min(rows, key=lambda row: float(row["gap"]))
    scores = tomllib.loads((tmp_path / "run" / "scores.toml").read_text())
    assert scores["iteration"] == int(best["iteration"])
    assert (scores["iteration"] == iterations) == (task is Towards)
    with torch.no_grad():
        network = iso.load_run("run").network
        assert task().evaluate(network)["gap"] == pytest.approx(float(best["gap"]), rel=1e-6)
        assert task().test(network)["output"] == pytest.approx(scores["test"]["output"], rel=1e-6)
    assert out.splitlines()[-1].endswith(f"of the network after {best['iteration']} iterations")
    assert iso.load_run("run").scores == scores


def test_rows_between_two_evaluations(isometry, monkeypatch, tmp_path):
    """NaN there; rows that pass a multiple have a value, and the last network is looked at for the test."""
    trained(isometry, monkeypatch, Towards, "--iterations", 20, "--evaluate-every", 7, "--log-every", 5)
    seen = {row["iteration"]: not math.isnan(float(row["gap"])) for row in metrics(tmp_path / "run")}
    assert seen == {"1": True, "5": False, "10": True, "15": True, "20": False}
    assert iso.load_run("run").scores["iteration"] == 20


@pytest.mark.parametrize("every", [10, 20])
def test_a_resumed_run_keeps_the_best_of_before(isometry, tmp_path, every):
    """Checkpoint, metrics and scores are those of an uninterrupted run; the best row is one before the cut."""
    options = (*DIGITS, "--evaluate-every", every)
    isometry(*options, "--iterations", 60, "--out", "whole")
    isometry(*options, "--iterations", 37, "--out", "cut")
    assert isometry("train", "--resume", "cut", "--iterations", 60)[0] == 0
    same_run(tmp_path / "cut", tmp_path / "whole")
    assert (tmp_path / "cut/scores.toml").read_text() == (tmp_path / "whole/scores.toml").read_text()
    assert any(name.startswith("best.") for name in tensors(tmp_path / "cut"))


def test_scores_of_an_end_that_was_not_the_last(isometry, tmp_path):
    """What goes on has no scores until it ends again."""
    isometry(*DIGITS, "--iterations", 3, "--out", "run")
    first = (tmp_path / "run/scores.toml").read_text()
    isometry("train", "--resume", "run", "--iterations", 30)
    assert (tmp_path / "run/scores.toml").read_text() != first
    assert set(iso.load_run("run").scores) == {"iteration", "test", "baselines"}


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


LENGTHS = (3, 7, 1, 5)


@pytest.fixture
def sequences():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, 2, generator=generator) for n in LENGTHS]


@pytest.mark.parametrize("layer", [it.nn.ORNN(2, 4), it.nn.ScuRNN(2, 4), nn.LSTM(2, 4)], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("last_only", [True, False])
def test_packed_sequences_are_read_one_by_one(sequences, layer, last_only):
    """Each as if it were alone, in the order given, whatever its length; real and complex states."""
    network = Network(layer, 2, 3, last_only=last_only)
    packed = pack_sequence(sequences, enforce_sorted=False)
    values = network(packed)
    alone = [network(x[:, None]) for x in sequences]
    if last_only:
        assert torch.allclose(values, torch.cat(alone), atol=1e-6)
        return
    assert values.shape == (sum(LENGTHS), 3)
    padded, lengths = pad_packed_sequence(packed._replace(data=values))
    assert tuple(lengths) == LENGTHS
    for b, (n, one) in enumerate(zip(LENGTHS, alone, strict=True)):
        assert torch.allclose(padded[:n, b], one[:, 0], atol=1e-6)


@pytest.mark.parametrize("kind", [it.nn.ORNN, it.nn.EURNN, it.nn.GORU, it.nn.DeltaProduct])
def test_last_states_and_their_gradients_have_the_bits_of_all_states(kind):
    """The layer, and a module around it, whose last of all states is taken; afterwards the layer returns all again."""
    layer = kind(2, 4)

    class AllStates(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x)

    x = torch.randn(9, 3, 2, generator=torch.Generator().manual_seed(0))
    networks = [Network(module, 2, 3, last_only=True) for module in (layer, AllStates())]
    networks[1].readout.load_state_dict(networks[0].readout.state_dict())
    returned = []
    layer.register_forward_hook(lambda *call: returned.append(call[-1][0].dim()))
    values = [network(x) for network in networks]
    assert returned == [2, 3]
    assert torch.equal(*values)
    gradients = [torch.autograd.grad(v.square().sum(), list(layer.parameters())) for v in values]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert layer(x)[0].shape[:2] == (9, 3)


def test_a_forward_of_its_own_receives_all_states():
    """A class built on a layer appends the input to every state."""

    class Appended(it.nn.ORNN):
        def forward(self, input, hx=None):
            states, last = super().forward(input, hx)
            return torch.cat([states, input], -1), last

    layer = Appended(2, 4)
    x = torch.randn(9, 3, 2, generator=torch.Generator().manual_seed(0))
    network = Network(layer, 2, 3, last_only=True)
    assert torch.equal(network(x), network.readout(layer(x)[0][-1]))
