"""The delta rules of flash-linear-attention by its names and arguments; what all have in common: `delta.fla`."""

from .delta.fla import *  # noqa: F403
from .delta.fla import __all__ as __all__
