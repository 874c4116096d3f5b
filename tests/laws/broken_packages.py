"""Faults of a package with arguments, dtypes, devices, copies and layers; the laws must reject each."""

import copy

import numpy as np
import torch

from faces import NumpyFace
from subjects import NumpySubject, TorchSubject
from support.broken import broken, nameless, on_results

# ---------------------------------------------------------------- check_finite: changes of call(arguments, check)


def never_looks(call):
    return lambda arguments, _: call(arguments, False)


def always_looks(call):
    return lambda arguments, _: call(arguments, True)


def overlooks_infinity(call):
    return lambda arguments, check: call(arguments, check and any(np.isnan(a).any() for a in arguments.values()))


def overlooks(name):
    """Checks every argument except this one."""
    return lambda call: lambda arguments, check: call(arguments, check and np.isfinite(arguments[name]).all())


def names_nobody(call):
    def wrong(arguments, check):
        try:
            return call(arguments, check)
        except ValueError:
            raise ValueError("an argument must be finite") from None

    return wrong


LosesNan = broken(TorchSubject, on_results(np.nan_to_num), "apply")


# ---------------------------------------------------------------- mixed precision


class PromotesInSilence(NumpySubject):
    """Promotes where mixed precisions must be rejected."""

    face = NumpyFace()
    face.mixes = False


RefusesWithoutNames = broken(TorchSubject, nameless, "matrix", "apply", "recurrence", "activate")


# ---------------------------------------------------------------- conversions


class ConvertsNothing(NumpySubject):
    def converted(self, dtype):
        super().converted(dtype)
        return self.operator()


class DropsTheImaginaryPart(NumpySubject):
    """Takes every dtype; of a real operator each, as it should."""

    def converted(self, dtype):
        w = self.package.Dense(self.matrix())
        return self.package.Dense(w.weight.real.astype(dtype)) if np.dtype(dtype).kind == "f" else w.astype(dtype)


# ---------------------------------------------------------------- copies: twins of a Cayley, of a layer


def itself(value):
    return value


def with_changed_values(op):
    """Changed values that do not show in the representation."""
    twin = copy.deepcopy(op)
    twin.upper[..., 0] *= 2
    return twin


def without_buffers(layer):
    """The diagonal of D is not copied."""
    twin = copy.deepcopy(layer)
    for buffer in twin.buffers():
        buffer.fill_(1)
    return twin


# ---------------------------------------------------------------- layers in single precision


def gradients_scaled(layer):
    for p in layer.parameters():
        p.register_hook(lambda g: 1.001 * g)
    return layer


# ---------------------------------------------------------------- devices


def looks_everywhere(*tensors):  # noqa: ARG001
    """Replaces `visible`."""
    return not torch.compiler.is_compiling()
