"""A ScoRNN and an LSTM with as many parameters on the copying problem with delay 1,000; run by `make demo`.

Ten digits are shown, then a thousand blanks, then the network must reproduce the digits. A network without memory
cannot do better than the baseline 10 ln 8 / 1020 = 0.0204. The ScoRNN trains until the mean loss of its last ten
updates is below a tenth of that (at most 600 updates); the LSTM then gets as many updates or as much time, whichever
is less. Both write the run folder of `isometry train`; its parent folder holds one picture of both.

    python examples/copying_problem.py [--delay 1000] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import fmean

import isometry
from isometry.cli import plots
from isometry.cli.errors import Failure, UsageError
from isometry.cli.files import write_text
from isometry.cli.loop import End, run_session
from isometry.cli.resolve import resolve
from isometry.cli.run_folder import RunFolder
from isometry.cli.session import Session, prepared

SHARE, WINDOW, MOST = 0.1, 10, 600  # of the baseline; updates the loss is averaged over; updates at most
LOG_EVERY = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=int, default=1000, help="blanks between the digits and the answer")
    parser.add_argument("--iterations", type=int, default=MOST, help="updates of the ScoRNN at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder (default runs/copying-demo-<seed>)")
    options = parser.parse_args()
    create = RunFolder.create(f"copying-demo-{options.seed}", options.out)
    with create as folder, prepared(isometry.get_num_threads()):
        scornn = session("scornn", options)
        bound = SHARE * scornn.baseline
        end, loss = train(scornn, folder, lambda last: len(last) == WINDOW and fmean(last) < bound)
        lstm = session("lstm", options, iterations=scornn.iteration)
        deadline = time.perf_counter() + scornn.seconds
        _, of_lstm = train(lstm, folder, lambda _: time.perf_counter() >= deadline)
        columns = {name: RunFolder(folder.path / name).columns() for name in ("scornn", "lstm")}
        plots.curves(folder.curves, columns, f"Copying problem, delay {options.delay:,}: ScoRNN and LSTM")

    report([(scornn, loss), (lstm, of_lstm)], folder)
    if end is not End.STOPPED:
        raise SystemExit(f"the ScoRNN did not reach a tenth of the baseline in {scornn.iteration} updates")


def session(model: str, options: argparse.Namespace, iterations: int | None = None) -> Session:
    """A training with the papers' settings; n = 190 has 22 thousand parameters, as an LSTM with 68 units has."""
    given = {"task": "copying", "model": model, "length": options.delay, "seed": options.seed, "log_every": LOG_EVERY}
    return Session(resolve(given | {"iterations": iterations or options.iterations}))


def train(run: Session, above: RunFolder, enough: Callable[[Sequence[float]], bool]) -> tuple[End, float]:
    """Train until `enough` holds of the last losses, and their mean; config.toml then names the updates made."""
    losses: deque[float] = deque(maxlen=WINDOW)

    def stop(loss: float) -> bool:
        losses.append(loss)
        return enough(losses)

    with RunFolder.create("", str(above.path / run.settings["model"])) as folder:
        write_text(folder.config, run.settings.as_toml())
        end = run_session(run, folder, stop=stop)
        if end is End.INTERRUPTED:
            raise SystemExit(130)
        run.settings["iterations"] = run.iteration
        write_text(folder.config, run.settings.as_toml())
    return end, fmean(losses)


def report(runs: list[tuple[Session, float]], folder: RunFolder) -> None:
    """A small table of the runs with their final losses, and where the files are."""
    baseline = runs[0][0].baseline
    print(f"\n{'model':10} {'parameters':>10} {'updates':>8} {'seconds':>8} {'loss':>9} {'loss / baseline':>16}")
    for run, loss in runs:
        done = f"{run.parameters:10,} {run.iteration:8} {run.seconds:8.1f}"
        print(f"{run.settings['model']:10} {done} {loss:9.5f} {loss / baseline:16.3f}")
    print(f"{'baseline':10} {'':10} {'':8} {'':8} {baseline:9.5f} {1.0:16.3f}")
    print(f"loss: mean of the last {WINDOW} updates, in nats per step; curves in {folder.curves}")


if __name__ == "__main__":
    try:
        main()
    except (Failure, UsageError) as error:
        raise SystemExit(f"copying_problem: {error}") from error
