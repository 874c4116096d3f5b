"""The wheel works in an environment with numpy alone, and the sdist is complete."""

import json
import shutil
import subprocess
import sys
import tarfile

import pytest

from subprocesses import ROOT, run

pytestmark = [pytest.mark.timeout(1500), pytest.mark.long, pytest.mark.alone]
BUILD = 1200  # seconds for a release build of the extension from scratch
STEP = (sys.executable, str(ROOT / ".ci/wheel.py"))


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder with the wheel, built once, reusing compiled artefacts, its contents checked."""
    folder = tmp_path_factory.mktemp("dist")
    out = run([*STEP, "build", "--dist", str(folder)], timeout=BUILD, cwd=ROOT)
    assert " crates, " in out.splitlines()[-1]
    return folder


def test_the_wheel_serves_numpy_alone(dist):
    # without our own path, so that pip does not use this environment's numpy
    out = run([*STEP, "try", "--dist", str(dist)], timeout=300, PYTHONPATH=None)
    assert f"isometry {next(dist.glob('*.whl')).name.split('-')[1]}\n" in out


def test_a_wheel_can_be_built_from_the_sdist(tmp_path):
    """In an empty directory; the build folder is shared so that only our own crates are compiled again."""
    run([*STEP, "sdist", "--dist", str(tmp_path)], timeout=BUILD)
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
