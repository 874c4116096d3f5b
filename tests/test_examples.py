"""The documented code runs: the Python blocks of the documents, every docstring, the quickstarts."""

import doctest
import importlib
import pkgutil
import re
import runpy

import pytest

import isometry
import lines
import other_packages
from subprocesses import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONTINUES = "# continues the block above\n"  # a copy button gives it away too
ON_GPU = ROOT / "docs/gpu.md"  # run by tests/gpu/test_cli.py
#: The others by tests/test_interoperation.py and tests/test_agents.py.
ELSEWHERE = (ON_GPU, ROOT / "docs/interoperation.md", ROOT / "docs/agents.md")
DOCUMENTS = [
    path for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))) if path not in ELSEWHERE
]
QUICKSTARTS = sorted((ROOT / "examples").glob("quickstart*.py"))
QUICK = ["--out", "picture.png", "--quick"]
GALLERY = re.compile(r"^ +python (examples/(\w+)\.py) --out picture\.png$", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules():
    """Every module of the package except the programs."""
    yield "isometry"
    for found in pkgutil.walk_packages(isometry.__path__, "isometry."):
        if not found.name.endswith("__main__"):
            yield found.name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_documents(path, tmp_path, monkeypatch):
    """All Python blocks of a document: each runs by itself, or its first line says that it continues the one above."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCK.findall(path.read_text()):
        names = names if block.startswith(CONTINUES) else {"__name__": path.stem}
        exec(compile(block, str(path), "exec"), names)


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda p: p.name)
def test_blocks_that_run_elsewhere(path):
    """They begin with imports too, or say what they continue."""
    starts = [block.partition("\n")[0] for block in BLOCK.findall(path.read_text())]
    assert starts and not [line for line in starts if not re.match(r"import |from |# continues the ", line)]
    assert starts[0].startswith("import ")


def test_the_readme_shows_both_faces():
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    assert any("import isometry as iso" in b for b in blocks)
    assert any("import isometry.torch as it" in b for b in blocks)


@pytest.mark.parametrize("name", [name for name in modules() if name != "isometry.gpu._array"])  # tests/gpu has it
def test_docstrings(name):
    module = importlib.import_module(name)
    failures, _ = doctest.testmod(module, optionflags=FLAGS, verbose=False)
    assert failures == 0


def public(module):
    for name in dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "").startswith("isometry"):
            yield name, value


@pytest.mark.parametrize("module", ["isometry", "isometry.torch", "isometry.torch.nn"])
def test_every_public_name_has_an_example(module):
    for name, value in public(importlib.import_module(module)):
        assert value.__doc__, f"{module}.{name} has no docstring"
        assert ">>>" in value.__doc__, f"{module}.{name} has no example"


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("quantisation", ["--out", "picture.png"], r"   4  \d+\.\d+%  \d+\.\d+%"),
        ("photonic_mesh", QUICK, r"sigma 0.001: M itself 1\.\de-06, from_matrix [45]\.\de-07, trained \d"),
        ("rotation_averaging", QUICK, r"the chordal mean differs from SciPy's by \de-1\d"),
        ("memory_across_steps", QUICK, r"GORU +mean return of the last ten updates -\d"),
        ("normalising_flow", QUICK, r"trained reflections: \d\.\d+ bits per pixel"),
        ("voice_activity", QUICK, r"live and whole: \d+ of 6,400 decisions differ, scores by \de-0[678]"),
        ("forecaster", QUICK, r"GRU: \d+\.\d % within the 80 % interval, width \d\.\d+, quantile loss \d\.\d+"),
        ("hyper_connections", QUICK, r"orthogonal: \d\.\d+ bits .*; norm by 64 mixers x (1|0\.99999\d|1\.0000\d)\n"),
        ("ensemble", QUICK, r" 2 members: loop \d+\.\d+, vmap \d+\.\d+ ms, scores differ by (0e\+00|\de-0[678])"),
        pytest.param("adapter", QUICK, r"HRA, r = 8: [\d,]+ numbers, \d+\.\d s, \d+\.\d %", marks=other_packages.MARKS),
        pytest.param(
            "qwen_delta",
            ["--out", "picture.png", "--steps", "2", "--length", "100"],
            r"isometry: \d+\.\d+ s per step.*\nlargest difference of the losses: \d",
            marks=other_packages.MARKS,
        ),
        ("hadamard_rnn", ["--delay", "5", "--updates", "4"], r"trained signs, \d+ of 128 turned: \d+% right"),
        ("fit_a_unitary", ["--n", "3", "--seeds", "1", "--iterations", "200"], r"Householder, phases \| \de-1\d \("),
    ],
)
def test_programs(name, options, found, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [name, *options])
    runpy.run_path(str(ROOT / f"examples/{name}.py"), run_name="__main__")
    assert re.search(found, capsys.readouterr().out)
    assert [path.name for path in tmp_path.iterdir()] == options[1:2] * (options[0] == "--out")


def test_the_gallery_has_short_programs_and_their_pictures():
    text = (ROOT / "docs/examples.md").read_text()
    programs = dict(GALLERY.findall(text))
    assert len(programs) == 9
    for path, name in programs.items():
        assert lines.python_lines((ROOT / path).read_text()) <= 90, path
        assert f"(figures/example-{name.replace('_', '-')}.png)" in text


def test_there_are_quickstarts_for_both_faces():
    assert [p.name for p in QUICKSTARTS] == ["quickstart_numpy.py", "quickstart_torch.py"]


@pytest.mark.parametrize("path", QUICKSTARTS, ids=lambda p: p.name)
def test_quickstarts(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
