"""The new files of an object, written by `make object NAME=<stem>` from `tests/stubs`: W = diag(e^{i phases}).

Once the printed entries are made, the package builds and every law holds; then replace the formula file by file.
"""

import keyword
import re
import sys
from string import Template

from subprocesses import ROOT

#: The texts, each under the path of its file with STEM for the stem, and with the ending `.txt`.
STUBS = ROOT / "tests/stubs"

#: The entries in existing files, in the order in which they are made.
ENTRIES = {
    "tests/reference/__init__.py": "from reference.$stem import $stem, ${stem}_vjp",
    "tests/test_reference.py": "a test of ref.$stem and ref.${stem}_vjp on values known by hand",
    "rust/core/src/operators/mod.rs": "in objects!: $stem $name route;",
    "rust/core/src/operators/stacks.rs": 'in OBJECTS: ("$stem", &[&[5]]),',
    "docs/choosing.md": "a row in each table of operators: what it is for; what it reaches, its parameters, its costs",
    "docs/numerics.md": "its name in the table by operator",
    "docs/api/numpy.md": "a row: `iso.$name(phases)`",
    "CHANGELOG.md": "a line",
}


def written(text, stem):
    """The text for an object of this stem."""
    name = "".join(word.capitalize() for word in stem.split("_"))
    return Template(text).substitute(stem=stem, name=name, NAME=stem.upper())


def stubs(stem):
    """The path of every new file, relative to the repository, and its text."""
    if not re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", stem) or keyword.iskeyword(stem):
        raise ValueError(f"NAME must be a stem such as rotation or bounded_svd, not {stem!r}")
    texts = {str(path.relative_to(STUBS)): path.read_text() for path in sorted(STUBS.rglob("*.txt"))}
    return {path.removesuffix(".txt").replace("STEM", stem): written(text, stem) for path, text in texts.items()}


def write(stem, root):
    """Writes the new files under `root`, or none if one of them exists; yields lines that say what to do next."""
    files = stubs(stem)
    for path in files:
        if (root / path).exists():
            raise ValueError(f"{path} exists")
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    yield from (f"written {path}" for path in files)
    yield "entries to make, then `make exports`:"
    yield from (f"  {path}: {written(entry, stem)}" for path, entry in ENTRIES.items())


if __name__ == "__main__":
    try:
        print(*write(sys.argv[1], ROOT), sep="\n")
    except ValueError as refused:
        sys.exit(str(refused))
