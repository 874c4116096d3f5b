"""Ways to an orthogonal weight of a module: this package's, torch's own, and geotorch's where it is installed."""

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn
from torch.nn.utils import parametrizations

import isometry.torch as it

#: What makes the weight of a name in a module orthogonal, and returns the module.
Make = Callable[[nn.Module, str], nn.Module]
MAPS = ("cayley", "householder", "matrix_exp")


def ways() -> dict[str, Make]:
    def of(law: Any, kind: str, module: nn.Module, name: str) -> nn.Module:
        return law(module, name, kind)

    laws = {"isometry": it.parametrizations.orthogonal, "torch": parametrizations.orthogonal}
    found: dict[str, Make] = {f"{peer} {kind}": partial(of, law, kind) for peer, law in laws.items() for kind in MAPS}
    if importlib.util.find_spec("geotorch"):
        import geotorch

        def by_geotorch(kind: str, module: nn.Module, name: str) -> nn.Module:
            geotorch.orthogonal(module, name, triv=kind)
            return module

        found |= {f"geotorch {kind}": partial(by_geotorch, kind) for kind in ("cayley", "expm")}
    return found
