"""The training loop: steps, log rows, checkpoints, until the last iteration, a stop condition or ctrl-C."""

import math
import time
from collections.abc import Callable
from enum import Enum

from isometry.cli import checkpoint, plots
from isometry.cli.errors import Failure
from isometry.cli.files import named
from isometry.cli.interrupt import Interrupt
from isometry.cli.progress import Progress
from isometry.cli.run_folder import RunFolder
from isometry.cli.session import Session

CHECKPOINT_SECONDS = 60.0


class End(Enum):
    """The reason why a loop ended."""

    FINISHED = "finished"
    STOPPED = "stopped"  # by the caller's condition
    INTERRUPTED = "interrupted"


def run_session(session: Session, folder: RunFolder | None, *, stop: Callable[[float], bool] | None = None) -> End:
    """Train up to settings.iterations, or until `stop(loss)` holds after an iteration; keeps the folder complete.

    Of several processes only the first has a folder and shows the progress.
    """
    settings, end = session.settings, End.FINISHED
    total = settings["iterations"]
    started = time.perf_counter() - session.seconds
    saved, row = float("-inf"), None
    with (
        Interrupt() as interrupt,
        Progress(settings.label, total, session.iteration, shown=folder is not None) as progress,
    ):
        while session.iteration < total and end is End.FINISHED:
            # the first one before the first step
            if folder is not None and time.perf_counter() - saved >= CHECKPOINT_SECONDS:
                checkpoint.save(folder.checkpoint, session)
                saved = time.perf_counter()
            loss = session.step()
            session.seconds = time.perf_counter() - started
            k = session.iteration
            if not math.isfinite(loss):
                raise Failure(f"the loss is {loss} at iteration {k}; try a smaller --lr")
            if session.group.interrupted(interrupt.requested):
                end = End.INTERRUPTED
            elif stop is not None and stop(loss):
                end = End.STOPPED
            row = None
            regular = k == 1 or k % settings["log_every"] == 0
            if folder is not None and (regular or k == total or end is not End.FINISHED):
                row = session.row()
                folder.append(row)
            if regular and row is not None:  # a run resumed after an odd last row equals an uninterrupted one
                session.keep_best(row)
                session.start_row()
            progress.update(k, row)
        if folder is None:
            return end
        if row is not None and end is not End.INTERRUPTED:
            folder.write_scores(session.finish(row) | {"baselines": session.baselines})
        checkpoint.save(folder.checkpoint, session)
        draw(session, folder)
    return end


def draw(session: Session, folder: RunFolder) -> None:
    """Draw curves.png, of the rows that metrics.csv has."""
    layer = type(session.network.layer).__name__
    title = f"{session.title}: {layer} with {session.settings['hidden']} units"
    with named(folder.curves):
        plots.curves(folder.curves, {session.settings.label: folder.columns()}, title)
