"""The server of `warm`: python warm_server.py DESCRIPTOR, a socket of requests, each with standard input, output, error
and a pipe, which gets the pid of the process and then its status.
"""

import atexit
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module

PRELOADED = (
    "filelock", "isometry.cli.compare.attended", "isometry.cli.train", "isometry.torch.nn", "safetensors.torch",
    "matplotlib.backends.backend_agg", "matplotlib.figure", "mpl_toolkits.mplot3d", "tomli_w", "torch._dynamo",
    "torch.distributed",
)  # fmt: skip

PATH = [*sys.path]


def main(requests):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running = {}
    while True:
        ready, _, _ = select.select([requests, *running], [], [])
        for watched in ready:
            if watched is requests:
                data, fds, _, _ = socket.recv_fds(requests, 1 << 20, 4)
                if not data:
                    return
                pid = os.fork()
                if pid == 0:
                    requests.close()
                    for descriptor in running:
                        os.close(descriptor)
                    become(fds, **json.loads(data))
                os.write(fds[3], pid.to_bytes(4))
                running[os.pidfd_open(pid)] = pid, fds[3]
                for descriptor in fds[:3]:
                    os.close(descriptor)
            else:
                pid, pipe = running.pop(watched)
                os.close(watched)
                with suppress(BrokenPipeError):  # nobody waits
                    os.write(pipe, os.waitpid(pid, 0)[1].to_bytes(4))
                os.close(pipe)


def become(fds, argv, cwd, env, session):
    """Be the process `python ARGV` from here on."""
    status = 1
    try:
        if session:
            os.setsid()
        for standard, descriptor in enumerate(fds[:3]):
            os.dup2(descriptor, standard)
        for descriptor in fds:
            os.close(descriptor)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        status = run(argv)
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush(), sys.stderr.flush()
        finally:
            os._exit(status)


def run(argv):
    """The exit status of `python ARGV`: a file, -m MODULE or -c TEXT, and its arguments."""
    kind, *sys.argv = argv if argv[0] in ("-m", "-c") else ("", *argv)
    sys.path[:] = [os.getcwd() if kind else os.path.dirname(sys.argv[0]), *PATH[1:]]
    try:
        if kind == "-m":
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        elif kind == "-c":
            text, sys.argv[0] = sys.argv[0], "-c"
            exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
        status = 0
    except SystemExit as left:
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    threading._shutdown()
    return status


if __name__ == "__main__":
    for name in PRELOADED:
        import_module(name)
    main(socket.socket(fileno=int(sys.argv[1])))
