"""benches/reliability.py: the committed page is that of the figures, and what goes wrong is counted."""

import json
import os
from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import reliability
from checks import CHECKS, check, fuzz, killed, load, memory, mutated, mutation, threads, valgrind
from cli_runs import FILES
from fuzz import packages, series


def test_the_page_is_that_of_the_figures():
    entries = json.loads(reliability.FIGURES.read_text())
    assert entries.keys() == CHECKS.keys()
    assert reliability.page(entries) == reliability.PAGE.read_text(), "run `benches/reliability.py --page`"


def test_a_check_is_repeated_alone(tmp_path):
    """The fuzz goes on, the figures of other checks stay, failures are on the page and in the exit status."""
    file, page = tmp_path / "figures.json", tmp_path / "page.md"
    other = {"figures": {"passed": {"portable": 2}, "filter": ""}, "failures": ["Invalid read"], "revisions": ["1"]}
    machine = dict.fromkeys(reliability.SHOWN, "") | {"cores": 1}
    other |= {
        "machine": machine,
        "seconds": 9.0,
        "date": "2026-01-01",
        "command": "python benches/reliability.py valgrind",
    }
    begun = other | {"figures": {"calls": {"numpy": 1000}, "reached": 1000, "wrong": []}, "failures": []}
    file.write_text(json.dumps({"valgrind": other, "fuzz": begun}))
    words = ["fuzz", "--calls", "1020", "--json", str(file), "--out", str(page)]
    assert reliability.main(words) == 0
    entries = json.loads(file.read_text())
    assert entries["valgrind"] == other and entries["fuzz"]["failures"] == []
    assert entries["fuzz"]["command"] == "python benches/reliability.py fuzz --calls 1020"
    assert entries["fuzz"]["figures"]["reached"] == 1020 and sum(entries["fuzz"]["figures"]["calls"].values()) == 1020
    assert entries["fuzz"]["seconds"] > 9 and entries["fuzz"]["revisions"] == ["1", reliability.revision()]
    assert "1,020 calls" in page.read_text() and "- Invalid read" in page.read_text()


def test_a_run_that_is_interrupted_loses_nothing(tmp_path, monkeypatch):
    """The figures of the check that ended are kept, and those of the parts of the fuzz."""

    def part(first, stop, _):
        if first == 2 * fuzz.PART:
            raise KeyboardInterrupt
        return {"numpy": stop - first}, {}

    monkeypatch.setattr(fuzz, "_part", part)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(valgrind, "run", lambda *_: check.Ended("test result: ok. 3 passed", "", ""))
    with pytest.raises(KeyboardInterrupt):
        file, page = tmp_path / "figures.json", tmp_path / "page.md"
        reliability.main(["valgrind", "fuzz", "--json", str(file), "--out", str(page)])
    entries = json.loads(file.read_text())
    assert entries["valgrind"]["figures"]["passed"] == {"portable": 3}
    assert entries["fuzz"]["figures"] == {"calls": {"numpy": 2 * fuzz.PART}, "reached": 2 * fuzz.PART, "wrong": []}
    assert page.read_text() == reliability.page(entries)


def test_a_crash_and_a_hang_are_figures():
    crash = check.run(check.python("-c", "import os; print('{\"a\": 1}', flush=True); os.abort()"), 60)
    assert crash.lines == [{"a": 1}] and crash.failure.startswith("killed by SIGABRT")
    hang = "import os, time; os.fork(); print(os.getpid(), flush=True); time.sleep(60)"
    ended = check.run(check.python("-c", hang), 1.0)
    assert ended.failure == "no end within 1 s"
    assert not [pid for pid in ended.out.split() if os.path.exists(f"/proc/{pid}/fd/0")]
    assert check.run(check.python("-c", "1 / 0"), 60).failure == "status 1: ZeroDivisionError: division by zero"


def test_the_tests_that_fail_are_named(tmp_path):
    (tmp_path / "test_two.py").write_text("def test_a(): pass\ndef test_b(): assert False\n")
    passed, failed = check.tests(tmp_path, seconds=60)
    assert passed == 1 and len(failed) == 1 and "test_b" in failed[0]
    assert check.tests(tmp_path / "nothing", seconds=60)[1]


def test_a_call_of_the_fuzz_is_repeated_by_its_number():
    assert series.drawn(7) == series.drawn(7) and len({series.drawn(k) for k in range(50)}) == 50
    faces, wrong = {name: packages.FACES[name](SimpleNamespace(get_num_threads=int)) for name in packages.FACES}, []
    assert [k for k, _ in series.examined(range(9), faces, lambda *what: wrong.append(what))] == list(range(9))
    assert [k for k, _ in wrong] == list(range(9))


def test_the_fuzz_goes_on_behind_a_crash(monkeypatch):
    """The call is listed, and examined again the next time."""

    good = lambda *_: check.Ended('{"calls": {"numpy": 1}}\n', "", "")

    def crash(command, _):
        if command[-4] == 5:  # behind the crash
            return good()
        command[-1].write_text("4")
        return check.Ended("", "", "killed by SIGSEGV")

    monkeypatch.setattr(fuzz, "run", crash)
    (outcome,) = fuzz.examine(Namespace(calls=6, minutes=None), {})
    assert outcome.figures == {"calls": {"in processes that crashed": 5, "numpy": 1}, "reached": 6, "wrong": [4]}
    assert outcome.failures == ["call 4: killed by SIGSEGV"]
    monkeypatch.setattr(fuzz, "run", good)
    (again,) = fuzz.examine(Namespace(calls=6, minutes=None), outcome.figures)
    assert again.failures == [] and again.figures["wrong"] == []


@pytest.mark.parametrize(("growth", "found"), [(0, False), (5, False), (400, True)])
def test_memory_that_grows(growth, found):
    """MiB an hour, in a training of an hour with 500 MiB after a jump at its start."""
    samples = [(t, 450 + min(t, 50) + growth * t / 3600) for t in range(0, 3601, 6)]
    outcome = memory.judged(samples)
    assert outcome.figures["slope"] == growth and bool(outcome.failures) == found


@pytest.mark.parametrize("name", [None, *sorted(FILES)])
def test_a_resumed_training_that_differs(tmp_path, name):
    """In a setting, a row, a tensor, a score, or by a missing picture."""
    for folder in (whole := tmp_path / "whole", cut := tmp_path / "cut"):
        folder.mkdir()
        for file in FILES:
            (folder / file).write_text("loss,seconds\n1,2\n")
        save_file({"w": torch.ones(2)}, folder / "checkpoint.safetensors")
    match name:
        case "checkpoint.safetensors":
            save_file({"w": torch.tensor([1, 1 + 2**-23])}, cut / name)
        case "curves.png":
            (cut / name).unlink()
        case "metrics.csv" | "config.toml" | "scores.toml":
            (cut / name).write_text("loss,seconds\n2,2\n")
    assert len(killed.different(cut, whole)) == (name is not None)


def test_a_call_under_load_that_differs():
    """In a bit, or by an exception."""
    once, twice = iter([1.0, 1.0 + 2**-52]), iter([1.0])
    work = {"equal": lambda: [np.ones(2)], "a bit": lambda: [np.array(next(once))], "raises": lambda: [next(twice)]}
    calls = load.Calls(work)
    for name in work:
        calls.call(name)
    assert calls.made == 3 and set(+calls.wrong) == {"a bit", "raises: StopIteration()"}


def test_a_damaged_run_that_raises_something_else(tmp_path, monkeypatch):
    (tmp_path / "whole").mkdir()
    for file in FILES:
        (tmp_path / "whole" / file).write_text("loss = 1\n")

    def call(_):
        raise KeyError("loss")

    monkeypatch.setattr(mutated, "load_run", call)
    monkeypatch.setattr(mutated.damage, "trained", lambda folder: folder)
    found = mutated.explore("load_run", 3, np.random.default_rng(0), tmp_path)
    assert found["files"] == 3 and sum(found["failures"].values()) == 3 and "KeyError" in str(found["failures"])


def test_mutated_files():
    ended = check.run(check.script("mutated", "idx", 200, 0), 60)
    assert ended.failure == "" and ended.lines == [{"files": 200, "failures": {}}]


def test_errors_of_valgrind(monkeypatch):
    out = "test result: ok. 3 passed; 0 failed\ntest result: ok. 2 passed; 0 failed\n"
    errors = ["==1== Invalid read of size 8", "==1==    at 0x1: f"]
    monkeypatch.setattr(valgrind, "run", lambda *_: check.Ended(out, "\n".join(errors), "status 2: make"))
    outcome = valgrind.watch(Namespace(filter="delta,linalg"), {})
    assert outcome.figures == {"passed": {"portable": 3, "AVX2": 2}, "filter": "delta linalg"}
    assert outcome.failures == errors[:1]


@pytest.mark.long
def test_every_longer_check_in_small(monkeypatch):
    options = Namespace(moments=3, seed=0, minutes=0.1, seconds=2, files=100)
    killing = killed.train(options, {})
    assert killing.failures == [] and sum(killing.figures["killed"].values()) == 3 and killing.figures["equal"] >= 1
    assert memory.train(options, {}).figures["updates"] > 1
    monkeypatch.setattr(threads, "TESTS", ("tests/test_seam.py",))
    for found in (threads.load(options, {}), mutation.mutate(options, {})):
        assert found.failures == []
