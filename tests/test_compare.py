"""benches/compare.py: alternating runs of two builds, judged against the spread of one build."""

import json
import math

import pytest

import compare

# a package that answers `bench.py GROUP ... --json FILE` when it is imported
MAIN = """
import json, os, sys
from pathlib import Path
with open(os.environ["TURNS"], "a") as turns:
    turns.write("{name} " + sys.argv[1] + chr(10))
file = sys.argv[sys.argv.index("--json") + 1]
entry = {{"row": "a row", "wrong": {wrong}, "ours": "isometry", "samples": {{"isometry": [{time}, {time}, 9.0]}}}}
entry["peak_bytes"] = {size}
Path(file).write_text(json.dumps({{"rows": [{{"group": sys.argv[1], **entry}}]}}))
"""


def build(folder, time=1.0, size=10_000_000, wrong=False):
    package = folder / "isometry"
    package.mkdir(parents=True)
    (package / "_core.abi3.so").touch()
    (package / "__init__.py").write_text(MAIN.format(name=folder.name, time=time, size=size, wrong=wrong))
    return folder


@pytest.fixture
def turns(tmp_path, monkeypatch):
    """Builds that have been imported, one a line, by a bench that does nothing else."""
    monkeypatch.setenv("TURNS", str(tmp_path / "turns"))
    (tmp_path / "bench.py").write_text("import isometry")
    monkeypatch.setattr(compare, "BENCH", str(tmp_path / "bench.py"))
    return lambda: (tmp_path / "turns").read_text().splitlines()


def test_processes_of_both_builds_by_turns(tmp_path, turns, capsys):
    """A B, then B A, group by group; equal figures are no difference, and every sample is kept."""
    a, b = build(tmp_path / "old"), build(tmp_path / "new")
    arguments = [str(a), str(b), "small", "cayley", "--rounds", "4", "--json", str(tmp_path / "all.json")]
    assert compare.main(arguments) == 0
    first, second = ["old small", "new small"], ["old cayley", "new cayley"]
    assert turns() == 2 * [*first, *second, *reversed(first), *reversed(second)]
    out = capsys.readouterr().out
    assert "small: a row" in out and compare.WORSE not in out and "geometric mean of B/A 1.000" in out
    found = json.loads((tmp_path / "all.json").read_text())
    assert [p["rows"][0]["samples"]["isometry"] for p in found["b"]] == [[1.0, 1.0, 9.0]] * 8


@pytest.mark.parametrize("change", [{"time": 1.1}, {"size": 11_000_000}, {"wrong": True}], ids=str)
def test_what_is_slower_larger_or_wrong_is_said(tmp_path, turns, capsys, change):
    a, b = build(tmp_path / "old"), build(tmp_path / "new", **change)
    assert compare.main([str(a), str(b), "small", "--rounds", "4"]) == 1
    assert compare.main([str(b), str(a), "small", "--rounds", "4"]) == 0
    out = capsys.readouterr().out
    assert ("B is wrong: a row" in out) if "wrong" in change else (compare.WORSE in out and "better" in out)
    assert len(turns()) == 16


def test_too_few_rounds_say_nothing_of_the_spread(tmp_path, capsys):
    with pytest.raises(SystemExit):
        compare.main([str(tmp_path), str(tmp_path), "--rounds", "3"])
    assert "--rounds" in capsys.readouterr().err


def test_the_spread_of_a_build_against_itself():
    """For 1, 1, 1.2, 1.2 the splits give 1 and, in two of six, 1.2; no row is flagged below that and 3 % together."""
    assert compare.spread([1.0, 1.0]) == 0 and compare.spread([1.0, 1.0, 1.2, 1.2]) == pytest.approx(0.2)
    noisy, steady = [[1.0], [1.0], [1.2], [1.2]], [[1.0]] * 4
    assert compare.verdict(noisy, [[1.3]] * 4, 0.03).word == ""
    assert compare.verdict(steady, [[1.3]] * 4, 0.03).word == compare.WORSE
    assert compare.verdict(steady, [[1.02]] * 4, 0.03).word == ""
    assert compare.verdict(noisy, [[1.1]] * 4, 0.03, min).word == ""
    assert compare.verdict(noisy, [[1.3]] * 4, 0.03, min)[:4] == (1.0, 1.3, 1.3, pytest.approx(0.2))
    assert compare.verdict(steady, [[0.8]] * 4, 0.03).word == "better"
    assert len(list(compare.halves(range(30)))) == compare.SPLITS < math.comb(30, 15)
    found = compare.verdict([[3.0, 1.0, 2.0], [4.0, 5.0, 9.0]], [[7.0]] * 2, 0.03)
    assert (found.a, found.b, found.least_a, found.least_b) == (3.5, 7.0, 1.0, 7.0)


def test_memory_below_a_quarter_of_a_megabyte_is_not_compared(tmp_path, turns, capsys):
    a, b = build(tmp_path / "old", size=4096), build(tmp_path / "new", size=8192)
    assert compare.main([str(a), str(b), "small", "--rounds", "4"]) == 0
    out = capsys.readouterr().out
    assert out.count("small: a row") == 1 and "MB" not in out and len(turns()) == 8


def test_a_build_is_a_folder_or_an_extension(tmp_path):
    """Its own package and extension; an extension gets this checkout's package."""
    whole, alone = tmp_path / "whole", tmp_path / "alone"
    compare.assemble(build(tmp_path / "old"), whole)
    assert "TURNS" in (whole / "isometry/__init__.py").read_text()
    extension = tmp_path / "other.so"
    extension.write_bytes(b"another")
    compare.assemble(extension, alone)
    assert (alone / "isometry/_core.abi3.so").read_bytes() == b"another"
    assert len(list((alone / "isometry").glob("_core*.so"))) == 1
    assert (alone / "isometry/cli/errors.py").is_file()
    (tmp_path / "old/isometry/_core.abi3.so").unlink()
    with pytest.raises(SystemExit, match="_core"):
        compare.assemble(tmp_path / "old", tmp_path / "none")
