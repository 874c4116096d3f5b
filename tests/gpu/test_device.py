"""The device: errors that say what to do, children, the end of the process; nothing of it where it is not used."""

import os
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


def test_double_precision_is_refused():
    op = iso.Cayley.random(4, rng=0)
    for call in (op.matrix, lambda **k: op.apply(np.ones(4), **k), lambda **k: op.matrix_vjp(np.eye(4), **k)):
        with pytest.raises(RuntimeError, match="float32 and complex64: convert the arrays, or use backend"):
            call(backend="gpu")


def test_a_wrong_adapter_is_named():
    out = ended(ONE, ISOMETRY_GPU_ADAPTER="abacus")
    assert "ISOMETRY_GPU_ADAPTER is" in out and "abacus" in out and "this machine has" in out


def test_the_listed_adapters_have_names():
    found = iso.gpu.adapters()
    assert found and all(adapter.name and adapter.kind and adapter.backend for adapter in found)


def test_nothing_of_the_gpu_is_loaded_where_it_is_not_used():
    code = "import isometry as iso; iso.Cayley.random(4, rng=0).matrix(); "
    code += "print('vulkan' in open('/proc/self/maps').read())"
    if sys.platform == "linux":
        assert ended(code).strip().endswith("False")


def test_a_program_ends_with_arrays_alive():
    code = f"{ONE}; held = iso.gpu.Array(np.ones(3)); print('end')"
    assert ended(code).strip().endswith("end")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_opens_its_own():
    code = f"""{ONE}
import os, sys
child = os.fork()
if child == 0:
    w = iso.Householder(np.ones((4, 2), np.float32)).matrix(backend="gpu")
    os._exit(0 if abs(w @ w.T - np.eye(4)).max() < 1e-5 else 1)
_, status = os.waitpid(child, 0)
print("child", status)
"""
    assert "child 0" in ended(code)
