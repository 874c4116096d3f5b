"""Two processes that torch.distributed connects run the same commands: python distributed_runs.py STORE RANK COMMANDS,
the commands as JSON.
"""

import json
import sys

import torch.distributed as dist

from isometry.cli import main

if __name__ == "__main__":
    store, rank, commands = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    status = [main(command) for command in commands]
    dist.destroy_process_group()
    sys.exit(max(status))
