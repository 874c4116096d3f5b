"""The objects and the cells in the packages that export them, and the objects in the list of their pages, written from
the core by `make exports`.

Type checkers and editors read imports and `__all__` as text: so they stand in the files, and a test compares them with
the list. `isometry` and `isometry.torch` export all that their packages of operators export.
"""

import ast
import re

from isometry import _core
from isometry._objects import declaration
from subprocesses import ROOT

#: The packages that export operators, and what the module of an operator is called in them.
PACKAGES = {
    "python/isometry/operators/__init__.py": "isometry.operators.",
    "python/isometry/torch/operators/__init__.py": ".",
}
#: The list of the pages of mathematics: a table of the operators, and all pages.
PAGES = "docs/math/README.md"
#: The packages that export what belongs to a cell, and its line there.
CELL_PACKAGES = {
    "python/isometry/__init__.py": "from isometry.{stem} import {names}",
    "python/isometry/torch/sequences/__init__.py": "from .{stem} import {names}",
    "python/isometry/torch/nn/__init__.py": "from .{stem} import {names}",
}
STATEMENT = r"(?m)^from \S+ import (?:\(\n(?:    .*\n)*\)|[^(\n]*)\n"
ALWAYS = ("Adjoint", "BlockDiagonal", "Columns", "Composition", "Operator")


def objects():
    """The name of every object in the core, and that of its class."""
    return {stem: declaration(stem).name for stem in _core.OBJECTS}


def exported(text, prefix, named):
    """The text of a package that exports operators from modules of that prefix, with these objects."""
    names = sorted([*ALWAYS, *named.values()])
    lines = {
        rf"from {re.escape(prefix)}[a-z]\w* import [A-Z]\w+": [
            f"from {prefix}{stem} import {name}" for stem, name in sorted(named.items())
        ],
        r'    "[A-Z]\w+",': [f'    "{name}",' for name in names],
    }
    for old, new in lines.items():
        text = re.sub(rf"(?m)(^{old}\n)+", "".join(f"{line}\n" for line in new), text)
    return text


def paged(text, named):
    """The text of the list of pages, with a row and a line for each of these objects."""
    title = lambda stem: (ROOT / f"docs/math/{stem}.md").read_text().partition("\n")[0].removeprefix("# ")
    rows = [f"| [{name}]({stem}.md) | {title(stem)} |\n" for stem, name in sorted(named.items())]
    text = re.sub(r"(?m)(^\| \[[A-Z]\w+\]\(\w+\.md\) \| [^|\n]+ \|\n)+", lambda _: "".join(rows), text)
    start, pages, end = re.split(r"(?<=:hidden:\n\n)|(?=```\n?$)", text)
    others = [page for page in pages.splitlines() if page not in named]
    return start + "".join(f"{page}\n" for page in [*sorted(named), *others]) + end


def cells():
    """Every cell in the core, and the class of its layer, None for one without a layer of its name."""
    return {stem: layer_of(stem) for stem in _core.CELLS}


def layer_of(stem):
    """The class in the module of that name, which may write it in other letters."""
    path = ROOT / f"python/isometry/torch/nn/{stem}.py"
    found = re.search(rf"(?im)^class ({stem})\(", path.read_text()) if path.exists() else None
    return found and found[1]


def exported_cells(path, text, named, before):
    """The text of a package that exports these cells in place of those before."""
    kind = path.split("/")[-2]

    def names(own):
        """By stem, what the package exports."""
        if kind == "nn":
            return {stem: [layer] for stem, layer in own.items() if layer}
        return {stem: [stem, f"{stem}_vjp"] if kind == "isometry" else [stem] for stem in own}

    def lines(own):
        line = CELL_PACKAGES[path] + "\n"
        return {line.format(stem=stem, names=", ".join(exports)) for stem, exports in names(own).items()}

    every = lambda own: {name for exports in names(own).values() for name in exports}
    statements = re.findall(STATEMENT, text)
    own = sorted({*statements} - lines(before) | lines(named), key=lambda line: line.split()[1])
    text = text.replace("".join(statements), "".join(own))
    start, listed, end = re.split(r"(?<=^__all__ = )(\[[^]]*\])", text, flags=re.M)
    all_names = sorted({*ast.literal_eval(listed)} - every(before) | every(named), key=in_order)
    quoted = [f'"{name}"' for name in all_names]
    one = f"[{', '.join(quoted)}]"
    several = ",\n" in listed or len(one) > 110
    return start + ("[\n" + "".join(f"    {name},\n" for name in quoted) + "]" if several else one) + end


def in_order(name):
    """The order of `__all__`: names in capitals, of classes, others."""
    return (not name.isupper(), not name[0].isupper(), name)


def exported_before():
    """The cells that the torch interface exports, and the classes that it names, which modules may have renamed."""
    of = lambda package: (ROOT / f"python/isometry/torch/{package}/__init__.py").read_text()
    layers = dict(re.findall(r"(?m)^from \.(\w+) import (\w+)$", of("nn")))
    return {stem: layers.get(stem) for stem in re.findall(r"(?m)^from \.(\w+) import \1$", of("sequences"))}


def main():
    before = exported_before()
    for path in CELL_PACKAGES:
        (ROOT / path).write_text(exported_cells(path, (ROOT / path).read_text(), cells(), before))
    for path, prefix in PACKAGES.items():
        (ROOT / path).write_text(exported((ROOT / path).read_text(), prefix, objects()))
    (ROOT / PAGES).write_text(paged((ROOT / PAGES).read_text(), objects()))


if __name__ == "__main__":
    main()
