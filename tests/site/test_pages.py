"""The built site: what every page has, and that a telephone shows all of it."""

import re

import pytest

import site_widths
from site_widths import BUILT

TELEPHONE = 390  # pixels


def html():
    """The pages of the site."""
    return [page for page in sorted(BUILT.rglob("*.html")) if "_static" not in page.parts]


def test_every_page_has_the_bar_and_says_what_the_project_is():
    for page in html():
        text = page.read_text()
        links = re.findall(r'<a href="([^"]*)"', text[text.index('<nav class="sections"') :].partition("</nav>")[0])
        assert len(links) == 8 and links[-1] == "https://github.com/isometry-ml/isometry", page
        inside = [(page.parent / link.partition("#")[0]).resolve() for link in links[:-1]]
        assert all(to.is_file() or link.startswith("#") for to, link in zip(inside, links, strict=False)), page
        assert re.search(r'<meta name="description" content="[^"]{60,200}">', text) and "logo.svg" in text, page


@pytest.fixture(scope="module")
def widths(tmp_path_factory):
    """The widths of some pages on a telephone."""
    return lambda pages: site_widths.measured(pages, TELEPHONE, tmp_path_factory.mktemp("browser"))


def test_nothing_is_wider_than_a_telephone(widths):
    """But what scrolls by itself, as no picture does."""
    found = widths(html())
    assert all(page["elements"] for page in found.values())
    assert not {path: page["found"] for path, page in found.items() if page["found"]}
    assert not {path: page["scroll"] for path, page in found.items() if page["scroll"] > TELEPHONE}


def test_what_is_too_wide_is_found(widths, tmp_path):
    """Not what a box scrolls, unless the box itself is too wide."""
    box = '<div style="overflow-x: auto; width: {}px"><p style="width: 700px">{}</p></div>'
    body = '<article><p style="width: 600px">wide</p>{}{}</article>'.format(
        box.format(200, "scrolls"), box.format(500, "does not")
    )
    page = tmp_path / "page.html"
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8><body style='margin: 0'>{body}")
    (found,) = widths([page]).values()
    assert found["found"] == ["p: wide", "div: does not", "p: does not"] and found["scroll"] == 600
