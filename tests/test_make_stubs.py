"""`make object NAME=<stem>` and `make cell NAME=<stem>` write every new file, well formed, and name the entries."""

import ast
import os
import shutil
import subprocess
import sys

import pytest

from isometry._core import CELLS, OBJECTS
from make_stubs import KINDS, write
from subprocesses import ROOT
from test_layout import CELL_MIRRORS, MIRRORS

pytestmark = pytest.mark.slow

STEMS = [("object", "givens"), ("object", "block_diagonal"), ("cell", "leaky")]
#: The mirrors, and files that others have in other numbers.
FILES = {
    "object": MIRRORS,
    "cell": (
        *CELL_MIRRORS,
        "python/isometry/torch/nn/{}.py",
        *(f"rust/core/src/recurrence/{{}}/{part}.rs" for part in ("mod", "cell", "pull")),
        "tests/reference/{}.py",
        "tests/torch/test_{}.py",
        "docs/math/{}.md",
    ),
}
LIBRARIES = (".so", ".dylib", ".dll")
#: The tests that draw or list cells, besides the laws and those of layers.
DERIVED = ("layout", "declarations", "odd_arguments", "empty_axes", "recurrence", "docs")
RUSTFMT = ["rustfmt", "--check", "--edition", "2024", "--config-path", str(ROOT / "rustfmt.toml")]


def written(kind, stem, root):
    """The lines that are said, under a root with copies of the files that are edited."""
    for path in KINDS[kind].edits:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, root / path)
    return list(write(kind, stem, root))


def succeeds(command, root, **environment):
    done = subprocess.run(
        command, cwd=root, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=3000
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize(("kind", "stem"), STEMS)
def test_every_new_file_is_written(kind, stem, tmp_path):
    lines = written(kind, stem, tmp_path)
    new = {file.format(stem) for file in FILES[kind]}
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*")}
    assert found - set(KINDS[kind].edits) == new
    assert {f"written {path}" for path in new} <= {*lines}
    for path in tmp_path.rglob("*.py"):
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), path
        assert max(map(len, path.read_text().splitlines())) <= 120
    for path in tmp_path.rglob("*.rs"):
        if path.name != "mod.rs" or path.parent.name == stem:  # the modules of others are not there
            succeeds([*RUSTFMT, str(path)], tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_entries_are_in_existing_files(kind, tmp_path):
    lines = written(kind, "hare", tmp_path)
    named = [line.strip().partition(":")[0] for line in lines if line.startswith("  ")]
    assert named == list(KINDS[kind].entries)
    assert all((ROOT / path).is_file() for path in named)
    line = {"object": "rust/core/src/operators/mod.rs: in objects!: hare Hare route;", "cell": "CHANGELOG.md: a line"}
    assert f"  {line[kind]}" in lines


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stem", ["Givens", "givens-product", "../givens", "", "2d", "lambda"])
def test_a_name_that_is_no_stem_is_refused(kind, stem, tmp_path):
    with pytest.raises(ValueError, match="^NAME must be a stem"):
        list(write(kind, stem, tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "stem"), [("object", "dense"), ("cell", "gru")])
def test_what_exists_is_not_overwritten(kind, stem):
    mirrors = MIRRORS if kind == "object" else CELL_MIRRORS
    paths = [ROOT / path for path in (*(mirror.format(stem) for mirror in mirrors), *KINDS[kind].edits)]
    before = {path: path.read_bytes() for path in paths}
    with pytest.raises(ValueError, match=rf"{stem}\.\w+ exists"):
        list(write(kind, stem, ROOT))
    assert stem in (*OBJECTS, *CELLS)
    assert all(path.read_bytes() == text for path, text in before.items())


@pytest.mark.parametrize("kind", KINDS)
def test_the_stub_of_the_core_compiles(kind, tmp_path):
    """With its entry, in a copy of the crates."""
    for name in ("rust", "docs/math"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, tmp_path)
    list(write(kind, "diagonal", tmp_path))
    if kind == "object":
        objects = tmp_path / "rust/core/src/operators/mod.rs"
        objects.write_text(
            objects.read_text().replace("\nobjects! {\n", "\nobjects! {\n    diagonal Diagonal route;\n")
        )
    target = {"CARGO_TARGET_DIR": str(ROOT / "target/stub")}
    succeeds(["cargo", "check", "--release", "--locked", "-q", "-p", "isometry-core", "--tests"], tmp_path, **target)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_new_cell_satisfies_every_law(tmp_path):
    """In a copy of the tree, built, with what `make exports` writes: whatever the tests derive for a cell passes."""
    left = shutil.ignore_patterns(".*", "target", "build", "_core.*so", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "tree", ignore=left)
    root, core = tmp_path / "tree", "python/isometry/_core"
    list(write("cell", "leaky", root))
    build = ["cargo", "build", "--release", "--locked", "-q", "-p", "isometry-py"]
    succeeds(build, root, CARGO_TARGET_DIR=str(ROOT / "target/stub"))
    library = next(path for path in (ROOT / "target/stub/release").glob("*_core.*") if path.suffix in LIBRARIES)
    shutil.copy(library, root / f"{core}.abi3.{'pyd' if library.suffix == '.dll' else 'so'}")
    paths = os.pathsep.join(str(root / path) for path in ("python", "tests", "tests/support"))
    succeeds([sys.executable, "tests/exports.py"], root, PYTHONPATH=paths)
    chosen = ["-m", "not long and not extra and not alone", "-k", "leaky or Leaky"]
    tests = ["tests/laws", "tests/torch", *(f"tests/test_{name}.py" for name in DERIVED)]
    succeeds([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *tests], root, PYTHONPATH=paths)
