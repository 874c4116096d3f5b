"""The bar on a terminal: loss, baseline, speed and the distance of W from orthogonality."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from cli_runs import TINY

SIZES = ((40, 140), (40, 0), (0, 0))  # rows and columns


def test_a_terminal_gets_a_bar(tmp_path):
    """Including a terminal that does not report its size, or only half of it."""
    options = [str(o) for o in ("train", "copying", "--model", "scornn", *TINY, "--iterations", 30)]
    command = [sys.executable, "-m", "isometry", *options]
    for k, size in enumerate(SIZES):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        (tmp_path / str(k)).mkdir()
        with subprocess.Popen(command, cwd=tmp_path / str(k), stdin=slave, stdout=slave, stderr=slave) as process:
            os.close(slave)
            text = read_all(master)
        assert process.returncode == 0, text
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
