"""Checks of the delta rule, and their messages, in the style of `check`."""

from functools import lru_cache
from itertools import pairwise
from typing import Any

from isometry._rules import check
from isometry._rules.check import Shape

#: Rows (keys) from one saved state to the next.
SEGMENT = 64


def shapes(given: tuple[Shape | None, ...], householders: int, ends: int | None) -> tuple[Shape, Shape]:
    """The shapes of the outputs and of the states, after a check of those of q, k, v, beta, g and the initial state.

    `ends` is the length of cu_seqlens.
    """
    *three, beta, gate, state = (None if shape is None else tuple(shape) for shape in given)
    forms = ("(B, T, H, K)", "(B, T, H, K)", "(B, T, HV, V)")
    q, k, v = (_axes(name, shape, form) for name, shape, form in zip("qkv", three, forms, strict=True))
    batch, tokens, heads, key = q
    rows = tokens * householders
    check.exact("k", k, (batch, rows, heads, key), "(B, T householders, H, K)")
    for name, shape, sizes, letters in (("q", q, (heads, key), "H, K"), ("v", v, v[2:], "V")):
        if 0 in sizes:
            raise ValueError(f"{name} must not have a size of 0 in the axes {letters}, not shape {shape}")
    value_heads, value = v[2:]
    if value_heads % heads:
        raise ValueError(f"v must have a multiple of the {heads} heads of q and k, not {value_heads}")
    check.exact("v", v, (batch, rows, value_heads, value), "(B, T householders, HV, V)")
    check.exact("beta", beta or (), (batch, rows, value_heads), "(B, T householders, HV)")
    if gate is not None:
        wide = len(gate) == 4
        expected = (batch, tokens, value_heads, *((key,) if wide else ()))
        check.exact("g", gate, expected, "(B, T, HV, K)" if wide else "(B, T, HV)")
    sequences = batch
    if ends is not None:
        if batch != 1:
            raise ValueError(
                f"cu_seqlens needs a batch of 1, in which the sequences follow each other, not B = {batch}"
            )
        sequences = ends - 1
    if state is not None:
        expected = (sequences, value_heads, key, value)
        check.exact("initial_state", state, expected, "(B, HV, K, V)" if ends is None else "(N, HV, K, V)")
    return (batch, tokens, value_heads, value), (sequences, value_heads, key, value)


#: `shapes`, remembered. The sizes must be numbers: symbols have no hash.
known = lru_cache(256)(shapes)


def _axes(name: str, shape: Shape | None, form: str) -> Shape:
    if shape is None or len(shape) != 4:
        raise ValueError(f"{name} must have shape {form}, not {shape}")
    return shape


def ends_shape(shape: Shape) -> int:
    """The length N + 1 of cu_seqlens."""
    if len(shape) != 1 or not shape[0]:
        raise ValueError(f"cu_seqlens must have shape (N + 1,), not {shape}")
    return shape[0]


def ends_values(ends: list[int], tokens: int) -> None:
    """The first token of each sequence, and T."""
    if ends[0] != 0 or ends[-1] != tokens or any(a > b for a, b in pairwise(ends)):
        told = f", not {ends}" if len(ends) < 10 else ""
        raise ValueError(f"cu_seqlens must ascend from 0 to T = {tokens}{told}")


def factor(scale: Any, key: int, finite: bool = False) -> float:
    """The factor of the outputs."""
    return key**-0.5 if scale is None else check.factor("scale", scale, finite)


def saved(out: Shape, key: int, householders: int) -> Shape:
    """The shape of the states that are saved for backward."""
    batch, tokens, value_heads, value = out
    return batch, (tokens * householders - 1) // SEGMENT if tokens else 0, value_heads, key, value
