"""Every shader is WGSL to a second compiler, which refuses barriers that not all threads reach.

`make shaders` writes their texts, with all that they import.
"""

import os
import re
from pathlib import Path

import pytest

tint = pytest.importorskip("tint", reason="needs the package dawn-python")

#: Barriers at the start of a shader that only some threads reach.
PLANTED = {
    "behind a return": "if planted[0] > 0.0 { return; } workgroupBarrier();",
    "behind a condition": "if planted[0] > 0.0 { workgroupBarrier(); }",
}
DECLARED = "@group(2) @binding(0) var<storage, read_write> planted: array<f32>;\n"


@pytest.fixture(scope="module")
def device():
    return tint.device()


def shaders():
    return sorted(Path(os.environ["ISOMETRY_SHADERS"]).glob("*.wgsl"))


def constants(path):
    return dict(re.findall(r"-([A-Z]+)=(\d+)", path.stem))


def test_every_shader_is_accepted(device):
    assert len(shaders()) > 100
    refused = {path.stem: tint.refused(device, path.read_text(), constants(path)) for path in shaders()}
    assert not {stem: message for stem, message in refused.items() if message}


@pytest.mark.parametrize("place", PLANTED)
def test_a_barrier_that_not_all_threads_reach_is_refused(device, place):
    for path in shaders():
        before, main, after = path.read_text().partition("fn main(")
        head, brace, body = after.partition(") {\n")
        text = DECLARED + before + main + head + brace + PLANTED[place] + body
        assert "uniform control flow" in tint.refused(device, text, constants(path)), path.stem


def test_what_a_lenient_compiler_accepts_is_refused(device):
    text = "@compute @workgroup_size(1) fn main() { let x = 1u * 2u >> 1u; }"
    assert tint.refused(device, text, {})
