"""One training step of a Qwen3.5 of four blocks, three with the gated delta rule, with `register()` and without.

Hidden size 1,024; 16 heads with keys and values of 128; B = 1, T = 4,096; random weights. A step is forward, loss,
backward and SGD. Values are those of the weights at the start: logits, and all gradients as one vector.
"""

import copy
from collections.abc import Iterator
from functools import cache

import torch

from harness.row import Bar, Row
from isometry.cli.errors import Failure, missing
from isometry.integrations.transformers import register
from rows.torch.modules import training_step

HIDDEN, HEADS, WIDTH, STEPS, BLOCKS = 1024, 16, 128, 4096, 4
TOLERANCE = (1e-5, 1e-4)  # of the logits; of the gradients

Made = tuple[torch.nn.Module, torch.optim.Optimizer]


def rows() -> Iterator[Row]:
    if lack := missing(["transformers"], "the group qwen"):
        raise Failure(lack)
    torch.manual_seed(0)
    ids = torch.randint(512, (1, STEPS))
    made = cache(lambda: optimised(model()))

    def step(model: torch.nn.Module) -> torch.Tensor:
        model.zero_grad()
        found = model(input_ids=ids, labels=ids, use_cache=False)
        found.loss.backward()
        return found.logits  # type: ignore[no-any-return]

    exact = training_step("float64", lambda: optimised(copy.deepcopy(made()[0]).double()), step)
    yield Row(
        name=f"training step Qwen3.5, {BLOCKS} blocks T{STEPS}",
        ours=training_step("isometry", made, step, register),
        peers=[training_step("transformers", made, step)],
        reference=exact.results or dict,
        bars=[Bar("transformers", 1.6, 2.0)],
        tolerance=TOLERANCE,
    )


def optimised(module: torch.nn.Module) -> Made:
    return module, torch.optim.SGD(module.parameters(), lr=1e-6)


def model() -> torch.nn.Module:
    """Its gates such that states last, as in trained layers."""
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    torch.manual_seed(0)
    given = {
        "vocab_size": 512, "hidden_size": HIDDEN, "intermediate_size": 3 * HIDDEN, "num_hidden_layers": BLOCKS,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": WIDTH, "linear_num_key_heads": HEADS,
        "linear_num_value_heads": HEADS, "linear_key_head_dim": WIDTH, "linear_value_head_dim": WIDTH,
    }  # fmt: skip
    made = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**given))
    for name, parameter in made.named_parameters():
        if name.endswith("A_log"):
            torch.nn.init.uniform_(parameter, -5, -2)
    return made  # type: ignore[no-any-return]
