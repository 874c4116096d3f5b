"""The tasks of `isometry train`: one file each, and one line in this list."""

from isometry.cli.tasks._base import Task
from isometry.cli.tasks.adding import Adding
from isometry.cli.tasks.copying import Copying
from isometry.cli.tasks.digits import Digits

TASKS: tuple[Task, ...] = (
    Adding(),
    Copying(),
    Digits(),
)


def names() -> tuple[str, ...]:
    return tuple(task.name for task in TASKS)


def find(name: str) -> Task:
    return next(task for task in TASKS if task.name == name)
