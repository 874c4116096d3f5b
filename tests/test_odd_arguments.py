"""Every argument of every public function, given a value of the wrong kind: an error that names only this
argument."""

import ast
import inspect
import re

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from faces import NumpyFace, TorchFace
from isometry._rules.check import article
from layers import CELL_LAYERS
from registry import OBJECTS
from registry.cells import CASES, CELLS, CellCase
from registry.functions import calls
from subprocesses import ROOT

HUGE = 10**400
#: Values that no argument accepts, except for those in SERVED.
ODD = {
    "nothing": None,
    "text": "no",
    "object": object(),
    "fraction": 2.5,
    "complex": 1j,
    "huge": HUGE,
    "rows of two lengths": [[1.0], [1.0, 2.0]],
    "a hole": [None, 1],
    "a huge entry": [HUGE, 1],
    "texts": np.array(["a", "b"]),
    "objects": np.array([object()]),
    "a dictionary": {},
    "a masked array": np.ma.masked_array([1.0, 2.0], [0, 1]),
    "a sparse tensor": torch.eye(2).to_sparse(),
    "sparse bools": torch.ones(3, 2, dtype=torch.bool).to_sparse(),
    "sparse integers": torch.tensor([0, 1, 2]).to_sparse(),
    "a tensor of mkldnn": torch.eye(2).to_mkldnn(),
}
OPTIONAL = "diagonal signs phases sign starts start_state b bias activation_bias hidden_bias lengths"
OPTIONAL += " mask tol m rng generator dtype negative_ones permutation"
#: argument -> the odd values that it accepts.
SERVED = {name: {"nothing"} for name in OPTIONAL.split()}
SERVED |= {
    name: {"nothing"}
    for name in ("reflections", "hx", "backend", "embed_bias", "r0", "eta", "factor_sizes", "capacity")
}
SERVED |= {name: {"nothing"} for name in ("g", "initial_state", "cu_seqlens", "out")}
SERVED |= {name: {"nothing"} for cell in CELLS.values() for name in cell.first}
SERVED |= {name: {"fraction"} for name in ("rate", "scale", "floor")}
NUMBERS = {name for case in CASES for name, value in case.kind.settings.items() if isinstance(value, float)}
SERVED |= {name: SERVED.get(name, set()) | {"fraction"} for name in ("tol", *NUMBERS)}
SERVED["rng"] |= {"huge", "a huge entry"}  # seeds of the NumPy face


def of_cells(face, a):
    """The functions of all cells, each with all arguments of its signature."""
    found = {}
    for stem, cell in CELLS.items():
        case = CellCase(cell, next(iter(cell.variants)))
        drawn = {name: a(value) for name, value in case.draw(np.random.default_rng(0)).items()}
        lead, given = case.given(drawn, face)
        function = getattr(face, stem)
        optional = {k: p.default for k, p in inspect.signature(function).parameters.items() if p.default is not p.empty}
        others = set() if stem == "recurrence" else {"input_weight", "bias"}  # names that u and b have too
        own = {"transition": lead[0]} if lead else {}
        found[stem] = function, {k: v for k, v in optional.items() if k not in others} | given | own
    return found


def gradients_of_the_recurrence():
    recurrence, layer = of_cells(iso, np.asarray)["recurrence"]
    states, taken = recurrence(**layer), inspect.signature(iso.recurrence_vjp).parameters
    layer = {name: value for name, value in layer.items() if name in taken}
    return iso.recurrence_vjp, {**layer, "states": states, "ct": states, "check_states": False}


def layer_of_cell(cls, shared):
    """The keywords of a layer, its own as they are by default."""
    own = {k: p.default for k, p in inspect.signature(cls).parameters.items() if k in cls._own_keywords}
    return {name: value for name, value in shared.items() if name != "nonlinearity" or name in own} | own


def torch_alone():
    shared = {
        "input_size": 2, "hidden_size": 4, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0,
        "bidirectional": False, "trainable_h0": False, "dtype": None, "nonlinearity": "tanh", "heads": 1,
    }  # fmt: skip
    layer, marks = it.nn.ORNN(2, 4), torch.zeros(3, 2, dtype=torch.bool)
    modules = {
        "RealState": (it.nn.RealState(), "input"),
        **{
            name: (cls(torch.nn.Linear(4, 2), 2), "x")
            for name, cls in (("OFT", it.adapters.OFT), ("HRA", it.adapters.HRA))
        },
        **{
            f"OperatorModule {i}": (it.nn.OperatorModule(op), "x")
            for i, op in enumerate((it.Cayley.random(4), it.Cayley.random(4).H @ it.Dense(torch.eye(4))))
        },
    }
    gated = {k: v for k, v in shared.items() if k != "nonlinearity"}
    return {
        **{cls.__name__: (cls, layer_of_cell(cls, shared)) for cls in CELL_LAYERS.values()},
        "ORNN": (it.nn.ORNN, {**shared, "reflections": 2, "sign": "hard", "slope": 0.1}),
        "UnitaryORNN": (it.nn.UnitaryORNN, {**shared, "reflections": 2}),
        "ScoRNN": (it.nn.ScoRNN, {**shared, "negative_ones": 2}),
        "ScuRNN": (it.nn.ScuRNN, shared),
        "URNN": (it.nn.URNN, shared),
        "FullCapacityURNN": (it.nn.FullCapacityURNN, shared),
        "ExpRNN": (it.nn.ExpRNN, {**shared, "complex": True}),
        "EURNN": (it.nn.EURNN, {**shared, "capacity": 2, "layout": "brick", "complex": True}),
        "KRU": (it.nn.KRU, {**shared, "factor_sizes": (2, 2), "complex": True}),
        "SoftORNN": (it.nn.SoftORNN, {**shared, "margin": 0.1}),
        "DeltaProduct": (it.nn.DeltaProduct, {**gated, "heads": 2, "householders": 2, "gate": True, "negative": True}),
        **{f"a call of {name}": (module, {argument: torch.ones(5, 4)}) for name, (module, argument) in modules.items()},
        "a call of a layer": (layer, {"input": torch.ones(3, 2, 2), "hx": None, "starts": marks, "start_state": None}),
        "a call with a mask": (layer, {"input": torch.ones(3, 2, 2), "mask": marks}),
        "recurrent_matrix": (layer.recurrent_matrix, {"layer": 0, "reverse": False}),
    }


CALLS = {f"numpy, {name}": call for name, call in (calls(NumpyFace()) | of_cells(iso, np.asarray)).items()}
CALLS |= {"numpy, recurrence_vjp": gradients_of_the_recurrence()}
CALLS |= {f"torch, {name}": call for name, call in (calls(TorchFace()) | of_cells(it, torch.as_tensor)).items()}
CALLS |= {f"torch, {name}": call for name, call in torch_alone().items()}
ARGUMENTS = [(name, argument) for name, (_, given) in CALLS.items() for argument in given]
COUNTS = [(name, argument) for name, argument in ARGUMENTS if type(CALLS[name][1][argument]) is int]
FLAGS = [(name, argument) for name, argument in ARGUMENTS if type(CALLS[name][1][argument]) is bool]


# what is optional elsewhere
REQUIRED = {("sign", "Householder.from_trapezoid"), ("phases", "tasks.waveform"), ("lengths", "metrics.masked_mse")}
REQUIRED |= {("bias", "modReLU")}


def served(name, argument):
    if (argument, name.split(", ")[-1]) in REQUIRED:
        return set()
    if argument == "scale" and "delta" in name:
        return {"nothing", "fraction"}
    if argument == "nonlinearity":
        return {"nothing"} if name in ("torch, ScoRNN", "torch, ExpRNN") else set()
    # modReLU's bias is an array, a layer's a flag
    layer = name.partition(", ")[2] in it.nn.__all__
    return set() if argument in ("bias", "sign") and layer else SERVED.get(argument, set())


@pytest.mark.parametrize("name,argument", ARGUMENTS)
def test_an_odd_value_is_named(name, argument, threads):  # noqa: ARG001  set_num_threads is one of the calls
    call, given = CALLS[name]
    call(**given)
    for kind, value in ODD.items():
        if argument == "factor_sizes" and isinstance(value, torch.Tensor):
            continue  # a sequence of integers, which torch does not iterate over
        if kind in served(name, argument):
            call(**{**given, argument: value})
            continue
        errors = (TypeError, ValueError, IndexError) if argument == "layer" else (TypeError, ValueError)
        with pytest.raises(errors) as info:
            call(**{**given, argument: value})
        message = str(info.value)
        assert re.search(rf"(?<!\w){argument}(?!\w)", message), f"{kind}: {message}"


@pytest.mark.parametrize("name,argument", FLAGS)
def test_flags_are_bools(name, argument):
    """NumPy's are accepted like Python's; a number is not. torch.nn.RNN accepts only Python's for its own two."""
    call, given = CALLS[name]
    with pytest.raises(TypeError, match=argument):
        call(**{**given, argument: int(given[argument])})
    for value in (True, False) if argument in ("bias", "batch_first") else (True, False, np.True_, np.False_):
        if not (argument == "reverse" and "matrix" in name):  # of a layer in one direction
            call(**{**given, argument: value})


#: Arguments that are no arrays where they are not given.
NO_ARRAYS = {"rng", "dtype", "tol", "m", "negative_ones", "backend", "slope", "scale", "check_states"}
#: Those that the torch face makes tensors of.
OF_TORCH = {"lengths", "starts", "cu_seqlens"}
MAY_BE_MASKED = [(n, a) for n, a in ARGUMENTS if a in OF_TORCH or (n.startswith("numpy") and a not in NO_ARRAYS)]
#: Instead of the mask: what is wrong with the list, or with the argument beside others.
OTHERWISE = "not list|not tuple|2 arrays|not be given"


def masked(value):
    """Masked arrays like a valid value: alone, and inside of lists and tuples."""
    a = np.ma.masked_array(np.ones(4) if value is None else value, True)
    yield a
    yield from ([a], (a, a), [[a]], [np.ma.masked], list(a)) if a.ndim else ([a],)


@pytest.mark.parametrize("name,argument", MAY_BE_MASKED)
def test_masked_arrays_are_refused(name, argument):
    """NumPy reads under a mask, also within lists."""
    call, given = CALLS[name]
    told = rf"(?<!\w){argument}(?!\w).*([Mm]ask|{OTHERWISE})"
    if given[argument] is None or isinstance(given[argument], (np.ndarray, list)):
        for value in masked(given[argument]):
            with pytest.raises((TypeError, ValueError), match=told):
                call(**{**given, argument: value})


def test_masked_arguments_of_operators(case, seed):
    n = case.size(4)
    given = case.draw(seed, n)
    for name, a in given.items():
        for value in masked(a):
            with pytest.raises(TypeError, match="without a mask"):
                case.build(iso, {**given, name: value}, n)


test_masked_arguments_of_operators.select = lambda case: case.dtype in (np.float64, np.complex128)


def test_masked_keys_are_refused():
    stack = iso.Dense(np.ones((3, 2, 2)))
    for value in masked(np.arange(3)):
        with pytest.raises(TypeError, match="index.*mask"):
            stack[value]


def kept(result):
    """Numbers that an object keeps, by name."""
    return {k: v for k, v in getattr(result, "__dict__", {}).items() if isinstance(v, (int, float, np.generic))}


@pytest.mark.parametrize("name,argument", COUNTS)
def test_counts_are_integers_of_any_type(name, argument, threads):  # noqa: ARG001
    """And kept as Python's own, whose products do not overflow; neither bools nor fractions are counts."""
    call, given = CALLS[name]
    expected = kept(call(**given))
    for kind in (np.uint8, np.int64, np.array):
        found = kept(call(**{**given, argument: kind(given[argument])}))
        assert found == expected and [*map(type, found.values())] == [*map(type, expected.values())]
    for value in (True, np.True_, float(given[argument]), torch.tensor(True)):
        with pytest.raises(TypeError, match=argument):
            call(**{**given, argument: value})


FACES = pytest.mark.parametrize("api", [iso, it], ids=["numpy", "torch"])


def given(api, a):
    return torch.from_numpy(a) if api is it else a


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("an", "Exponential ORNN RNN LSTM EURNN HRA OFT ExpRNN Adjoint Upper SGD attribute"),
        ("a", "Householder GRU RUM KRU LEM URNN UnitaryORNN ScoRNN GORU CoRNN FullCapacityURNN forward README.md"),
    ],
)
def test_articles(word, names):
    assert [article(name) for name in names.split()] == [f"{word} {name}" for name in names.split()]


def guessed(tree):
    """Formatted strings with an article before what is filled in."""
    for node in ast.walk(tree):
        for text, value in zip(node.values, node.values[1:], strict=False) if isinstance(node, ast.JoinedStr) else ():
            filled = isinstance(text, ast.Constant) and isinstance(value, ast.FormattedValue)
            if filled and re.search(r"\b[Aa]n? $", text.value):
                yield node.lineno


def test_no_message_guesses_the_article():
    assert sorted(guessed(ast.parse('f"is a {name}", f"a {2}-way"\nf"is an {x}"'))) == [1, 1, 2]
    wrong = {path: list(guessed(ast.parse(path.read_text()))) for path in (ROOT / "python").rglob("*.py")}
    assert not {path: lines for path, lines in wrong.items() if lines}


SHAPES = [
    ((5,), (7,)),
    ((5,), (5, 7)),
    ((5,), (2, 7)),
    ((2, 3), (4,)),
    ((2, 3), (3, 4)),
    ((2, 1), (3, 4)),
    ((3,), (2, 5, 4)),
]


@FACES
@pytest.mark.parametrize(("batch", "lead"), SHAPES)
def test_the_stack_that_a_message_names_broadcasts(api, batch, lead, seed):
    op = api.Dense(given(api, seed.standard_normal((*batch, 4, 4))))
    rows = given(api, seed.standard_normal((*lead, 4)))
    columns = given(api, seed.standard_normal((*lead, 4, 2)))
    calls = {"op(x)": (lambda: op(rows), rows, -1), "op @ x": (lambda: op @ columns, columns, -2)}
    calls["x @ op"] = (lambda: columns.swapaxes(-1, -2) @ op, columns.swapaxes(-1, -2), -2)
    for call, x, own in calls.values():
        try:
            np.broadcast_shapes(batch, lead)
        except ValueError:
            with pytest.raises(ValueError, match="must broadcast against the operator's batch_shape") as error:
                call()
            hint, found = re.fullmatch(r".*; (.*) has the leading axes (\(.*\))", str(error.value)).groups()
            assert tuple(eval(hint, {"op": op, "x": x}).shape[:own]) == ast.literal_eval(found)
        else:
            call()


@FACES
@pytest.mark.parametrize("stem", OBJECTS)
def test_random_refuses_what_it_does_not_take(api, stem):
    kind = getattr(api, OBJECTS[stem].cls)
    places = [p for p in inspect.signature(kind.random).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    taken = " and ".join(p.name for p in places)
    for more in (1, 3):
        count = len(places) + more
        message = rf"^{kind.__name__}\.random takes {taken} by position, not {count} arguments; batch_shape="
        with pytest.raises(TypeError, match=message):
            kind.random(*[3] * count)
    text = rf"^{kind.__name__}\.random\(\) got an unexpected keyword argument"
    with pytest.raises(TypeError, match=text + " 'dtpe'. Did you mean 'dtype'\\?$"):
        kind.random(3, dtpe=None)
    with pytest.raises(TypeError, match=text + " 'zzz'$"):
        kind.random(3, zzz=1)


@FACES
@pytest.mark.parametrize("n", [2, 3])
def test_a_reflection_has_a_nearest_rotation(api, n):
    w = given(api, np.diag([-1.0, *[1.0] * (n - 1)]))
    for each in (w, given(api, np.diag([-1.0, *[1.0] * 4]))):
        with pytest.raises(ValueError, match="determinant 1.*, and nearest=True takes the nearest rotation$"):
            api.Exponential.from_matrix(each)
        assert np.linalg.det(np.asarray(api.Exponential.from_matrix(each, nearest=True))) > 0


@FACES
@pytest.mark.parametrize("kind", ["Cayley", "Exponential"])
def test_whole_skew_matrices_are_told_of_from_skew(api, kind):
    made = getattr(api, kind)
    for n in (2, 4, 5):
        with pytest.raises(ValueError, match=rf"^upper must have .*, not {n}; from_skew takes whole skew matrices$"):
            made(given(api, np.zeros((n, n))))
    with pytest.raises(ValueError, match=r"10, \.\.\.\), not 5$"):
        made(given(api, np.zeros((3, 5))))
