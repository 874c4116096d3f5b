"""Calls of torch on a device without kernels, and what is kept: the tables of benches/measurements.md.

Of a recurrence per step, of the delta rule per chunk of 64 tokens, and of a thin weight that is made orthogonal.

    python benches/device_calls.py

Counted on the meta device, whose tensors are computed as those of CUDA, MPS and XPU. Views and allocations are left
out.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import isometry.torch as it
from weights import ways

SIZE, INPUTS, BATCH = 16, 3, 4
LAYERS = ("ScoRNN", "ExpRNN", "ORNN", "SoftORNN", "ScuRNN", "URNN", "EURNN", "KRU", "GRU", "GORU", "LSTM", "RUM")
FREE = (
    *("view", "reshape", "expand", "slice", "select", "unsqueeze", "squeeze", "transpose", "permute", "detach", "t"),
    *("alias", "unbind", "split", "split_with_sizes", "as_strided", "_unsafe_view", "diagonal", "_conj", "_neg_view"),
    *("view_as_real", "view_as_complex", "real", "imag", "unflatten", "flatten"),
    *("empty", "new_empty", "empty_strided", "empty_like"),
)


class Counter(TorchDispatchMode):
    """Counts what computes something."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.__name__.split(".")[0] not in FREE
        return func(*args, **(kwargs or {}))


class Loop(nn.Module):
    """What one would write."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.cell = kind, nn.GRUCell(INPUTS, SIZE)
        self.weight, self.bias = nn.Parameter(torch.eye(SIZE)), nn.Parameter(torch.zeros(SIZE))
        self.embed = nn.Linear(INPUTS, SIZE)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The states, and the last."""
        h, states = x.new_zeros(x.shape[1], SIZE), []
        for row in x if self.kind == "GRUCell" else self.embed(x):
            if self.kind == "GRUCell":
                h = self.cell(row, h)
            else:
                z = h @ self.weight.T + row
                h = torch.tanh(z) if self.kind == "tanh" else torch.sign(z) * torch.relu(z.abs() + self.bias)
            states.append(h)
        return torch.stack(states), h


def counted(run: Callable[[], Any]) -> tuple[int, Any]:
    """The number of calls, and the result."""
    with Counter() as counter:
        result = run()
    return counter.count, result


def per_step(layer: nn.Module) -> tuple[int, int, float]:
    """Calls forward and backward, and what is kept in arrays (T, B, n) of the type of the states."""
    layer, counts, steps = layer.to("meta"), [], 64
    for length in (steps, 2 * steps):
        x = torch.empty(length, BATCH, INPUTS, device="meta", requires_grad=True)
        forward, (y, _) = counted(lambda x=x: layer(x))
        counts.append((forward, counted(lambda y=y: y.backward(torch.empty_like(y)))[0]))
    y, kept = saved(lambda: layer(torch.empty(16 * steps, BATCH, INPUTS, device="meta"))[0])
    (f0, b0), (f1, b1) = counts
    return round((f1 - f0) / steps), round((b1 - b0) / steps), kept


def saved(run: Callable[[], Tensor]) -> tuple[Tensor, float]:
    """The result, and the memory that is kept for its gradient, in units of its own."""
    kept: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        storage = t.untyped_storage()
        kept[storage._cdata] = storage.nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = run()
    return y, sum(kept.values()) / (y.numel() * y.itemsize)


def per_chunk(gated: bool) -> tuple[int, int]:
    """Calls of the delta rule forward and backward."""
    counts, tokens = [], 640
    for length in (tokens, 2 * tokens):
        new = lambda *more, length=length: torch.empty(1, length, 2, *more, device="meta", requires_grad=True)
        q, k, v, beta, g = new(SIZE), new(SIZE), new(SIZE), new(), new() if gated else None
        forward, (o, _) = counted(lambda q=q, k=k, v=v, beta=beta, g=g: it.delta_rule(q, k, v, beta, g=g))
        counts.append((forward, counted(lambda o=o: o.backward(torch.empty_like(o)))[0]))
    (f0, b0), (f1, b1) = counts
    return (f1 - f0) * 64 // tokens, (b1 - b0) * 64 // tokens


def weights() -> dict[str, Callable[[nn.Linear], nn.Module]]:
    """Ways to a thin orthogonal weight."""
    named = {", ".join(reversed(name.replace("expm", "matrix_exp").split())): make for name, make in ways().items()}
    return {name: partial(make, name="weight") for name, make in named.items()}


def of_weight(parametrised: Callable[[nn.Linear], nn.Module]) -> tuple[int, int, float]:
    """Calls of a weight of shape (512, 32) forward and backward, and what is kept."""
    layer: Any = parametrised(nn.Linear(32, 512)).to("meta")
    forward, w = counted(lambda: layer.weight)
    backward, _ = counted(lambda: w.backward(torch.empty_like(w)))
    return forward, backward, saved(lambda: layer.weight)[1]


def main() -> None:
    """Prints the tables."""
    print(f"{'':25} forward  backward  kept")
    layers = {name: getattr(it.nn, name)(INPUTS, SIZE) for name in LAYERS}
    loops = {f"a loop, {kind}": Loop(kind) for kind in ("tanh", "modReLU", "GRUCell")}
    for name, layer in (layers | loops).items():
        print("{:25} {:7} {:9} {:5.1f}".format(name, *per_step(layer)))
    for gated in (False, True):
        print("{:25} {:7} {:9}".format(f"delta rule, {'gates' if gated else 'no gates'}", *per_chunk(gated)))
    for name, parametrised in weights().items():
        print("{:25} {:7} {:9} {:5.1f}".format(name, *of_weight(parametrised)))


if __name__ == "__main__":
    main()
