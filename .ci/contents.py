"""What a wheel must contain: vector code of its processor, types, licences, an SBOM. What it requires, and its size."""

import json
import re
import sys
import zipfile
from array import array
from email import message_from_bytes
from pathlib import Path

LARGEST = 8 * 2**20  # bytes
FEWEST = 500  # multiply-adds of each kind
FILES = ("isometry/_core.pyi", "isometry/py.typed", "isometry/torch/__init__.py", "isometry/cli/papers.toml")
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY")


def check(wheel):
    """Raises ValueError for what is missing; returns a line on what was found."""
    wheel = Path(wheel)
    _, _, python, abi, platform = wheel.stem.split("-")
    expect((python, abi) in (("cp311", "abi3"), ("cp314", "cp314t")), f"the tags {python}-{abi}")
    size = wheel.stat().st_size
    expect(size <= LARGEST, f"{size} bytes, more than {LARGEST}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        for file in (*FILES, *(f"{info}/licenses/{name}" for name in LICENCES)):
            expect(file in names, f"no {file}")
        crates = components(archive, [name for name in names if name.endswith(".cyclonedx.json")])
        notice = archive.read(f"{info}/licenses/LICENSE-THIRD-PARTY").decode()
        for crate in crates:
            expect(f"\n    {crate}\n" in notice, f"{crate} is in the SBOM, not in LICENSE-THIRD-PARTY")
        required = message_from_bytes(archive.read(f"{info}/METADATA")).get_all("Requires-Dist")
        required = [text for text in required if "extra ==" not in text]
        expect([re.split(r"\W", text)[0] for text in required] == ["numpy"], f"requires {required}")
        extensions = [name for name in names if re.fullmatch(r"isometry/_core\.\S*(so|pyd)", name)]
        expect(len(extensions) == 1, f"the extensions {extensions}")
        found = vector_code(archive.read(extensions[0]), platform)
    for kind, count in found.items():
        expect(count >= FEWEST, f"{count} multiply-adds of {kind}, expected {FEWEST} or more")
    counts = ", ".join(f"{count} multiply-adds of {kind}" for kind, count in found.items())
    return f"{size / 2**20:.1f} MiB, {len(crates)} crates, {counts}"


def expect(holds, found):
    if not holds:
        raise ValueError(found)


def components(archive, sboms):
    """Names and versions of the crates in the CycloneDX file that maturin writes, without this package's own."""
    expect(len(sboms) == 1, f"the SBOMs {sboms}")
    content = json.loads(archive.read(sboms[0]))
    expect(content.get("bomFormat") == "CycloneDX", f"{sboms[0]} is not CycloneDX")
    listed = {f"{crate['name']} {crate['version']}" for crate in content["components"]}
    crates = sorted(crate for crate in listed if not crate.startswith("isometry-"))
    expect(any(crate.startswith("pyo3 ") for crate in crates), "an SBOM without pyo3")
    return crates


def vector_code(code, platform):
    """The fused multiply-adds in the machine code, for each instruction set of the processor above its baseline.

    On aarch64 portable kernels have vectors and fused multiply-adds too. Those for NEON multiply by every lane of a
    register (fmla v0.4s, v1.4s, v2.s[3]), compilers by themselves almost only by the first: the others are counted.
    """
    if re.search("x86_64|amd64", platform):
        return {kind: len(pattern.findall(code)) for kind, pattern in X86.items()}
    expect(re.search("aarch64|arm64", platform), f"a processor of which nothing is known: {platform}")
    words = array("I", code[: len(code) // 4 * 4])
    return {"NEON": sum(word & 0xFF80F400 == 0x4F801000 and word & LANE != 0 for word in words)}


def any_of(rule):
    """A pattern of one byte."""
    return b"[" + b"".join(re.escape(bytes([byte])) for byte in range(256) if rule(byte)) + b"]"


LANE = 0x200800  # the bits of the number of the lane in fmla by a lane
# vfmadd132, 213 and 231 of packed numbers: the prefix (map 0F38, pp 66, the length of the vectors), then the opcode. Of
# random bytes one in five million matches.
MAP, PACKED, WIDE = (lambda p: p & 0x0F == 2), (lambda p: p & 7 == 5), (lambda p: p & 0x60 == 0x40)
FUSED = any_of(lambda opcode: opcode in (0x98, 0xA8, 0xB8))
X86 = {
    "AVX-512": re.compile(b"\x62" + any_of(MAP) + any_of(PACKED) + any_of(WIDE) + FUSED),
    "AVX2": re.compile(b"\xc4" + any_of(lambda p: p & 0x1F == 2) + any_of(PACKED) + FUSED),
}

if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(path, check(path), sep=": ")
