"""Cells that are wrong in one way each; every law rejects those it is there to find."""

import numpy as np
import torch

import isometry.torch as it
from support.cells import TorchCell


def changed(**change):
    """A cell that is called with other options or arrays: name -> a function of what was given."""

    class Changed(TorchCell):
        def run(self, given, **options):
            given = {name: change[name](a) if name in change else a for name, a in given.items()}
            return super().run(given, **{k: change[k](v) if k in change else v for k, v in options.items()})

    return Changed


def after(wrong):
    """A cell whose results pass through a function of results, arrays and options."""

    class After(TorchCell):
        def run(self, given, **options):
            return wrong(super().run(given, **options), given, options)

    return After


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


def bit(out, wrong):
    """The results, or with the least change."""
    return out * (1 + torch.finfo(out.dtype).eps) if wrong else out


def of_the_batch(out):
    return torch._C._functorch.is_batchedtensor(out)


states_scaled = after(lambda out, *_: 1.01 * out)
no_initial_state = changed(h0=torch.zeros_like)
transposed = changed(w=lambda w: w.mT, input_weight=lambda v: -v)
no_lengths = changed(lengths=lambda _: None)
one_direction = changed(reverse=lambda _: False)
no_marks = changed(starts=np.zeros_like, start_state=lambda s: 0 * s)
no_start_state = changed(start_state=torch.zeros_like)
constant_start_state = changed(start_state=torch.Tensor.detach)
unmarked_first_step = changed(starts=lambda marks: marks & (np.arange(len(marks)) > 0)[:, None])
first_state_at_all_marks = changed(start_state=lambda s: s[3, 1].expand(s.shape))
unmarked_states_read = after(lambda out, given, _: out + 0 * given.get("start_state", given["x"]).sum())
late_marks = changed(starts=lambda marks: np.roll(marks, 1, 0))
gradient_scaled = after(lambda out, *_: Scaled.apply(out, 1.01))
gradient_missing = changed(u=torch.Tensor.detach, input_weight=torch.Tensor.detach)
sequences_mixed = after(lambda out, *_: out + 1e-3 * out.mean(1, keepdim=True))
padding_read = after(lambda out, given, _: out + 0 * given["x"].sum())
checkpoint_seen = after(lambda out, _, options: bit(out, options.get("checkpoint") == "sqrt"))
marks_seen = after(lambda out, _, options: bit(out, options.get("starts") is not None))
threads_seen = after(lambda out, *_: bit(out, it.get_num_threads() > 1))
layout_seen = after(lambda out, given, _: bit(out, not given["x"].is_contiguous()))
first_for_last = after(lambda out, _, options: 1.01 * out if options.get("output") == "last" else out)
batch_seen = after(lambda out, *_: 1.01 * out if of_the_batch(out) else out)
always_recorded = after(lambda out, *_: out + torch.zeros((), dtype=out.dtype, requires_grad=True))
graph_seen = after(lambda out, *_: 1.01 * out if torch.compiler.is_compiling() else out)
graph_broken = after(lambda out, *_: torch._dynamo.graph_break() or out)
row_for_all = after(lambda out, given, _: bit(out, given["h0"].dim() == 1))
blocks_turned = changed(**{"transition 0": lambda a: a.flip(0)})
blocks_without_gradient = changed(**{"transition 0": torch.Tensor.detach})
members_turned = after(lambda out, given, _: out.flip(1) if given["x"].dim() == 4 else out)
not_finite = after(lambda out, given, _: out / (given["x"] != 0).any())
formula_scaled = after(lambda out, *_: TwoWays.apply(out))


class GradientsAcrossMarks(TorchCell):
    """The right states, the gradients of one sequence."""

    def run(self, given, **options):
        states = super().run(given, **options)
        whole = super().run({k: t for k, t in given.items() if k != "start_state"}, **{**options, "starts": None})
        return states.detach() + whole - whole.detach()


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
