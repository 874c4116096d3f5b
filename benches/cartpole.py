"""CartPole without velocities: returns of RecurrentPPO with sb3's own policy and with RecurrentPolicy, in a picture.

    python benches/cartpole.py [--steps N] [--seeds N]

docs/figures/cartpole.json      the return of every episode with the number of steps before it, and seconds, of each run
docs/figures/cartpole.png       moving means of the returns

Settings are those of rl-baselines3-zoo for this task, with half as many epochs. What has a result of
as many steps is not run again.
`pip install isometry[rl] matplotlib`
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from isometry.cli import plots
from isometry.integrations.sb3 import RecurrentPolicy

FIGURES = Path(__file__).resolve().parents[1] / "docs/figures"
RESULTS, PICTURE = FIGURES / "cartpole.json", FIGURES / "cartpole.png"
POLICIES: dict[str, Any] = {"sb3": "MlpLstmPolicy", "LSTM": RecurrentPolicy}
COLOURS = {"sb3": "#999999", "LSTM": "#0072b2"}
TITLES = {"sb3": "sb3's own policy", "LSTM": "RecurrentPolicy"}
NETWORK = {
    "ortho_init": False,
    "activation_fn": torch.nn.ReLU,
    "lstm_hidden_size": 64,
    "enable_critic_lstm": True,
    "net_arch": {"pi": [64], "vf": [64]},
}
WINDOW = 50  # episodes of a moving mean


def blind() -> gym.Env:
    """Position and angle alone."""
    env = gym.make("CartPole-v1")
    bounds: Any = env.observation_space
    space = gym.spaces.Box(bounds.low[::2], bounds.high[::2])
    return gym.wrappers.TransformObservation(env, lambda seen: seen[::2], space)


def trained(policy: str, seed: int, steps: int) -> dict[str, Any]:
    """One run."""
    env = VecNormalize(make_vec_env(blind, 8, seed=seed))
    falling = lambda left: 1e-3 * left
    model = RecurrentPPO(
        POLICIES[policy], env, n_steps=32, batch_size=256, n_epochs=10, gae_lambda=0.8, gamma=0.98, seed=seed,
        learning_rate=falling, clip_range=lambda left: 0.2 * left, policy_kwargs=NETWORK, device="cpu",
    )  # fmt: skip
    returns: list[tuple[int, float]] = []

    def collect(given: dict[str, Any], _: Any) -> bool:
        """A callback of sb3: the return of every episode, with the number of steps before its end."""
        returns.extend(
            (model.num_timesteps, float(info["episode"]["r"])) for info in given["infos"] if "episode" in info
        )
        return True

    begin = time.process_time()
    model.learn(steps, callback=collect)
    return {"steps": steps, "seconds": time.process_time() - begin, "returns": returns}


def draw(results: dict[str, Any]) -> None:
    """The picture."""
    figure, ((axes,),) = plots.sheet(3)
    for policy, colour in COLOURS.items():
        label = TITLES[policy]
        for name, run in results.items():
            if name.partition("-")[0] == policy and len(run["returns"]) > WINDOW:
                at, values = np.array(run["returns"]).T
                mean = np.convolve(values, np.full(WINDOW, 1 / WINDOW), "valid")
                axes.plot(at[WINDOW - 1 :] / 1000, mean, color=colour, lw=1, label=label)
                label = None
    axes.set(xlabel="thousand steps", ylabel=f"return, mean of {WINDOW} episodes", ylim=(0, 510))
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=24_000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for seed in range(given.seeds):
        for policy in POLICIES:
            name = f"{policy}-{seed}"
            if results.get(name, {}).get("steps") != given.steps:
                results[name] = trained(policy, seed, given.steps)
                RESULTS.write_text(json.dumps(results) + "\n")
            last = [value for _, value in results[name]["returns"][-100:]]
            print(
                f"{name}: {np.mean(last):.0f} over the last 100 episodes, {results[name]['seconds']:.0f} s", flush=True
            )
    draw(results)


if __name__ == "__main__":
    main()
