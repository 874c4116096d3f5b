"""Control with memory, learnt by an actor and a critic (A2C) from whole episodes; the score is a share of the most."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ._task import BATCH, Task

DISCOUNT, ENTROPY, VALUE = 0.97, 0.01, 0.5
TESTED = 128  # episodes


class Episodes(NamedTuple):
    """What was seen (T, B, inputs), done (T, B), earned (T, B), and whether the episode still went on (T, B)."""

    seen: Tensor
    actions: Tensor
    rewards: Tensor
    alive: Tensor


class Control(Task):
    """Outputs for `actions` and one for the value; an episode has `most` steps at most, and earns 1 at most."""

    last_only, chance = False, 0.0
    actions: int
    most: int

    def start(self, rng: Any, count: int) -> Tensor:
        """The states of environments, (count, numbers)."""
        raise NotImplementedError

    def seen(self, state: Tensor, step: int) -> Tensor:
        raise NotImplementedError

    def act(self, state: Tensor, action: Tensor, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """The next states, rewards, and which episodes have ended."""
        raise NotImplementedError

    @torch.no_grad()
    def play(self, network: Any, rng: Any, count: int, *, greedy: bool) -> Episodes:
        """Whole episodes, step by step."""
        state, memory, alive = self.start(rng, count), None, torch.ones(count, dtype=torch.bool)
        found: list[tuple[Tensor, ...]] = []
        with network.stepping() as one_step:
            for step in range(self.most):
                seen = self.seen(state, step)
                hidden, memory = one_step(seen, memory)
                logits = network.read(hidden)[:, : self.actions]
                noise = 0 if greedy else torch.from_numpy(rng.gumbel(size=logits.shape).astype(np.float32))
                action = (logits + noise).argmax(-1)
                state, reward, ended = self.act(state, action, step)
                found.append((seen, action, reward * alive, alive))
                alive = alive & ~ended
                if not alive.any():
                    break
        return Episodes(*(torch.stack(part) for part in zip(*found, strict=True)))

    def update(self, network: Any, rng: Any) -> Tensor:
        episodes = self.play(network, rng, BATCH, greedy=False)
        values = network(episodes.seen)
        logits, critic = values[..., : self.actions].log_softmax(-1), values[..., self.actions]
        returns, ahead = torch.empty_like(critic), torch.zeros(BATCH)
        for t in reversed(range(len(returns))):
            ahead = returns[t] = episodes.rewards[t] + DISCOUNT * ahead
        advantage = returns - critic.detach()
        chosen = logits.gather(-1, episodes.actions[..., None])[..., 0]
        entropy = -(logits.exp() * logits).sum(-1)
        each = -chosen * advantage + VALUE * (returns - critic).square() - ENTROPY * entropy
        return (each * episodes.alive).sum() / episodes.alive.sum()

    def score(self, network: nn.Module) -> float:
        episodes = self.play(network, np.random.default_rng(10_007), TESTED, greedy=True)
        return max(0.0, float(episodes.rewards.sum(0).mean()))


class Crossing(Control):
    """A corridor of 40 noisy steps: the sign that was shown at its begin says where to turn at its end."""

    inputs, outputs, actions, most = 4, 3, 2, 40
    chance = 0.5

    def start(self, rng: Any, count: int) -> Tensor:
        noise = rng.standard_normal((count, self.most)).astype(np.float32)
        signs = rng.integers(0, 2, (count, 1)).astype(np.float32)
        return torch.from_numpy(np.concatenate([signs, noise], 1))

    def seen(self, state: Tensor, step: int) -> Tensor:
        sign = one_hot(state[:, 0].long(), 2).float() * (step == 0)
        end = torch.full((len(state), 1), float(step == self.most - 1))
        return torch.cat([sign, state[:, step + 1 : step + 2], end], 1)

    def act(self, state: Tensor, action: Tensor, step: int) -> tuple[Tensor, Tensor, Tensor]:
        last = step == self.most - 1
        right = (action == state[:, 0].long()).float() * last
        return state, right, torch.full((len(state),), last)
