"""h <- phi(W h + V x_t + b), or W h + phi(V x_t + b)."""

from typing import Any

from torch import Tensor

from .sequence import Carried, Law, Step, first


def formula(law: Law, weight: Tensor, *arrays: Any) -> tuple[Tensor, Carried, Step]:
    """V x + b of all steps, the first state, and a step."""
    x, input_weight, h0, bias, activation_bias = arrays
    (on_input,) = law.settings
    drive = x @ input_weight.mT
    drive = drive if bias is None else drive + bias
    drive = law.phi(drive, activation_bias) if on_input else drive

    def step(drive: Tensor, carried: Carried) -> Carried:
        new = carried[0] @ weight.mT + drive
        return (new if on_input else law.phi(new, activation_bias),)

    return drive, (first(h0, drive, weight.shape[0]),), step
