"""Messages say what would fit: the article of a name, the stack that broadcasts, the nearest keyword or constructor."""

import ast
import inspect
import re

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from isometry._rules.check import article
from registry import OBJECTS
from subprocesses import ROOT

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
