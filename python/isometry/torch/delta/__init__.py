"""The gated delta rule."""

from .delta_rule import delta_rule

__all__ = ["delta_rule"]
