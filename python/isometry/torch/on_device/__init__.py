"""Recurrences on devices that have no kernels (CUDA, MPS, XPU): the algorithm of the kernels in torch operations.

The formula of a cell records every operation of every step. Here a `torch.autograd.Function` writes the states into one
array, step by step, and walks back over it. What does not depend on the recursion is computed for all steps at once:
inputs before it, the derivatives of activations and the factors of gates before the way back, the gradients of weights
after it. On such a device each call is a launch, so the calls per step are what a sequence costs.
"""

from .states import serves, states

__all__ = ["serves", "states"]
