"""The bar on a terminal: loss, baseline, speed and the distance of W from orthogonality."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import textwrap

from cli_runs import TINY

SIZES = ((40, 140), (40, 0), (0, 0))  # rows and columns
ON_EACH = """
    import os, sys
    from isometry.cli import main

    for terminal in map(int, sys.argv[1].split(",")):
        for standard in (0, 1, 2):
            os.dup2(terminal, standard)
        os.close(terminal)
        assert main(sys.argv[2:]) == 0
"""


def test_a_terminal_gets_a_bar(tmp_path):
    """Including a terminal that does not report its size, or only half of it."""
    masters, slaves = zip(*(pty.openpty() for _ in SIZES), strict=True)
    for slave, (rows, columns) in zip(slaves, SIZES, strict=True):
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    options = [str(o) for o in ("train", "copying", "--model", "scornn", *TINY, "--iterations", 30)]
    command = [sys.executable, "-c", textwrap.dedent(ON_EACH), ",".join(map(str, slaves)), *options]
    with subprocess.Popen(command, cwd=tmp_path, pass_fds=slaves) as process:
        for slave in slaves:
            os.close(slave)
        shown = [read_all(master) for master in masters]
    assert process.returncode == 0, shown
    for text in shown:
        bar = next(line for line in reversed(text.replace("\r", "\n").splitlines()) if "30/30" in line)
        assert "copying-scornn-0: 100%" in bar and "it/s" in bar
        assert all(word in bar for word in ("loss", "baseline", "e(W)"))


def read_all(descriptor):
    """Everything written to a terminal until its last writer closes it."""
    chunks = []
    while True:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # Linux reports the closed other side as an error
            chunk = b""
        if not chunk:
            os.close(descriptor)
            return b"".join(chunks).decode()
        chunks.append(chunk)
