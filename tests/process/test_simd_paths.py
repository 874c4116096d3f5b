"""All instruction-set paths of the kernels give the same results; an unavailable one raises an error."""

import numpy as np
import pytest

from isometry import _core
from registry import real_of
from subprocesses import script
from tolerance import close, sequence_gradient

pytestmark = pytest.mark.slow

PATHS = ("scalar", "avx2", "avx512", "neon")
WORK = """
    import sys
    import numpy as np
    import reference as ref
    import isometry as iso
    from isometry import _core
    from registry import CASES, real_of, spread

    assert _core.config()["simd"] == sys.argv[1], _core.config()
    results = {}
    for c, case in enumerate(CASES):
        if not case.square:
            continue
        rng = np.random.default_rng(c)
        for least, batch in ((70, ()), (37, ()), (6, (21,))):
            n = case.size(least)
            op = case.build(iso, case.draw(rng, n, batch), n)
            x, ct = (ref.normal(rng, 19, *batch, n, dtype=case.dtype) for _ in range(2))
            grads, x_bar = op.apply_vjp(x, ct)
            out = {"apply": op.apply(x), "adjoint": op.apply_adjoint(x), "matrix": op.matrix(), "x_bar": x_bar,
                   **spread(grads)}
            results.update({f"{c} {n} {k}": v for k, v in out.items()})
        n = case.size(37)
        op = case.build(iso, case.draw(rng, n), n)
        steps, v = ref.normal(rng, 6, 7, 3, dtype=case.dtype), ref.normal(rng, n, 3, dtype=case.dtype)
        for name in ("tanh", "modrelu"):
            bias = 0.1 * ref.normal(rng, n, dtype=real_of(case.dtype)) if name == "modrelu" else None
            keywords = {"activation": name, "activation_bias": bias}
            states = iso.recurrence(op, steps, v, **keywords)
            g = iso.recurrence_vjp(op, steps, v, states, np.ones_like(states), **keywords)
            flat = {"states": states, "x": g["x"], "v": g["input_weight"], **spread(g["transition"])}
            results.update({f"{c} {name} {k}": v for k, v in flat.items()})
    np.savez(sys.argv[2], **results)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The same work on every path of this machine."""
    folder, found = tmp_path_factory.mktemp("simd"), {}
    for path in _core.config()["simd_available"]:
        script(WORK, path, folder / f"{path}.npz", ISOMETRY_SIMD=path)
        with np.load(folder / f"{path}.npz") as file:
            found[path] = dict(file)
    return found


def test_the_portable_path_is_always_there():
    assert "scalar" in _core.config()["simd_available"]
    assert set(_core.config()["simd_available"]) <= set(PATHS)


def test_all_paths_agree(results):
    """In double and single precision, against the portable path."""
    for path, found in results.items():
        assert set(found) == set(results["scalar"])
        for key, value in found.items():
            expected = results["scalar"][key]
            assert value.dtype == expected.dtype
            tolerance = sequence_gradient(real_of(value.dtype), 75, 6)
            close(value, expected, tolerance, f"{path}: {key}", floor=1.0)


@pytest.mark.parametrize("path", [*PATHS, "sse9"])
def test_a_path_is_taken_or_refused(path):
    """A path that is missing here, or unknown, is an error that names the variable and the choices."""
    text = """
        import numpy as np
        import isometry as iso
        from isometry import _core

        iso.Householder(np.ones((4, 2))).matrix()
        print(_core.config()["simd"])
    """
    done = script(text, check=False, ISOMETRY_SIMD=path)
    if path in _core.config()["simd_available"]:
        assert done.stdout.strip() == path, done.stderr
    else:
        assert done.returncode != 0
        assert "ISOMETRY_SIMD" in done.stderr
        assert path in done.stderr
        assert "panicked" not in done.stderr
