"""Threads that use the same parameters: calls of this package in one, torch's operations in another."""

from pathlib import Path

from subprocesses import script

CALLS = """
    import faulthandler, os, sys, threading, time, traceback
    sys.path.insert(0, sys.argv[1])
    import torch, isometry.torch as it
    from layers import NAMES

    faulthandler.dump_traceback_later(60, exit=True)  # without the interpreter's lock
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = torch.randn(2, 2, 3), torch.randn(2, 3)
    layers = [getattr(it.nn, name)(3, 6) for name in NAMES]
    weights = [it.parametrizations.orthogonal(torch.nn.Linear(3, n)) for n in (2, 3)]
    modules = [*weights, it.adapters.HRA(torch.nn.Linear(3, 3), 2), it.nn.OperatorModule(it.Cayley.random(3))]
    a, q = torch.nn.Parameter(torch.randn(3, 3)), torch.nn.Parameter(torch.randn(1, 4, 2, 3))
    calls = [(m.parameters(), lambda m=m: m(x)) for m in (*layers, *modules)]
    calls += [([a], lambda f=f: f(a)) for f in (it.linalg.procrustes, it.linalg.geqrf)]
    calls += [([a], lambda: it.activate(a, "modrelu", bias=a.select(0, 0)))]
    calls += [([a], lambda: it.hadamard_transform(a.narrow(1, 0, 2)))]
    calls += [([q], lambda: it.delta_rule(q, q, q, torch.ones(1, 4, 2)))]
    calls += [([a], lambda: torch.func.vmap(lambda row: it.recurrence(it.Dense(a), x * row.sum(), a))(a))]
    used = [[p for p in parameters if p.requires_grad] for parameters, _ in calls]
    at, ended = 0, False

    def others():
        while not ended:
            for p in used[at]:
                p * 1

    def own():
        global at, ended
        try:
            for at, (_, call) in enumerate(calls):
                end = time.perf_counter() + float(sys.argv[2])
                while time.perf_counter() < end:
                    call()
            ended = True
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    for run in (others, own):
        threading.Thread(target=run, daemon=True).start()
    while not ended:
        time.sleep(0.01)
    os.write(1, str(len(calls)).encode())
    os._exit(0)
"""


def test_calls_beside_operations_of_torch_end():
    """`Function.apply` waits for the mutex of a leaf while it holds the lock of the interpreter; an operation of torch
    holds the mutex and waits for the lock.
    """
    assert int(script(CALLS, Path(__file__).parents[1], 0.1)) > 25
