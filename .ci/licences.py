"""The crates that the extension is built from on any platform: their licences, sources and texts.

python .ci/licences.py           write LICENSE-THIRD-PARTY, which every wheel contains
python .ci/licences.py --check   fail if it is not up to date, or a crate is against deny.toml
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTICE = ROOT / "LICENSE-THIRD-PARTY"
RULES = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
HEAD = """\
The wheels of Isometry are built from these crates and Rust's standard library, under these licences. Of a crate that
offers several it is the first that deny.toml allows. All are listed, also those that only some platforms need, or that
only the compiler runs. Written by .ci/licences.py."""
OWN = {name: (ROOT / f"LICENSE-{name}").read_text(encoding="utf-8") for name in ("MIT", "APACHE")}
PERMISSION = OWN["MIT"][OWN["MIT"].index("Permission is hereby granted") :]
STANDARD_LIBRARY = f"Copyright (c) The Rust Project Contributors\n\n{PERMISSION}"


def crates_used():
    """By name and version the crates that `isometry-py` depends on, on any platform, as in the SBOM of a wheel."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--features=gpu"]
    done = subprocess.run(command, cwd=ROOT / "rust/py", check=True, stdout=subprocess.PIPE)
    graph = json.loads(done.stdout)
    packages = {package["id"]: package for package in graph["packages"]}
    edges = {node["id"]: node["deps"] for node in graph["resolve"]["nodes"]}
    seen, ahead = set(), [graph["resolve"]["root"]]
    while ahead:
        crate = ahead.pop()
        if crate not in seen:
            seen.add(crate)
            ahead += [dep["pkg"] for dep in edges[crate] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]
    found = {(packages[crate]["name"], packages[crate]["version"]): packages[crate] for crate in seen}
    return {key: package for key, package in sorted(found.items()) if package["source"]}


def licences(expression):
    """The licences of an SPDX expression that are needed together, of those on offer the first that is allowed."""
    allowed = RULES["licenses"]["allow"]
    needed = []
    for clause in re.split(r" AND ", expression.replace("/", " OR ")):
        offered = [name.strip("() ") for name in clause.split(" OR ")]
        chosen = next((name for name in allowed if name in offered), None)
        if chosen is None:
            raise ValueError(f"{expression!r}: none of {offered} is allowed by deny.toml")
        needed.append(chosen)
    return needed


def text(package, licence):
    """The file of the crate with that licence, or the licence with the names of its authors."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if re.match(r"(?i)licen[sc]e|copying", path.name))
    named = [path for path in files if licence.partition("-")[0].lower() in path.name.lower()]
    whole = named or [path for path in files if "-" not in path.name]
    if whole:
        return whole[0].read_text(encoding="utf-8").replace("\r\n", "\n")
    if licence == "Apache-2.0":
        return OWN["APACHE"]
    if licence != "MIT":
        raise ValueError(f"{package['name']}: no file with its licence {licence}")
    authors = ", ".join(re.sub(r" <.*>", "", author) for author in package["authors"])
    return f"Copyright (c) {authors or 'the authors of ' + package['name']}\n\n{PERMISSION}"


def notice(crates):
    """Every text once, after the crates it is for."""
    texts = {STANDARD_LIBRARY: [("MIT", "Rust's standard library")]}
    for (name, version), package in crates.items():
        for licence in licences(package["license"]):
            texts.setdefault(text(package, licence), []).append((licence, f"{name} {version}"))
    parts = [HEAD]
    for body, users in texts.items():
        names = "".join(f"    {user}\n" for _, user in users)
        parts.append(f"{'=' * 80}\n{users[0][0]}:\n{names}\n{body.strip()}")
    return "\n\n".join(parts) + "\n"


def faults(crates):
    """What is against deny.toml: sources and banned crates; licences raise where they are chosen."""
    for (name, version), package in crates.items():
        if package["source"] != CRATES_IO:
            yield f"{name} {version} is from {package['source']}"
        if name in RULES["bans"]["deny"]:
            yield f"{name} {version} is banned"


def main():
    crates = crates_used()
    wrong, made = list(faults(crates)), notice(crates)
    if wrong:
        sys.exit("\n".join(wrong))
    if sys.argv[1:] != ["--check"]:
        NOTICE.write_text(made, encoding="utf-8")
    elif NOTICE.read_text(encoding="utf-8") != made:
        sys.exit(f"{NOTICE.name} is not up to date: python .ci/licences.py")


if __name__ == "__main__":
    main()
