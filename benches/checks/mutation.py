"""Mutated files: those of the readers, and the folders of runs; `mutated.py` reads them in processes of its own."""

from __future__ import annotations

import argparse

from checks.check import Check, Figures, Outcome, run, script

#: Kinds of files, and how many of them for one file of a reader: a folder takes longer to load, and to train on.
READERS = ("idx", "gzip", "wav", "sphere", "audio", "text")
SHARE = dict.fromkeys(READERS, 1.0) | {"load_run": 0.5, "resume": 0.03}
SECONDS = 3600


def mutate(options: argparse.Namespace, _: Figures) -> Outcome:
    """`--files` of every reader, a share of them of the folders of runs."""
    outcome = Outcome({"files": {}})
    for kind, share in SHARE.items():
        count = max(1, round(share * options.files))
        ended = run(script("mutated", kind, count, options.seed), SECONDS)
        found = ended.lines[-1] if ended.lines else {"files": 0, "failures": {}}
        outcome.figures["files"][kind] = found["files"]
        outcome.failures += [f"{kind}: {what}: {times} times" for what, times in found["failures"].items()]
        outcome.failures += [f"{kind}: {ended.failure}"] if ended.failure else []
    return outcome


def row(found: Figures) -> str:
    files = found["files"]
    read = sum(files[kind] for kind in READERS)
    return f"{read:,} files of {len(READERS)} formats, {files['load_run']:,} runs loaded, {files['resume']:,} resumed"


CHECK = Check(
    "Mutated files",
    "IDX, gzip, WAV, SPHERE and text files are truncated, lengthened or changed, and read by `isometry.readers`; so "
    "are the files of a run's folder, which `isometry.load_run` loads and `isometry train --resume` continues.",
    "A failure is anything but a result or the documented exception with the name of the file, more memory than the "
    "file justifies, a crash or a hang.",
    mutate,
    row,
    ("files", "seed"),
)
