"""sb3-contrib's RecurrentPPO on our layers: equal to its own policy for an LSTM, and the laws of every layer."""

import copy
import pickle

import numpy as np
import pytest
import torch

import isometry.torch as it
import other_packages
from agents import CRITICS, LAYERS, Spaces, blind_cartpole, policy, stored, weight_normed
from isometry.integrations import sb3 as integration
from isometry.integrations.sb3 import RecurrentPolicy, register
from isometry.torch.nn._plain import _FEW
from isometry.torch.nn._streaming import Held

pytestmark = other_packages.MARKS
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
SEQUENCES, STEPS = 3, 7
#: Marks of steps at which episodes begin: nowhere, first, last, everywhere, anywhere.
MARKS = {
    "none": torch.zeros(SEQUENCES, STEPS),
    "first": torch.eye(1, STEPS).repeat(SEQUENCES, 1),
    "all": torch.ones(SEQUENCES, STEPS),
    "anywhere": (torch.rand(SEQUENCES, STEPS, generator=torch.Generator().manual_seed(1)) < 0.3).float(),
}


def theirs():
    from sb3_contrib.ppo_recurrent.policies import MlpLstmPolicy, MultiInputLstmPolicy

    return {"plain": MlpLstmPolicy, "box": MlpLstmPolicy, "dictionary": MultiInputLstmPolicy}


def agent(kind, environments=1, **keywords):
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_vec_env

    given = {"lstm_hidden_size": 8, "net_arch": [8], **keywords.pop("policy_kwargs", {})}
    sizes = {"n_steps": 32, "batch_size": 16, "n_epochs": 2, "seed": 0, "device": "cpu"}
    return RecurrentPPO(
        kind, make_vec_env(blind_cartpole, environments, seed=0), policy_kwargs=given, **{**sizes, **keywords}
    )


def evaluated(model, spaces, states, marks, seed=2):
    """Values, log-probabilities and entropies of a batch, and the gradients of their sum."""
    generator = torch.Generator().manual_seed(seed)
    count = marks.numel()
    seen, acted = spaces.seen(count, generator), spaces.acted(count, generator)
    found = model.evaluate_actions(seen, acted, states, marks.flatten())
    model.zero_grad()
    sum((t * torch.randn(t.shape, generator=generator)).sum() for t in found).backward()
    return [t.detach() for t in found], {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("critic", CRITICS)
@pytest.mark.parametrize("kind", ["plain", "box", "dictionary"])
@pytest.mark.parametrize("own", [{}, {"n_lstm_layers": 2, "lstm_kwargs": {"bias": False}}], ids=["one", "two"])
def test_an_lstm_is_that_of_sb3(own, kind, critic, marks):
    """The same draws; values, log-probabilities, gradients and states of batches in which episodes begin anywhere."""
    spaces, keywords = Spaces(kind), {**own, **CRITICS[critic]}
    pair = policy(theirs()[kind], spaces, **keywords), policy(RecurrentPolicy, spaces, **keywords)
    first, second = (model.state_dict() for model in pair)
    assert list(first) == list(second) and all(torch.equal(first[name], second[name]) for name in first)
    states = stored(own.get("n_lstm_layers", 1), SEQUENCES)
    (want, slopes), (found, own_slopes) = (evaluated(model, spaces, states, MARKS[marks]) for model in pair)
    torch.testing.assert_close(found, want, **CLOSE)
    torch.testing.assert_close(own_slopes, slopes, **CLOSE)
    seen, now = spaces.seen(SEQUENCES, torch.Generator().manual_seed(3)), MARKS[marks][:, 0]
    with torch.no_grad():
        want, found = (model(seen, states, now, deterministic=True) for model in pair)
        torch.testing.assert_close(found, want, **CLOSE)
        want, found = (model.predict_values(seen, states.vf, now) for model in pair)
        torch.testing.assert_close(found, want, **CLOSE)
        want, found = (model.get_distribution(seen, states.pi, now) for model in pair)
        torch.testing.assert_close(found[1], want[1], **CLOSE)


def parameters(model):
    return {name: p.detach().clone() for name, p in model.policy.named_parameters()}


@pytest.mark.parametrize("environments", [1, 3])
def test_updates_are_those_of_sb3(environments):
    """The same actions, and the same weights after two updates."""
    pair = [agent(kind, environments).learn(64 * environments) for kind in (theirs()["plain"], RecurrentPolicy)]
    want, found = (model.rollout_buffer for model in pair)
    assert np.array_equal(found.actions, want.actions) and found.episode_starts.sum() > environments
    np.testing.assert_allclose(found.values, want.values, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(*map(parameters, pair), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("critic", CRITICS)
def test_files_of_sb3(critic, tmp_path):
    """A saved model loads in both directions, and is trained further alike; so does a policy that is saved alone."""
    from sb3_contrib import RecurrentPPO

    kinds = theirs()["plain"], RecurrentPolicy
    for one, other in (kinds, kinds[::-1]):
        saved = agent(one, policy_kwargs=CRITICS[critic]).learn(32)
        saved.save(tmp_path / "model.zip")
        same, found = (
            RecurrentPPO.load(
                tmp_path / "model.zip", env=saved.env, device="cpu", custom_objects={"policy_class": kind}
            )
            for kind in (one, other)
        )
        assert isinstance(found.policy, other)
        seen = np.array([[0.1, -0.1], [0.02, 0.03]], np.float32)
        state, own = None, None
        for _ in range(3):
            want, state = same.predict(seen, state, deterministic=True)
            action, own = found.predict(seen, own, deterministic=True)
            assert np.array_equal(action, want)
            np.testing.assert_allclose(own[0], state[0], rtol=1e-5, atol=1e-6)
        same.set_random_seed(0), same.learn(32)
        found.set_random_seed(0), found.learn(32)
        torch.testing.assert_close(parameters(same), parameters(found), rtol=1e-4, atol=1e-5)


def test_a_policy_saved_alone(tmp_path):
    spaces = Spaces("plain")
    own = {"layer": "GRU", "n_lstm_layers": 2, "shared_lstm": True, "enable_critic_lstm": False}
    model = policy(RecurrentPolicy, spaces, lstm_kwargs={"trainable_h0": True}, **own)
    model.save(tmp_path / "policy.pt")
    found = RecurrentPolicy.load(tmp_path / "policy.pt", device="cpu")
    assert repr(found.lstm_actor) == repr(model.lstm_actor) and found.lstm_critic is None
    states = stored(2, SEQUENCES)
    want, got = (evaluated(each, spaces, states, MARKS["anywhere"])[0] for each in (model, found))
    torch.testing.assert_close(got, want)


FORMS = {
    **{name: {"layer": name} for name in LAYERS},
    "class": {"layer": it.nn.GORU},
    "trained-start": {"layer": "LSTM", "lstm_kwargs": {"trainable_h0": True}},
    "trained-start-complex": {"layer": "UnitaryORNN", "lstm_kwargs": {"trainable_h0": True}},
    "complex": {"layer": "ExpRNN", "lstm_kwargs": {"complex": True}},
    "two-layers": {"layer": "GRU", "n_lstm_layers": 2},
}


@pytest.mark.parametrize("critic", CRITICS)
@pytest.mark.parametrize("form", FORMS)
def test_acting_is_the_update_step_by_step(form, critic):
    """Of every layer: the values and actions of an update are those that steps gave while collecting."""
    spaces = Spaces("plain")
    model = policy(RecurrentPolicy, spaces, **FORMS[form], **CRITICS[critic])
    assert type(model.lstm_actor) is (getattr(it.nn, form) if form in LAYERS else type(model.lstm_actor))
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
    layers, marks = model.lstm_actor.num_layers, MARKS["anywhere"]
    states, seen = stored(layers, SEQUENCES), spaces.seen(marks.numel(), torch.Generator().manual_seed(4))
    now, values, actions, chances = states, [], [], []
    for t, inputs in enumerate(seen.unflatten(0, marks.shape).unbind(1)):
        with torch.no_grad():
            predicted = model.predict_values(inputs, now.pi if critic == "shared" else now.vf, marks[:, t])
            action, value, chance, now = model(inputs, now, marks[:, t])
        torch.testing.assert_close(predicted, value)
        values.append(value), actions.append(action), chances.append(chance)
    found = model.evaluate_actions(seen, torch.stack(actions, 1).flatten(), states, marks.flatten())
    torch.testing.assert_close(found[0].detach(), torch.stack(values, 1).flatten(0, 1), **CLOSE)
    torch.testing.assert_close(found[1].detach(), torch.stack(chances, 1).flatten(), **CLOSE)
    sum(t.sum() for t in found).backward()
    own = dict(model.lstm_actor.named_parameters())
    assert all(p.grad is not None and p.grad.isfinite().all() for p in own.values())
    assert any(p.grad.abs().max() > 0 for p in own.values())


@pytest.mark.parametrize("layer", ["LSTM", "ScoRNN"])
def test_what_an_episode_left_does_not_reach_the_next(layer):
    """Not even a state that is not a number."""
    spaces = Spaces("plain")
    model = policy(RecurrentPolicy, spaces, layer=layer)
    states, marks = stored(1, SEQUENCES), torch.zeros(SEQUENCES, STEPS)
    marks[0, 0] = 1
    for part in (*states.pi, *states.vf):
        part[:, 0] = float("nan")
    found, slopes = evaluated(model, spaces, states, marks)
    with torch.no_grad():
        acted = model(spaces.seen(SEQUENCES, torch.Generator()), states, marks[:, 0])
    for t in (*found, *slopes.values(), *acted[1:3], acted[3].pi[0], acted[3].vf[0]):
        assert torch.isfinite(t).all()


def test_prediction_begins_in_the_trained_state():
    spaces = Spaces("plain")
    model = policy(RecurrentPolicy, spaces, layer="GRU", lstm_kwargs={"trainable_h0": True})
    with torch.no_grad():
        model.lstm_actor.h0_l0.normal_()
    seen = np.zeros((2, 3), np.float32)
    _, (found, _) = model.predict(seen)
    with torch.no_grad():
        want = model.lstm_actor(torch.zeros(1, 2, 3))[1]
    np.testing.assert_allclose(found, want, atol=1e-6)
    _, (single, _) = model.predict(seen[0])
    np.testing.assert_allclose(single, want[:, :1], atol=1e-6)
    _, (given, _) = model.predict(seen, (np.zeros((1, 2, 6)), np.zeros((1, 2, 6))))
    assert abs(given - found).max() > 1e-3


def test_matrices_are_packed_once_per_update(monkeypatch):
    """And steps read the weights of now: after an optimiser, a state dict, a copy."""
    packed = []
    prepare = Held._prepare
    monkeypatch.setattr(Held, "_prepare", lambda own: packed.append(1) or prepare(own))
    spaces, many = Spaces("plain"), _FEW + 1
    model, states = policy(RecurrentPolicy, spaces, layer="GRU"), stored(1, many)
    seen, marks = spaces.seen(many, torch.Generator()), torch.zeros(many)

    def act(each):
        with torch.no_grad():
            return each(seen, states, marks, deterministic=True)[3].pi[0]

    for _ in range(4):
        before = act(model)
    assert len(packed) == 2  # actor and critic
    others = copy.deepcopy(model), pickle.loads(pickle.dumps(model.lstm_actor))
    act(others[0])
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.5)
    after = act(model)
    assert len(packed) == 6 and (after - before).abs().max() > 1e-4
    assert torch.equal(act(others[0]), before)
    torch.testing.assert_close(after, model.lstm_actor(seen[None], states.pi[0])[1].detach(), **CLOSE)


def test_refusals():
    several = [{"layer": "DeltaProduct"}, {"layer": "RUM", "lstm_kwargs": {"lam": 1}}]
    for error, said, own in (
        (ValueError, "layer must be .*'GRU'.* not 'GRUU'", {"layer": "GRUU"}),
        (TypeError, "layer must be a recurrent layer", {"layer": torch.nn.LSTM}),
        (AssertionError, "shared LSTM", {"shared_lstm": True}),
        *((ValueError, "layer must have a state of one or two vectors", own) for own in several),
        *((ValueError, f"lstm_kwargs must not have {name}", {"lstm_kwargs": {name: True}})
          for name in ("bidirectional", "batch_first", "last_only")),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            policy(RecurrentPolicy, Spaces("plain"), **own)


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(integration, "_SB3", None)
    for call in (register, lambda: policy(RecurrentPolicy, Spaces("plain"))):
        with pytest.raises(ImportError, match="pip install sb3-contrib"):
            call()


def test_other_versions(monkeypatch):
    kind = theirs()["plain"]
    monkeypatch.setattr(kind, "_process_sequence", staticmethod(lambda *features: features))
    with pytest.raises(RuntimeError, match=r"sb3-contrib .* is not known: _process_sequence .* takes \(\*features\)"):
        register()


@pytest.mark.parametrize("critic", CRITICS)
def test_registered_policies(critic, monkeypatch):
    """Those that exist and those made later: no LSTM of torch is called, and nothing else changes."""
    spaces, kind = Spaces("plain"), theirs()["plain"]
    model, states = policy(kind, spaces, n_lstm_layers=2, **CRITICS[critic]), stored(2, SEQUENCES)
    copied, own = copy.deepcopy(model), vars(kind)["_process_sequence"]
    want = evaluated(model, spaces, states, MARKS["anywhere"])
    with register(), register():
        for each in (model, copied, policy(kind, spaces, n_lstm_layers=2, **CRITICS[critic])):
            with monkeypatch.context() as changed:
                changed.setattr(torch.nn.LSTM, "forward", None)
                found = evaluated(each, spaces, states, MARKS["anywhere"])
            torch.testing.assert_close(found, want, **CLOSE)
            assert set(vars(each)) == set(vars(model)) and list(each.state_dict()) == list(model.state_dict())
        with torch.no_grad():
            seen, now = spaces.seen(SEQUENCES, torch.Generator().manual_seed(3)), MARKS["anywhere"][:, 0]
            found = [model(seen, states, now, deterministic=True)]
            for p in model.parameters():
                p.mul_(1.1)
            found.append(model(seen, states, now, deterministic=True))
    assert vars(kind)["_process_sequence"] is own
    with torch.no_grad():
        torch.testing.assert_close(found[1], model(seen, states, now, deterministic=True), **CLOSE)


def hooked(lstm):
    lstm.register_forward_hook(lambda *call: (call[2][0] + 1, call[2][1]))


def subclass(lstm):
    def forward(own, *given):
        output, state = torch.nn.LSTM.forward(own, *given)
        return 2 * output, state

    lstm.__class__ = type("Doubled", (torch.nn.LSTM,), {"forward": forward})


@pytest.mark.parametrize("changed", [hooked, weight_normed, subclass])
def test_what_is_more_than_an_lstm_is_left_to_sb3(changed):
    spaces, states = Spaces("plain"), stored(1, SEQUENCES)
    model = policy(theirs()["plain"], spaces)
    with register():
        plain = evaluated(model, spaces, states, MARKS["anywhere"])[0]
        changed(model.lstm_actor)
        found = evaluated(model, spaces, states, MARKS["anywhere"])
    want = evaluated(model, spaces, states, MARKS["anywhere"])
    assert torch.equal(found[0][1], want[0][1])  # the critic's LSTM is computed here
    assert changed is weight_normed or (plain[1] - found[0][1]).abs().max() > 1e-3
