"""States of weights that `fully_shard` divides between two processes: with fewer rows than processes, in stacks, and
with a copy in each process (HSDP)."""

import itertools
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import distribute_tensor

import isometry.torch as it

PROCESSES = 2
SHAPES = ((9, 4), (5, 5), (1, 4), (1, 6, 3))
#: Element type, map, use_trivialization.
FORMS = ((torch.float32, "householder", True), (torch.complex64, "householder", False), (torch.float32, "cayley", True))


class Holder(torch.nn.Module):
    def __init__(self, seed, shape, dtype, name, based):
        super().__init__()
        torch.manual_seed(seed)
        self.weight = torch.nn.Parameter(torch.randn(shape, dtype=dtype))
        it.parametrizations.orthogonal(self, "weight", name, use_trivialization=based)
        with torch.no_grad():  # below 1/4: the signs that were kept count
            self.parametrizations.weight.original.mul_(0.1)

    def forward(self):
        return self.weight.clone()


def divided(t, like):
    return distribute_tensor(t, like.device_mesh, like.placements) if hasattr(like, "full_tensor") else t


def check(mesh, *form):
    module, twin, other = (Holder(seed, *form) for seed in (0, 0, 1))
    fully_shard(module, mesh=mesh)
    own, expected = dict(module.named_parameters()), twin.state_dict()
    found = module.state_dict()
    assert found.keys() == expected.keys()
    saved = {key: t.clone() for key, t in found.items()}
    for key, t in found.items():
        if key in own:
            assert t.placements == own[key].placements, (form, key)
            t = t.full_tensor()
        assert torch.equal(t, expected[key]), (form, key)
    module.load_state_dict({key: divided(t, found[key]) for key, t in other.state_dict().items()})
    torch.testing.assert_close(module(), other(), rtol=1e-5, atol=1e-5)
    module.load_state_dict(saved)
    torch.testing.assert_close(module(), twin(), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=PROCESSES)
    meshes = init_device_mesh("cpu", (2,)), init_device_mesh("cpu", (2, 1), mesh_dim_names=("copies", "parts"))
    for mesh, shape, form in itertools.product(meshes, SHAPES, FORMS):
        check(mesh, shape, *form)
    dist.destroy_process_group()
