"""Widths of the elements of pages in a browser: each page in a frame as wide as a telephone."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
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
  frame.remove();
  return {elements: inside.querySelectorAll("article *").length, found, scroll};
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
    need, and the page's own width.
    """
    urls = {page.as_uri(): page for page in pages}
    text = f"const WIDTH = {width}, PAGES = {json.dumps(list(urls))};{SCRIPT}"
    (folder / "widths.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body><script>{text}</script>")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom"]
    options += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=600000", "--window-size=1000,1000"]
    command = [str(browser()), *options, (folder / "widths.html").as_uri()]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    body = re.search(r"<pre>(.*?)</pre>", printed, re.DOTALL)
    assert body, f"the browser printed no widths: {printed[:500]}"
    found = json.loads(html.unescape(body[1]))
    return {urls[url]: values for url, values in found.items()}
