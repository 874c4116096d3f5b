"""Files about the project agree with it: versions, extras, what a workflow may use."""

import json
import re
import subprocess
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


def test_the_oldest_rust():
    """No dependency of a crate asks for a newer one, and the READMEs name it and the newest of those."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
    data = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    packages = {package["id"]: package for package in data["packages"]}
    needed = {node["id"]: node["deps"] for node in data["resolve"]["nodes"]}

    def version(package):
        return tuple(int(part) for part in (package["rust_version"] or "0").split("."))[:2]

    for package in [p for p in packages.values() if p["source"] is None]:
        found, left = set(), [package["id"]]
        while left:
            kinds = {d["pkg"] for d in needed[left.pop()] if any(k["kind"] != "dev" for k in d["dep_kinds"])}
            left += kinds - found
            found |= kinds
        newest = max(version(packages[i]) for i in found if packages[i]["source"])
        assert newest <= version(package), package["name"]
        if package["readme"]:
            text = (ROOT / "rust" / package["name"].removeprefix("isometry-") / "README.md").read_text()
            assert "It needs Rust {}.{},".format(*version(package)) in text
            assert "dependencies asks for is {}.{}.".format(*newest) in " ".join(text.split())


@pytest.mark.parametrize("crate", ["core", "kernels"])
def test_what_a_crate_contains(crate):
    """Its README and sources; what crates.io wants of a published crate is stated."""
    command = ["cargo", "package", "--list", "--locked", "--offline", "--allow-dirty", "-p", f"isometry-{crate}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert {"Cargo.toml", "README.md", "src/lib.rs"} <= set(done.stdout.split())
    package = tomllib.loads((ROOT / f"rust/{crate}/Cargo.toml").read_text())["package"]
    assert {"description", "license", "repository", "keywords", "categories", "rust-version"} <= set(package)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path):
    """By the hash of a commit, with its version for the reader."""
    used = re.findall(r"uses: (.*)", path.read_text())
    assert used and all(re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in used)
