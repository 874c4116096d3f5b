"""Draws the faults by a seed: for each area 30, in equal parts of seven kinds as far as there are places.

    python benches/faults draw [--seed N]

A place in Rust is an expression or a statement that a pattern finds on a line, in Python a node of the syntax tree.
Faults of Rust that do not compile are left out: `cargo check` says which.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from faults import scratch
from faults.plant import AREAS, PLANTED, ROOT, Fault, planted, write

EACH = 30
KINDS = ("sign", "bound", "copy", "axis", "check", "order", "cache")
STALE = re.compile(r"cache|kept|known|held|latest|ready|_found|version|pack", re.IGNORECASE)
NAME = r"[a-z_][\w.]*"
VALUE = rf"{NAME}(?:\[[^\[\]]*\]|\([^()]*\))?"
LEFT, RIGHT = r"(?P<l>= |\(|, |\[|if |while |=> )", r"(?P<r>[;,)\]]| \{)"
OTHER = {"+": "-", "-": "+", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
TWO = "{l}(if {{planted}} {{ {no} }} else {{ {yes} }}){r}"
WRITES = r"copy_from_slice|copy_from|copy_to|copy_nonoverlapping|fill|write_bytes|swap|clear|barrier"
#: Kind -> pattern of a line of Rust, and what is wrong instead of its `yes`.
RUST = (
    ("sign", rf"{LEFT}(?P<a>{VALUE}) (?P<op>[+-]) (?P<b>{VALUE}){RIGHT}", "{a} {other} {b}"),
    ("bound", rf"{LEFT}(?P<a>{VALUE}) (?P<op>[<>]=?) (?P<b>{VALUE}){RIGHT}", "{a} {other} {b}"),
    ("bound", rf"(?P<l>\.\.)(?P<a>{NAME}){RIGHT}", "{a} - 1"),
    ("axis", rf"{LEFT}\[(?P<a>{NAME}), (?P<b>{NAME})\]{RIGHT}", "[{b}, {a}]"),
    ("axis", rf"{LEFT}\((?P<a>{NAME}), (?P<b>{NAME})\){RIGHT}", "({b}, {a})"),
    (
        "order",
        rf"{LEFT}(?P<f>(?!\w*::(?:mul|add|min|max)\b)[\w.:]+)\((?P<a>{NAME}), (?P<b>{NAME})\){RIGHT}",
        "{f}({b}, {a})",
    ),
)
STATEMENTS = (
    ("copy", rf"^(?P<l>\s+)(?P<yes>[\w.\[\]&()*]*\b(?:{WRITES})\(.*\);)$"),
    ("check", r"^(?P<l>\s+)(?P<yes>(?:self\.|[a-z_]+::)*(?:check|refuse)\w*\(.*\)\?;)$"),
)
CONDITION = re.compile(r"^(?P<l>\s+(?:\} else )?if )(?P<yes>(?!let )[^{}|]*)(?P<r> \{)$")


def of_rust(area: str, file: str, text: str) -> Iterator[Fault]:
    text = text.split("#[cfg(test)]\nmod tests {")[0]
    for line in dict.fromkeys(text.splitlines()):
        if line.lstrip().startswith(
            ("//", "#", "unsafe { std::arch", "let [", "let (", "const", "static", "pub const", "|", "fn ", "pub fn")
        ):
            continue
        found = [
            (
                kind,
                m,
                TWO.format(l=m["l"], r=m["r"], no=wrong.format(**m.groupdict(), other=OTHER.get(op, "")), yes=yes),
            )
            for kind, pattern, wrong in RUST
            for m in re.finditer(pattern, line)
            for op in [m.groupdict().get("op")]
            for yes in [line[m.start() + len(m["l"]) : m.end() - len(m["r"])]]
        ]
        found += [
            (kind, m, m["l"] + "if !{planted} { " + m["yes"] + " }")
            for kind, pattern in STATEMENTS
            for m in re.finditer(pattern, line)
        ]
        stale = STALE.search(line) or STALE.search(file)
        kind, forced = ("cache", "{planted} || (") if stale else ("check", "!{planted} && (")
        found += [(kind, m, m["l"] + forced + m["yes"] + ")" + m["r"]) for m in CONDITION.finditer(line)]
        for kind, m, new in found:
            for nth in range(text.count(line + "\n")):
                yield Fault(0, area, kind, file, line, line[: m.start()] + new + line[m.end() :], nth)


def wrong(node: ast.AST, file: str) -> Iterator[tuple[str, ast.AST, ast.AST | str]]:
    """Kind, the node that changes, and what it becomes."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            if not any(isinstance(n, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple) for n in (left, right)):
                yield "sign", node, ast.BinOp(left, ast.Sub() if isinstance(op, ast.Add) else ast.Add(), right)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name() | ast.Call() as operand):
            yield "sign", node, operand
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() as op], comparators=[right]):
            other = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}[type(op)]
            yield "bound", node, ast.Compare(left, [other()], [right])
        case ast.Call(func=ast.Attribute(value=value, attr="clone" | "copy" | "contiguous" | "detach"), args=[]):
            yield "copy", node, value
        case ast.Attribute(value=value, attr="mT" | "mH" | "T"):
            yield "axis", node, value
        case ast.keyword(arg="dim" | "axis", value=ast.UnaryOp(operand=ast.Constant(value=int()))):
            yield "axis", node.value, "0"
        case ast.Call(
            func=ast.Attribute(attr="sum" | "unsqueeze" | "squeeze" | "flatten" | "cat"), args=[ast.UnaryOp()]
        ):
            yield "axis", node.args[0], "0"
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name.startswith("check"):
            yield "check", node, "pass"
        case ast.If(test=test, body=[ast.Raise() | ast.Expr()], orelse=[]):
            yield "check", test, "False"
        case ast.If(test=ast.Compare() | ast.BoolOp() as test) if STALE.search(ast.unparse(test)) or STALE.search(file):
            yield "cache", test, "False"
    match node:
        case ast.Call(func=func, args=[ast.Name() as a, ast.Name() as b, *rest], keywords=keywords):
            yield "order", node, ast.Call(func, [b, a, *rest], keywords)
        case ast.Return(value=ast.Tuple(elts=[a, b])):
            yield "order", node, ast.Return(ast.Tuple([b, a], ast.Load()))


def of_python(area: str, file: str, text: str) -> Iterator[Fault]:
    lines = text.splitlines()
    for top in ast.walk(ast.parse(text)):
        for kind, node, new in wrong(top, file):
            old = ast.get_source_segment(text, node)
            first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
            if old is None or not first.isascii() or not last.isascii():
                continue
            whole = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            new = new if isinstance(new, str) else ast.unparse(ast.fix_missing_locations(new))
            new = first[: node.col_offset] + (f"({new})" if isinstance(node, ast.BinOp) else new)
            nth = text.split("\n")[: node.lineno - 1]
            yield Fault(0, area, kind, file, whole, new + last[node.end_col_offset :], "\n".join(nth).count(whole))


def places(area: str) -> Iterator[Fault]:
    for top in AREAS[area]:
        for path in sorted((ROOT / top).rglob("*.rs" if area in PLANTED else "*.py")):
            file = path.relative_to(ROOT).as_posix()
            aside = r"/(tests?|testing|cli|gpu|tests\.rs|neon\.rs)\b" + ("" if area == "torch" else r"|isometry/torch/")
            if not re.search(aside, file):
                yield from (of_rust if area in PLANTED else of_python)(area, file, path.read_text(encoding="utf-8"))


def drawn(rng: random.Random, area: str, count: int) -> list[Fault]:
    by_kind = defaultdict(list)
    for fault in places(area):
        by_kind[fault.kind].append(fault)
    for faults in by_kind.values():
        rng.shuffle(faults)
    turns = [faults[i] for i in range(count) for kind in KINDS if i < len(faults := by_kind[kind])]
    return turns[:count]


def broken(root: Path) -> set[int]:
    """The faults on lines that do not compile."""
    command = ["cargo", "check", *scratch.EXTENSION, "--message-format", "json"]
    env, found = scratch.environment(), set()
    output = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True).stdout
    for message in (json.loads(line).get("message") for line in output.splitlines()):
        if message and message["level"] == "error":
            for span in message["spans"]:
                text = " ".join(line["text"] for line in span["text"])
                found.update(int(n) for n in re.findall(r"planted\((\d+)\)", text))
    return found


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    rng = random.Random(parser.parse_args(words).seed)
    found = [fault for area in AREAS for fault in drawn(rng, area, 4 * EACH if area in PLANTED else EACH)]
    found = [replace(fault, number=n + 1) for n, fault in enumerate(found)]
    while True:
        if not (wrong := broken(scratch.made(planted(found)[0]))):
            break
        found = [fault for fault in found if fault.number not in wrong]
        print(f"{len(wrong)} faults do not compile", flush=True)
    kept = [fault for area in AREAS for fault in [each for each in found if each.area == area][:EACH]]
    write(kept)
    print(Counter((fault.area, fault.kind) for fault in kept))
