"""Modules that ``torch.fx`` takes as one node of its graph, as it does those of ``torch.nn``."""

from typing import Any

from torch import nn
from torch.fx import Proxy


class Leaf(nn.Module):
    """A module without control flow that a tracer could follow: a call with a proxy becomes a node.

    A call without arguments, as parametrizations make it, becomes a node if a parameter of the module is a proxy.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = args or kwargs.values() or [getattr(self, name) for name in self._parameters]
        for value in given:
            if isinstance(value, Proxy):
                tracer: Any = value.tracer
                return tracer.create_proxy("call_module", tracer.path_of_module(self), args, kwargs)
        return super().__call__(*args, **kwargs)
