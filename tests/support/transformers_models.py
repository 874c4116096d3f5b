"""Tiny models with delta rules of the package transformers, with random weights."""

from importlib import import_module

import torch

SIZES = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
GATED = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
}  # fmt: skip
MIXED = {**GATED, **EXPERTS, "num_experts": 4, "shared_expert_intermediate_size": 16}
KDA = {
    "linear_num_heads": 2, "linear_head_dim": 8, "kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "mlp_layer_types": ["dense", "dense"], **EXPERTS,
}  # fmt: skip
#: A model of two blocks, both with the rule: attention of a kind of its own stands in the others.
ALONE = {"layer_types": ["linear_attention"] * 2}
INDEXER = {"index_topk": 16, "index_kpool": 4, "index_head_dim": 8, "index_n_heads": 2}
#: Configuration, model, and its own sizes.
MODELS = {
    "qwen3_5": ("Qwen3_5TextConfig", "Qwen3_5ForCausalLM", GATED),
    "qwen3_5_moe": ("Qwen3_5MoeTextConfig", "Qwen3_5MoeForCausalLM", MIXED),
    "qwen3_next": ("Qwen3NextConfig", "Qwen3NextForCausalLM", MIXED),
    "qwen4_exp": ("Qwen4ExpTextConfig", "Qwen4ExpForCausalLM", {**MIXED, **ALONE, "hc_count": 2, "hc_lowrank": 4}),
    "olmo_hybrid": ("OlmoHybridConfig", "OlmoHybridForCausalLM", {**GATED, "linear_allow_neg_eigval": True}),
    "kimi_linear": ("KimiLinearConfig", "KimiLinearForCausalLM", {**KDA, "num_local_experts": 4}),
    "glm5_next": (
        "Glm5NextTextConfig",
        "Glm5NextTextModel",
        {**KDA, **ALONE, **INDEXER, "qk_rope_head_dim": 0, "n_routed_experts": 4},
    ),
    "bailing_hybrid": (
        "BailingHybridConfig",
        "BailingHybridForCausalLM",
        {**KDA, "num_local_experts": 4, "head_dim": 8},
    ),
}


def module(name, of="modeling"):
    return import_module(f"transformers.models.{name}.{of}_{name}")


def build(name, **more):
    """Random weights, and gates with which states last for some tokens."""
    config, model, own = MODELS[name]
    torch.manual_seed(0)
    made = getattr(module(name), model)(getattr(module(name, "configuration"), config)(**SIZES | own | more))
    with torch.no_grad():
        for key, parameter in made.named_parameters():
            if key.endswith("A_log"):
                parameter.uniform_(-5, -2)
            elif parameter.ndim == 2 and "linear_attn" in key:
                parameter.mul_(5)
    return made.eval()


def tokens(batch=2, length=70):
    return torch.randint(3, 64, (batch, length), generator=torch.Generator().manual_seed(1))


def outputs(model, call=None, **given):
    given = {"input_ids": tokens(), "use_cache": False} | given
    found = (model if call is None else call)(**given)
    return found.logits if hasattr(found, "logits") else found.last_hidden_state
