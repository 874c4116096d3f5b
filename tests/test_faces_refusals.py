"""Values that both faces reject, or accept, by the same rule: tolerances, numbers, names, memory layouts."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from subprocesses import ROOT

FACES = pytest.mark.parametrize("api,array", [(iso, np.asarray), (it, torch.as_tensor)], ids=["numpy", "torch"])


@FACES
@pytest.mark.parametrize("kind", ["Householder", "Cayley"])
def test_tolerance_of_from_matrix(api, array, kind):
    take = getattr(api, kind).from_matrix
    take(array(np.eye(3)), tol=0)
    for factor in (0.9, 1.1):  # of n sqrt(eps), the default: |W^H W - I| = 2 d
        w = array(np.eye(3) * (1 + factor * 3 * np.sqrt(np.finfo(float).eps) / 2))
        if factor < 1:
            take(w)
        else:
            with pytest.raises(ValueError, match="orthogonal"):
                take(w)


@FACES
def test_activation_without_features(api, array):
    z, bias = array(np.zeros((3, 0))), array(np.zeros(0))
    for name in ("tanh", "oplu", "modrelu", "modrelu_realrep"):
        assert api.activate(z, name, bias=bias if "modrelu" in name else None).shape == (3, 0)


def test_gradient_of_an_activation_without_features():
    z, bias = np.zeros((3, 0)), np.zeros(0)
    z_bar, bias_bar = iso.activate_vjp(z, "modrelu", z, bias=bias)
    assert z_bar.shape == (3, 0) and bias_bar.shape == (0,)
    _, bias_bar = iso.activate_vjp(np.zeros((0, 2)), "modrelu", np.zeros((0, 2)), bias=np.ones(2))
    assert np.array_equal(bias_bar, np.zeros(2))


def test_threads_of_the_environment():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "ISOMETRY_NUM_THREADS": "9" * 30}
    done = subprocess.run([sys.executable, "-c", "import isometry"], env=environment, capture_output=True, text=True)
    assert "ISOMETRY_NUM_THREADS must be a number of threads in 1..1024" in done.stderr


@FACES
def test_what_is_running(api, array, capsys):  # noqa: ARG001
    api.show_config()
    out = capsys.readouterr().out
    assert api.__version__ == iso.__version__ and api.__version__ in out
    assert f"threads: {api.get_num_threads()}" in out
    assert (f"torch: {torch.__version__}" in out) == (api is it)
