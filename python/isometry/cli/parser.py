"""Arguments of the commands. Defaults depend on task and model: see settings.py."""

from __future__ import annotations

import argparse
import math
from typing import NoReturn

from isometry._threads import MOST
from isometry.cli import bench, info, models, tasks, train
from isometry.cli.errors import UsageError


class Parser(argparse.ArgumentParser):
    """argparse's parser with errors as exceptions, so that a wrong argument prints one line."""

    def error(self, message: str) -> NoReturn:
        command = self.prog.partition(" ")[2]
        raise UsageError(f"{command + ': ' if command else ''}{message}; --help lists the options")


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected an integer >= 1, got {text}")
    return value


def thread_count(text: str) -> int:
    value = positive(text)
    if value > MOST:
        raise argparse.ArgumentTypeError(f"expected at most {MOST}, got {text}")
    return value


def natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected an integer >= 0, got {text}")
    return value


def rate(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"expected a finite number >= 0, got {text}")
    return value


# argparse shows the function's name in "invalid ... value"
positive.__name__ = natural.__name__ = thread_count.__name__ = "integer"
rate.__name__ = "number"


def make_parser() -> argparse.ArgumentParser:
    """The parser of `isometry`; each command sets `run`, the function that executes it."""
    from isometry import __version__

    parser = Parser(prog="isometry", description="Orthogonal and unitary recurrent networks: train, measure, inspect.")
    parser.add_argument("--version", action="version", version=f"isometry {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    _add_train(commands.add_parser("train", help="train a network on a task", **_described(train)))
    _add_bench(commands.add_parser("bench", help="speed against torch, side by side", **_described(bench)))
    command = commands.add_parser("info", help="versions, kernels, threads, adapters", **_described(info))
    command.set_defaults(run=info.run)
    return parser


def _described(module: object) -> dict:
    return {"description": module.__doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", nargs="?", metavar="TASK", choices=tasks.names(), help=", ".join(tasks.names()))
    parser.add_argument("--model", metavar="NAME", choices=models.names(), help=", ".join(models.names()))
    parser.add_argument("--hidden", type=positive, metavar="N", help="size of the state")
    parser.add_argument("--length", type=positive, metavar="N", help="the task's T: steps of adding, delay of copying")
    parser.add_argument("--iterations", type=positive, metavar="N", help="parameter updates in all")
    parser.add_argument("--batch", type=positive, metavar="N", help="sequences per update")
    parser.add_argument("--lr", type=rate, metavar="X", help="learning rate")
    parser.add_argument("--recurrent-lr", type=rate, metavar="X", help="learning rate of the recurrent parameters")
    parser.add_argument("--seed", type=natural, metavar="N", help="the same seed gives the same run (default 0)")
    parser.add_argument("--threads", type=thread_count, metavar="N", help="thread budget (default: the cores)")
    parser.add_argument("--backend", choices=("cpu", "gpu"), help="where the kernels run (default cpu)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="assignments",
        help="a keyword of the layer, the task or the training: reflections=16; may be repeated",
    )
    parser.add_argument("--data", metavar="PATH", help="data file of a task that reads one")
    parser.add_argument("--out", metavar="FOLDER", help="the run's folder (default runs/<task>-<model>-<seed>)")
    parser.add_argument("--resume", metavar="FOLDER", help="go on with the run in FOLDER")
    parser.add_argument("--config", metavar="FILE.toml", help="start from the settings of a config.toml")
    parser.set_defaults(run=train.run)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "group",
        nargs="?",
        metavar="GROUP",
        choices=bench.names(),
        help="one of " + ", ".join(bench.names()) + " (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a rough picture in a few minutes")
    parser.add_argument("--threads", type=thread_count, metavar="N", help="threads of both sides (default: the cores)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the rows that have TEXT in their name")
    parser.add_argument("--alone", action="store_true", help="only our side, without peers and ratios")
    parser.add_argument("--json", metavar="FILE", help="write every figure to FILE")
    parser.set_defaults(run=bench.run)
