"""Environments and small agents of the packages of reinforcement learning, which are imported where they are used."""

import numpy as np
import torch

import isometry.torch as it
from isometry.torch.nn._base import RecurrentLayer

#: Layers whose state sb3 can store.
LAYERS = [
    name for name in it.nn.__all__
    if isinstance(kind := getattr(it.nn, name), type) and issubclass(kind, RecurrentLayer) and name != "DeltaProduct"
]  # fmt: skip
#: How sb3's critic reads: an LSTM of its own, the actor's, none.
CRITICS = {
    "own": {},
    "shared": {"shared_lstm": True, "enable_critic_lstm": False},
    "none": {"enable_critic_lstm": False},
}


def blind_cartpole():
    """CartPole without velocities: position and angle."""
    import gymnasium as gym

    class Blind(gym.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            bounds = env.observation_space
            self.observation_space = gym.spaces.Box(bounds.low[::2], bounds.high[::2])

        def observation(self, seen):
            return seen[::2]

    return Blind(gym.make("CartPole-v1"))


class Spaces:
    """Spaces of observations and actions by name, and draws of them."""

    def __init__(self, kind):
        from gymnasium import spaces

        one = spaces.Box(-1, 1, (3,), np.float32)
        self.observations = spaces.Dict({"a": one, "b": one}) if kind == "dictionary" else one
        self.actions = spaces.Box(-1, 1, (2,), np.float32) if kind == "box" else spaces.Discrete(3)
        self.kind = kind

    def seen(self, count, generator):
        one = lambda: torch.randn(count, 3, generator=generator)
        return {"a": one(), "b": one()} if self.kind == "dictionary" else one()

    def acted(self, count, generator):
        if self.kind == "box":
            return torch.rand(count, 2, generator=generator)
        return torch.randint(0, 3, (count,), generator=generator)


def policy(kind, spaces, seed=0, **keywords):
    """A policy of sb3 with parameters drawn from a seed, units and layers from the keywords."""
    torch.manual_seed(seed)
    keywords = {"lstm_hidden_size": 6, "net_arch": [5], **keywords}
    return kind(spaces.observations, spaces.actions, lambda _: 1e-3, **keywords)


def stored(layers, sequences, units=6, seed=0):
    """States as sb3 stores them, of actor and critic."""
    from sb3_contrib.common.recurrent.type_aliases import RNNStates

    generator = torch.Generator().manual_seed(seed)
    one = lambda: torch.randn(layers, sequences, units, generator=generator)
    return RNNStates((one(), one()), (one(), one()))


def weight_normed(layer):
    torch.nn.utils.parametrizations.weight_norm(layer, "weight_hh_l0")
