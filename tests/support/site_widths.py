"""What a browser shows of pages: widths of elements, scrollbars, the contents beside the text, results of a search."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from subprocesses import ROOT

BUILT = ROOT / "build/site"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCRIPT = """
const scrolls = element => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
const framed = element => {
  for (let up = element; up.parentElement; up = up.parentElement)
    if (up.closest("article") && scrolls(up) && up.getBoundingClientRect().right <= WIDTH + 0.5) return true;
  return false;
};
async function wide(page) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${WIDTH}px; height: 900px; border: 0`;
  const loaded = new Promise(done => frame.onload = done);
  frame.src = page;
  document.body.append(frame);
  await loaded;
  const inside = frame.contentDocument, root = inside.documentElement, found = [];
  for (const element of inside.querySelectorAll("article *"))
    if (element.getBoundingClientRect().right > WIDTH + 0.5 && (element.tagName == "IMG" || !framed(element)))
      found.push(`${element.tagName.toLowerCase()}: ${(element.alt || element.textContent).trim().slice(0, 60)}`);
  const scroll = Math.max(root.scrollWidth, inside.body.scrollWidth);
  const style = element => frame.contentWindow.getComputedStyle(element);
  const bars = [];
  for (const element of inside.querySelectorAll(".announcement, .main, .content, article *")) {
    const across = ["auto", "scroll"].includes(style(element).overflowX) && element.scrollWidth > element.clientWidth;
    const down = ["auto", "scroll"].includes(style(element).overflowY) && element.scrollHeight > element.clientHeight;
    const name = `${element.tagName.toLowerCase()}.${element.className}`;
    if (down || across && !element.closest("article")) bars.push(name);
  }
  const cut = [...inside.querySelectorAll("article .highlight-python pre, article .table-wrapper")]
    .filter(element => element.scrollWidth > element.clientWidth)
    .map(element => `${element.scrollWidth} in ${element.clientWidth}: ${element.textContent.trim().slice(0, 60)}`);
  const seen = selector => {
    const element = inside.querySelector(selector);
    if (!element) return null;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.left >= 0 && box.right <= WIDTH && box.top >= 0 && box.bottom <= 900;
  };
  const result = {elements: inside.querySelectorAll("article *").length, found, scroll, bars, cut,
    contents: seen(".toc-title"), here: seen(".sidebar-tree .current-page > .reference")};
  frame.remove();
  return result;
}
(async () => {
  const all = {};
  for (const page of PAGES) all[page] = await wide(page);
  document.body.innerHTML = "<pre></pre>";
  document.querySelector("pre").textContent = JSON.stringify(all);
})();
"""


def browser() -> str | None:
    """The path of an installed browser."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def measured(pages: Sequence[Path], width: int, folder: Path) -> dict[Path, dict[str, Any]]:
    """By page: the number of its elements, those wider than `width` unless a box scrolls them, which no picture may
    need, the page's own width, boxes with a scrollbar that no page needs, blocks of Python and tables that scroll, and
    whether the heading of its contents and its own line in the sidebar are seen (None: there is none).
    """
    urls = {page.as_uri(): page for page in pages}
    text = f"const WIDTH = {width}, PAGES = {json.dumps(list(urls))};{SCRIPT}"
    (folder / "widths.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body><script>{text}</script>")
    printed = shown((folder / "widths.html").as_uri(), folder)
    body = re.search(r"<pre>(.*?)</pre>", printed, re.DOTALL)
    assert body, f"the browser printed no widths: {printed[:500]}"
    found = json.loads(html.unescape(body[1]))
    return {urls[url]: values for url, values in found.items()}


def shown(url: str, folder: Path) -> str:
    """The document that a browser makes of a page."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom"]
    options += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=600000", "--window-size=1400,1000"]
    command = [str(browser()), *options, url]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def results(query: str, folder: Path) -> list[str]:
    """The pages that a search finds, the first first."""
    url = f"{(BUILT / 'search.html').as_uri()}?{urllib.parse.urlencode({'q': query})}"
    found = re.findall(r'<li class="kind-[^>]*><a href="([^"#]*)\.html', shown(url, folder))
    return list(dict.fromkeys(found))
