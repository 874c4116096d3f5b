"""Training in the processes that torchrun starts, with torch's DistributedDataParallel over gloo.

Every process draws the whole batch, from the same generator, and works on its share of the sequences; gradients,
losses and scores are means over the processes. So N processes make the updates of one, up to rounding, for every loss
that is a mean over the sequences of a batch. The process of rank 0 writes the run's folder.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from isometry.cli.errors import UsageError
from isometry.cli.interrupt import Interrupt

Inputs = Tensor | PackedSequence


@dataclass(frozen=True)
class Group:
    """The processes of a run, and the rank of this one."""

    rank: int = 0
    size: int = 1
    signals: Interrupt = field(default_factory=Interrupt)  # signals that came outside the training loop

    @property
    def first(self) -> bool:
        """Whether this process writes."""
        return self.rank == 0

    def wrap(self, network: nn.Module) -> nn.Module:
        """The network as it is trained: gradients are means over the processes."""
        if self.size == 1:
            return network
        return nn.parallel.DistributedDataParallel(network)

    def share(self, x: Inputs, target: Tensor, *, last_only: bool) -> tuple[Inputs, Tensor]:
        """This process's sequences of a batch.

        Sequences are along axis 1 of x (T, B, inputs) and of targets, along axis 0 of targets for the last state.
        """
        if self.size == 1:
            return x, target
        if isinstance(x, PackedSequence):
            padded, lengths = pad_packed_sequence(x)
            own = self._own(len(lengths))
            if last_only:
                target = target[own]
            else:  # in the order of the packed x
                targets, _ = pad_packed_sequence(x._replace(data=target))
                target = pack_padded_sequence(targets[:, own], lengths[own], enforce_sorted=False).data
            return pack_padded_sequence(padded[:, own], lengths[own], enforce_sorted=False), target
        axis = 0 if last_only or target.dim() == 1 else 1
        own = self._own(x.shape[1])
        if target.shape[axis] != x.shape[1]:
            raise UsageError(
                f"TASK: for several processes the target of draw must hold the {x.shape[1]} sequences along axis "
                f"{axis}, not be of shape {tuple(target.shape)}"
            )
        return x[:, own].contiguous(), (target[own] if axis == 0 else target[:, own]).contiguous()

    def _own(self, sequences: int) -> slice:
        if sequences % self.size:
            raise UsageError(f"--batch: {self.size} processes cannot share {sequences} sequences equally")
        each = sequences // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def mean(self, values: Mapping[str, float]) -> dict[str, float]:
        """The means of the processes' values."""
        if self.size == 1:
            return dict(values)
        sums = torch.tensor(list(values.values()), dtype=torch.float64)
        dist.all_reduce(sums)
        return dict(zip(values, (sums / self.size).tolist(), strict=True))

    def interrupted(self, here: bool) -> bool:
        """Whether any process has received a signal; `here` is whether this one's loop has."""
        return here if self.size == 1 else self.mean({"signal": float(here or self.signals.requested)})["signal"] > 0


@contextmanager
def joined() -> Iterator[Group]:
    """The processes that torchrun has started, or that torch.distributed already connects; else this one alone.

    No process leaves before all have finished, since torchrun ends the others when one does; the training loop handles
    signals meanwhile.
    """
    connected = dist.is_available() and dist.is_initialized()
    if not connected and not (dist.is_available() and dist.is_torchelastic_launched()):
        yield Group()
        return
    with Interrupt() as signals:
        if not connected:
            dist.init_process_group("gloo")
        try:
            yield Group(dist.get_rank(), dist.get_world_size(), signals)
            dist.barrier()
        finally:
            if not connected:
                dist.destroy_process_group()
