"""Files about the project agree with it: versions, extras, what a workflow may use."""

import re
import tomllib

import pytest

from subprocesses import ROOT

VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize(("file", "line"), [("CITATION.cff", "version: {}"), ("recipe/recipe.yaml", '  version: "{}"')])
def test_the_version(file, line):
    assert line.format(VERSION) in (ROOT / file).read_text().splitlines()


def test_installing_needs_numpy_alone():
    """An extra has torch alone, another also what the command line needs; the recipe for conda has the same bounds."""
    (numpy,), extras = PROJECT["dependencies"], PROJECT["optional-dependencies"]
    (torch,) = extras["torch"]
    assert numpy.startswith("numpy>=") and torch in extras["train"]
    recipe = (ROOT / "recipe/recipe.yaml").read_text().splitlines()
    assert f"    - {numpy.replace('>=', ' >=')}" in recipe and f"    - py{torch.replace('>=', ' >=')}" in recipe
    assert f"    - python {PROJECT['requires-python']}" in recipe


def test_the_oldest_versions_are_tested():
    """Those of pyproject.toml are installed by `make oldest-tests`, which the workflow calls."""
    (numpy,), (torch,) = PROJECT["dependencies"], PROJECT["optional-dependencies"]["torch"]
    makefile = (ROOT / "Makefile").read_text()
    assert f"{torch.replace('>=', '==')}.0 " in makefile and f'"{numpy.replace(">=", "==")}.*"' in makefile
    assert "run: make oldest-tests" in (ROOT / ".github/workflows/ci.yml").read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path):
    """By the hash of a commit, with its version for the reader."""
    used = re.findall(r"uses: (.*)", path.read_text())
    assert used and all(re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in used)
