"""Training of recurrent agents: sb3-contrib's RecurrentPPO with `RecurrentPolicy` and with its own policy, and a
training step of TorchRL's LSTMModule and GRUModule with `register()` and without.

sb3: CartPole without velocities, LSTMs of 256 units for actor and critic, rollouts of 128 steps of one environment and
of eight, and the defaults of RecurrentPPO: batches of 128, ten epochs.

TorchRL: B = 32, T = 128, 128 units, a new trajectory at 3 % of the steps; a step is forward, a loss of outputs and last
states, backward and Adam.
"""

import copy
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import torch

from harness.row import Bar, Candidate, Results, Row
from isometry.cli.errors import Failure, missing
from isometry.integrations import sb3, torchrl
from rows.torch.modules import joined, training_step

HIDDEN, STEPS, BATCH, UNITS, THEIRS = 256, 128, 32, 128, "MlpLstmPolicy"
RESETS = 0.03
TOLERANCE = (1e-5, 1e-4)


def rows() -> Iterator[Row]:
    if lack := missing(["sb3_contrib", "torchrl"], "the group rl"):
        raise Failure(lack)
    for environments, update, whole in ((1, (2.0, 3.0), (1.8, 2.9)), (8, (2.0, 3.0), (2.0, 3.8))):
        yield from ppo(environments, update, whole)
    for kind in ("LSTM", "GRU"):
        yield trajectories(kind)


# ------------------------------------------------------------ sb3


def ppo(environments: int, update: tuple[float, float], whole: tuple[float, float]) -> Iterator[Row]:
    """An update over a rollout, and a rollout with its update."""
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_vec_env

    from cartpole import blind

    @cache
    def agent(policy: Any) -> Any:
        env = make_vec_env(blind, environments, seed=0)
        model = RecurrentPPO(
            policy, env, n_steps=STEPS, policy_kwargs={"lstm_hidden_size": HIDDEN}, seed=0, device="cpu"
        )
        return model.learn(STEPS * environments)

    weights = cache(lambda: copy.deepcopy(agent(THEIRS).policy.state_dict()))

    def results(policy: Any) -> Results:
        """Values of the weights of one side on its rollout."""
        own, given = agent(policy).policy, sample(agent(THEIRS))
        now = copy.deepcopy(own.state_dict())
        own.load_state_dict(weights())
        values, chances, entropy = own.evaluate_actions(
            given.observations, given.actions.long().flatten(), given.lstm_states, given.episode_starts
        )
        own.zero_grad()
        (values.mean() + chances.mean() + entropy.mean()).backward()
        own.load_state_dict(now)
        return {"value": torch.cat((values.flatten(), chances)).detach(), **joined(own)}

    def learn(policy: Any) -> None:
        agent(policy).learn(STEPS * environments, reset_num_timesteps=False)

    for name, run, bars in (
        ("update", lambda policy: agent(policy).train(), update),
        ("rollout and update", learn, whole),
    ):
        ours, theirs = (
            Candidate(label, partial(run, policy), partial(results, policy))
            for label, policy in (("isometry", sb3.RecurrentPolicy), ("sb3", THEIRS))
        )
        title = f"RecurrentPPO {name}, environments {environments}"
        yield Row(title, ours, [theirs], partial(results, THEIRS), [Bar("sb3", *bars)], tolerance=TOLERANCE)


@cache
def sample(model: Any) -> Any:
    """One batch of a rollout, in which episodes begin."""
    found = next(model.rollout_buffer.get(STEPS))
    assert found.episode_starts.any()
    return found


# ------------------------------------------------------------ TorchRL


def trajectories(kind: str) -> Row:
    """A training step of one module."""
    from tensordict import TensorDict
    from torchrl.modules import GRUModule, LSTMModule, set_recurrent_mode

    names = ["h", "c"][: 1 + (kind == "LSTM")]
    draw = torch.Generator().manual_seed(0)
    marks = torch.rand(BATCH, STEPS, 1, generator=draw) < RESETS
    normal = lambda *shape: torch.randn(BATCH, STEPS, *shape, generator=draw)
    given = TensorDict(
        {"x": normal(UNITS), **{name: normal(1, UNITS) for name in names}, "is_init": marks}, [BATCH, STEPS]
    )

    @cache
    def made(backend: str) -> tuple[Any, torch.optim.Optimizer]:
        torch.manual_seed(0)
        keys = {"in_keys": ["x", *names, "is_init"], "out_keys": ["y", *(("next", name) for name in names)]}
        module = {"LSTM": LSTMModule, "GRU": GRUModule}[kind](
            input_size=UNITS, hidden_size=UNITS, recurrent_backend=backend, **keys
        )
        return module, torch.optim.Adam(module.parameters(), lr=1e-9)

    def step(module: Any) -> torch.Tensor:
        module.zero_grad()
        with set_recurrent_mode(True):
            found = module(given.copy())
        value = torch.cat([found[key].flatten() for key in module.out_keys])
        value.square().mean().backward()
        return value

    peers = [training_step(backend, partial(made, backend), step) for backend in ("pad", "scan")]
    return Row(
        name=f"TorchRL step {kind} n{UNITS} B{BATCH} T{STEPS}",
        ours=training_step("isometry", partial(made, "auto"), step, torchrl.register),
        peers=peers,
        reference=peers[0].results or dict,
        bars=[Bar(peer.name, 1.5, 2.5, (peer.name,)) for peer in peers],
        tolerance=TOLERANCE,
    )
