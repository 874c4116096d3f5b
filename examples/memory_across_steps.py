"""An agent that has to remember: a T-maze, PPO, and four memories.

A corridor ends at a junction. A sign in its first cell says which turn is rewarded; it is seen only there. 64 mazes are
walked at once, each begins anew when it ends, so episodes begin anywhere within the arrays of a rollout: their first
steps are the marks `starts` of the layer, which then reads a rollout in one call.

    python examples/memory_across_steps.py [--out FILE.png] [--quick]
"""

import argparse

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import isometry.torch as it

MAZES, STEPS, LENGTH, LIMIT, UNITS = 64, 64, 12, 30, 32
DISCOUNT, DECAY, CLIP, EPOCHS = 0.98, 0.95, 0.2, 4
MEMORIES = {"ScoRNN": it.nn.ScoRNN, "GORU": it.nn.GORU, "torch's GRU": nn.GRU, "none": None}


class Mazes:
    def __init__(self) -> None:
        self.at, self.time, self.sign = torch.zeros(3, MAZES, dtype=torch.long)
        self.begin(torch.ones(MAZES, dtype=torch.bool))

    def begin(self, which: Tensor) -> None:
        self.at[which], self.time[which], self.sign[which] = 0, 0, torch.randint(2, (int(which.sum()),)) * 2 - 1

    def see(self) -> Tensor:
        """What each agent sees (MAZES, 3): the sign in the first cell; is it the first cell, the junction."""
        return torch.stack((self.sign * (self.at == 0), self.at == 0, self.at == LENGTH), -1).float()

    def act(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """Goes on (0) or turns (1, 2); the rewards, and which episodes have ended."""
        turns, there = action > 0, self.at == LENGTH
        right = turns & there & (2 * action - 3 == self.sign)
        self.at, self.time = torch.where(turns, self.at, (self.at + 1).clamp(max=LENGTH)), self.time + 1
        over = (turns & there) | (self.time == LIMIT)
        self.begin(over)
        return right.float() - 0.02 - 0.1 * (turns & ~there), over


class Agent(nn.Module):
    def __init__(self, memory: str) -> None:
        super().__init__()
        layer = MEMORIES[memory]
        self.memory = it.nn.from_torch(layer(3, UNITS)) if layer is nn.GRU else layer and layer(3, UNITS)
        self.head = nn.Sequential(nn.Linear(UNITS if layer else 3, 64), nn.Tanh(), nn.Linear(64, 4))

    def forward(self, x: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (T, B, 3) and values (T, B) of observations (T, B, 3), and the state after them."""
        y, state = self.memory(x, state, starts=starts) if self.memory else (x, state)
        logits, value = self.head(y).split((3, 1), -1)
        return logits, value.squeeze(-1), state


def train(memory: str, seed: int, updates: int) -> list[float]:
    """The mean reward per episode in each rollout."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    agent, mazes, returns = Agent(memory), Mazes(), []
    optimiser = torch.optim.Adam(agent.parameters(), lr=2e-3)
    state, start = torch.zeros(1, MAZES, UNITS), torch.ones(MAZES, dtype=torch.bool)
    for _ in range(updates):
        before, rows = state, []
        with torch.no_grad():
            for _ in range(STEPS):
                x = mazes.see()
                logits, value, state = agent(x[None], state, start[None])
                action = torch.distributions.Categorical(logits=logits[0]).sample()
                reward, over = mazes.act(action)
                rows.append((x, start, action, reward, value[0], over))
                start = over
            values = agent(mazes.see()[None], state, start[None])[1]
            x, starts, action, reward, value, over = (torch.stack(column) for column in zip(*rows, strict=True))
            error = reward + DISCOUNT * ~over * torch.cat((value[1:], values)) - value
            for t in reversed(range(STEPS - 1)):  # generalised advantage estimation
                error[t] += DISCOUNT * DECAY * ~over[t] * error[t + 1]
            target, advantage, old = error + value, (error - error.mean()) / error.std(), None
        for _ in range(EPOCHS):
            logits, value, _ = agent(x, before, starts)
            policy = torch.distributions.Categorical(logits=logits)
            chance = policy.log_prob(action)
            old = chance.detach() if old is None else old
            ratio = (chance - old).exp()
            gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
            optimiser.zero_grad()
            ((value - target).square().mean() / 2 - gain - 0.01 * policy.entropy().mean()).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimiser.step()
        returns.append(float(reward.sum() / over.sum().clamp(min=1)))
    return returns


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="memory_across_steps.png")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    seeds, updates = (1, 2) if options.quick else (3, 100)
    axes = (figure := Figure(figsize=(7, 4), layout="constrained")).subplots()
    for k, memory in enumerate(MEMORIES):
        curves = np.array([train(memory, seed, updates) for seed in range(seeds)])
        print(f"{memory:12} mean return of the last ten updates {curves[:, -10:].mean():.2f}")
        axes.plot(curves.T, f"C{k}", label=[memory] + ["_"] * (seeds - 1))
    axes.set(xlabel="update", ylabel="mean return of an episode")
    axes.legend(frameon=False, title="memory; a line per seed")
    figure.savefig(options.out, dpi=150)


if __name__ == "__main__":
    main()
