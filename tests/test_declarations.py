"""Each object is declared once; both faces follow the declaration."""

import inspect

import numpy as np
import pytest
import torch

import isometry as iso
from isometry import _cells, _core
from isometry._objects import declaration
from isometry._objects._declaration import Argument, Declaration
from isometry.operators._declared import Declared
from isometry.torch import Dense, formulas, nn, recurrence
from isometry.torch.operators._declared import Declared as DeclaredTensors


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


def made(declared: type, own: Declaration) -> type:
    """The class of a declaration; its constructor takes the arguments in their order."""
    more = {"matrix": formulas.dense.matrix} if declared is DeclaredTensors else {}
    return type("Own", (declared,), {"__init__": lambda op, *given: op._hold(*given)}, declaration=own, **more)


def alone(declared: type, kind: str) -> type:
    """An operator of a single argument, of that kind."""
    own = Declaration("Own", "dense", (Argument("weight", "p q", kind),), matrix=("p", "q"))  # type: ignore[arg-type]
    return made(declared, own)


PLACES = Declaration(
    "Own",
    "dense",
    (Argument("frame", "n 0", "shape"), Argument("weight", "m", "real"), Argument("places", "m", "integer")),
    checked=("frame", "places"),
    required=3,
)


def test_shapes_and_integers_leave_a_law_real() -> None:
    angles = Declaration("Own", "dense", (*PLACES.arguments, Argument("phases", "n", "angles")))
    assert [PLACES.real, angles.real] == [True, False]
    assert [declaration(stem).real for stem in ("rotation", "mesh", "fourier")] == [True, False, False]


def test_a_layer_refuses_a_rectangular_operator_by_name() -> None:
    class Wide(nn.FullCapacityURNN):
        def _sizes(self) -> dict[str, int]:
            return super()._sizes() | {"q": 5}

    with pytest.raises(ValueError, match=r"^Wide must have a square W of size hidden_size = 4, not \(4, 5\)"):
        Wide(2, 4)
    wide = torch.ones(4, 5)
    with pytest.raises(ValueError, match="^transition must be square"):
        recurrence(Dense(wide), torch.ones(3, 2, 1), torch.ones(4, 1))


FACES = pytest.mark.parametrize(
    ("declared", "give"), [(Declared, np.asarray), (DeclaredTensors, torch.as_tensor)], ids=["numpy", "torch"]
)


@FACES
@pytest.mark.parametrize(
    ("kind", "bad", "error"),
    [
        ("real", np.ones((2, 2), complex), "weight must be real"),
        ("angles", np.ones((2, 2), complex), "weight must be real"),
        ("complex", np.ones((2, 2)), "weight must be complex"),
    ],
)
def test_an_argument_that_stands_alone_is_of_its_kind(declared, give, kind, bad, error) -> None:
    with pytest.raises(TypeError, match=f"^{error}"):
        alone(declared, kind)(give(bad))


@FACES
def test_angles_alone_make_the_matrix_complex(declared, give) -> None:
    weight = give(np.ones((2, 2), np.float32))
    found = [str(alone(declared, kind)(weight).dtype).removeprefix("torch.") for kind in ("angles", "real")]
    assert found == ["complex64", "float32"]


@pytest.mark.parametrize("mode", ["numpy", "eager", "recorded", "transformed"])
def test_the_kernel_writes_a_complex_matrix_of_angles_alone(mode, monkeypatch) -> None:
    types: list[str] = []
    written = lambda _stem, _arguments, out, *_: types.append(str(np.asarray(out).dtype))
    monkeypatch.setattr(_core, "operator_matrix", written)
    declared, give = (Declared, np.asarray) if mode == "numpy" else (DeclaredTensors, torch.as_tensor)
    cls, angles = alone(declared, "angles"), give(np.ones((2, 2), np.float32))
    if mode == "transformed":
        torch.func.vjp(lambda own: cls(own).matrix(), angles)
    else:
        cls(angles.requires_grad_() if mode == "recorded" else angles).matrix()
    assert types == ["complex64"]


@FACES
def test_the_check_of_values_knows_the_sizes(declared, give, monkeypatch) -> None:
    """The shape of an argument without elements: where integers end, for example."""
    seen: list[object] = []
    monkeypatch.setattr(_core, "operator_check", lambda _stem, given: seen.extend(given))
    made(declared, PLACES)((4, 0), give(np.ones(2)), give(np.array([1, 3])))
    frame, weight, places = seen
    assert np.asarray(frame).shape == (4, 0)
    assert weight is None
    assert list(np.asarray(places)) == [1, 3]


def test_signatures_name_their_types() -> None:
    """`help` shows ArrayLike, not the union that it stands for, which fills a page."""
    public = [getattr(iso, name) for name in iso.__all__]
    public += [member for cls in public if isinstance(cls, type) for _, member in inspect.getmembers(cls, callable)]
    own = [each for each in public if callable(each) and "isometry" in str(getattr(each, "__module__", ""))]
    shown = [str(inspect.signature(each)) for each in own]
    assert len(shown) > 100
    assert not [text for text in shown if "numpy._typing" in text]
