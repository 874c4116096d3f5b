"""Runs a program on these kernels: python -m isometry.integrations.torch [--always] PROGRAM [ARGUMENTS ...]."""

import runpy
import sys
from pathlib import Path

from isometry.integrations.torch import register

_USAGE = "usage: python -m isometry.integrations.torch [--always] PROGRAM | -m MODULE [ARGUMENTS ...]"


def main(arguments: list[str]) -> int:
    """Run a program as python does, and print one line of counts at its end."""
    always = arguments[:1] == ["--always"]
    own = arguments[always:]
    module = own[:1] == ["-m"]
    own = own[module:]
    if not own:
        print(_USAGE, file=sys.stderr)
        return 2
    program = own[0]
    if not module and not Path(program).exists():
        print(f"isometry.integrations.torch: there is no program {program}", file=sys.stderr)
        return 2
    sys.argv = own
    sys.path[0] = str(Path.cwd()) if module else str(Path(program).resolve().parent)
    registration = register(always=always)
    try:
        if module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    finally:
        found = registration.counts()
        parts = [f"{key} {ours} by isometry, {theirs} by torch" for key, (ours, theirs) in found.items()]
        print(f"isometry: {'; '.join(parts) or 'no recurrent layer was called'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
