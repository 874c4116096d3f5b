"""The device: errors that say what to do, children, the end of the process; nothing of it where it is not used."""

import sys

import numpy as np
import pytest

import isometry as iso
from subprocesses import script

ONE = "import numpy as np, isometry as iso; iso.gpu.Array(np.ones(3))"


def ended(code, **environment):
    """What a program prints."""
    done = script(code, check=False, timeout=60, **environment)
    return done.stdout + done.stderr


def test_a_wrong_adapter_is_named():
    out = ended(ONE, ISOMETRY_GPU_ADAPTER="abacus")
    assert "ISOMETRY_GPU_ADAPTER is" in out and "abacus" in out and "this machine has" in out


def test_the_listed_adapters_have_names():
    found = iso.gpu.adapters()
    assert found and all(adapter.name and adapter.kind and adapter.backend for adapter in found)
    assert all(adapter.most_bytes >= 1 << 27 for adapter in found)


def test_an_array_that_is_too_large_is_refused():
    most = max(adapter.most_bytes for adapter in iso.gpu.adapters())
    with pytest.raises(RuntimeError, match="too large"):
        iso.gpu.Array(np.zeros(most // 4 + 1, np.float32))
    assert iso.gpu.Array(np.ones(2)).download().sum() == 2


def test_a_lost_device_is_named_and_opened_again():
    op = iso.Cayley.random(6, rng=0, dtype=np.float32)
    before = iso.gpu.Array(np.ones((3, 6), np.float32))
    held = iso.Cayley(iso.gpu.Array(op.upper))
    iso.gpu.reset()
    for call in (before.download, held.matrix, lambda: op.apply(before), lambda: before.reshape(18).download()):
        with pytest.raises(RuntimeError, match=r"was lost \(it was reset\): its arrays are gone"):
            with iso.use_backend("gpu"):
                call()
    w = op.matrix()
    assert abs(op.matrix(backend="gpu") - w).max() < 1e-6
    after = iso.gpu.Array(np.ones((3, 6)))
    assert abs(op.apply(after, backend="gpu").download() - w.sum(1)).max() < 1e-5
    with pytest.raises((RuntimeError, ValueError), match="lost|another device"):
        held.apply(after, backend="gpu")


def test_a_large_norm_is_left_to_the_cpu():
    for n, size in ((8, 1e6), (70, 1e3)):
        op = iso.Cayley(np.full(n * (n - 1) // 2, size, np.float32))
        np.testing.assert_array_equal(op.matrix(backend="gpu"), op.matrix())


def test_nothing_of_the_gpu_is_loaded_where_it_is_not_used():
    code = "import isometry as iso; iso.Cayley.random(4, rng=0).matrix(); "
    code += "print('vulkan' in open('/proc/self/maps').read())"
    if sys.platform == "linux":
        assert ended(code).strip().endswith("False")


def test_a_program_ends_with_arrays_alive():
    code = f"{ONE}; held = iso.gpu.Array(np.ones(3)); print('end')"
    assert ended(code).strip().endswith("end")


#: What a forked child prints, or raises: of drivers, Mesa's alone are known to work there.
FORKED = """
def opened():
    try:
        w = iso.Householder(np.ones((4, 2), np.float32)).matrix(backend="gpu")
    except RuntimeError as error:
        return "Mesa" not in driver and 'start the process by the method "spawn"' in str(error)
    return "Mesa" in driver and abs(w @ w.T - np.eye(4)).max() < 1e-5
(driver,) = (a.driver for a in iso.gpu.adapters() if a.used)
"""


@pytest.mark.fork
def test_a_forked_child_opens_its_own():
    code = f"""{ONE}{FORKED}
import os, sys
held = iso.gpu.Array(np.ones(3))
child = os.fork()
if child == 0:
    try:
        held.download()
    except RuntimeError as error:
        if "made before the fork, in the parent process" not in str(error):
            os._exit(2)
    else:
        os._exit(3)
    del held
    os._exit(0 if opened() else 1)
_, status = os.waitpid(child, 0)
print("child", status, held.download().sum())
"""
    assert "child 0 3.0" in ended(code)


#: Arrays of a device that was closed are the last that hold it; a child must not end the device of its parent.
CLOSED = f"""{ONE}{FORKED}
import gc, os, sys
held = iso.gpu.Array(np.ones(3))
iso.gpu.reset()
again = iso.gpu.Array(np.full(3, 2.0)) if {{again}} else None
child = os.fork()
if child == 0:
    del held
    gc.collect()
    iso.gpu.reset()
    del again
    os._exit(0 if opened() else 1)
_, status = os.waitpid(child, 0)
if again is not None:
    assert again.download().sum() == 6
del held
print("child", status, iso.gpu.Array(np.ones(3)).download().sum())
"""


@pytest.mark.fork
@pytest.mark.parametrize("again", [False, True], ids=["closed", "opened again"])
def test_a_forked_child_drops_a_device_that_was_closed(again):
    assert "child 0 3.0" in ended(CLOSED.format(again=again))


def test_memory_that_ends_while_an_array_is_downloaded():
    if sys.platform != "linux":
        return
    code = f"""{ONE}
import resource
held = iso.gpu.Array(np.ones(1 << 25))
with open("/proc/self/statm") as statm:
    size = int(statm.read().split()[0]) * resource.getpagesize()
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (size + (16 << 20), limits[1]))
try:
    held.download()
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, limits)
    print("refused", int(held.download().sum()))
"""
    assert "refused 33554432" in ended(code)
