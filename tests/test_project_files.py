"""Files about the project agree with it: versions, extras, what a workflow may use."""

import json
import re
import subprocess
import tomllib

import pytest

from subprocesses import ROOT

WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
VERSION = WORKSPACE["version"]
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


def test_tools_are_pinned():
    """An exact version of each tool that decides what passes, and of Rust a tested one; Dependabot raises both."""
    extras = PROJECT["optional-dependencies"]
    versions = dict(tool.split("==") for tool in [*extras["dev"], *(t for t in extras["test"] if "==" in t)])
    assert set(versions) == {"dawn-python", "maturin", "mypy", "ruff", "zizmor"}
    rust = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    parts = [[int(part) for part in version.split(".")] for version in (rust, WORKSPACE["rust-version"])]
    assert len(parts[0]) == 3 and parts[0] >= parts[1]
    updates = (ROOT / ".github/dependabot.yml").read_text()
    assert "package-ecosystem: pip\n" in updates and "package-ecosystem: rust-toolchain\n" in updates


def test_the_package_links_and_names_what_the_repository_does():
    citation = (ROOT / "CITATION.cff").read_text()
    (author,), urls, home = WORKSPACE["authors"], PROJECT["urls"], WORKSPACE["repository"]
    assert PROJECT["authors"] == [{"name": author}] and f"- name: {author}\n" in citation
    assert urls["Homepage"] == urls["Source"] == home and f"repository-code: {home}\n" in citation
    owner, name = home.removeprefix("https://github.com/").split("/")
    assert urls["Documentation"] == f"https://{owner}.github.io/{name}/"
    assert f" {urls['Documentation']}.\n" in (ROOT / ".github/workflows/site.yml").read_text()
    files = [url.partition("/blob/main/")[2] for url in urls.values() if "/blob/" in url]
    assert files == ["CHANGELOG.md"] and (ROOT / files[0]).is_file()
    assert all(url.startswith(home) for label, url in urls.items() if label != "Documentation")


def test_the_package_states_the_systems_and_pythons_that_are_tried():
    """Every system with a wheel, and every Python between an oldest and a newest that workflows test with."""
    classifiers = PROJECT["classifiers"]
    systems = {"linux": "POSIX :: Linux", "apple": "MacOS", "windows": "Microsoft :: Windows"}
    targets = re.findall(r" target: (\S+?),? ", (ROOT / ".github/workflows/wheels.yml").read_text())
    built = {f"Operating System :: {systems[next(key for key in systems if key in target)]}" for target in targets}
    assert {line for line in classifiers if line.startswith("Operating System")} == built
    stated = [int(minor) for minor in re.findall(r"Python :: 3\.(\d+)\n", "\n".join([*classifiers, ""]))]
    texts = [path.read_text() for path in WORKFLOWS]
    tried = {int(minor) for text in texts for minor in re.findall(r'python(?:-version)?: \[?"3\.(\d+)"', text)}
    assert stated == list(range(min(tried), max(tried) + 1)) and PROJECT["requires-python"] == f">=3.{stated[0]}"


def starts(workflow, path):
    """Whether a pull request that changes this file starts the workflow."""
    event = re.search(r"\n  pull_request:\n(?:    paths: \[(.*)\]\n)?", workflow)
    patterns = (event[1] or "**").split(", ") if event else []
    wildcards = {"**": ".*", "*": "[^/]*"}
    parts = [re.split(r"(\*+)", pattern.strip('"')) for pattern in patterns]
    return any(re.fullmatch("".join(wildcards.get(part, re.escape(part)) for part in split), path) for split in parts)


def test_a_file_starts_the_workflows_that_build_it():
    """A change of what is in a wheel builds the wheels of all systems; one of Rust is also tested on them by cargo."""
    command = ["git", "ls-files"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    ci, rust, wheels = ((ROOT / f".github/workflows/{name}.yml").read_text() for name in ("ci", "rust", "wheels"))
    compiled = [path for path in files if path.startswith(("rust/", "Cargo.", "rust-toolchain"))]
    packed = [*compiled, *(path for path in files if path.startswith(("python/", ".ci/", "pyproject", "LICENSE")))]
    assert len(packed) > len(compiled) > 100
    assert all(starts(ci, path) for path in files)
    assert not [path for path in packed if not starts(wheels, path)]
    assert not [path for path in compiled if not starts(rust, path)]
    for text in (rust, wheels):
        assert {"ubuntu-24.04-arm", "macos-15", "windows-2025"} <= set(re.findall(r"runner: ([\w.-]+)", text))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_ends_within_an_hour(path):
    """One that hangs does not wait for GitHub's limit of six hours."""
    text = path.read_text()
    jobs = re.findall(r"\n    runs-on: ", text)
    minutes = [int(limit) for limit in re.findall(r"\n    timeout-minutes: (\d+)\n", text)]
    assert len(minutes) == len(jobs) > 0 and max(minutes) <= 60


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_what_there_is(path):
    """Targets of the Makefile, steps of .ci/run, and files."""
    targets = set(re.findall(r"(?m)^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text()))
    steps = targets | set(re.findall(r"(?m)^(\w+)\(\) \{", (ROOT / ".ci/run").read_text()))
    text = path.read_text()
    assert set(re.findall(r"\bmake ([a-z-]+)", re.sub("#.*", "", text))) <= targets
    lists = re.findall(r"\n +steps: \[(.*)\]", text) + re.findall(r"steps: ([\w-]+) \}", text)
    assert {step for line in lists for step in re.split(r",? ", line)} <= steps
    assert all((ROOT / file).is_file() for file in re.findall(r"\.ci/[\w.]+", text))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path):
    """By the hash of a commit, with its version for the reader."""
    used = re.findall(r"uses: (.*)", path.read_text())
    assert used and all(re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in used)
