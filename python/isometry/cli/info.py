"""Print the versions, the instruction set of the kernels, the threads and the GPU adapters."""

import argparse
import importlib.metadata
import os
import platform

from isometry.cli.errors import PACKAGES


def run(_: argparse.Namespace) -> int:
    for name, value in facts():
        print(f"{name:18} {value}")
    return 0


def facts() -> list[tuple[str, str]]:
    """(name, value) pairs in display order."""
    import isometry
    from isometry import _core

    rows = [
        ("isometry", isometry.__version__),
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        ("processor", processor()),
    ]
    rows += [(name, version(name) or "not installed") for name in ("numpy", *PACKAGES.values())]
    config = {name: value for name, value in _core.config().items() if name != "version"}
    rows += [(name.replace("_", " "), _plain(value)) for name, value in config.items()]
    rows.append(("threads", f"{isometry.get_num_threads()} (of {_core.available_parallelism()} available)"))
    listed = [f"{a.name} ({a.kind}, {a.backend}){', used' if a.used else ''}" for a in isometry.gpu.adapters()]
    rows.append(("gpu adapters", "; ".join(listed) or "none"))
    return rows


def processor() -> str:
    """The name of the processor, if the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} logical cores"


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def version(package: str) -> str | None:
    """That of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
