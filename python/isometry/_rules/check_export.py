"""Where a layer cannot go, and what takes it there."""

from typing import NoReturn


def in_onnx(operator: str) -> NoReturn:
    """A call that torch.onnx.export meets."""
    raise NotImplementedError(
        f"torch.onnx.export does not know {operator}: call isometry.integrations.onnx.export with the same arguments"
    )


def in_script(layer: str) -> NoReturn:
    """A layer that torch.jit.script is to compile."""
    raise NotImplementedError(
        f"{layer} cannot be compiled by torch.jit.script: torch.compile and torch.export take it, and "
        "isometry.integrations.onnx.export writes ONNX"
    )
