"""`python -m isometry.integrations.torch`: programs on these kernels, beside python's own run of them."""

import subprocess
import sys
import textwrap
from functools import partial

import pytest

#: Of which a thread and a pickle need __main__ after the last line.
PROGRAM = """
    import pickle, sys, threading, time, torch
    print(sys.argv, sys.path[0], __name__, __file__)
    class Own:
        pass
    def later():
        time.sleep(0.3)
        print(torch.nn.GRU(3, 4)(torch.ones(12, 2, 3))[0].shape, len(pickle.dumps(Own())))
    threading.Thread(target=later).start()
    if len(sys.argv) > 1:
        raise ValueError(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("given", ["p.py", "-P p.py fails", "-m p", "-P ."])
def test_programs_run_as_by_python(given, tmp_path):
    """They print and end as there, with one line more of errors."""
    for name in ("p.py", "__main__.py"):
        (tmp_path / name).write_text(textwrap.dedent(PROGRAM))
    run = partial(subprocess.run, shell=True, capture_output=True, text=True, cwd=tmp_path)
    plain, safe = run(f"{sys.executable} {given}"), "-P" * given.startswith("-P")
    ours = run(f"{sys.executable} {safe} -m isometry.integrations.torch {given.removeprefix('-P')}")
    assert (ours.stdout, ours.returncode) == (plain.stdout, plain.returncode)
    assert ours.stderr == plain.stderr + "isometry: gru 1 by isometry, 0 by torch\n"
