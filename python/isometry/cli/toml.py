"""The part of TOML that a run's settings need: writing scalars and tables of scalars (tomllib only reads)."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from typing import Any

loads = tomllib.loads


def dumps(table: Mapping[str, Any]) -> str:
    """Scalars first, then one section per inner table; `loads` returns the same table."""
    lines = [f"{name} = {_scalar(v)}" for name, v in table.items() if not isinstance(v, Mapping)]
    for name, inner in table.items():
        if isinstance(inner, Mapping):
            lines += ["", f"[{name}]"] + [f"{key} = {_scalar(v)}" for key, v in inner.items()]
    return "\n".join(lines) + "\n"


def value(text: str) -> bool | int | float | str:
    """The value of KEY=VALUE: a TOML scalar if it parses as one, else the text itself."""
    try:
        found = loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    single = found.get("value")
    return single if len(found) == 1 and isinstance(single, bool | int | float | str) else text


def _scalar(item: Any) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int):
        return str(item)
    if isinstance(item, float):
        if not math.isfinite(item):
            return "nan" if math.isnan(item) else ("inf" if item > 0 else "-inf")
        text = repr(item)
        return text if any(c in text for c in ".en") else text + ".0"
    if isinstance(item, str):
        return json.dumps(item, ensure_ascii=False)  # a TOML basic string has JSON's escapes
    raise TypeError(f"value: expected a scalar, got {type(item).__name__}")
