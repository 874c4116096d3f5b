"""The objects in the packages that export them and in the list of their pages, written from the core by `make exports`.

Type checkers and editors read imports and `__all__` as text: so they stand in the files, and a test compares them with
the list.
"""

import re

from isometry import _core
from isometry._objects import declaration
from subprocesses import ROOT

#: The packages that export operators, and what the module of an operator is called in them.
PACKAGES = {
    "python/isometry/operators/__init__.py": "isometry.operators.",
    "python/isometry/torch/operators/__init__.py": ".",
    "python/isometry/__init__.py": "isometry.operators.",
    "python/isometry/torch/__init__.py": ".operators.",
}
#: The list of the pages of mathematics: a table of the operators, and all pages.
PAGES = "docs/math/README.md"
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
        r"    [A-Z]\w+,": [f"    {name}," for name in names],
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


def main():
    for path, prefix in PACKAGES.items():
        (ROOT / path).write_text(exported((ROOT / path).read_text(), prefix, objects()))
    (ROOT / PAGES).write_text(paged((ROOT / PAGES).read_text(), objects()))


if __name__ == "__main__":
    main()
