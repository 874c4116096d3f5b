"""The training of test_layers.py on a whole batch, and as a program with half of it in each of two processes."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import isometry.torch as it


def trained(rank=None):
    """State dicts of three layers after three steps on the whole batch, or on the half of a rank."""
    torch.manual_seed(7)
    layers = [cls(3, 6, 2, bidirectional=True, dtype=torch.float64) for cls in (it.nn.ORNN, it.nn.ScoRNN, it.nn.ScuRNN)]
    x = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    part = x if rank is None else x[:, 2 * rank : 2 * rank + 2]
    for layer in layers:
        model = layer if rank is None else DistributedDataParallel(layer)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (out, last), (again, _) = model(part), model(part.flip(0))
            (out.abs().square().mean() + last.real.mean() + again.real.mean()).backward()
            optimizer.step()
    return [layer.state_dict() for layer in layers]


if __name__ == "__main__":
    store, rank, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.save(trained(rank), out)
    dist.destroy_process_group()
