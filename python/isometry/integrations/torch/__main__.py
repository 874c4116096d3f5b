"""Runs a program on these kernels: python -m isometry.integrations.torch [--always] PROGRAM [ARGUMENTS ...]."""

import atexit
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from zipfile import is_zipfile

from isometry.integrations.torch import Registration, register

_USAGE = "usage: python -m isometry.integrations.torch [--always] PROGRAM | -m MODULE [ARGUMENTS ...]"


def main(arguments: list[str]) -> int:
    """Run a program as python does, and print one line of counts at the end of the process."""
    always = arguments[:1] == ["--always"]
    own = arguments[always:]
    module = own[:1] == ["-m"]
    own = own[module:]
    if not own:
        print(_USAGE, file=sys.stderr)
        return 2
    program, path = own[0], Path(own[0]).absolute()
    folder = not module and (path.is_dir() or is_zipfile(path))
    if folder or not sys.flags.safe_path:
        first = path if folder else Path.cwd() if module else path.resolve().parent
        sys.path[: not sys.flags.safe_path] = [str(first)]
    if not (_is_module(program) if module else path.exists()):
        print(f"isometry.integrations.torch: there is no program {program}", file=sys.stderr)
        return 2
    sys.argv = own
    sys.modules["__main__"] = namespace = ModuleType("__main__")  # to the end: threads and pickles look there
    atexit.register(_report, register(always=always))
    try:
        if module or folder:
            runpy._run_module_as_main(program if module else "__main__", module)  # type: ignore[attr-defined]
        else:
            namespace.__file__ = str(path)
            exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), vars(namespace))
    except Exception as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this frame
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # of a package around it
        return False


def _report(registration: Registration) -> None:
    parts = [f"{key} {ours} by isometry, {theirs} by torch" for key, (ours, theirs) in registration.counts().items()]
    print(f"isometry: {'; '.join(parts) or 'no recurrent layer was called'}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
