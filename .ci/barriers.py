"""Removes every barrier of the shaders in turn: the Rust tests of the GPU must notice.

    python .ci/barriers.py TESTS [NAME ...]

TESTS is the test binary of isometry-gpu. NAME selects a shader or module, for example product or import/rum; by default
all are tried. The binary composes its shaders without the barrier that ISOMETRY_GPU_PROOF names (rust/gpu/src/proof),
so nothing is compiled again. Prints a table; exit status 1 if no test notices a barrier that
is not equivalent.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "rust/gpu/src"
BARRIER = re.compile(r"^\s*(workgroup|storage)Barrier\(\);", re.MULTILINE)
#: Barriers that order nothing: each thread reads what it has written itself.
EQUIVALENT = {("pairs", 2)}
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


def noticed(tests, name, number, folder):
    """The first test that fails, and the seconds that took.

    In both orders, as in one of them the invocation that reads may be the last anyway.
    """
    start = time.perf_counter()
    own = [FIRST.get(folder, f"{folder}::")]
    attempts = [("reversed unwritten limits", own), ("unwritten limits", own)]
    for words, chosen in [*attempts, ("reversed unwritten limits", ["--skip", "shader::"])]:
        words = f"{words} without={name}:{number}"
        command = [tests, "--test-threads", "2", *chosen]
        proof = {**os.environ, "ISOMETRY_GPU_PROOF": words}
        with subprocess.Popen(command, env=proof, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            for line in run.stdout:
                if line.rstrip().endswith("FAILED"):
                    run.kill()
                    return line.split()[1], time.perf_counter() - start
            if run.wait() != 0:
                return "the end of the program", time.perf_counter() - start
    return None, time.perf_counter() - start


def main(tests, *chosen):
    names, wrong = named(), []
    print("| barrier | noticed by | seconds |\n|---|---|---|")
    for file in sorted(SOURCES.rglob("*.wgsl")):
        text = file.read_text(encoding="utf-8")
        for number, barrier in enumerate(BARRIER.finditer(text)):
            name = names[file]
            if chosen and name not in chosen:
                continue
            test, seconds = noticed(tests, name, number, file.parent.name)
            place = f"{file.relative_to(SOURCES)}:{text[: barrier.start(1)].count(chr(10)) + 1}"
            print(f"| {place} | {test or 'nothing'} | {seconds:.0f} |", flush=True)
            if (test is None) != ((name, number) in EQUIVALENT):
                wrong.append(place)
    print("\n" + (f"WRONG: {', '.join(wrong)}" if wrong else "tests notice every barrier that orders something"))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
