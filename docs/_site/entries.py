"""The reference: a page for every public name, listed with its first sentence on the page of its group.

The text is that of the docstrings.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

import isometry
import isometry.torch
from docstrings import escaped
from isometry._core import CELLS


def operators(package: ModuleType) -> list[str]:
    """The classes of operators, first the one whose methods all have."""
    return ["Operator", *(name for name in package.__all__ if name != "Operator")]


#: Page -> title, first sentence, and the names by module.
GROUPS: dict[str, tuple[str, str, dict[str, list[str]]]] = {
    "numpy-operators": (
        "NumPy: operators",
        "Every operator has the methods of :class:`isometry.Operator`.",
        {"isometry": operators(isometry.operators)},
    ),
    "numpy-functions": (
        "NumPy: recurrences and functions",
        "Functions of arrays, each with its vector-Jacobian product.",
        {
            "isometry": [
                *[f"{cell}{end}" for cell in CELLS for end in ("", "_vjp")],
                "activate",
                "activate_vjp",
                "delta_rule",
                "delta_rule_vjp",
                "hadamard_transform",
                "cayley_step",
                "real_matrix",
                "real_state",
                "real_input",
                "complex_matrix",
                "complex_state",
            ],
            "isometry.linalg": [
                "householder_product",
                "householder_product_vjp",
                "ormqr",
                "ormqr_vjp",
                "geqrf",
                "geqrf_vjp",
                "qr",
                "procrustes",
                "procrustes_vjp",
                "cayley",
                "cayley_vjp",
            ],
        },
    ),
    "numpy-data": (
        "NumPy: data and measures",
        "Data for the papers' tasks, readers of files, and measures of a network.",
        {
            "isometry": ["orthogonality_error", "load_run"],
            "isometry.tasks": [
                "adding",
                "copying",
                "permutations",
                "one_hot",
                "pixels",
                "characters",
                "waveform",
                "random_waveform",
                "spectrogram",
            ],
            "isometry.metrics": ["nmse", "masked_mse", "orthogonality_error"],
            "isometry.readers": ["read_idx", "read_audio", "read_wav", "read_sphere", "read_text"],
        },
    ),
    "settings": (
        "Threads, backends, GPU",
        "Settings for a whole process or for a block of code.",
        {
            "isometry": ["set_num_threads", "get_num_threads", "show_config", "use_backend"],
            "isometry.gpu": ["Array", "Adapter", "adapters", "statistics", "synchronize", "reset"],
        },
    ),
    "torch-operators": (
        "torch: operators",
        "Every operator has the methods of :class:`isometry.torch.Operator`.",
        {"isometry.torch": operators(isometry.torch.operators)},
    ),
    "torch-layers": (
        "torch: recurrent layers",
        "Every layer has the methods of :class:`isometry.torch.nn.ORNN`.",
        {
            "isometry.torch.nn": [
                "ORNN",
                "ScoRNN",
                "ExpRNN",
                "EURNN",
                "UnitaryORNN",
                "ScuRNN",
                "URNN",
                "FullCapacityURNN",
                "KRU",
                "SoftORNN",
                *[name for name in isometry.torch.nn.__all__ if name.lower() in CELLS],
                "RNN",
                "DeltaProduct",
                "RealState",
                "from_torch",
                "to_torch",
                "parameter_groups",
            ]
        },
    ),
    "torch-weights": (
        "torch: orthogonal weights",
        "For weights of any module: see :doc:`the guide </orthogonal-weights>`.",
        {
            "isometry.torch.parametrizations": ["orthogonal"],
            "isometry.torch.init": ["orthogonal_"],
            "isometry.torch.nn": ["OperatorModule"],
            "isometry.torch.adapters": ["OFT", "HRA", "attach", "detach", "merge", "adapter_state_dict"],
            "isometry.torch.optim": ["CayleySGD", "CayleyRMSprop"],
        },
    ),
    "torch-functions": (
        "torch: recurrences and functions",
        "Functions of tensors, differentiable.",
        {
            "isometry.torch": [
                *CELLS,
                "delta_rule",
                "activate",
                "hadamard_transform",
                "cayley_step",
                "orthogonality_error",
                "real_matrix",
                "real_state",
                "real_input",
                "complex_matrix",
                "complex_state",
                "get_num_threads",
                "set_num_threads",
                "show_config",
                "use_backend",
            ],
            "isometry.torch.linalg": ["householder_product", "ormqr", "geqrf", "qr", "cayley", "procrustes"],
            "isometry.torch.fla": [
                "chunk_delta_rule",
                "fused_recurrent_delta_rule",
                "chunk_gated_delta_rule",
                "fused_recurrent_gated_delta_rule",
                "chunk_gated_delta_product",
                "chunk_kda",
                "fused_recurrent_kda",
            ],
            "isometry.integrations.onnx": ["export"],
            "isometry.integrations.torch": ["register", "Registration"],
            "isometry.integrations.sb3": ["RecurrentPolicy", "register"],
            "isometry.integrations.torchrl": ["register"],
            "isometry.integrations.transformers": ["register", "Registration"],
        },
    ),
}
#: The class whose page shows what its siblings inherit, and the classes that end that search.
INHERITED = {
    "isometry.Operator": "object",
    "isometry.torch.Operator": "object",
    "isometry.torch.nn.ORNN": "Module",
}


def entry(module: str, name: str) -> list[str]:
    """The directive of one name."""
    path = f"{module}.{name}"
    if not name[0].isupper():
        return [f".. autofunction:: {path}", ""]
    lines = [f".. autoclass:: {path}", "   :members:"]
    if path in INHERITED:
        lines.append(f"   :inherited-members: {INHERITED[path]}")
    return [*lines, ""]


def summary(module: str, name: str) -> str:
    """The first sentence of a docstring, as one line."""
    first = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
    line = " ".join(escaped(first.partition("\n\n")[0].splitlines()))
    return line.partition(". ")[0].removesuffix(".") + "."


def page(module: str, name: str, first: str) -> str:
    """The page of a name; `first` is the sentence of its group, which says where a class's other methods are."""
    said = [first, ""] if ":class:`" in first and name[0].isupper() and f"{module}.{name}" not in INHERITED else []
    return "\n".join([name, "=" * len(name), "", *said, *entry(module, name)])


def group(title: str, first: str, modules: dict[str, list[str]]) -> str:
    """The page of a group: what each name is, with a link to its page."""
    lines = [title, "=" * len(title), "", first, ""]
    for module, names in modules.items():
        if len(modules) > 1:
            lines += [f"``{module}``", "-" * (len(module) + 4), ""]
        lines += [".. list-table::", "   :widths: 30 70", ""]
        for name in names:
            lines += [f"   * - :doc:`{name} <{module}.{name}>`", f"     - {summary(module, name)}"]
        lines += [""]
    paths = [f"   {name} <{module}.{name}>" for module, names in modules.items() for name in names]
    return "\n".join([*lines, ".. toctree::", "   :hidden:", "", *paths, ""])


def index() -> str:
    title = "Reference"
    lines = [title, "=" * len(title), "", "Every public name, from its docstring.", ""]
    for group_name, (_, _, modules) in GROUPS.items():
        names = [f":doc:`{name} <{module}.{name}>`" for module, names in modules.items() for name in names]
        lines += [f":doc:`{group_name}`", "   " + ", ".join(names), ""]
    return "\n".join([*lines, ".. toctree::", "   :hidden:", "", *(f"   {name}" for name in GROUPS), ""])


def pages() -> dict[str, str]:
    """File name -> text of every page of the reference."""
    found = {"index.rst": index()} | {f"{name}.rst": group(*facts) for name, facts in GROUPS.items()}
    for _, first, modules in GROUPS.values():
        own = [(module, name) for module, names in modules.items() for name in names]
        found |= {f"{module}.{name}.rst": page(module, name, first) for module, name in own}
    return found
