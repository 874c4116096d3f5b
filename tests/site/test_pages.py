"""The built site: what every page has and says, and what a telephone and a screen show of it."""

import re

import pytest

import site_widths
from site_widths import BUILT

TELEPHONE, SCREEN = 390, 1280  # pixels
FIRST = {
    "install": "install",
    "which layer": "choosing",
    "nan loss": "not-learning",
    "reset state": "recurrent-layers",
    "stiefel": "math/stiefel",
}
EMPHASIS = re.compile(r"<(em|strong)>(.*?)</\1>", re.DOTALL)


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


def eaten(text):
    """Emphasised texts that begin or end as no word does: two asterisks of formulas that were taken for markup."""
    article = text.partition('<article role="main"')[2].partition("</article>")[0]
    inner = [re.sub(r"<[^>]*>", "", found) for _, found in EMPHASIS.findall(article)]
    return [found for found in inner if re.search(r"^[\s,;:.)\]]|[\s,;(\[]$", found)]


def test_no_asterisk_of_a_formula_is_taken_for_markup():
    for page in html():
        assert not eaten(page.read_text()), page


def test_the_bar_leads_to_the_guides():
    text = (BUILT / "index.html").read_text()
    bar = text[text.index('<nav class="sections"') :].partition("</nav>")[0]
    (to,) = re.findall(r'<a href="([^"#]*)"[^>]*>Guides<', bar)
    links = set(re.findall(r'href="([\w-]+\.html)"', (BUILT / to).read_text().partition("<article")[2]))
    assert {"orthogonal-weights.html", "rotations.html", "gpu.html"} <= links
    for link in ("orthogonal-weights.html", "gpu.html"):
        assert re.search(r'aria-current="true">Guides<', (BUILT / link).read_text())


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A function of a browser with a folder of its own."""
    return lambda function, *arguments: function(*arguments, tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def widths(browser):
    """What some pages show at a width, on a telephone by default."""
    return lambda pages, width=TELEPHONE: browser(site_widths.measured, pages, width)


def test_a_screen_shows_text_contents_and_place(widths):
    """No page scrolls to the side, nor do Python and tables of guides, nor a formula up and down; contents stand beside
    the text, and the page's own line is seen in the sidebar.
    """
    found = widths(html(), SCREEN)
    for path, page in found.items():
        assert page["scroll"] <= SCREEN and not page["found"] and not page["bars"], (path, page)
        assert page["contents"] is not False and page["here"] is not False, (path, page)
        assert path.parent != BUILT or not page["cut"], (path, page["cut"])
    assert (
        sum(page["contents"] is True for page in found.values()) > 40 < sum(p["here"] is True for p in found.values())
    )


def test_a_search_finds_guides_before_pages_of_the_project(browser):
    for query, guide in (
        ("orthogonal weight", "orthogonal-weights"),
        ("rotations", "rotations"),
        ("gru", "faster-gru"),
    ):
        found = browser(site_widths.results, query)
        assert guide in found[:6], (query, found)
        project = [name for name in found if name.startswith("project/") or name == "README"]
        assert all(found.index(guide) < found.index(name) for name in project), (query, found)


def test_a_search_for_a_first_question_finds_its_page(browser):
    for query, page in FIRST.items():
        assert browser(site_widths.results, query)[0] == page, query


def test_nothing_is_wider_than_a_telephone(widths):
    """But what scrolls by itself, as no picture does."""
    found = widths(html())
    assert all(page["elements"] for page in found.values())
    assert not {path: page["found"] for path, page in found.items() if page["found"]}
    assert not {path: page["scroll"] for path, page in found.items() if page["scroll"] > TELEPHONE}
