"""Removes every barrier of the shaders in turn: the Rust tests of the GPU must notice.

    python .ci/barriers.py TESTS [NAME ...]

TESTS is the test binary of isometry-gpu. NAME selects a shader or module, for example product or import/rum; by default
all are tried. The binary composes its shaders without the barrier that ISOMETRY_GPU_PROOF names (rust/gpu/src/proof),
so nothing is compiled again. Prints a table, all of which is rust/gpu/src/proof/barriers.md; exit status 1 if no test
notices a barrier.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "rust/gpu/src"
BARRIER = re.compile(r"^\s*(workgroup|storage)Barrier\(\);", re.MULTILINE)
TABLE = SOURCES / "proof/barriers.md"
#: Folder of a shader -> its first tests, where they are not those of the folder.
FIRST = dict.fromkeys(("rum", "recurrence", "gated", "lstm"), "cell::") | {"last": "hosted::"}


def named():
    """File of a shader or module -> its name in `without=NAME:NUMBER`."""
    found = {}
    for rust in SOURCES.rglob("*.rs"):
        text = rust.read_text(encoding="utf-8")
        modules = [
            (f"import/{name}", file)
            for name, file in re.findall(r'\("(\w+)", _\) => \w+\(include_str!\("([^"]+)"', text)
        ]
        shaders = re.findall(r'name: "(\w+)",\s*source: include_str!\("([^"]+)"', text)
        listed = re.findall(r'^    [A-Z_]+ "(\w+)" "([^"]+\.wgsl)"', text, re.MULTILINE)
        for name, file in modules + shaders + listed:
            found[(rust.parent / file).resolve()] = name
    return found


def noticed(tests, name, number, folder, kind):
    """The first test that fails, and by what: its values or the detector of races.

    In both orders, as in one of them the invocation that reads may be the last anyway. Of two barriers beside each
    other, of storage and of workgroup memory, neither changes what a test computes: the detector of races must see it.
    """
    own = [FIRST.get(folder, f"{folder}::")]
    noting = [("races workgroup", own)]
    attempts = [("reversed unwritten limits", own), ("unwritten limits", own)]
    attempts = noting + attempts if kind == "storage" else attempts + noting
    for words, chosen in [*attempts, ("reversed unwritten limits", ["--skip", "shader::"])]:
        by = "races" if "races" in words else "values"
        command = [tests, "--test-threads", "2", *chosen]
        proof = {**os.environ, "ISOMETRY_GPU_PROOF": f"{words} without={name}:{number}"}
        with subprocess.Popen(command, env=proof, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            for line in run.stdout:
                if line.rstrip().endswith("FAILED"):
                    run.kill()
                    return line.split()[1], by
            if run.wait() != 0:
                return "the end of the program", by
    return None, None


def main(tests, *chosen):
    names, wrong = named(), []
    lines = ["| barrier, number in its file | noticed by | through |", "|---|---|---|"]
    print(*lines, sep="\n")
    for file in sorted(SOURCES.rglob("*.wgsl")):
        for number, barrier in enumerate(BARRIER.finditer(file.read_text(encoding="utf-8"))):
            name = names[file]
            if chosen and name not in chosen:
                continue
            test, by = noticed(tests, name, number, file.parent.name, barrier.group(1))
            place = f"{file.relative_to(SOURCES)} {number}"
            lines.append(f"| {place} | {test or 'nothing'} | {by} |")
            print(lines[-1], flush=True)
            if test is None:
                wrong.append(place)
    if not chosen:
        TABLE.write_text("\n".join(["<!-- Written by make gpu-barriers. -->", "", *lines, ""]), encoding="utf-8")
    print("\n" + (f"WRONG: {', '.join(wrong)}" if wrong else "tests notice every barrier"))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
