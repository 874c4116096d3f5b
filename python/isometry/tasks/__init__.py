"""Generators of the tasks of the papers: deterministic functions of their random draws."""

from isometry.tasks.adding import adding
from isometry.tasks.characters import characters
from isometry.tasks.copying import copying
from isometry.tasks.one_hot import one_hot
from isometry.tasks.permutations import permutations
from isometry.tasks.pixels import pixels
from isometry.tasks.spectrogram import spectrogram
from isometry.tasks.waveform import random_waveform, waveform

__all__ = [
    "adding",
    "characters",
    "copying",
    "one_hot",
    "permutations",
    "pixels",
    "random_waveform",
    "spectrogram",
    "waveform",
]
