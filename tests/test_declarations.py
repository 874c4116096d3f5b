"""Each object is declared once, both faces follow the declaration, and refuse alike."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from isometry import _cells, _core
from isometry._objects import declaration
from isometry.torch import Dense, nn, recurrence
from subprocesses import ROOT


@pytest.mark.parametrize("stem", _core.OBJECTS)
def test_what_is_declared_names_arguments_of_the_core(stem: str) -> None:
    own = declaration(stem)
    assert own.stem == stem
    assert {*own.checked, *own.loose} <= {a.name for a in own.arguments} == {row.name for row in _core.OBJECTS[stem]}


@pytest.mark.parametrize("stem", _core.OBJECTS)
def test_a_shape_that_does_not_fit_is_refused_by_name(stem: str) -> None:
    own = declaration(stem)
    first, *rest = own.arguments
    with pytest.raises(ValueError, match=f"^{first.name} must have"):
        own.check((), *(None for _ in rest))


@pytest.mark.parametrize("name", _core.CELLS)
def test_what_is_declared_of_a_cell_names_arguments_of_the_core(name: str) -> None:
    cell = _cells.declaration(name)
    arguments = {row[0] for row in _core.CELLS[name][0]}
    assert cell.name == name and {*cell.notes, *cell.shared} <= arguments >= set(cell.kernel)


def test_sizes_may_follow_from_others() -> None:
    mesh, kronecker = declaration("mesh"), declaration("kronecker")
    assert mesh.sizes((4, 2, 1, 0), (3,), None, None, None) == {"n": 4, "layers": 2, "kind": 1, "pairs": 3}
    assert mesh.check((4, 2, 1, 0), (3,), (3,), None, (4,)) == ((4, 4), ())
    assert kronecker.check((2, 3), (3, 1)) == ((6, 3), ())
    assert [mesh.exists["fft"](n) for n in (1, 2, 6, 8)] == [True, True, False, True]
    with pytest.raises(ValueError, match=r"^factors must have shape \(\*, p, q\) .* not \(2,\) at index 1"):
        kronecker.check((2, 2), (2,))


def test_shapes_and_integers_leave_a_law_real() -> None:
    real = {stem: declaration(stem).real for stem in ("rotation", "givens", "mesh", "fourier", "circulant")}
    assert [stem for stem, own in real.items() if own] == ["rotation", "givens"]


def test_a_layer_refuses_a_rectangular_operator_by_name() -> None:
    class Wide(nn.FullCapacityURNN):
        def _sizes(self) -> dict[str, int]:
            return super()._sizes() | {"q": 5}

    with pytest.raises(ValueError, match=r"^Wide must have a square W of size hidden_size = 4, not \(4, 5\)"):
        Wide(2, 4)
    wide = torch.ones(4, 5)
    with pytest.raises(ValueError, match="^transition must be square"):
        recurrence(Dense(wide), torch.ones(3, 2, 1), torch.ones(4, 1))


def test_signatures_name_their_types() -> None:
    """`help` shows ArrayLike, not the union that it stands for, which fills a page."""
    public = [getattr(iso, name) for name in iso.__all__]
    public += [member for cls in public if isinstance(cls, type) for _, member in inspect.getmembers(cls, callable)]
    own = [each for each in public if callable(each) and "isometry" in str(getattr(each, "__module__", ""))]
    shown = [str(inspect.signature(each)) for each in own]
    assert len(shown) > 100
    assert not [text for text in shown if "numpy._typing" in text]


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
