"""Speed of the package: every row builds both sides in one process, checks values and gradients against float64, then
takes alternating runs and prints the ratio of the medians.

    python benches/bench.py [GROUP] [--quick] [--threads N] [--only TEXT] [--alone] [--cores] [--json FILE]

Both sides run forward and backward in float32 with torch's autograd, from the same gradient of y. The peer of a row is
the fastest fair variant in torch. "share" is the rate of our side on the row's own flops relative to that of torch.mm
(n = 512, same process, same time), "limit" to that of a loop of fused multiply-adds, which nothing exceeds. A row with
wrong values is reported and not timed.

Most groups are objects and layers; besides these there are
compiled   operators and layers inside `torch.compile`, against the graph of their formula, or the eager layer
training   a whole training step of a scoRNN on the copying problem
memory     what a layer holds between forward and backward, and its peak
overhead   a small call beside an empty autograd.Function
numpy      the NumPy face beside NumPy and SciPy; needs no torch
qwen       a training step of a Qwen3.5 of the package transformers, with its functions and with ours; where it is named
rl         agents of sb3-contrib and TorchRL, with their functions and with ours; where it is named
engines    LSTM and GRU beside ONNX Runtime, OpenVINO, tract and JAX, those that are installed; where it is named
published  recurrent layers as large as those of published models, before and after `from_torch`; where it is named
one        one head, one factorisation, one matrix of reflections: without peers; where it is named
gpu        backend="gpu": arrays that stay on the GPU, the same with copies, the CPU, and torch; runs where it is named

With --cores every row runs on one thread and on two, in turns and without peers: t1, t2, the serial share 2 - t1 / t2,
and how many times as fast Amdahl's law then makes 16 cores; without a group, those of objects and layers, and "one".

Exit status: 1 if a value of ours is wrong or a group cannot run, 2 for a wrong argument, 130 after ctrl-C.
"""

import argparse
import sys
from collections.abc import Sequence

import isometry
from harness import report
from harness.groups import APART, CORES, NAMED, NAMES
from harness.row import Settings
from isometry._rules import check
from isometry._threads import MOST
from isometry.cli.errors import FAILURE, INTERRUPTED, USAGE, Failure, UsageError, missing


def main(arguments: Sequence[str]) -> int:
    """Run the bench; returns the exit status."""
    try:
        return run(parsed(arguments))
    except (UsageError, Failure) as error:
        print(f"bench: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else FAILURE
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "group", nargs="?", metavar="GROUP", choices=NAMES, help=f"one of {', '.join(NAMES)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a rough picture in a few minutes")
    parser.add_argument("--threads", type=budget, metavar="N", help="threads of both sides (default: the cores)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the rows that have TEXT in their name")
    parser.add_argument("--alone", action="store_true", help="only our side, without peers and ratios")
    parser.add_argument("--cores", action="store_true", help="on one thread and on two: serial shares, no peers")
    parser.add_argument("--json", metavar="FILE", help="write every figure to FILE")
    return parser.parse_args(arguments)


def budget(text: str) -> int:
    """A number of threads."""
    return check.within("threads", int(text), 1, MOST)


def run(options: argparse.Namespace) -> int:
    """Run the groups that the options name; exit status 1 if some value is wrong."""
    every = CORES if options.cores else [name for name in NAMES if name not in NAMED]
    groups = [options.group] if options.group else list(every)
    if options.cores and options.group in APART:
        raise UsageError(f"argument --cores: {options.group} measures itself")
    threads = options.threads or isometry.get_num_threads()
    settings = Settings(threads, options.quick, options.alone, options.only, options.cores)
    if set(groups) <= set(APART):
        return report.run(groups, settings, options.json)
    if lack := missing(["torch"], "the bench"):
        raise Failure(lack)
    from isometry.cli.session import prepared

    with prepared(settings.threads):
        return report.run(groups, settings, options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
