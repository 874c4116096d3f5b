"""Pages of the site from the documents of the repository: `make docs` runs this before Sphinx.

    python docs/_site/pages.py build/pages

The documents are written for GitHub, where a link is a path relative to its file. Sphinx has one folder of sources:
here the pages of docs/ at their own paths, the documents outside of it in project/. Links between documents lead to
these pages, those to other files to the file itself, which Sphinx offers for download. A link to a folder becomes its
text.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import entries

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Documents outside of docs/, and the page that each becomes; what is for contributors stays in the repository.
OUTSIDE = {
    "README.md": "project/readme.md",
    "SECURITY.md": "project/security.md",
}
REPOSITORY = "https://github.com/isometry-ml/isometry/blob/main/"
CODE_OR_LINK = re.compile(
    r"(?P<code>^```[\s\S]*?^```$|^(?:    .*\n)+|`[^`\n]*`)"
    r"|(?P<open>!?\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\()(?P<target>[^)\s]+)\)",
    re.MULTILINE,
)


def page(document: Path) -> Path | None:
    """Where the site has a document or a picture, relative to its root; None for any other file."""
    inside = document.relative_to(ROOT).as_posix()
    if inside in OUTSIDE:
        return Path(OUTSIDE[inside])
    if document.is_relative_to(DOCS) and document.suffix in (".md", ".png", ".svg"):
        return document.relative_to(DOCS)
    return None


def target(document: Path, link: str, out: Path) -> str | None:
    """What a link of the document becomes in its page below `out`; None for a folder."""
    file, _, anchor = link.partition("#")
    if "://" in link or link.startswith("mailto:") or not file:
        return link
    to = (document.parent / file).resolve()
    if to.is_dir():
        return None
    at, own = page(to), page(document)
    assert own is not None
    if at is None and to.suffix == ".md":
        return REPOSITORY + to.relative_to(ROOT).as_posix() + (f"#{anchor}" if anchor else "")
    start = out / own.parent
    path = Path(os.path.relpath(to if at is None else out / at, start)).as_posix()
    return f"{path}#{anchor}" if anchor else path


def rewritten(document: Path, out: Path) -> str:
    """The text of a document's page."""

    def one(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        to = target(document, found["target"], out)
        return found["text"] if to is None else f"{found['open']}{to})"

    return CODE_OR_LINK.sub(one, document.read_text(encoding="utf-8"))


def documents() -> list[Path]:
    return [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in OUTSIDE)]


def write(path: Path, text: str) -> None:
    """Only what has changed, since Sphinx reads newer pages again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main(out: Path) -> None:
    pages = {path: rewritten(document, out) for document in documents() if (path := page(document))}
    pages |= {Path("reference") / name: text for name, text in entries.pages().items()}
    for path in out.rglob("*"):
        if path.is_file() and path.suffix in (".md", ".rst") and path.relative_to(out) not in pages:
            path.unlink()
    for path, text in pages.items():
        write(out / path, text)
    shutil.copytree(DOCS / "figures", out / "figures", dirs_exist_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
