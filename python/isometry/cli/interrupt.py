"""Ctrl-C, or SIGTERM from a queue or container, during training; on Windows also ctrl-break.

The first one ends the loop after the current iteration, the second one at once.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)]


class Interrupt:
    """A context manager; `requested` becomes true with the first signal, so that no update is left half done.

    `also` is called for every signal.
    """

    def __init__(self, also: Callable[[], None] = lambda: None) -> None:
        self.requested, self.also = False, also

    def __enter__(self) -> Self:
        self.installed = threading.current_thread() is threading.main_thread()
        if self.installed:
            self.previous = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.also()
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *_: object) -> None:
        if self.installed:
            for number, handler in self.previous.items():
                signal.signal(number, handler)
