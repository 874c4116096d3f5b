"""One whole training step of a scoRNN on the copying problem (n = 190, batch 20, 1,020 steps): forward, loss,
backward, RMSprop. The peer trains the same parameters with the loop of the recurrences' peers, the same readout, loss
and optimiser.
"""

import copy
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

import isometry.torch as it
from harness.row import Bar, Candidate, Row
from isometry.cli.build import as_batch
from isometry.cli.tasks.copying import Copying
from rows.torch import formulas
from rows.torch.modules import each, training_step
from rows.torch.recurrences import scornn

N, BATCH, DELAY = 190, 20, 1000
TOLERANCE = (1e-4, 2e-3)  # of the loss; of the gradients, through 1,020 steps
ALPHA, RATE, RECURRENT_RATE = 0.9, 1e-3, 1e-4


class Network(nn.Module):
    """A scoRNN and its readout."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer, self.readout = it.nn.ScoRNN(inputs, N, nonlinearity="modrelu"), nn.Linear(N, outputs)
        nn.init.xavier_uniform_(self.readout.weight)
        nn.init.zeros_(self.readout.bias)

    def forward(self, x: Tensor) -> Tensor:
        values: Tensor = self.readout(self.layer(x)[0])
        return values


class Looped(Network):
    """The same by a loop over the steps."""

    def forward(self, x: Tensor) -> Tensor:
        own = self.layer
        square = x.new_zeros(N, N).index_put(tuple(torch.triu_indices(N, N, 1)), own.upper_l0)
        signs = formulas.half_signs(N).to(x.dtype)
        values: Tensor = self.readout(scornn(square, own.weight_ih_l0, own.activation_bias_l0, x, signs))
        return values


def rows() -> Iterator[Row]:
    torch.manual_seed(0)
    source = Copying(length=DELAY, batch=BATCH)
    x, target = as_batch(source.draw(np.random.default_rng(0)))
    start = Network(source.inputs, source.outputs)

    def side(name: str, kind: type[Network], dtype: torch.dtype = torch.float32) -> Candidate:
        network = kind(source.inputs, source.outputs).to(dtype)
        network.load_state_dict(copy.deepcopy(start.state_dict()))
        groups = it.nn.parameter_groups(network, lr=RATE, recurrent_lr=RECURRENT_RATE)
        made = network, torch.optim.RMSprop(groups, alpha=ALPHA)

        def step(network: Network) -> Tensor:
            network.zero_grad()
            loss = source.loss(network(x.to(dtype)), target)
            loss.backward()
            return loss

        return training_step(name, lambda: made, step, read=each)

    yield Row(
        name=f"training step scoRNN n{N} B{BATCH} T{DELAY + 20}",
        ours=side("isometry", Network),
        peers=[side("torch loop, dense W", Looped)],
        reference=side("float64", Looped, torch.float64).results or dict,
        bars=[Bar("torch loop", 4.0, 5.0)],
        flops=6.0 * N * (N + source.inputs + source.outputs) * BATCH * (DELAY + 20),
        tolerance=TOLERANCE,
        plan="dense",
    )
