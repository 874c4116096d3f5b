"""Documents: every link, anchor and image exists, and the README's tables are those of the measured files."""

import re
from fnmatch import filter as matching
from functools import cache

import pytest

import figures
from subprocesses import ROOT

DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benches").glob("*.md")),
]
#: The documents that name sources.
GUIDES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "benches/README.md", "benches/measurements.md")
CODE = re.compile(r"^```[\s\S]*?^```$|^(?:    .*\n)+|`[^`\n]*`", re.MULTILINE)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^)\s]+)\)")
PATH = re.compile(r"`([\w.<>-]*(?:/[\w.<>-]*)+|[\w<>-]+\.(?:md|py|pyi|rs|toml|wgsl))`")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
LARGEST = {".png": 300_000, ".svg": 300_000, ".csv": 100_000, ".json": 100_000}  # bytes of a file in docs/figures


def links(text):
    """The targets of a document's links and images; code has none."""
    return LINK.findall(CODE.sub(lambda code: "code" if code[0].startswith("`") else "", text))


def paths(text):
    """Patterns of the paths and names of sources in backticks, outside of blocks of code; `<object>` is any name."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"<\w+>", "*", path).removesuffix("/") for path in PATH.findall(text)]


@cache
def sources():
    """Every file of the repository and every folder of one, as "/" and its path."""
    tops = (".ci", ".github", "benches", "docs", "examples", "python", "recipe", "rust", "tests")
    files = [*ROOT.glob("*.*"), *(path for top in tops for path in (ROOT / top).rglob("*"))]
    return ["/" + str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts]


def anchors(text):
    """The names that headings get on GitHub: lower case, punctuation dropped, spaces to hyphens."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in HEADING.findall(text)}


def broken(path, target):
    """Whether a link of the document leads nowhere."""
    file, _, anchor = target.partition("#")
    to = path.parent / file if file else path
    return not to.exists() or (anchor and (to.suffix != ".md" or anchor not in anchors(to.read_text())))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(path):
    inside = [target for target in links(path.read_text()) if "://" not in target and not target.startswith("mailto:")]
    assert not [target for target in inside if broken(path, target)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_out_are_secure(path):
    assert not [target for target in links(path.read_text()) if "://" in target and not target.startswith("https://")]


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.stem)
def test_python_is_read_without_scrolling(path):
    """As much as a page of the site shows at 1280 pixels, with comments on lines of their own."""
    for block in re.findall(r"^```python.*\n([\s\S]*?)^```", path.read_text(), re.MULTILINE):
        assert not [line for line in block.splitlines() if len(line) > 88 or re.search(r"\S +# ", line)]


def test_the_readme_is_read_in_minutes():
    """Without the tables of `figures.py`."""
    text = re.sub(r"<!-- (\w+) -->[\s\S]*<!-- /\1 -->", "", (ROOT / "README.md").read_text())
    assert len(text.split()) <= 900


def test_every_document_is_in_the_index():
    """From the README one reaches every document."""
    seen, ahead = set(), [ROOT / "README.md"]
    while ahead:
        path = ahead.pop()
        if path not in seen:
            seen.add(path)
            ahead += [(path.parent / t.partition("#")[0]).resolve() for t in links(path.read_text()) if ".md" in t]
    assert set(DOCUMENTS) <= seen


@pytest.mark.parametrize("name", GUIDES)
def test_the_sources_that_a_guide_names_exist(name):
    """By their whole path in the document for contributors, elsewhere by its end."""
    found = set(paths((ROOT / name).read_text()))
    assert found
    start = lambda path: "/" if name == "CONTRIBUTING.md" and "/" in path else "*/"
    assert not [path for path in found if not matching(sources(), start(path) + path)]


def test_the_tables_of_the_pages_are_those_of_the_measured_files():
    for page, tables in figures.tables().items():
        text = page.read_text()
        assert figures.filled(text, tables) == text, "run `make figures`"


def test_the_pictures_are_drawn_from_the_measured_files(tmp_path):
    figures.draw_speeds(tmp_path / "speeds.png", figures.read("speeds.json"))
    figures.draw_copying(tmp_path / "copying.png")
    assert all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in ("speeds", "copying"))


def test_the_figures_are_small_and_used():
    text = "".join(path.read_text() for path in [*DOCUMENTS, ROOT / "benches/measure.py", ROOT / "benches/figures.py"])
    for path in (ROOT / "docs/figures").iterdir():
        assert path.stat().st_size < LARGEST[path.suffix], path
        name = re.sub(r"-.*\.csv$", "-", path.name)
        assert name in text, f"{path} is not used"
