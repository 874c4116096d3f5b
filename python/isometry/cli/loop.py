"""The training loop: steps, log rows, checkpoints, until the last iteration, a stop condition or ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum

from isometry.cli import checkpoint, plots
from isometry.cli.errors import Failure
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


def run_session(session: Session, folder: RunFolder, *, stop: Callable[[float], bool] | None = None) -> End:
    """Train up to settings.iterations, or until `stop(loss)` holds after an iteration; keeps the folder complete."""
    settings, end = session.settings, End.FINISHED
    total, log_every = settings.iterations, settings.training["log_every"]
    started = time.perf_counter() - session.seconds
    saved = float("-inf")
    with (
        Interrupt() as interrupt,
        Progress(settings.label, total, session.iteration, session.source.baseline) as progress,
    ):
        while session.iteration < total:
            if time.perf_counter() - saved >= CHECKPOINT_SECONDS:  # the first one is before the first step
                checkpoint.save(folder.checkpoint, session)
                saved = time.perf_counter()
            loss = session.step()
            session.seconds = time.perf_counter() - started
            if not math.isfinite(loss):
                raise Failure(f"the loss is {loss} at iteration {session.iteration}; try a smaller --lr")
            if interrupt.requested:
                end = End.INTERRUPTED
            elif stop is not None and stop(loss):
                end = End.STOPPED
            error = None
            k = session.iteration
            if k == 1 or k % log_every == 0 or k == total or end is not End.FINISHED:
                error = session.orthogonality_error()
                folder.append([k, loss, session.source.baseline, session.seconds, error, *session.scores()])
            progress.update(k, loss, error)
            if end is not End.FINISHED:
                break
        checkpoint.save(folder.checkpoint, session)
        plots.curves(folder.curves, {settings.model: folder.rows()}, settings.label, session.source.scores)
    return end
