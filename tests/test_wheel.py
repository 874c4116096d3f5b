"""The wheel works in an environment with numpy alone, and the sdist is complete."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from subprocesses import ROOT, run

pytestmark = [pytest.mark.timeout(1500), pytest.mark.long, pytest.mark.alone]
BUILD = 1200  # seconds for a release build of the extension from scratch

USE = """
import importlib.util, sys
import numpy as np
import isometry as iso

assert importlib.util.find_spec("torch") is None, "torch is not here"
rng = np.random.default_rng(0)
op = iso.Cayley(rng.standard_normal(28))
assert iso.orthogonality_error(op.matrix()) <= 20
x, v = rng.standard_normal((5, 3, 2)), rng.standard_normal((8, 2))
states = iso.recurrence(op, x, v, activation="modrelu", activation_bias=np.zeros(8))
grads = iso.recurrence_vjp(op, x, v, states, np.ones_like(states), activation="modrelu", activation_bias=np.zeros(8))
assert grads["transition"]["upper"].shape == (28,)
try:
    import isometry.torch
except ImportError as error:
    assert "torch" in str(error)
else:
    raise AssertionError("isometry.torch needs torch")
print(iso.__version__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built once, reusing compiled artefacts."""
    out = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "maturin", "build", "--release", "--out", str(out)], timeout=BUILD, cwd=ROOT)
    return next(out.glob("*.whl"))


def test_the_wheel_serves_numpy_alone(wheel, tmp_path):
    venv = tmp_path / "empty"
    run([sys.executable, "-m", "venv", str(venv)])
    python = venv / "bin" / "python"
    # without our own path, so that pip does not use this environment's numpy
    run([str(python), "-m", "pip", "install", "--quiet", str(wheel)], timeout=300, PYTHONPATH=None)
    out = run([str(python), "-c", USE], cwd=tmp_path, PYTHONPATH=None)
    assert out.strip() in wheel.name
    run([str(venv / "bin" / "isometry"), "info"], cwd=tmp_path, PYTHONPATH=None)


def test_the_wheel_is_abi3_and_small(wheel):
    assert "cp311-abi3" in wheel.name
    assert wheel.stat().st_size < 8 * 2**20
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("isometry/_core.pyi", "isometry/py.typed", "isometry/torch/__init__.py", "isometry/cli/papers.toml"):
        assert name in names
    assert any("LICENSE-MIT" in n for n in names)
    assert any("LICENSE-APACHE" in n for n in names)


def test_a_wheel_can_be_built_from_the_sdist(tmp_path):
    """In an empty directory; the build folder is shared so that only our own crates are compiled again."""
    run([sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)], timeout=BUILD, cwd=ROOT)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(p for p in tmp_path.iterdir() if p.is_dir())
    assert (source / "Cargo.lock").exists()
    target = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    shared = json.loads(target.stdout)["target_directory"]
    command = [sys.executable, "-m", "maturin", "build", "--release", "--out", str(tmp_path / "out")]
    run(command, timeout=BUILD, cwd=source, CARGO_TARGET_DIR=shared)
    assert next((tmp_path / "out").glob("*.whl")).stat().st_size > 0
    shutil.rmtree(source)
