"""Processes that have imported torch and the command line already: copies of one server for each worker of the tests.

To import them takes seconds, to copy the server milliseconds. It has called nothing of theirs: its copies have neither
threads nor a GPU, and read ISOMETRY_* in their own environment. Only OMP_NUM_THREADS is that of the server.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path

import warm_server
from subprocesses import environment

PLAIN = subprocess.Popen  # tests put the one below in its place


@cache
def server():
    """The socket of the server; it ends with this process."""
    own, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with others:
        command = [sys.executable, str(Path(warm_server.__file__)), str(others.fileno())]
        process = PLAIN(command, pass_fds=[others.fileno()], stdin=subprocess.DEVNULL, env=environment())
        process.returncode = 0  # nothing waits for it
    atexit.register(own.close)
    return own


class Popen(PLAIN):
    """`subprocess.Popen`, by the server if the command begins with sys.executable."""

    def __new__(cls, args, *rest, **options):
        return super().__new__(cls) if args[0] == sys.executable else PLAIN(args, *rest, **options)

    def _execute_child(self, args, *rest):
        # preexec_fn, close_fds, pass_fds, cwd, env, ..., six ends of pipes, restore_signals, gid, gids, uid, umask,
        # start_new_session, process_group
        cwd, env, session, pipes = rest[4], rest[5], rest[-2], rest[9:15]
        assert not rest[3]
        self._status, status = os.pipe()
        request = {"argv": [str(a) for a in args[1:]], "cwd": os.fspath(cwd or os.getcwd()), "session": session,
                   "env": dict(os.environ if env is None else env)}  # fmt: skip
        with open(os.devnull, "r+b") as null:
            fds = [null.fileno() if fd == -1 else fd for fd in (pipes[0], pipes[3], pipes[5])]
            socket.send_fds(server(), [json.dumps(request).encode()], [*fds, status])
        os.close(status)
        self._close_pipe_fds(*pipes)
        self.pid = int.from_bytes(os.read(self._status, 4))
        self._child_created = True

    def _internal_poll(self, *_, **__):
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)
        return self.returncode

    def _try_wait(self, wait_flags):
        os.set_blocking(self._status, not wait_flags)
        try:
            found = os.read(self._status, 4)
        except BlockingIOError:
            return 0, 0
        os.close(self._status)
        return self.pid, int.from_bytes(found)


if not hasattr(os, "pidfd_open"):  # not Linux: each process of its own imports
    Popen = PLAIN  # type: ignore[misc]
