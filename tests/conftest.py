"""Fixtures for all tests, and the number of threads of concurrent workers."""

import os
import sys
import tempfile

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import extension  # noqa: F401  (before isometry)
import place
import subjects
from backends import SINGLE
from registry import CASES
from selection import leave_out

settings.register_profile("repository", deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.load_profile("repository")


def pytest_addoption(parser):
    parser.addoption("--backend", choices=["cpu", "gpu"], default="cpu", help="where the laws compute")
    parser.addoption("--brief", action="store_true", help="without slow tests, and in two dtypes instead of four")
    parser.addoption("--device", default="cpu", help="where the laws of the torch face have their tensors")


def pytest_configure(config):
    """Workers of pytest-xdist share the cores: two threads in each would wait for time slices at every barrier.

    Without XDG_RUNTIME_DIR, as on servers, Mesa's Vulkan layer prints an error where adapters are listed.
    """
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    place.device = config.getoption("device")
    if getattr(config.option, "numprocesses", None):
        for name in ("OMP_NUM_THREADS", "ISOMETRY_NUM_THREADS"):
            os.environ.setdefault(name, "1")


@pytest.fixture
def seed(request):
    """A separate generator for every test, the same in every run."""
    return np.random.default_rng(list(request.node.nodeid.encode()))


def pytest_generate_tests(metafunc):
    """`case`: every registry entry in every dtype; `face`: both faces, so that each law is written once."""
    if "face" in metafunc.fixturenames:
        metafunc.parametrize("face", list(subjects.IN_FACE))
    if "case" in metafunc.fixturenames:
        chosen = getattr(metafunc.function, "select", None)
        cases = list(filter(chosen, CASES)) if chosen else CASES
        if metafunc.config.getoption("backend") == "gpu":
            cases = [case for case in cases if case.dtype in SINGLE]
        metafunc.parametrize("case", cases, ids=str)


def pytest_collection_modifyitems(config, items):
    """--backend gpu: without what the GPU does not have; --device: without what needs the host; --brief: see there."""
    if config.getoption("brief"):
        others = {item.function for item in items if dtype_of(item) not in SPARED}
        spared = lambda item: dtype_of(item) in SPARED and item.function in others
        leave_out(config, items, lambda item: item.get_closest_marker("slow") or spared(item))
    if config.getoption("backend") == "gpu":
        leave_out(config, items, of_the_cpu)
    if config.getoption("device") != "cpu":
        leave_out(config, items, of_the_host)
    if "ISOMETRY_SHADERS" not in os.environ:  # `make shaders` writes them
        leave_out(config, items, lambda item: item.path.name == "test_shaders.py")


#: Dtypes whose parts or precision float32 and complex128 have too.
SPARED = ("float64", "complex64")


def dtype_of(item):
    """The name of the dtype of a test that has one."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    dtype = getattr(given.get("case"), "dtype", given.get("dtype"))
    return getattr(dtype, "__name__", str(dtype)).rpartition(".")[2]


def of_the_cpu(item):
    """Whether a test is marked `cpu`, or its parameter `dtype` is of double precision."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return item.get_closest_marker("cpu") is not None or parameters.get("dtype", np.float32) not in SINGLE


def of_the_host(item):
    """Whether a test has arrays of NumPy, a substitute for a device, or is marked `cpu`."""
    named = any(word in item.name for word in ("numpy", "elsewhere")) or item.path.name == "test_devices.py"
    return named or item.get_closest_marker("cpu") is not None


@pytest.fixture(autouse=True)
def _backend(request):
    """The laws on the GPU: every call inside follows."""
    import isometry as iso

    backend = request.config.getoption("backend")
    with iso.use_backend(backend):
        if backend == "gpu":
            refused()
        yield


def refused():
    """Calls of both faces go to the GPU: it alone refuses double precision."""
    import torch

    import isometry as iso
    import isometry.torch as it

    for op in (iso.Cayley(np.zeros(3)), it.Cayley(torch.zeros(3, dtype=torch.float64))):
        with pytest.raises(TypeError, match="the GPU computes in float32"):
            op.matrix()


@pytest.fixture
def make(face, case, seed):
    """make(n=6, batch=()) draws the case's operator for the face."""
    return lambda n=6, batch=(): subjects.IN_FACE[face].draw(case, seed, n, batch)


class Poison:
    """Counts the arrays handed out filled with NaN."""

    def __init__(self):
        self.count = 0

    def __call__(self, empty, fill):
        def poisoned(*args, **kwargs):
            out = empty(*args, **kwargs)
            self.count += 1
            fill(out)
            return out

        return poisoned


def poison_numpy(a):
    if a.dtype.kind in "fc":
        a.fill(np.nan)


def poison_torch(t):
    if (t.is_floating_point() or t.is_complex()) and t.device.type == "cpu":
        t.fill_(float("nan"))


@pytest.fixture
def poison(monkeypatch):
    """Every output buffer either face takes from np.empty or torch.empty starts as NaN."""
    import torch

    poison = Poison()
    for name in ("empty", "empty_like"):
        monkeypatch.setattr(np, name, poison(getattr(np, name), poison_numpy))
        monkeypatch.setattr(torch, name, poison(getattr(torch, name), poison_torch))
    return poison


@pytest.fixture
def isometry(tmp_path, monkeypatch, capfd):
    """isometry("train", ...) -> (exit status, standard output, lines on standard error): a command in this process, in
    an empty folder; restores the process's settings afterwards."""
    import torch

    from isometry.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    generator = torch.get_rng_state()

    def call(*arguments):
        status = main([str(a) for a in arguments])
        captured = capfd.readouterr()
        return status, captured.out, captured.err.splitlines()

    yield call
    torch.set_rng_state(generator)


@pytest.fixture
def threads():
    """Restores the thread budget of both faces."""
    import isometry as iso
    import isometry.torch as it

    before = iso.get_num_threads(), it.get_num_threads()
    yield
    iso.set_num_threads(before[0])
    it.set_num_threads(before[1])
