"""benches/gpu_report.py: what it says is right, and what is not."""

import gpu_report
from rows import gpu_calls


def lines(section):
    said = list(section(True))
    return [line for line in said if isinstance(line, str)], all(line for line in said if isinstance(line, bool))


def test_tiles_of_every_shape():
    text, right = lines(gpu_report.tiles)
    assert right and sum(line.startswith(("| 64 x 64", "| 256 x")) for line in text) == 2


def test_a_call_beyond_its_budget_is_said(monkeypatch):
    call = gpu_calls.CALLS[4]
    for most, right in ((call.dispatches, True), (1, False)):
        monkeypatch.setattr(gpu_calls, "CALLS", (call._replace(dispatches=most),))
        text, found = lines(gpu_report.budgets)
        assert found == right and ("dispatches 2 > 1" in text[-1]) != right


def test_a_wrong_value_is_said(monkeypatch):
    """The tolerance of every row is none."""
    rows = gpu_report.gpu.rows

    def spoiled(quick):
        row = next(rows(quick))
        yield type(row)(**(vars(row) | {"tolerance": (1e-12, 1e-12)}))

    monkeypatch.setattr(gpu_report.gpu, "rows", spoiled)
    text, right = lines(gpu_report.arrays)
    assert not right and any("is off by" in line for line in text)
