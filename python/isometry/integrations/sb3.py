"""sb3-contrib's RecurrentPPO on the recurrent layers of this package.

sb3's policies call their LSTM once per time step as soon as an episode begins inside a batch. Here a batch is one call
with marks, and acting is a step of the layer inside its `cached`.
"""

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

import isometry.torch as it
from isometry._rules import check
from isometry.torch.nn._base import RecurrentLayer

from ._registration import Registration, Swap, Swaps, known
from ._steps import Steps
from ._views import view

_SB3: Any
try:
    _SB3 = import_module("sb3_contrib.common.recurrent.policies")
except ModuleNotFoundError:  # said when the policy is made, so that this module can be read without the package
    _SB3 = None
_Policy: Any = nn.Module if _SB3 is None else _SB3.RecurrentActorCriticPolicy

__all__ = ["RecurrentPolicy", "register"]

#: A state of sb3: two arrays (layers, B, n).
States = tuple[Tensor, Tensor]

_PROCESS = "_process_sequence"
#: The arguments by which sb3's function of one layer is known.
_ARGUMENTS = ("features", "lstm_states", "episode_starts", "lstm")
#: Keywords that nn.LSTM has too, and which decide what it draws.
_DRAWN = ("bias", "dropout")
#: What sb3's own LSTM cannot have either: sb3 gives one direction, the time in front, and reads every step.
_FIXED = ("bidirectional", "batch_first", "last_only")


class RecurrentPolicy(_Policy):
    """A policy of sb3-contrib's RecurrentPPO with a recurrent layer of `isometry.torch.nn`.

    Parameters
    ----------
    observation_space, action_space, lr_schedule
        Given by RecurrentPPO.
    layer : str or type
        A class of `isometry.torch.nn` or its name: "LSTM", "GRU", "RNN", "GORU", "ScoRNN", ... A complex state of n
        numbers has 2 n features.
    features_extractor_class : type, optional
        By default sb3's CombinedExtractor for dictionaries of observations, else its FlattenExtractor; for images give
        its NatureCNN.
    lstm_kwargs : dict, optional
        Further keywords of the layer, such as ``{"trainable_h0": True}``.
    **keywords
        Those of sb3's MlpLstmPolicy: ``lstm_hidden_size``, ``n_lstm_layers``, ``shared_lstm``, ``enable_critic_lstm``,
        ``net_arch``, ...

    Raises
    ------
    ImportError
        sb3-contrib is not installed.
    TypeError
        layer is neither a name nor a class of these layers.
    ValueError
        The name of no such layer, or a layer whose state is more than two vectors (DeltaProduct, RUM with a memory);
        ``bidirectional``, ``batch_first`` or ``last_only`` in lstm_kwargs.

    See Also
    --------
    register : the policy under its name.
    :doc:`agents` : agents with memory.

    Notes
    -----
    With "LSTM", names and shapes of parameters, their order in the optimiser and the initial draws are those of sb3's
    policy, so saved models and state dicts load in both directions:
    ``RecurrentPPO.load(path, custom_objects={"policy_class": RecurrentPolicy})``. Values, actions and updates are equal
    up to rounding. Other layers take the place of the LSTMs under the same names.

    An update is one call of a layer over the whole batch, with the starts of its episodes; acting is one step of
    ``layer.cached()``, whose matrices are formed once per update.

    Examples
    --------
    >>> from sb3_contrib import RecurrentPPO  # doctest: +SKIP
    >>> model = RecurrentPPO(RecurrentPolicy, "CartPole-v1", policy_kwargs={"layer": "GRU"})  # doctest: +SKIP
    """

    critic: Any

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Any,
        *,
        layer: str | type[RecurrentLayer] = "LSTM",
        features_extractor_class: Any = None,
        lstm_kwargs: dict[str, Any] | None = None,
        **keywords: Any,
    ) -> None:
        if _SB3 is None:
            raise _missing()
        kind, own = _kind(layer), lstm_kwargs or {}
        for name in _FIXED:
            if own.get(name):
                raise ValueError(f"lstm_kwargs must not have {name}: sb3 reads every step of one direction, time first")
        sizes = keywords.get("lstm_hidden_size", 256), keywords.get("n_lstm_layers", 1)
        self._width = _width(layer, kind(1, *sizes, **own | {"device": "meta"}))
        if features_extractor_class is None:
            dictionary = hasattr(observation_space, "spaces") and isinstance(observation_space.spaces, dict)
            features_extractor_class = _SB3.CombinedExtractor if dictionary else _SB3.FlattenExtractor
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            features_extractor_class=features_extractor_class,
            lstm_kwargs={name: value for name, value in own.items() if name in _DRAWN},
            **keywords,
        )
        self.layer, self.lstm_kwargs, self._steps = layer, own, Steps()
        for name in ("lstm_actor", "lstm_critic"):
            if (theirs := getattr(self, name)) is not None:
                setattr(self, name, _made(kind, theirs, own))
        if self.critic is not None and self._width != self.critic.out_features:
            self.critic = nn.Linear(self.features_dim, self._width)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def _build_mlp_extractor(self) -> None:
        self.lstm_output_dim = self._width
        super()._build_mlp_extractor()

    def _get_constructor_parameters(self) -> dict[str, Any]:
        layers, _, units = self.lstm_hidden_state_shape
        own = {"layer": self.layer, "lstm_hidden_size": units, "n_lstm_layers": layers, "lstm_kwargs": self.lstm_kwargs}
        flags = {name: getattr(self, name) for name in ("shared_lstm", "enable_critic_lstm")}
        parameters: dict[str, Any] = super()._get_constructor_parameters()
        return parameters | own | flags

    def _process_sequence(
        self, features: Tensor, lstm_states: States, episode_starts: Tensor, lstm: Any
    ) -> tuple[Tensor, States]:
        return _processed(features, lstm_states, episode_starts, lstm, self._steps)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """sb3's `predict`; without a state an episode begins, from the trained initial state if there is one."""
        if state is None and episode_start is None:
            given = self.obs_to_tensor(observation)[0]
            given = next(iter(given.values())) if isinstance(given, dict) else given
            episode_start = torch.ones(len(given)).numpy()
        found: tuple[Any, Any] = super().predict(observation, state, episode_start, deterministic)
        return found


def _missing() -> ImportError:
    return ImportError("isometry.integrations.sb3 needs sb3-contrib, which is not installed: pip install sb3-contrib")


def _kind(layer: Any) -> type[RecurrentLayer]:
    """The class of a layer, or of its name."""
    named = {name: kind for name, kind in vars(it.nn).items() if isinstance(kind, type)}
    named = {name: kind for name, kind in named.items() if issubclass(kind, RecurrentLayer)}
    if isinstance(layer, str):
        check.choice("layer", layer, *named)
        return named[layer]
    if not isinstance(layer, type) or not issubclass(layer, RecurrentLayer):
        check.kind("layer", "a recurrent layer of isometry.torch.nn or its name", layer)
    return layer


def _width(layer: Any, made: Any) -> int:
    """The number of features of a layer with the features of no input."""
    parts = len(made._starting_shapes())
    if made._state != (parts * made.hidden_size,) or parts > 2 or getattr(made, "lam", 0):
        raise ValueError(f"layer must have a state of one or two vectors, which sb3 stores, not {layer!r}")
    width: int = made.hidden_size
    return 2 * width if made.is_complex else width


def _made(kind: type[RecurrentLayer], theirs: nn.LSTM, own: dict[str, Any]) -> RecurrentLayer:
    """A layer in the place of an LSTM of torch; one of the same parameters takes over their values, and draws none."""
    same = issubclass(kind, it.nn.LSTM)
    with torch.random.fork_rng(devices=[], enabled=same):
        made = kind(theirs.input_size, theirs.hidden_size, theirs.num_layers, **own)
    if same:
        made.load_state_dict(made.state_dict() | theirs.state_dict())
    return made


def _processed(features: Tensor, states: States, starts: Tensor, layer: Any, steps: Steps) -> tuple[Tensor, States]:
    """sb3's function of one layer: features (sequences * T, d), states (layers, sequences, n) -> the outputs of every
    step (sequences * T, width), and the states after the last one.
    """
    count = states[0].shape[1]
    x = features.reshape(count, -1, layer.input_size).transpose(0, 1)
    marks = starts.reshape(count, -1).transpose(0, 1) != 0
    if len(x) == 1 and not (torch.is_grad_enabled() or layer.trainable_h0):
        restarted = marks[0].unsqueeze(-1)
        before: Any = tuple(t.masked_fill(restarted, 0) for t in states)
        new = steps(layer, x[0], _joined(layer, before))
        output = (new[0] if isinstance(new, tuple) else new)[-1]
    else:
        output, new = layer(x, _joined(layer, states), starts=marks)
        output = output.transpose(0, 1).flatten(0, 1)
    return it.real_state(output) if layer.is_complex else output, _parted(layer, new, states)


def _joined(layer: Any, states: States) -> Any:
    """A state of sb3 as the layer takes it: a pair, the two parts of complex numbers, or the first array alone."""
    if len(layer._starting_shapes()) == 2:
        return states
    return torch.complex(*states) if layer.is_complex else states[0]


def _parted(layer: Any, state: Any, before: States) -> States:
    """The inverse of `_joined`; the second array of a layer of one vector stays what it was."""
    if isinstance(state, tuple):
        return state[0], state[1]
    return (state.real, state.imag) if layer.is_complex else (state, before[1])


def register() -> Registration:
    """Make sb3-contrib's recurrent policies compute their LSTMs by this package's kernels on the CPU.

    For programs whose policy cannot be changed: policies that exist and policies made later, in acting, prediction and
    updates. Weights, files and results stay what they were, up to rounding.

    Returns
    -------
    Registration
        Its `remove()` undoes the call, and so does the end of `with register(): ...`. Calls may be nested; the last
        registration that is removed restores sb3's function.

    Raises
    ------
    ImportError
        sb3-contrib is not installed.
    RuntimeError
        A version of sb3-contrib whose function is not known; the message names it.

    Notes
    -----
    A `torch.nn.LSTM` with hooks, with weights that a hook computes or with ``proj_size``, and one on another device, is
    computed by sb3's own function.

    Examples
    --------
    >>> from isometry.integrations.sb3 import register
    >>> with register():  # doctest: +SKIP
    ...     RecurrentPPO("MlpLstmPolicy", "CartPole-v1").learn(10_000)
    """
    return _SWAPS.add()


def _unknown(why: str) -> RuntimeError:
    return RuntimeError(f"sb3-contrib {version('sb3-contrib')} is not known: {why}; isometry serves 2.9.2")


def _find() -> Iterable[Swap]:
    if _SB3 is None:
        raise _missing()
    original = known(_Policy, _PROCESS, _ARGUMENTS, _unknown)

    def computed(
        features: Tensor, lstm_states: States, episode_starts: Tensor, lstm: Any
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        seen = view(lstm)
        if seen is None:
            return original(features, lstm_states, episode_starts, lstm)  # type: ignore[no-any-return]
        return _processed(features, lstm_states, episode_starts, seen.layer, seen.step)

    return [Swap(_Policy, _PROCESS, staticmethod(computed))]


_SWAPS = Swaps(_find)
