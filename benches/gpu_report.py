"""What there is to know of a GPU, in some ten minutes: whether its values are right, what calls ask of it, their times.

    python benches/gpu_report.py [--short] [--out FILE]

A report in Markdown, a section for each question:

1. correctness: the laws of all objects with backend="gpu" (--short: a few)
2. the budgets of benches/measurements.md, counted
3. arrays that stay on the GPU, arrays that are copied, the CPU, and torch, on CUDA where there is a device
4. the tiles of products: milliseconds for each shape
5. rates: a step of a recurrence, a large product, a wait, copies
6. layers, the delta rule and parametrised weights on CUDA beside torch's own, where there is a device

Exit status: 1 if a law fails, a value is wrong or a budget is exceeded, or there is no adapter.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import isometry as iso
from harness.row import QUICK_ROUNDS, worst
from harness.timing import alternate
from isometry import _core
from isometry.cli.errors import FAILURE, Failure
from rows import gpu, gpu_calls, gpu_torch

ROOT = Path(__file__).resolve().parents[1]
# pytest-benchmark, where it is installed, warns beside pytest-xdist, and warnings are errors
LAWS = ["-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "tests/laws", "--backend", "gpu"]
SHORT = ["-k", "householder and float32 and test_dense", "-n", "0"]
TILES = (16, 32, 64)
SIZES = ((64, 64, 64), (256, 256, 256), (1024, 256, 1024), (1024, 1024, 1024))


def main(arguments: Sequence[str]) -> int:
    """Print the report; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="small sizes and a few laws, for a software adapter")
    parser.add_argument("--out", metavar="FILE", help="also write the report to FILE")
    options = parser.parse_args(arguments)
    lines, right = [], True
    start = time.perf_counter()
    try:
        for section in (head, laws, budgets, arrays, tiles, rates, on_cuda):
            for line in section(options.short):
                if isinstance(line, bool):
                    right &= line
                else:
                    print(line, flush=True)
                    lines.append(line)
    except Failure as error:
        print(f"gpu-report: {error}", file=sys.stderr)
        return FAILURE
    print(f"\n{time.perf_counter() - start:.0f} seconds; {'all values are right' if right else 'SOMETHING IS WRONG'}")
    if options.out:
        Path(options.out).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if right else FAILURE


#: Lines, and whether what they say is right.
Section = Iterator[str | bool]


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"


def head(_short: bool) -> Section:
    """The adapter, which is opened."""
    try:
        iso.gpu.synchronize()
    except (NotImplementedError, RuntimeError) as error:
        raise Failure(str(error)) from error
    (used,) = (adapter for adapter in iso.gpu.adapters() if adapter.used)
    yield f"# {used.name}"
    yield f"\n{used.kind}, {used.backend}, {used.driver}; isometry {iso.__version__}, torch {torch.__version__}, "
    yield torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"


def laws(short: bool) -> Section:
    """Every law on every object, by the tests."""
    yield "\n## Laws\n"
    command = [sys.executable, "-m", "pytest", *LAWS, *(SHORT if short else ("-n", "2"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    yield done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr.strip()
    yield from (line for line in done.stdout.splitlines() if line.startswith("FAILED"))
    yield done.returncode == 0


def budgets(_short: bool) -> Section:
    """Counts of calls."""
    yield "\n## Calls\n"
    rows, right = [], True
    for call in gpu_calls.CALLS:
        found = call.asked()
        right &= not call.exceeded(found)
        rows.append((call.name, *found.values(), "; ".join(call.exceeded(found)) or "yes"))
    yield from table(("call", *iso.gpu.statistics(), "within its budget"), rows)
    yield right


def arrays(short: bool) -> Section:
    """The rows of the bench, in milliseconds."""
    yield "\n## Milliseconds, forward and backward\n"
    rows: list[tuple[str, ...]] = []
    sides: list[str] = []
    for row in gpu.rows(short):
        error, where = worst(row.ours.results(), row.reference(), row.tolerance)
        if error > 1:
            yield f"{row.name}: the {where} is off by {error:.3g} tolerances"
            yield False
            continue
        times = medians({side.name: side.run for side in (row.ours, *row.peers)}, short)
        sides = sides or ["arrays that stay", "arrays that are copied", "the CPU", f"torch, {gpu.DEVICE}"]
        rows.append((row.name.removeprefix("gpu "), *times.values()))
    yield from table(("", *sides), rows)


def medians(functions: dict[str, Callable[[], object]], short: bool, unit: float = 1e3) -> dict[str, str]:
    """Milliseconds of alternating runs, or other units of which a second has so many."""
    samples = alternate(functions, 0.2 if short else 3.0, min_rounds=QUICK_ROUNDS)
    return {name: f"{unit * statistics.median(times):.3f}" for name, times in samples.items()}


def tiles(short: bool) -> Section:
    """Products with every shape of tiles, and with the one that is chosen."""
    yield "\n## Tiles of products, milliseconds\n"
    rows, right = [], True
    for m, n, k in SIZES[:2] if short else SIZES:
        a, b = (gpu_calls.draw(*shape, seed=i) for i, shape in enumerate(((n, k), (m, k))))
        op, x = iso.Dense(iso.gpu.Array(a)), iso.gpu.Array(b)

        def product(side: int | None, op: Any = op, x: Any = x) -> Any:
            _core.gpu_tiles(side)
            try:
                out = op.apply(x, backend="gpu")
                iso.gpu.synchronize()
            finally:
                _core.gpu_tiles(None)
            return out

        for side in TILES:
            off = abs(product(side).download() - b @ a.T.astype(np.float64)).max()
            right &= bool(off < 1e-5 * k)
        functions = {"chosen": None} | {str(side): side for side in TILES}
        found = medians({name: lambda side=side: product(side) for name, side in functions.items()}, short)
        rows.append((f"{m} x {n} x {k}", *found.values()))
    yield from table(("", "chosen", *(f"{side} x {side}" for side in TILES)), rows)
    yield right


def rates(short: bool) -> Section:
    """Microseconds of a step by the size of the state, and what a call cannot be faster than."""
    yield "\n## Rates\n"
    batch, steps, rows, right = 64, 10 if short else 200, [], True
    for n in (8, 16) if short else (32, 64, 128, 256, 512, 1024):
        shapes = (n, n), (steps, batch, 8), (n, 8), (steps, batch, n)
        w, *others = (gpu_calls.draw(*shape, seed=i) / shape[-1] ** 0.5 for i, shape in enumerate(shapes))
        x, v, ct = map(iso.gpu.Array, others)
        keywords: Any = {"activation": "tanh", "backend": "gpu"}
        forward = partial(iso.recurrence, iso.Dense(iso.gpu.Array(w)), x, v, **keywords)
        states = forward()
        backward = partial(iso.recurrence_vjp, *forward.args, states, ct, **keywords)
        found = medians({"forward": waited(forward), "backward": waited(backward)}, short, 1e6 / steps)
        expected = iso.recurrence(iso.Dense(w), *others[:2], activation="tanh", backend="cpu")
        right &= bool(abs(states.download() - expected).max() < 1e-4)
        rows.append((n, *found.values()))
    yield from table(("n, of 64 sequences", "microseconds of a step forward", "backward"), rows)
    yield right
    side, count = (64, 1 << 12) if short else (8192, 1 << 26)
    square, host = iso.gpu.Array(gpu_calls.draw(side, side, seed=0)), np.ones(count, np.float32)
    there = iso.gpu.Array(host)
    functions = {
        "a wait": iso.gpu.synchronize,
        f"a product of side {side}": waited(partial(iso.Dense(square).apply, square, backend="gpu")),
        f"{host.nbytes >> 10} KiB to the GPU": waited(partial(iso.gpu.Array, host)),
        "and back": there.download,
    }
    yield "\nIn milliseconds: " + ", ".join(f"{name} {ms}" for name, ms in medians(functions, short).items())
    yield bool((there.download() == host).all())


def waited(function: Callable[[], object]) -> Callable[[], None]:
    """The call, and a wait for it."""

    def run() -> None:
        function()
        iso.gpu.synchronize()

    return run


def on_cuda(short: bool) -> Section:
    """The calls of torch tensors on a device of torch."""
    yield "\n## Tensors on CUDA, milliseconds forward and backward\n"
    if not torch.cuda.is_available():
        yield "There is no CUDA device."
        return
    with gpu.full_precision():
        for title, functions in gpu_torch.pairs("cuda", short):
            found = medians(functions, short)
            times = ", ".join(f"{name} {ms}" for name, ms in found.items())
            apart = ", ".join(f"{side} {by:.1e}" for side, by in gpu_torch.apart(functions).items())
            yield f"- {title}: {times}" + (f"; gradients differ from those of the CPU by: {apart}" if apart else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
