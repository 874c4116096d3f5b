"""The tasks of the study: a list by name, each with the kind that the guide knows it by."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from . import control, forecast, hidden, memory, series, signals, text, tracking, unseen
from ._task import Task


class Listed(NamedTuple):
    kind: str
    make: Callable[[], Task]


KEPT = "everything to reproduce after a hundred steps"
SELECTED = "a few inputs of 150 to pick out and remember"
SHORT = "a short sequence to classify, up to a hundred steps"
LONG = "a longer sequence to classify, of 150 to 430 steps"
NOISY = "a noisy or modulated signal of 130 to 260 steps to classify"
NEXT = "a signal of 120 to 200 steps to continue, or a number to estimate from it"
FOLLOWED = "a hidden state to track at each of 60 steps, through noise and missing observations"
TEXT = "text, in pieces of 100 characters"
TRACKING = "state tracking: 32 to 64 symbols, each of which changes a state"
CONTROL = "control with memory, 40 steps"

TASKS = {
    "copying": Listed(KEPT, memory.Copying),
    "adding": Listed(SELECTED, memory.Adding),
    "cue": Listed(SELECTED, memory.Cue),
    "italy-power": Listed(SHORT, partial(series.Series, "ItalyPowerDemand")),
    "japanese-vowels": Listed(SHORT, partial(series.Series, "JapaneseVowels")),
    "basic-motions": Listed(SHORT, partial(series.Series, "BasicMotions")),
    "digits": Listed(SHORT, series.Digits),
    "gunpoint": Listed(LONG, partial(series.Series, "GunPoint")),
    "arrowhead": Listed(LONG, partial(series.Series, "ArrowHead")),
    "trace": Listed(LONG, series.Trace),
    "osuleaf": Listed(LONG, partial(series.Series, "OSULeaf")),
    "plaid": Listed(LONG, partial(series.Series, "PLAID", every=4)),
    "mnist": Listed(LONG, series.Mnist),
    "radio": Listed(NOISY, signals.Radio),
    "tones": Listed(NOISY, signals.Tones),
    "chirps": Listed(NOISY, signals.Chirps),
    "mackey-glass": Listed(NEXT, forecast.MackeyGlass),
    "ecg": Listed(NEXT, forecast.Ecg),
    "oscillator": Listed(NEXT, forecast.Oscillator),
    "pendulum": Listed(FOLLOWED, hidden.Pendulum),
    "lorenz": Listed(FOLLOWED, hidden.Lorenz),
    "english": Listed(TEXT, partial(text.Text, "english")),
    "python": Listed(TEXT, partial(text.Text, "python")),
    "permutations": Listed(TRACKING, tracking.Permutations),
    "counting": Listed(TRACKING, tracking.Counting),
    "crossing": Listed(CONTROL, control.Crossing),
}

#: Tasks that the guide is not made from.
UNSEEN = {
    "appliances": Listed(LONG, unseen.Appliances),
    "position": Listed(NEXT, unseen.Position),
    "brackets": Listed(TRACKING, unseen.Brackets),
}
ALL = TASKS | UNSEEN
