"""Functions of cells that are wrong in one way each; every law rejects those it is there to find."""

import numpy as np
import torch

import isometry.torch as it
from support.broken import on_array, with_keywords


def changed(**change):
    """Arrays and options pass through functions."""
    return with_keywords(lambda given: {k: change[k](v) if k in change else v for k, v in given.items()})


def after(wrong):
    """Results pass through a function of results and of all that was given."""
    return lambda function: lambda *lead, **given: wrong(function(*lead, **given), given)


class Scaled(torch.autograd.Function):
    """The identity with another gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        del factor
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        del output
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, bar):
        return ctx.factor * bar, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return ctx.factor * tangent


class TwoWays(torch.autograd.Function):
    """The identity, whose gradient differs where it is recorded."""

    @staticmethod
    def forward(ctx, x):
        del ctx
        return x.clone()

    @staticmethod
    def backward(ctx, bar):
        del ctx
        return 1.01 * bar if torch.is_grad_enabled() else bar


def bit(out, wrong):
    """The results, or with the least change."""
    return out * (1 + torch.finfo(out.dtype).eps) if wrong else out


def gradients_across_marks(function):
    """The right states, the gradients of one sequence."""

    def wrong(*lead, **given):
        alone = {**{k: t for k, t in given.items() if k != "start_state"}, "starts": None}
        whole = function(*lead, **alone)
        return function(*lead, **given).detach() + whole - whole.detach()

    return wrong


states_scaled = after(lambda out, _: 1.01 * out)
no_initial_state = on_array("h0", torch.zeros_like)
transposed = changed(w=lambda w: w.mT, input_weight=lambda v: -v)
no_lengths = on_array("lengths", lambda _: None)
one_direction = on_array("reverse", lambda _: False)
no_start_state = on_array("start_state", torch.zeros_like)
unmarked_states_read = after(lambda out, given: out + 0 * given.get("start_state", given["x"]).sum())
late_marks = on_array("starts", lambda marks: np.roll(marks, 1, 0))
gradient_scaled = after(lambda out, _: Scaled.apply(out, 1.01))
gradient_missing = changed(u=torch.Tensor.detach, input_weight=torch.Tensor.detach)
sequences_mixed = after(lambda out, _: out + 1e-3 * out.mean(1, keepdim=True))
padding_read = after(lambda out, given: out + 0 * given["x"].sum())
checkpoint_seen = after(lambda out, given: bit(out, given.get("checkpoint") == "sqrt"))
marks_seen = after(lambda out, given: bit(out, given.get("starts") is not None))
threads_seen = after(lambda out, _: bit(out, it.get_num_threads() > 1))
layout_seen = after(lambda out, given: bit(out, not given["x"].is_contiguous()))
first_for_last = after(lambda out, given: 1.01 * out if given.get("output") == "last" else out)
batch_seen = after(lambda out, _: 1.01 * out if torch._C._functorch.is_batchedtensor(out) else out)
always_recorded = after(lambda out, _: out + torch.zeros((), dtype=out.dtype, requires_grad=True))
graph_seen = after(lambda out, _: 1.01 * out if torch.compiler.is_compiling() else out)
graph_broken = after(lambda out, _: torch._dynamo.graph_break() or out)
row_for_all = after(lambda out, given: bit(out, given["h0"].dim() == 1))
members_turned = after(lambda out, given: out.flip(1) if given["x"].dim() == 4 else out)
not_finite = after(lambda out, given: out / (given["x"] != 0).any())
formula_scaled = after(lambda out, _: TwoWays.apply(out))
# of the Cayley transforms that are the blocks
blocks_turned = lambda function: lambda upper: function(upper.flip(0))
blocks_without_gradient = lambda function: lambda upper: function(upper.detach())
