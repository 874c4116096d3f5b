"""The objects, one module each: their arguments and the checks that both faces share. No module handles arrays."""

from importlib import import_module

from isometry._objects._declaration import Declaration


def declaration(stem: str) -> Declaration:
    """The declaration of an object, by its name in the core."""
    return getattr(import_module(f"isometry._objects.{stem}"), stem.upper())
