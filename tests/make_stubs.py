"""The new files of an object or of a cell, which `make object NAME=<stem>` and `make cell NAME=<stem>` write.

An object is W = diag(e^{i phases}): once the printed entries are made, the package builds and every law holds. A cell
is a leaky integrator; its lines in lists of the core are written too, and it works at once. Then replace the formula
file by file.
"""

import keyword
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from subprocesses import ROOT


def written(text, stem):
    """The text for an object or a cell of this stem."""
    name = "".join(word.capitalize() for word in stem.split("_"))
    return Template(text).substitute(stem=stem, name=name, NAME=stem.upper())


def in_order(pattern, line):
    """An edit: the line among those that the pattern finds with a name each, in the order of names."""

    def edited(text, stem):
        found = list(re.finditer(f"(?m)^{pattern}\n", text))
        later = next((match for match in found if match[1] > stem), None)
        at = found[-1].end() if later is None else later.start()
        return text[:at] + written(line, stem) + "\n" + text[at:]

    return edited


def behind(pattern, lines):
    """An edit: lines behind the last match of the pattern."""

    def edited(text, stem):
        *_, last = re.finditer(pattern, text)
        return text[: last.end()] + written(lines, stem) + text[last.end() :]

    return edited


STEP = """
fn $stem(step: &Step<'_>, x: &[Z], h: &[Z], _: &mut Vec<Z>) -> Vec<Z> {
    let drive = sum(&times((step.array)("w"), h), &step.input(["u", "b"], x));
    let a = Var::constant(step.settings[0]);
    (0..step.n).map(|i| h[i] + (drive[i].tanh() - h[i]).scale(a)).collect()
}
"""
TEXTBOOK = """    Textbook {
        name: "$stem",
        step: $stem,
        settings: &[&[0.3], &[0.7], &[1.0]],
        belongs: ("", 0),
        activations: false,
    },
"""
RECURRENCE = "rust/core/src/recurrence"


@dataclass(frozen=True)
class Kind:
    """What is made: the form of its stem, where its texts are, and the entries in existing files."""

    stem: str
    #: The texts, each under the path of its file with STEM for the stem, and with the ending `.txt`.
    stubs: Path
    #: Entries to make, in their order.
    entries: dict[str, str]
    #: Functions of a text and the stem, which make an entry.
    edits: dict[str, list[Callable]] = field(default_factory=dict)


KINDS = {
    "object": Kind(
        "[a-z][a-z0-9]*(_[a-z0-9]+)*",
        ROOT / "tests/stubs/objects",
        {
            "tests/reference/__init__.py": "from reference.$stem import $stem, ${stem}_vjp",
            "tests/objects/test_refusals.py": "arguments that are taken, and a row for every one that is refused",
            "rust/core/src/operators/mod.rs": "in objects!: $stem $name route;",
            "rust/core/src/operators/stacks.rs": 'in SHAPES: ("$stem", &[&[5]]),',
            "docs/choosing.md": "a row in each table of operators: what it is for; what it reaches, its costs",
            "docs/numerics.md": "its name in the table by operator",
            "docs/api/numpy.md": "a row: `iso.$name(phases)`",
            "CHANGELOG.md": "a line",
        },
    ),
    "cell": Kind(
        "[a-z][a-z0-9]*",
        ROOT / "tests/stubs/cells",
        {
            "docs/math/README.md": "its page in the table of recurrences",
            "docs/api/numpy.md": "`iso.$stem` among the recurrences",
            "docs/api/torch.md": "`it.nn.$name` in the table of layers",
            "CHANGELOG.md": "a line",
        },
        {
            f"{RECURRENCE}/mod.rs": [in_order(r"(?:#\[.*\]\n)?(?:pub(?:\(\w+\))? )?mod (\w+);", "pub mod $stem;")],
            f"{RECURRENCE}/cells.rs": [
                in_order(r"use super::(\w+)(?:::.*)?;", "use super::$stem::{self, $name};"),
                behind(r"\ncells! \{\n(?:    .*\n)*", "    $stem::DECLARATION, $name real;\n"),
            ],
            f"{RECURRENCE}/tests/textbook.rs": [
                behind(r"(?s)pub static CELLS: .*?(?=\n\];\n)\n", TEXTBOOK),
                behind(r"\n\Z", STEP),
            ],
            "docs/math/README.md": [behind(r"\nrecurrence\n", "$stem\n")],
        },
    ),
}


def stubs(kind, stem):
    """The path of every new file, relative to the repository, and its text."""
    if not re.fullmatch(kind.stem, stem) or keyword.iskeyword(stem):
        raise ValueError(f"NAME must be a stem such as rotation or bounded_svd, of a cell one word, not {stem!r}")
    texts = {str(path.relative_to(kind.stubs)): path.read_text() for path in sorted(kind.stubs.rglob("*.txt"))}
    return {path.removesuffix(".txt").replace("STEM", stem): written(text, stem) for path, text in texts.items()}


def write(name, stem, root):
    """Writes the new files under `root`, or none if one of them exists; yields lines that say what to do next."""
    kind = KINDS[name]
    files = stubs(kind, stem)
    for path in files:
        if (root / path).exists():
            raise ValueError(f"{path} exists")
    for path, edits in kind.edits.items():
        text = (root / path).read_text()
        for edit in edits:
            text = edit(text, stem)
        files[path] = text
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    yield from (f"written {path}" for path in files)
    yield "entries to make, then `make exports`:"
    yield from (f"  {path}: {written(entry, stem)}" for path, entry in kind.entries.items())


if __name__ == "__main__":
    try:
        print(*write(*sys.argv[1:], ROOT), sep="\n")
    except ValueError as refused:
        sys.exit(str(refused))
