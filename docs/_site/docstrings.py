"""Docstrings are plain text with numpydoc's sections: stars and bars in their formulas are no markup."""

from __future__ import annotations

import re
from typing import Any

LITERAL = re.compile(r"(``.*?``|`[^`]*`)")


def escaped(lines: list[str]) -> list[str]:
    """The lines with `*` and `|` escaped, except in literals, in examples and in formulas."""
    out: list[str] = []
    inside = None  # the indentation of a formula's directive
    example = False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            example = False
        elif inside is not None and indent <= inside:
            inside = None
        if line.lstrip().startswith(".. math::"):
            inside = indent
        example = example or line.lstrip().startswith(">>>")
        out.append(line if example or inside is not None else plain(line))
    return out


def plain(line: str) -> str:
    parts = LITERAL.split(line)
    return "".join(part if k % 2 else re.sub(r"([*|])", r"\\\1", part) for k, part in enumerate(parts))


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    del app, what, name, obj, options
    lines[:] = escaped(lines)


def linked(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Guides, whose names in "See Also" numpydoc reads without a path, are at the root of the site."""
    del app, what, name, obj, options
    lines[:] = [re.sub(r":doc:`(?=[\w-]+`)", ":doc:`/", line) for line in lines]


def skipped(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Properties that return an argument are in their class's list of attributes; torch calls `extra_repr`."""
    del app, what, skip, options
    if name == "extra_repr":
        return True
    return True if isinstance(obj, property) and (obj.__doc__ or "").startswith("The argument `") else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=100)  # numpydoc comes after it
    app.connect("autodoc-process-docstring", linked, priority=900)
    app.connect("autodoc-skip-member", skipped)
    return {"parallel_read_safe": True}
