"""Formulas as MathML, which browsers draw themselves: the site needs no script and no network for them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

LONG = 40  # characters of an inline formula that may be wider than a telephone: it scrolls by itself


def inline(self: Any, node: nodes.math) -> None:
    formula = convert(node.astext())
    self.body.append(f'<span class="formula">{formula}</span>' if len(node.astext()) > LONG else formula)
    raise nodes.SkipNode


def displayed(self: Any, node: nodes.math_block) -> None:
    formula = node.astext()
    if r"\\" in formula and r"\begin" not in formula:
        formula = rf"\begin{{array}}{{l}} {formula} \end{{array}}"
    drawn = convert(formula, display="block")
    if drawn.count("<mtr>") != formula.count(r"\\") + formula.count(r"\begin"):
        raise ValueError(f"rows of a formula are not drawn: {formula}")  # a last row that ends in & is none
    self.body.append(f'<div class="math">{drawn}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
