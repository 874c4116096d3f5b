"""Adapters for fine-tuning: a frozen ``torch.nn.Linear`` that sees its inputs turned by a trained orthogonal matrix."""

from .hra import HRA
from .model import adapter_state_dict, attach, detach, merge
from .oft import OFT

__all__ = ["HRA", "OFT", "adapter_state_dict", "attach", "detach", "merge"]
