"""The documentation site: links become those of its pages, the reference has every public name, no page is left out.

`make site` builds it, with warnings as errors; tests/site tests what was built.
"""

import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

from subprocesses import ROOT

DOCS = ROOT / "docs"
OUT = Path("/pages")
BUDGET = 36_000  # words of all pages
YEAR = r"\b(19|20)\d\d\b"
#: Packages whose `__all__` the reference must have; what names another package is not a page entry itself.
PACKAGES = (
    "isometry",
    "isometry.linalg",
    "isometry.tasks",
    "isometry.metrics",
    "isometry.readers",
    "isometry.gpu",
    "isometry.torch",
    "isometry.torch.nn",
    "isometry.torch.linalg",
    "isometry.torch.optim",
    "isometry.torch.adapters",
    "isometry.torch.parametrizations",
    "isometry.torch.init",
    "isometry.torch.fla",
    "isometry.integrations.onnx",
    "isometry.integrations.sb3",
    "isometry.integrations.torch",
    "isometry.integrations.torchrl",
    "isometry.integrations.transformers",
)


@pytest.fixture(scope="module")
def site():
    """The modules of docs/_site that need no Sphinx, by name."""
    sys.path.insert(0, str(DOCS / "_site"))
    try:
        return {name: importlib.import_module(name) for name in ("pages", "entries", "docstrings")}
    finally:
        sys.path.remove(str(DOCS / "_site"))


def public(package):
    """The names of a package that are its own: `__all__`, or functions and classes without an underscore."""
    module = importlib.import_module(package)
    own = lambda value: callable(value) and getattr(value, "__module__", None) == package
    names = getattr(module, "__all__", [n for n, value in vars(module).items() if n[0] != "_" and own(value)])
    kinds = {name: type(getattr(module, name)).__name__ for name in names}
    return {name for name, kind in kinds.items() if kind != "module" and not name.startswith("__")}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_public_name(site, package):
    listed = [name for _, _, modules in site["entries"].GROUPS.values() for name in modules.get(package, ())]
    assert sorted(listed) == sorted(public(package))


def test_no_package_is_missing_from_the_reference(site):
    modules = {module for _, _, modules in site["entries"].GROUPS.values() for module in modules}
    assert modules == set(PACKAGES)
    for face in ("isometry", "isometry.torch"):
        module = importlib.import_module(face)
        inner = {f"{face}.{n}" for n in module.__all__ if type(getattr(module, n)).__name__ == "module"}
        assert inner <= modules


def test_links_lead_to_the_pages_of_the_site(site):
    to = lambda document, link: site["pages"].target(ROOT / document, link, OUT)
    assert to("docs/gpu.md", "../README.md#install") == "project/readme.md#install"
    architecture = to("docs/math/cayley.md", "../../ARCHITECTURE.md#threads")
    assert architecture == site["pages"].REPOSITORY + "ARCHITECTURE.md#threads"
    assert to("README.md", "docs/math/cayley.md#numbers") == "../math/cayley.md#numbers"
    assert to("README.md", "SECURITY.md#reporting") == "security.md#reporting"
    assert to("README.md", "docs/figures/copying.png") == "../figures/copying.png"
    assert to("docs/gpu.md", "https://wgpu.rs") == "https://wgpu.rs" and to("docs/gpu.md", "#numbers") == "#numbers"
    assert to("docs/README.md", "../examples") is None
    assert to("docs/README.md", "../LICENSE-MIT").endswith(str(ROOT / "LICENSE-MIT")[1:])


def test_code_is_left_as_it_is(site, tmp_path, monkeypatch):
    text = "[a](b.md) `[a](../README.md)` [c](../examples)\n\n    [a](../README.md)\n\n```\n[a](../README.md)\n```\n"
    document = tmp_path / "docs/a.md"
    document.parent.mkdir()
    (tmp_path / "examples").mkdir()
    document.write_text(text)
    monkeypatch.setattr(site["pages"], "ROOT", tmp_path)
    monkeypatch.setattr(site["pages"], "DOCS", tmp_path / "docs")
    assert site["pages"].rewritten(document, OUT) == text.replace("[c](../examples)", "c")


def test_stars_and_bars_of_formulas_are_no_markup(site):
    lines = ["x (*, n), |x|, ``*``, `|y|`", "", ".. math::", "", "    |a|", "", ">>> a * b", "a * b", "", "*"]
    expected = [r"x (\*, n), \|x\|, ``*``, `|y|`", *lines[1:9], r"\*"]
    assert site["docstrings"].escaped(lines) == expected


def test_every_document_is_in_a_table_of_contents(site):
    """Sphinx warns of a page that is not; this says so without Sphinx."""
    listed = set()
    for path in ("index.md", "math/README.md", "reproduction.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / path).read_text(), re.DOTALL):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.*)>", r"\1", line) for line in lines]
            listed |= {((DOCS / path).parent / f"{name}.md").relative_to(DOCS).as_posix() for name in names}
    pages = {site["pages"].page(document).as_posix() for document in site["pages"].documents()}
    assert pages - listed == {"index.md"}


def test_the_pages_are_read_in_an_afternoon():
    """Their words, as `wc -w` counts them, tables included; the README has a budget of its own."""
    counted = {path: len(path.read_text().split()) for path in DOCS.rglob("*.md")}
    assert sum(counted.values()) <= BUDGET, sorted(counted.items(), key=lambda pair: -pair[1])[:10]


def test_every_name_has_a_page_with_its_own_summary(site):
    pages = site["entries"].pages()
    for group, (_, _, modules) in site["entries"].GROUPS.items():
        for module, names in modules.items():
            for name in names:
                text = pages[f"{module}.{name}.rst"]
                assert text.startswith(f"{name}\n=") and len(re.findall(r"^\.\. auto", text, re.MULTILINE)) == 1
                assert f"<{module}.{name}>" in pages[f"{group}.rst"]
    assert site["entries"].summary("isometry.torch.nn", "GRU") == (
        "Gated recurrent layer (GRU) with unconstrained matrices."
    )
    layers = pages["torch-layers.rst"]
    said = re.findall(r"^     - (.*)$", layers, re.MULTILINE)
    assert len(set(said)) == len(said) > 15 and all(line.endswith(".") and len(line) < 130 for line in said)
    assert ":class:`isometry.torch.nn.ORNN`" in pages["isometry.torch.nn.GRU.rst"]
    assert ":class:`isometry.torch.nn.ORNN`" not in pages["isometry.torch.nn.ORNN.rst"]


def test_no_summary_is_cut_at_dots_of_a_formula(site):
    """A summary ends with the first full stop, so the dots of a product belong behind the first sentence."""
    entries = site["entries"]
    names = [(m, name) for _, _, modules in entries.GROUPS.values() for m, own in modules.items() for name in own]
    assert not [name for m, name in names if re.search(r"[.\s]\.$", entries.summary(m, name))]


def test_what_has_a_page_leads_further(site):
    """Classes and parametrisations name guides and what stands beside them; layers and operators also when to use them,
    when not, and their papers by year."""
    names = [(m, name) for _, _, own in site["entries"].GROUPS.values() for m, names in own.items() for name in names]
    for module, name in names:
        value = pkgutil.resolve_name(f"{module}:{name}")
        if not isinstance(value, type) and module not in ("isometry.torch.parametrizations", "isometry.torch.init"):
            continue
        text = inspect.getdoc(value)
        also = text.partition("See Also\n--------\n")[2].partition("\n\n")[0]
        named = [path for line in also.splitlines() for path in line.partition(" : ")[0].split(", ")]
        guides = [path[6:-1] for path in named if path.startswith(":doc:")]
        siblings = [path for path in named if not path.startswith(":doc:")]
        assert guides and siblings and all((DOCS / f"{guide}.md").is_file() for guide in guides), name
        assert all(pkgutil.resolve_name(path if "." in path else f"{module}.{path}") for path in siblings), name
        if hasattr(value, "cached") or getattr(value, "_declaration", None):
            said = text.partition("\nReferences\n")[2].partition("\nExamples\n")[0]
            assert "\nUse it " in text and "Do not use it " in " ".join(text.split()) and re.search(YEAR, said), name


def test_methods_that_torch_calls_are_no_part_of_the_reference(site):
    skipped = site["docstrings"].skipped
    assert skipped(None, "class", "extra_repr", repr, False, None) is True
    assert skipped(None, "class", "forward", repr, False, None) is None
