"""`make object NAME=<stem>` writes every new file of an object, well formed, and names the entries to make."""

import ast
import os
import shutil
import subprocess

import pytest

from isometry._core import OBJECTS
from object_stubs import ENTRIES, write
from subprocesses import ROOT
from test_layout import MIRRORS

STEMS = ["givens", "block_diagonal"]
#: The mirrors, and a file that objects with many tests have as a folder.
FILES = (*MIRRORS, "rust/core/src/operators/{}/tests.rs")


@pytest.mark.parametrize("stem", STEMS)
def test_every_new_file_is_written(stem, tmp_path):
    lines = list(write(stem, tmp_path))
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*")} == {file.format(stem) for file in FILES}
    assert {f"written {file.format(stem)}" for file in FILES} <= {*lines}
    for path in tmp_path.rglob("*.py"):
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), path
        assert max(map(len, path.read_text().splitlines())) <= 120
    rust = tmp_path / f"rust/core/src/operators/{stem}/mod.rs"
    command = ["rustfmt", "--check", "--edition", "2024", "--config-path", str(ROOT / "rustfmt.toml"), str(rust)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_entries_are_in_existing_files(tmp_path):
    lines = list(write("givens", tmp_path))
    named = [line.strip().partition(":")[0] for line in lines if line.startswith("  ")]
    assert named == list(ENTRIES)
    assert all((ROOT / path).is_file() for path in named)
    assert "  rust/core/src/operators/mod.rs: in objects!: givens Givens route;" in lines


@pytest.mark.parametrize("stem", ["Givens", "givens-product", "../givens", "", "2d", "lambda"])
def test_a_name_that_is_no_stem_is_refused(stem, tmp_path):
    with pytest.raises(ValueError, match="^NAME must be a stem"):
        list(write(stem, tmp_path))
    assert not list(tmp_path.iterdir())


def test_an_object_that_exists_is_not_overwritten():
    before = {path: path.read_bytes() for mirror in MIRRORS for path in [ROOT / mirror.format("dense")]}
    with pytest.raises(ValueError, match=r"dense\.\w+ exists"):
        list(write("dense", ROOT))
    assert "dense" in OBJECTS
    assert all(path.read_bytes() == text for path, text in before.items())


def test_the_stub_of_the_core_compiles(tmp_path):
    """With its entry, in a copy of the crates."""
    for name in ("rust", "benches/rust"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, tmp_path)
    list(write("diagonal", tmp_path))
    objects = tmp_path / "rust/core/src/operators/mod.rs"
    objects.write_text(objects.read_text().replace("\nobjects! {\n", "\nobjects! {\n    diagonal Diagonal route;\n"))
    command = ["cargo", "check", "--release", "--locked", "-q", "-p", "isometry-core", "--tests"]
    target = {"CARGO_TARGET_DIR": str(ROOT / "target/stub")}
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | target, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
