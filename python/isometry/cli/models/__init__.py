"""The networks of `isometry train`: one file each, and one line in this list."""

from isometry.cli.models._base import Model, Setting
from isometry.cli.models.lstm import LSTM
from isometry.cli.models.ornn import ORNN
from isometry.cli.models.rnn import RNN
from isometry.cli.models.scornn import ScoRNN
from isometry.cli.models.scurnn import ScuRNN
from isometry.cli.models.unitary_ornn import UnitaryORNN

__all__ = ["MODELS", "Setting", "find", "names"]

MODELS: tuple[Model, ...] = (
    ORNN(),
    UnitaryORNN(),
    ScoRNN(),
    ScuRNN(),
    LSTM(),
    RNN(),
)


def names() -> tuple[str, ...]:
    return tuple(model.name for model in MODELS)


def find(name: str) -> Model:
    return next(model for model in MODELS if model.name == name)
