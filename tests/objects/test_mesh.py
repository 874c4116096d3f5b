"""Meshes: what the layouts reach, fields, large angles, and the memory of a backward."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex, real_of
from subprocesses import script
from tolerance import TIGHT, close, forward

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


def drawn(plan, dtype, rng):
    return iso.Mesh.random(**plan, dtype=dtype, rng=rng)


def arrays(op):
    return {k: a for k in ("theta", "phi", "phases", "signs") if (a := getattr(op, k)) is not None}


def test_fields_and_conversions(seed):
    """Angles are real; phi or phases make W complex, and a converted mesh keeps its layout."""
    op = iso.Mesh(np.zeros(4, np.float32), n=4, layout="fft", phases=np.zeros(4))
    assert op.dtype == np.complex128
    assert op.apply_vjp(np.ones(4), np.ones(4))[0]["theta"].dtype == np.float32
    for package in (iso, it):
        op = package.Mesh.random(8, layers=3, first="right")
        wide = op.astype(np.complex64) if package is iso else op.to(torch.complex64)
        assert (wide.n, wide.layers, wide.layout, wide.first) == (8, 3, "brick", "right")
        assert "complex64" in repr(wide)
        assert "float32" in str(wide.theta.dtype)
    real = iso.Mesh.random(8, layout="fft", rng=seed)
    z = ref.normal(seed, 8, dtype=np.complex128)
    close(real.apply(z), real.matrix() @ z, TIGHT)
    close((real.H @ real).matrix(), np.eye(8), TIGHT)
    with pytest.raises(TypeError, match="phi is float64 and theta is float32"):
        it.Mesh(torch.zeros(4), n=4, layout="fft", phi=torch.zeros(4, dtype=torch.float64))


@DTYPE
def test_random_ones_are_unitary_however_large_their_angles(dtype, seed):
    op = drawn({"n": 24, "layers": 24}, dtype, seed)
    assert iso.orthogonality_error(op.matrix()) < 20
    far = {k: (a * 1e4).astype(real_of(dtype)) for k, a in arrays(op).items()}
    wide = iso.Mesh(**far, n=24, layers=24)
    assert wide.dtype == dtype
    assert is_complex(dtype) == (op.phi is not None)
    assert iso.orthogonality_error(wide.matrix()) < 20
    close(wide.matrix(), ref.mesh(**far, n=24, layers=24), forward(dtype, 48))


PEAK = """
    import sys
    import numpy as np
    import isometry as iso

    iso.set_num_threads(1)
    n, rows, layers = 1024, 4000, int(sys.argv[1])
    op = iso.Mesh.random(n, layers=layers, rng=0, dtype=np.float32)
    x = np.ones((rows, n), np.float32)

    def field(name):
        with open("/proc/self/status") as status:
            return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])

    op.apply_vjp(x[:50], x[:50])
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
    before = field("VmRSS")
    result = op.apply_vjp(x, x, check_finite=False)
    print((field("VmHWM") - before) / (rows * n * 4))
"""


def test_the_backward_needs_no_array_per_layer():
    """In units of the rows: one for x_bar; the sums of the angles are a fiftieth each, for any number of rows."""
    for layers in (2, 64):
        assert float(script(PEAK, str(layers))) < 1.3
