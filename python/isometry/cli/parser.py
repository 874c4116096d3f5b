"""Arguments of the commands; those of `isometry train` come from the table of settings."""

import argparse
from collections.abc import Iterable
from typing import Any, NoReturn

from isometry.cli import compare, info, registry, train
from isometry.cli.errors import UsageError
from isometry.cli.resolve import WITHOUT_DATA
from isometry.cli.settings import SETTINGS, option


class Parser(argparse.ArgumentParser):
    """argparse's parser with errors as exceptions, so that a wrong argument prints one line, and without abbreviations:
    --seed is not --seeds.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        command = self.prog.partition(" ")[2]
        raise UsageError(f"{command + ': ' if command else ''}{message}; --help lists the options")


def filled(text: str) -> str:
    """A path. An empty one, as from an unset shell variable, is refused: it would be the working folder."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"must name a file or folder, not {text!r}")
    return text


def make_parser() -> argparse.ArgumentParser:
    """The parser of `isometry`; each command sets `run`, the function that executes it."""
    from isometry._core import __version__

    parser = Parser(prog="isometry", description="Orthogonal and unitary recurrent networks: train, measure, inspect.")
    parser.add_argument("--version", action="version", version=f"isometry {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    _add_train(commands.add_parser("train", help="train a network on a task", **_described(train)))
    _add_compare(
        commands.add_parser("compare", help="several models on one task, or runs side by side", **_described(compare))
    )
    command = commands.add_parser("info", help="versions, kernels, threads, adapters", **_described(info))
    command.set_defaults(run=info.run)
    return parser


def _described(module: object) -> dict:
    return {"description": module.__doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}


def _add_train(parser: argparse.ArgumentParser) -> None:
    """Values stay text: resolve.py reads and checks them under the names given here."""
    own = f" or {registry.OWN}"
    parser.add_argument("task", nargs="?", metavar="TASK", help=", ".join(registry.names("task")) + own)
    parser.add_argument("--task", dest="task_option", metavar="TASK", help="the same as an option")
    parser.add_argument("--model", metavar="NAME", help=", ".join(registry.names("model")) + own)
    _add_settings(parser, SETTINGS)
    parser.add_argument(
        "--out", type=filled, metavar="FOLDER", help="the run's folder (default runs/<task>-<model>-<seed>)"
    )
    parser.add_argument("--resume", type=filled, metavar="FOLDER", help="go on with the run in FOLDER")
    parser.add_argument("--config", type=filled, metavar="FILE.toml", help="start from the settings of a config.toml")
    parser.epilog = "tasks use (without --data):\n" + "\n".join(map(used, registry.names("task")))
    parser.set_defaults(run=train.run)


def used(task: str) -> str:
    """A line with the settings of a task that are not those of all."""
    found = registry.find("task", task).defaults(WITHOUT_DATA).items()
    return f"  {task:16}" + ", ".join(f"{option(name)} {value}" for name, value in found if name in SETTINGS)


def _add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """The options that are settings of a run."""
    for name in names:
        setting = SETTINGS[name]
        shown = "" if setting.default is None or callable(setting.default) else f" (default {setting.default})"
        metavar = "|".join(setting.among) or {int: "N", float: "X", str: "PATH"}[setting.kind]
        parser.add_argument(option(name), metavar=metavar, help=setting.help + shown)
    parser.add_argument(
        "--set",
        action="append",
        metavar="KEY=VALUE",
        help="a keyword of the layer or the task: reflections=16; may be repeated",
    )


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "targets", nargs="*", type=filled, metavar="TASK|FOLDER", help="a task to train on, or folders of runs"
    )
    parser.add_argument(
        "--models", metavar="A,B,...", help="of " + ", ".join(registry.names("model")) + " or one's own"
    )
    parser.add_argument("--parameters", metavar="N", help="trained parameters of each network, instead of --hidden")
    parser.add_argument("--seeds", metavar="N|A,B,...", help="how many seeds, or which (default 3)")
    parser.add_argument("--jobs", metavar="N", help="runs at once (default: one for each core)")
    parser.add_argument(
        "--commands", action="store_const", const=True, help="print the commands of the runs; start none"
    )
    parser.add_argument(
        "--dask", type=filled, metavar="ADDRESS|FILE|local", help="run on the workers of this Dask cluster"
    )
    _add_settings(parser, [name for name in SETTINGS if name != "seed"])
    parser.add_argument(
        "--out", type=filled, metavar="FOLDER", help="folder of the comparison (default runs/compare-<task>)"
    )
    parser.set_defaults(run=compare.run)
