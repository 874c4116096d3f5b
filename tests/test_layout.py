"""The tree matches the documents: one stem per object in every tree, the import rule, small files."""

import ast
import itertools
import re
import symtable
import sys
import tomllib
from functools import cache

import pytest

from exports import CELL_PACKAGES, PACKAGES, PAGES, cells, exported, exported_before, exported_cells, objects, paged
from isometry._core import CELLS, OBJECTS
from lines import counted
from subprocesses import ROOT

MIRRORS = (
    "rust/core/src/operators/{}/mod.rs",
    "python/isometry/_objects/{}.py",
    "python/isometry/operators/{}.py",
    "python/isometry/torch/operators/{}.py",
    "python/isometry/torch/formulas/{}.py",
    "tests/reference/{}.py",
    "tests/registry/{}.py",
    "tests/objects/test_{}.py",
    "docs/math/{}.md",
)
CELL_MIRRORS = (
    "python/isometry/{}.py",
    "python/isometry/_cells/{}.py",
    "python/isometry/torch/sequences/{}.py",
    "python/isometry/torch/formulas/{}.py",
    "tests/registry/cells/{}.py",
)
BUDGET = 400
#: Of lines of code in all, as benches/lines.py counts them: what needs more takes as many away elsewhere.
CEILING = 104_479
#: Of a function in Python, without its docstring.
FUNCTION_BUDGET = 80
TREES = {
    "rust": ("*.rs", "*.wgsl"),
    "python": ("*.py", "*.pyi"),
    "tests": ("*.py",),
    "examples": ("*.py",),
    "benches": ("*.py",),
}


def sources():
    for tree, suffixes in TREES.items():
        for suffix in suffixes:
            yield from (p for p in (ROOT / tree).rglob(suffix) if "target" not in p.relative_to(ROOT).parts)


@cache
def parsed(path):
    return ast.parse(path.read_text())


def imports(path):
    """Dotted names of the modules a file imports, relative ones resolved."""
    package = path.relative_to(ROOT / "python").with_suffix("").parts if path.is_relative_to(ROOT / "python") else ()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def within(name, package):
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize(
    ("stem", "mirror"), [*itertools.product(OBJECTS, MIRRORS), *itertools.product(CELLS, CELL_MIRRORS)]
)
def test_every_tree_has_the_stem(stem, mirror):
    assert (ROOT / mirror.format(stem)).is_file()


@pytest.mark.parametrize("tree", TREES)
def test_every_tree_is_there(tree):
    assert any(p.is_relative_to(ROOT / tree) for p in sources()), f"no sources in {tree}/"


def test_no_object_is_missing_from_the_registry():
    folders = {p.name for p in (ROOT / "rust/core/src/operators").iterdir() if p.is_dir()}
    assert folders == set(OBJECTS)


@pytest.mark.parametrize("path", PACKAGES)
def test_every_object_is_exported(path):
    """`make exports` writes the names; one more or one fewer is found."""
    text, prefix = (ROOT / path).read_text(), PACKAGES[path]
    assert text == exported(text, prefix, objects())
    more = exported(text, prefix, {**objects(), "zoo": "Zoo"})
    assert "Zoo" in more.partition("__all__")[0] and '    "Zoo",\n' in more
    assert exported(more, prefix, objects()) == text


@pytest.mark.parametrize("path", CELL_PACKAGES)
def test_every_cell_is_exported(path):
    """As for objects."""
    text, named = (ROOT / path).read_text(), cells()
    assert text == exported_cells(path, text, named, named) and exported_before() == named
    more = exported_cells(path, text, {**named, "hare": "Hare"}, named)
    assert more.count("Hare" if path.endswith("nn/__init__.py") else "hare") >= 2
    assert exported_cells(path, more, named, {**named, "hare": "Hare"}) == text
    assert not re.search(r"\bGRU\b", exported_cells(path, text, {**named, "gru": "Gated"}, named))


def test_every_object_has_its_page_in_the_list():
    text = (ROOT / PAGES).read_text()
    assert text == paged(text, objects())
    fewer = paged(text, {"dense": "Dense"})
    assert "householder.md" not in fewer
    assert "| [Householder](householder.md) | Products of Householder reflections |" in text


def test_the_reference_imports_numpy_alone():
    roots = {name.partition(".")[0] for path in (ROOT / "tests/reference").glob("*.py") for name in imports(path)}
    assert roots - sys.stdlib_module_names == {"numpy", "reference"}


def test_the_numpy_face_never_imports_torch():
    face, exempt = ROOT / "python/isometry", ("torch", "cli", "integrations")
    for path in face.rglob("*.py"):
        if path.relative_to(face).parts[0] not in exempt:
            names = set(imports(path))
            assert not any(within(n, "torch") or within(n, "isometry.torch") for n in names), path


def test_the_torch_face_never_imports_the_operators_of_the_numpy_face():
    for path in (ROOT / "python/isometry/torch").rglob("*.py"):
        names = set(imports(path))
        assert not any(within(n, "isometry.operators") or within(n, "isometry.recurrence") for n in names), path


def test_objects_never_import_each_other():
    for stem in OBJECTS:
        others = [o for o in OBJECTS if o != stem]
        for path in (ROOT / f"rust/core/src/operators/{stem}").glob("*.rs"):
            text = path.read_text()
            for other in others:
                assert f"operators::{other}" not in text, f"{path} names {other}"
                assert f"super::{other}" not in text.replace("super::super", ""), f"{path} names {other}"
        for face in ("operators", "torch/operators"):
            names = set(imports(ROOT / f"python/isometry/{face}/{stem}.py"))
            for other in others:
                assert not any(n.endswith(f"operators.{other}") for n in names), f"{face}/{stem} imports {other}"


def circles(edges):
    """The groups of modules that reach each other (Tarjan's strongly connected components of two or more)."""
    order, low, path, found = {}, {}, [], []

    def visit(module):
        order[module] = low[module] = len(order)
        path.append(module)
        for other in edges[module]:
            if other not in order:
                visit(other)
            if other in path:
                low[module] = min(low[module], low[other])
        if low[module] == order[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            found.extend([sorted(group)] if len(group) > 1 else [])

    for module in edges:
        if module not in order:
            visit(module)
    return found


def python_modules(root):
    """name -> the modules under the same root that it imports, wherever in the file the import stands.

    Imports for type checkers alone, under `if TYPE_CHECKING`, do not count: they are not executed.
    """
    modules = {}
    for path in (p for suffix in ("*.py", "*.pyi") for p in root.rglob(suffix)):
        parts = path.relative_to(root).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    edges = {}
    for module, path in modules.items():
        # `from package import name` means the module of that name, if there is one, not all that the package loads.
        package = module.split(".")[: None if path.name == "__init__.py" else -1]
        found = set()
        tree = parsed(path)
        typed = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if node in typed:
                continue
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                source = ".".join([*base, *([node.module] if node.module else [])])
                named = {f"{source}.{alias.name}" for alias in node.names}
                found |= {name if name in modules else source for name in named}
        edges[module] = found & modules.keys() - {module}
    return edges


def rust_modules(crate):
    """name -> the modules of the crate that it names; a folder at the crate's root is one module."""
    edges = {}
    for path in crate.rglob("*.rs"):
        parts = path.relative_to(crate).with_suffix("").parts
        if parts[0] not in ("lib", "testing") and "tests" not in parts:
            text = path.read_text().partition("#[cfg(test)]\nmod tests {")[0]
            edges.setdefault(parts[0], set()).update(re.findall(r"\bcrate::(\w+)", text))
    return {module: others & edges.keys() - {module} for module, others in edges.items()}


@pytest.mark.parametrize("root", ["python", "benches", "tests"])
@pytest.mark.slow
def test_no_circle_of_imports(root):
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]
    assert not circles(python_modules(ROOT / root))


# The other two crates are one circle each by design: every kernel is generic over `Scalar`, which lists the tables of
# all kernels, and `shader` lists the sources of all objects.
@pytest.mark.parametrize("crate", ["core", "py"])
def test_no_circle_of_rust_modules(crate):
    assert not circles(rust_modules(ROOT / "rust" / crate / "src"))


def test_the_core_knows_no_python():
    manifest = tomllib.loads((ROOT / "rust/core/Cargo.toml").read_text())
    names = {
        name for key in ("dependencies", "dev-dependencies", "build-dependencies") for name in manifest.get(key, {})
    }
    assert not names & {"pyo3", "numpy"}


def test_one_version():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    import isometry

    assert isometry.__version__ == workspace
    assert f"[{workspace}]" in (ROOT / "CHANGELOG.md").read_text()


def test_every_rust_file_is_compiled():
    """Its module is declared: by the file above it, or as an object by the macro."""
    for path in sorted((ROOT / "rust").glob("*/src/**/*.rs")):
        name, above = (path.parent.name, path.parents[1]) if path.stem == "mod" else (path.stem, path.parent)
        if path.stem in ("lib", "main") or above.name == "operators":
            continue
        texts = [p.read_text() for p in (above / "mod.rs", above / "lib.rs", above.with_suffix(".rs")) if p.exists()]
        assert any(re.search(rf"\bmod {name};", text) for text in texts), f"{path.relative_to(ROOT)} is in no module"


def test_files_stay_small():
    long = {str(p.relative_to(ROOT)): n for p in sources() if (n := len(p.read_text().splitlines())) > BUDGET}
    assert not long, f"over {BUDGET} lines"


def test_the_house_does_not_grow():
    assert counted(ROOT)["all"][0] <= CEILING


def lengths(tree):
    """Names and lines of all functions, without docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            head = node.body[0]
            doc = head.end_lineno - head.lineno + 1 if ast.get_docstring(node) is not None else 0
            yield node.name, node.end_lineno - node.lineno + 1 - doc


def test_functions_stay_small():
    assert list(lengths(ast.parse('def f():\n    """Two\n    lines."""\n    return 1\n'))) == [("f", 2)]
    for path in (p for p in sources() if p.suffix == ".py"):
        long = [f"{name}: {n}" for name, n in lengths(parsed(path)) if n > FUNCTION_BUDGET]
        assert not long, f"{path}: over {FUNCTION_BUDGET} lines"


def test_nothing_is_left_undone():
    """No marker of missing work and no test that does not run."""
    cut = ["TO,DO", "FIX,ME", "to,do!(", "unimpl,emented!(", "pytest.,skip", "mark.,xfail", "mark.,skip", "#[ig,nore"]
    for path in sources():
        text = path.read_text()
        assert not [w for w in cut if w.replace(",", "") in text], path


def strays(text):
    """Names that pytest would collect as tests of this module although they are not defined there as tests."""
    for symbol in symtable.symtable(text, "module", "exec").get_symbols():
        bound = symbol.is_assigned() or symbol.is_imported()
        if bound and not symbol.is_namespace() and symbol.get_name().lower().startswith("test"):
            yield symbol.get_name()


def test_nothing_but_a_test_is_collected():
    """A loop variable or an import with a test's name would run it again."""
    assert list(strays("for test in (f, g):\n    pass\nfrom laws import test_a")) == ["test", "test_a"]
    assert not list(strays("def test_a(test):\n    test_b = test"))
    for path in (ROOT / "tests").rglob("test_*.py"):
        assert not list(strays(path.read_text())), path


def test_imports_are_cheap():
    """`import isometry` loads NumPy and nothing heavy."""
    from subprocesses import script

    loaded = script("import sys, isometry; print(*{m.split('.')[0] for m in sys.modules})").split()
    heavy = {"torch", "matplotlib", "tqdm", "sklearn", "scipy", "wgpu"}
    assert not heavy & set(loaded)
    assert sys.version_info >= (3, 11)
