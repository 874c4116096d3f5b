"""The check of a wheel's contents refuses a wheel that lacks something, and finds the vector code of this build."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import isometry._core as core
from ci_modules import contents, licences

FUSED = {"x86_64": bytes.fromhex("62f27548b8c2 c4e275b8c2"), "aarch64": bytes.fromhex("2010a24f")}
PORTABLE = bytes.fromhex("20cc224e 2010824f")  # fmla v0.4s, v1.4s, v2.4s; fmla v0.4s, v1.4s, v2.s[0]
INFO = "isometry-0.1.0.dist-info"


def wheel(folder, processor="x86_64", tags="cp311-abi3", drop=(), **changes):
    """A wheel with as much of each part as the check asks for, without the files in `drop`."""
    crates = changes.get("crates", ["pyo3 0.29.0", "isometry-core 0.1.0"])
    parts = [dict(zip(("name", "version"), crate.split(), strict=True)) for crate in crates]
    sbom = json.dumps({"bomFormat": "CycloneDX", "components": parts}).encode()
    files = dict.fromkeys(contents.FILES, b"") | {f"{INFO}/licenses/{name}": b"" for name in contents.LICENCES}
    files |= {
        f"{INFO}/licenses/LICENSE-THIRD-PARTY": b"MIT:\n    pyo3 0.29.0\n\n",
        f"{INFO}/sboms/isometry-py.cyclonedx.json": sbom,
        f"{INFO}/METADATA": changes.get("requires", "Requires-Dist: numpy>=1.26\n").encode()
        + b"Requires-Dist: torch>=2.8 ; extra == 'torch'\n\n",
        "isometry/_core.abi3.so": changes.get("code", FUSED[processor] * contents.FEWEST) + changes.get("more", b""),
    }
    path = folder / f"isometry-0.1.0-{tags}-manylinux_2_17_{processor}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            if name not in drop:
                archive.writestr(name, data)
    return path


@pytest.mark.parametrize("processor", FUSED)
def test_a_whole_wheel(processor, tmp_path):
    assert "1 crates" in contents.check(wheel(tmp_path, processor))
    assert "1 crates" in contents.check(wheel(tmp_path, processor, "cp314-cp314t"))


NOISE = np.random.default_rng(0).bytes(contents.LARGEST)
WRONG = {
    "the tags cp312-cp312": {"tags": "cp312-cp312"},
    "bytes, more than": {"more": NOISE},
    "no isometry/_core.pyi": {"drop": ["isometry/_core.pyi"]},
    "/LICENSE-THIRD-PARTY": {"drop": [f"{INFO}/licenses/LICENSE-THIRD-PARTY"]},
    "the SBOMs []": {"drop": [f"{INFO}/sboms/isometry-py.cyclonedx.json"]},
    "an SBOM without pyo3": {"crates": ["rayon 1.12.0"]},
    "rayon 1.12.0 is in the SBOM, not in LICENSE-THIRD-PARTY": {"crates": ["pyo3 0.29.0", "rayon 1.12.0"]},
    "requires ['numpy', 'scipy']": {"requires": "Requires-Dist: numpy\nRequires-Dist: scipy\n"},
    "the extensions []": {"drop": ["isometry/_core.abi3.so"]},
    "499 multiply-adds of AVX-512": {"code": FUSED["x86_64"] * 499},
    "0 multiply-adds of AVX2": {"code": FUSED["x86_64"][:6] * 1000},
    "499 multiply-adds of NEON": {"processor": "aarch64", "code": FUSED["aarch64"] * 499 + PORTABLE * 1000},
}


@pytest.mark.parametrize("said", WRONG)
def test_a_wheel_that_lacks_something(said, tmp_path):
    with pytest.raises(ValueError) as info:
        contents.check(wheel(tmp_path, **WRONG[said]))
    assert said in str(info.value)


def test_the_extension_has_vector_code():
    """Without a disassembler: of random bytes almost none count."""
    platform = core.config()["target"].replace("-", "_")
    code = Path(core.__file__).read_bytes()
    assert all(count >= contents.FEWEST for count in contents.vector_code(code, platform).values())
    assert all(count < 10 for count in contents.vector_code(NOISE, "x86_64").values())


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("MIT OR Apache-2.0", ["MIT"]),
        ("Zlib OR Apache-2.0 OR MIT", ["MIT"]),
        ("Apache-2.0 / MIT", ["MIT"]),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", ["MIT", "Unicode-3.0"]),
        ("Apache-2.0 WITH LLVM-exception", ["Apache-2.0 WITH LLVM-exception"]),
    ],
)
def test_the_licence_of_a_crate(expression, chosen):
    assert licences.licences(expression) == chosen


def test_a_crate_against_the_rules():
    """A licence that is not allowed, a source other than crates.io, a crate that is banned."""
    with pytest.raises(ValueError, match=r"none of \['GPL-3.0-only'\] is allowed"):
        licences.licences("MIT AND GPL-3.0-only")
    fork, banned = {"source": "git+https://example.org/x"}, {"source": licences.CRATES_IO}
    found = list(licences.faults({("x", "1.0.0"): fork, ("openssl-sys", "0.9.0"): banned}))
    assert found == ["x 1.0.0 is from git+https://example.org/x", "openssl-sys 0.9.0 is banned"]
