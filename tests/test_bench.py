"""`benches/bench.py`: checks before timing, alternates, and writes what it prints."""

import json
import time

import numpy as np
import pytest
import torch

import bench
from elsewhere import DEVICE, Elsewhere
from harness import report, timing
from harness.figure import Figure, Later
from harness.groups import APART, GROUPS, NAMED, NAMES, SHOWN
from harness.row import Bar, Settings, relative_error, worst
from harness.timing import alternate
from rows.torch import formulas, sides

QUICK = Settings(1, quick=True)


def test_alternate_takes_every_function_in_every_round():
    """Samples of the functions alternate, and the slow one is recognised."""
    calls = []
    samples = alternate({"slow": lambda: (calls.append("s"), time.sleep(0.004)), "fast": lambda: calls.append("f")}, 0)
    assert len(samples["slow"]) == len(samples["fast"]) == 5
    assert min(samples["slow"]) > 0.003 > np.median(samples["fast"])
    changes = sum(now != before for now, before in zip(calls[1:], calls, strict=False))
    assert calls.count("s") >= 5 and changes >= 5


def test_a_pause_stands_before_every_sample(monkeypatch):
    """After it one call is not counted, if a sample repeats its call anyway."""
    calls, pauses = [], []
    monkeypatch.setattr(timing.time, "sleep", lambda seconds: (calls.append("pause"), pauses.append(seconds)))
    alternate({"short": lambda: calls.append("call")}, 0, pause=0.5)
    assert pauses == [0.5] * 5
    runs = "".join("p" if c == "pause" else "c" for c in calls).split("p")[1:]
    assert len({len(run) for run in runs}) == 1 and len(runs[0]) > 2


def test_errors_are_judged_like_the_specification():
    one = torch.ones(3, dtype=torch.float64)
    assert relative_error(one.float(), one) == 0
    assert relative_error(one * torch.nan, one) == relative_error(torch.ones(2), one) == float("inf")
    error, where = worst(
        {"value": one, "gradient of x": 1.01 * one}, {"value": one, "gradient of x": one}, (1.0, 0.001)
    )
    assert where == "gradient of x" and error == pytest.approx(10)
    assert worst({"value": one}, {"value": one, "gradient of x": one}, (1.0, 1.0))[0] == float("inf")


def row(ours=1.0, peer=1.0):
    """A row whose sides multiply by factors; the reference multiplies by one."""

    times = lambda factor: lambda x: factor * x
    draw = lambda: {"x": torch.arange(1.0, 5.0)}
    bars = [Bar("torch", 0.001, 1e6)]
    return sides.row("factors", draw, times(ours), {"torch": times(peer)}, bars, 4.0, reference=times(1.0))


def test_wrong_values_are_reported_and_never_timed(capsys):
    entry = row(ours=1.001).measured(sides.frame(), QUICK)
    assert entry["wrong"] and "seconds" not in entry and "WRONG" in capsys.readouterr().out


def test_a_wrong_peer_is_left_out(capsys):
    entry = row(peer=1.001).measured(sides.frame(), QUICK)
    assert not entry["wrong"] and entry["bars"] == [] and "left out" in capsys.readouterr().out


def test_marks(capsys):
    entry = row().measured(sides.frame(), QUICK)
    assert [bar["mark"] for bar in entry["bars"]] == ["pass"] and "pass" in capsys.readouterr().out
    assert [Bar("x", 2.0, 3.0).judged(r, "")["mark"] for r in (1.9, 2.0, 3.0)] == ["MISS", "pass", "goal"]


def test_our_side_alone(capsys):
    """No peer runs, nothing is judged, and the samples are present."""
    entry = row().measured(sides.frame(), QUICK._replace(alone=True))
    assert set(entry["samples"]) == {"isometry", "torch.mm"} and entry["bars"] == []
    assert np.median(entry["samples"]["isometry"]) == pytest.approx(entry["seconds"]["isometry"], rel=1e-3)
    assert capsys.readouterr().out.startswith("factors ")


def test_geometric_mean(capsys):
    """Over the best orthogonal variant only."""
    judged = lambda label, ratio: Bar(label, 1, 1).judged(ratio, "")
    entries = [{"bars": [judged("best orthogonal", r), judged("other", 9)]} for r in (2, 18)]
    bar = report.mean(entries)["bars"][0]
    assert bar["ratio"] == pytest.approx(6) and bar["mark"] == "pass"
    assert "geometric mean of 2" in capsys.readouterr().out


def test_the_peers_compute_the_textbook():
    """WY form, loop and householder_product give one W; the solve gives an orthogonal matrix with the packed A."""
    torch.manual_seed(0)
    u = torch.tril(torch.randn(6, 6))
    w = torch.eye(6)
    for k in reversed(range(6)):
        w = w - 2 * torch.outer(u[:, k], u[:, k] @ w) / (u[:, k] @ u[:, k])
    x = torch.randn(3, 6)
    for found in (formulas.wy_matrix(u), formulas.householder_product(u)):
        assert torch.allclose(found, w, atol=1e-5)
    for found in (formulas.wy_apply(u, x), formulas.loop_apply(u, x)):
        assert torch.allclose(found, x @ w.T, atol=1e-5)
    p = torch.randn(2, 5, 5)
    a, q = formulas.skew(p), formulas.cayley(p)
    eye = torch.eye(5)
    assert torch.allclose(q @ q.mT, eye.expand(2, 5, 5), atol=1e-5)
    assert torch.allclose((eye + a) @ q, eye - a, atol=1e-5)
    assert torch.equal(formulas.packed(a)[0, :4], a[0, 0, 1:])


def test_the_peers_stay_on_their_device():
    """Tensors of CUDA never meet those of the CPU."""
    with Elsewhere() as device:
        u, x, p = (device.send(torch.randn(*shape)) for shape in ((6, 6), (3, 6), (2, 5, 5)))
        found = [formulas.wy_matrix(u), formulas.wy_apply(u, x), formulas.loop_apply(u, x)]
        found += [formulas.householder_product(u.tril()), formulas.cayley(p), formulas.packed(p)]
        assert all(t.device == DEVICE for t in found)


def test_bench_writes_what_it_prints(tmp_path, capfd):
    """The smallest group, from the command line: values checked, a line per row, JSON with the same marks."""
    assert bench.main(["small", "--quick", "--threads", "1", "--json", str(tmp_path / "out.json")]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["machine"]["threads"] == 1 and found["machine"]["quick"]
    names = ["small householder 8/2/B1", "small cayley 8"]
    assert [entry["row"] for entry in found["rows"]] == names
    for entry in found["rows"]:
        assert not entry["wrong"] and entry["row"] in out
        assert set(entry["seconds"]) >= {"isometry", "torch.mm"} and entry["bars"][0]["mark"] in (
            "goal",
            "pass",
            "MISS",
        )


def test_only_the_rows_asked_for(tmp_path, capfd):
    """Those with the text in their name; a text without matching row is an invalid argument."""
    file = tmp_path / "out.json"
    assert bench.main(["small", "--quick", "--only", "cayley", "--alone", "--json", str(file)]) == 0
    assert [entry["row"] for entry in json.loads(file.read_text())["rows"]] == ["small cayley 8"]
    assert bench.main(["small", "--quick", "--only", "large"]) == 2
    err = capfd.readouterr().err
    assert len(err.splitlines()) == 1 and "--only" in err and "large" in err


@pytest.mark.parametrize("arguments", [["everything"], ["small", "--threads", "2000"], ["small", "--threads", "0"]])
def test_wrong_arguments(arguments, capfd):
    with pytest.raises(SystemExit) as left:
        bench.main(arguments)
    assert left.value.code == 2 and arguments[-1] in capfd.readouterr().err


def test_ctrl_c(monkeypatch, capfd):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "run", interrupted)
    assert bench.main(["small"]) == 130 and capfd.readouterr().err == "bench: interrupted\n"


def test_the_peak_of_a_call():
    """The memory that one call adds, whether it is freed or not, however large the previous call was."""
    reported = timing.memory("VmHWM") is not None
    for call, size in ((lambda: np.ones(10**7), 8e7), (lambda: np.ones(10**6).sum(), 8e6)):
        assert not reported or timing.peak_of(call) == pytest.approx(size, rel=0.2)


def torch_rows():
    for group in SHOWN:
        yield from (row for row in report.rows_of(group, QUICK) if not isinstance(row, Later))


def test_every_row_has_a_name_of_its_own_and_a_bar_for_peers_that_it_has():
    """Listing them draws nothing, so that --only costs nothing for the others."""
    rows = list(torch_rows())
    assert len({row.name for row in rows}) == len(rows) > 40
    for row in rows:
        peers = [peer.name for peer in row.peers]
        assert row.bars and row.ours.results and any(peer.results for peer in row.peers), row.name
        assert all(0 < bar.bar <= bar.goal and set(bar.peers or peers) <= set(peers) for bar in row.bars), row.name


def test_a_figure_is_measured_when_asked_for(capsys):
    measured = []
    later = Later("a share", lambda name: measured.append(name) or Figure(name, 0.2, "of all", 0.25))
    assert not measured and later.measured(None, QUICK)["bars"][0]["mark"] == "pass"
    assert measured == ["a share"] and capsys.readouterr().out == "a share: 0.20 of all, at most 0.25 pass\n"


SMALL = ("small", "bounded_svd", "rotation")
GRADIENTS = {"exponential batch 4096x4", "householder apply 128/16/B50", "mesh apply 512/L2/B50 complex"}
GRADIENTS |= {"OFT 128x32/B512", "HRA 1024/8/B512"}


def test_every_side_of_a_row_computes_the_same():
    """Ours is judged like the peers; the small rows of all kinds of operators."""
    rows = [row for group in SMALL for row in report.rows_of(group, QUICK)]
    for row in [*rows, *(row for row in torch_rows() if row.name in GRADIENTS)]:
        found = row.reference()
        for side in (row.ours, *row.peers):
            assert set(side.results()) == set(found) and worst(side.results(), found, row.tolerance)[0] <= 1, side.name


def test_groups_that_are_named_alone():
    """Every group is run by its name, those that need more than a checkout only so."""
    assert set(SHOWN) < set(GROUPS) and set(NAMED) < set(NAMES) == {*GROUPS, *APART}
    assert {bench.parsed([name]).group for name in NAMES} == set(NAMES)


def test_serial_shares(tmp_path, capsys):
    """Our side of a row on one thread and on two; what a share predicts; the budget is as before."""
    from harness import cores

    assert cores.serial(2.0, 1.0) == 0 and cores.serial(1.0, 1.0) == 1
    assert cores.predicted(0.0) == 16 and cores.predicted(1.2) == 1
    assert cores.predicted(0.2) == pytest.approx(1 / (0.2 + 0.8 / 16))
    threads = []

    def doubled(x):
        threads.append(torch.get_num_threads())
        return 2 * x

    watched = sides.row("threads", lambda: {"x": torch.ones(4)}, doubled, {}, [], 0.0, reference=lambda x: 2 * x)
    before = torch.get_num_threads()
    entry = cores.measured(watched, QUICK._replace(threads=before))
    assert set(threads) >= {1, 2} and torch.get_num_threads() == before
    assert len(entry["samples"]["1"]) == len(entry["samples"]["2"]) >= 3
    assert cores.measured(row(ours=1.001), QUICK._replace(threads=before))["wrong"]
    capsys.readouterr()
    assert bench.main(["small", "--cores", "--quick", "--json", str(tmp_path / "out.json")]) == 0
    found = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert [entry["group"] for entry in found] == ["small", "small"] and all(0 < e["predicted"] <= 16 for e in found)
    assert bench.main(["numpy", "--cores"]) == 2
