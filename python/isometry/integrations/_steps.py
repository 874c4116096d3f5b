"""Steps of layers for programs that come back call by call and have no block in which a layer is `cached`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from threading import get_ident
from typing import Any

from torch import Tensor


class Steps:
    """`layer.step` inside `layer.cached()`, with what is held there kept between calls. Copies hold nothing."""

    def __init__(self) -> None:
        self._contexts: dict[tuple[Any, int], AbstractContextManager[None]] = {}

    def __call__(self, layer: Any, x: Tensor, hx: Any) -> Any:
        """The state after x (B, d), as of `layer.step`."""
        key = layer, get_ident()
        context = self._contexts.get(key)
        if context is None:
            context = self._contexts[key] = layer.cached()
        with context:
            return layer.step(x, hx)

    def __deepcopy__(self, memo: dict[int, Any]) -> Steps:
        return Steps()

    def __reduce__(self) -> tuple[type[Steps], tuple[()]]:
        return Steps, ()
