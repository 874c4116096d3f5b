"""`benches/bench.py numpy`: every side computes the textbook formulas, and neither torch nor SciPy is needed."""

import json
import sys

import numpy as np
import pytest

import isometry
import reference
from harness import child
from harness.row import Settings, worst
from harness.sizes import Sequences
from isometry.cli.errors import INTERRUPTED, Failure
from rows.numpy import formulas, operators, process, recurrence, rotations, sides
from subprocesses import ROOT, run
from tolerance import TIGHT, close

SCORNN, FEW, MANY = (Sequences("tiny", 6, m, 3, 9, 2) for m in (0, 2, 6))
ROWS_OF = {
    "matrix": lambda: operators.householder(7, 3),
    "apply": lambda: operators.applied("apply", 7, 3, 4),
    "cayley": lambda: operators.cayley("cayley", (5, 5), signed=True),
    "batch": lambda: operators.cayley("batch", (3, 4, 4)),
    "scornn": lambda: recurrence.make_rows(SCORNN),
    "few": lambda: recurrence.make_rows(FEW),
    "many": lambda: recurrence.make_rows(MANY),
    "modrelu": lambda: operators.modrelu(5, 4),
}


@pytest.mark.parametrize("name", ROWS_OF)
def test_every_side_of_a_row_computes_the_same(name):
    """A value and a VJP; ours is judged like the peers, and each has results to compare."""
    value, back = ROWS_OF[name]()
    assert back.name == f"{value.name} vjp"
    for row in (value, back):
        found = row.reference()
        assert len(row.peers) >= 1 and (set(found) == {"value"}) == (row is value)
        for side in (row.ours, *row.peers):
            assert set(side.results()) == set(found)
            assert worst(side.results(), found, row.tolerance)[0] <= 1, side.name


@pytest.mark.parametrize("library", sides.libraries(), ids=lambda library: library.name)
def test_the_peers_of_reflections_are_the_textbook(library):
    rng = np.random.default_rng(0)
    a = {"vectors": np.tril(rng.standard_normal((6, 4))), "x": rng.standard_normal((3, 6))}
    w = reference.householder(a["vectors"])
    for side in (operators.matrix_by(library), *operators.ORGQR):
        close(side.forward(a), w, TIGHT, side.name)
    for side in (operators.apply_by(library), *operators.ORMQR):
        close(side.forward(a), a["x"] @ w.T, TIGHT, side.name)
    ct = rng.standard_normal((6, 6))
    gradient = operators.matrix_by(library).back(a | {"ct": ct})["vectors"]
    close(gradient, reference.householder_vjp(ct, a["vectors"])["vectors"], TIGHT)
    ct = rng.standard_normal((3, 6))
    found = operators.apply_by(library).back(a | {"ct": ct})
    close(found["vectors"], reference.householder_vjp(ct.T @ a["x"], a["vectors"])["vectors"], TIGHT)
    close(found["x"], ct @ w, TIGHT)


def test_the_peers_of_the_cayley_transform_are_the_textbook():
    rng = np.random.default_rng(0)
    square, signs, ct = rng.standard_normal((5, 5)), sides.half_signs(5).astype(float), rng.standard_normal((5, 5))
    above, a = np.triu_indices(5, 1), {"square": square, "signs": signs, "ct": ct}
    for side in (operators.SOLVE, operators.CHECKED, *map(operators.inverse_by, sides.libraries())):
        close(side.forward(a), reference.cayley(square[above], signs=signs), TIGHT, side.name)
        expected = reference.cayley_vjp(ct, square[above], signs=signs)["upper"]
        close(side.back(a)["upper"][above], expected, TIGHT, side.name)


@pytest.mark.parametrize("work", [SCORNN, FEW, MANY], ids=["scornn", "few", "many"])
def test_the_loops_are_the_textbook(work):
    """Dense and factored, states and gradients."""
    a = {name: array.astype(float) for name, array in recurrence.draw(work, np.random.default_rng(0)).items()}
    if work.m == 0:
        above, options = np.triu_indices(work.n, 1), {"activation": "modrelu", "activation_bias": a["bias"]}
        w = reference.cayley(a["upper"], signs=a["signs"])
        pull = lambda w_bar: reference.cayley_vjp(w_bar, a["upper"], signs=a["signs"])["upper"]
    else:
        above, options = ..., {"activation": "leaky_relu", "bias": a["bias"]}
        w = reference.householder(a["vectors"])
        pull = lambda w_bar: reference.householder_vjp(w_bar, a["vectors"])["vectors"]
    a["states"] = reference.recurrence(w, a["x"], a["input_weight"], **options)
    expected = reference.recurrence_vjp(w, a["x"], a["input_weight"], a["ct"], **options)
    for route in (recurrence.dense, *([recurrence.factored] if work.m else [])):
        close(recurrence.loop(route, a), a["states"], TIGHT)
        found = recurrence.loop_vjp(route, a)
        close(found["transition"][above], pull(expected["w"]), TIGHT)
        close(found["x"], expected["x"], TIGHT)
        close(found["input_weight"], expected["input_weight"], TIGHT)
        close(found["bias"], expected["activation_bias" if work.m == 0 else "bias"], TIGHT)


def test_modrelu_is_the_textbook():
    rng = np.random.default_rng(0)
    z, ct, bias = rng.standard_normal((5, 4)), rng.standard_normal((5, 4)), np.full(4, operators.CUT)
    (value, back) = operators.modrelu(5, 4)
    close(formulas.modrelu(z, bias, np.empty_like(z)), reference.activate(z, "modrelu", bias), TIGHT)
    found = formulas.modrelu_vjp({"z": z, "ct": ct, "bias": bias})
    for gradient, expected in zip(found.values(), reference.activate_vjp(z, "modrelu", ct, bias), strict=True):
        close(gradient, expected, TIGHT)
    assert value.flops == back.flops == 0


@pytest.mark.parametrize("law", [isometry.Cayley, isometry.Exponential])
def test_rotations_of_space_are_the_textbook(law):
    """The closed forms of the reference, and both ways that are timed."""
    rows = [*rotations.through_matrices(law, 7), *rotations.turned(law, 7), *rotations.logarithms(7)]
    rng = np.random.default_rng(0)
    a = {"upper": rng.standard_normal((7, 3)), "x": rng.standard_normal((7, 3))}
    closed = formulas.turned_exponential if law is isometry.Exponential else formulas.turned_cayley
    textbook = reference.exponential if law is isometry.Exponential else reference.cayley
    for k in range(7):
        close(closed(a["upper"], a["x"])[k], textbook(a["upper"][k]) @ a["x"][k], TIGHT)
    for row in rows:
        for side in (row.ours, *row.peers):
            assert worst(side.results(), row.reference(), row.tolerance)[0] <= 1, side.name


HIDING = """
import sys
from importlib.machinery import PathFinder
class Others(PathFinder):
    @classmethod
    def find_spec(cls, name, *rest):
        return None if name.partition(".")[0] in ("torch", "scipy") else super().find_spec(name, *rest)
sys.meta_path[sys.meta_path.index(PathFinder)] = Others
"""


def test_it_runs_where_neither_torch_nor_scipy_is_installed(tmp_path):
    """From the command line, in the format of the other groups; these name what is missing."""
    (tmp_path / "sitecustomize.py").write_text(HIDING)
    paths = {"PYTHONPATH": f"{tmp_path}:{':'.join(p for p in sys.path if p)}"}
    command = [sys.executable, str(ROOT / "benches/bench.py")]
    options = ["--quick", "--threads", "1", "--only", "small householder", "--json", "out.json"]
    out = run([*command, "numpy", *options], cwd=tmp_path, **paths)
    assert "scipy is not installed" in out and "torch" not in out
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["machine"]["threads"] == 1 and "torch" not in found["machine"]
    assert [e["row"] for e in found["rows"]] == ["small householder 8/2/B1", "small householder 8/2/B1 vjp"]
    for entry in found["rows"]:
        assert not entry["wrong"] and entry["group"] == "numpy" and f"\n{entry['row']} " in out
        assert set(entry["seconds"]) >= {"isometry", "numpy compact WY", "numpy.matmul"}
        assert set(entry["samples"]) == set(entry["seconds"]) and entry["bars"][0]["mark"] in ("goal", "pass", "MISS")
    for others in (["small"], []):
        done = run([*command, *others], cwd=tmp_path, check=False, **paths)
        assert done.returncode == 1 and "needs torch" in done.stderr


def test_its_process_has_the_bench_s_budget_of_threads(monkeypatch):
    """BLAS reads the number when NumPy is loaded; a failure of that process is a failure here."""
    seen, statuses = [], [INTERRUPTED, -9]

    def started(command, env, check):
        seen.append((command, env, check))
        return child.subprocess.CompletedProcess(command, statuses[len(seen) - 1])

    monkeypatch.setattr(child.subprocess, "run", started)
    for error in (KeyboardInterrupt, Failure):
        with pytest.raises(error):
            process.entries(Settings(3, only="x"))
    for command, env, check in seen:
        assert Settings(*json.loads(command[-2])) == Settings(3, only="x") and not check
        assert {env[name] for name in process.BUDGETS} == {"3"}
