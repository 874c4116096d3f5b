"""Wheels and the sdist in dist/, on every platform: `make wheel`, and .github/workflows/wheels.yml.

python .ci/wheel.py tools   install what `build` needs into this environment
python .ci/wheel.py build   build for one or more interpreters, and check what the wheels contain
python .ci/wheel.py sdist   write the sdist
python .ci/wheel.py try     install in an empty environment of this interpreter, and compute with NumPy alone
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

from contents import check

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: The oldest glibc of the wheels for Linux; zig links against it, whatever the machine has.
GLIBC = "2_17"
USE = """
import importlib.util, sys, sysconfig
import numpy as np
import isometry as iso

assert importlib.util.find_spec("torch") is None, "torch is installed"
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    assert not sys._is_gil_enabled(), "the extension turned the lock of the interpreter on"
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
print("isometry", iso.__version__)
"""


def run(*command, cwd=ROOT):
    print("+", *command, flush=True)
    subprocess.run(list(map(str, command)), cwd=cwd, check=True)


def pip(python, *words):
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words)


def tools(_):
    """The developers' maturin, and zig, the linker of `--portable`."""
    developers = PROJECT["project"]["optional-dependencies"]["dev"]
    pip(sys.executable, *(tool for tool in developers if tool.startswith("maturin")), "ziglang")


def sdist(arguments):
    for old in arguments.dist.glob("*.tar.gz"):
        old.unlink()
    run(sys.executable, "-m", "maturin", "sdist", "--out", arguments.dist)


def build(arguments):
    for old in arguments.dist.glob("*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "maturin", "build", "--release", "--out", arguments.dist]
    if arguments.target:
        command += ["--target", arguments.target]
    if arguments.portable:
        os.environ["CARGO_ZIGBUILD_PYTHON_PATH"] = sys.executable  # which has the module ziglang
        command += ["--zig", "--compatibility", f"manylinux_{GLIBC}"]
    for python in arguments.python or [sys.executable]:
        run(*command, "--interpreter", python)
    wheels = sorted(arguments.dist.glob("*.whl"))
    if len(wheels) < len(arguments.python):
        sys.exit(f"{len(arguments.python)} interpreters, but the wheels {[wheel.name for wheel in wheels]}")
    for wheel in wheels:
        print(wheel.name, check(wheel), sep=": ")


def attempt(arguments):
    """Install the wheel that fits this interpreter, or the sdist, and run USE; with `tests` also the laws."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        scripts = Path(sysconfig.get_path("scripts", "venv", {"base": folder}))
        python = scripts / f"python{sysconfig.get_config_var('EXE')}"
        if arguments.sdist:
            pip(python, *arguments.dist.glob("*.tar.gz"))
        else:
            pip(python, "--no-index", "--no-deps", "--only-binary", ":all:", "--find-links", arguments.dist, "isometry")
            pip(python, "isometry")  # what it requires
        run(python, "-c", USE, cwd=folder)
        run(python, "-m", "isometry", "info", cwd=folder)
        if arguments.tests:
            pip(python, "isometry[train]", *PROJECT["project"]["optional-dependencies"]["test"])
            run(python, "-m", "pytest", "-q", "-n", "auto", "tests/laws", "tests/objects")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["tools", "build", "sdist", "try"])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder instead of dist/")
    group = parser.add_argument_group("build")
    group.add_argument("--python", action="append", default=[], help="an interpreter instead of this one")
    group.add_argument("--target", help="a Rust target")
    group.add_argument("--portable", action="store_true", help=f"for glibc {GLIBC.replace('_', '.')} and later")
    group = parser.add_argument_group("try")
    group.add_argument("--sdist", action="store_true", help="the sdist instead of a wheel")
    group.add_argument("--tests", action="store_true", help="the laws too, with torch")
    arguments = parser.parse_args()
    {"tools": tools, "build": build, "sdist": sdist, "try": attempt}[arguments.step](arguments)


if __name__ == "__main__":
    main()
