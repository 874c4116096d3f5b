"""Lines of code by area, without blank lines, docstrings and comments, and all lines.

    python benches/lines.py [CHECKOUT ...]

A table with a column for each checkout (default: this one), so that two states can be compared. The tests of the
Rust crates are an area of their own, those at the end of a file too. The stubs of `make object` and `make cell` stand
below the total and are not in it.
"""

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

NOTHING = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
# the first area with a beginning of a file's path has the file
AREAS = {
    "rust/kernels": ("rust/kernels/",),
    "rust/core": ("rust/core/",),
    "rust/gpu": ("rust/gpu/",),
    "rust/py": ("rust/py/",),
    "command line": ("python/isometry/cli/",),
    "torch face": ("python/isometry/torch/",),
    "shared machinery": tuple(
        f"python/isometry/_{stem}"
        for stem in ["objects", "rules", "check", "batch", "index", "expression", "states", "tolerance"]
    ),
    "NumPy face": ("python/isometry/",),
    "tests": ("tests/",),
    "benches": ("benches/",),
    "examples": ("examples/",),
}
RUST = re.compile(r'(?P<text>b?"(?:\\.|[^"\\])*"|r#*".*?"#*|\'(?:\\.|[^\'\\])\')|(?P<remark>//[^\n]*|/\*.*?\*/)', re.S)


def python_lines(text: str) -> int:
    """Lines with code: those of tokens that are neither a comment nor of a docstring."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docs.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOTHING:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - docs)


def rust_lines(text: str) -> int:
    """Lines that are not empty without comments, in Rust and in WGSL."""
    bare = RUST.sub(lambda m: m["text"] or "\n" * m["remark"].count("\n"), text)
    return sum(bool(line.strip()) for line in bare.splitlines())


TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod (\w+);")


def test_modules(root: Path) -> set[Path]:
    """The files and folders of Rust modules that are compiled for tests alone, without suffix."""
    found = set(root.glob("rust/*/tests"))
    for path in root.glob("rust/**/*.rs"):
        beside = path.parent if path.stem in ("mod", "lib") else path.with_suffix("")
        found.update(beside / name for name in TEST_MODULE.findall(path.read_text(encoding="utf-8")))
    return found


def parts(area: str, path: Path, tests: set[Path]) -> Iterator[tuple[str, str]]:
    """The area and the text of a file; modules of Rust that are compiled for tests alone stand apart."""
    text = path.read_text(encoding="utf-8")
    if tests & {path.with_suffix(""), *path.parents}:
        area = "rust tests"
    code, mark, end = text.partition("#[cfg(test)]\nmod tests {") if path.suffix == ".rs" else (text, "", "")
    yield area, code
    yield "rust tests", mark + end


def counted(root: Path) -> dict[str, list[int]]:
    """Lines of code and all lines of each area of a checkout."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    tests = test_modules(root)
    for path in sorted(p for top in TOPS for p in (root / top).rglob("*") if p.suffix in COUNTERS):
        inside = path.relative_to(root).as_posix()
        area = next(area for area, starts in AREAS.items() if inside.startswith(starts))
        for name, text in parts(area, path, tests):
            found[name][0] += COUNTERS[path.suffix](text)
            found[name][1] += len(text.splitlines())
    found["all"] = [sum(sizes) for sizes in zip(*found.values(), strict=True)]
    for path in (root / "tests/stubs").rglob("*.txt"):
        text = path.read_text(encoding="utf-8")
        found["stubs"][0] += sum(bool(line.strip()) for line in text.splitlines())
        found["stubs"][1] += len(text.splitlines())
    return found


COUNTERS = {".py": python_lines, ".pyi": python_lines, ".rs": rust_lines, ".wgsl": rust_lines}
TOPS = ("rust", "python", "tests", "benches", "examples")


def main(roots: Sequence[str]) -> None:
    checkouts = [Path(root) for root in roots] or [Path(__file__).resolve().parents[1]]
    columns = [counted(root) for root in checkouts]
    for root in checkouts:
        print(f"{root}: lines of code, all lines")
    for area in (*AREAS, "rust tests", "all", "stubs"):
        print(f"{area:18}" + "".join(f"{column[area][0]:9,}{column[area][1]:9,}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
