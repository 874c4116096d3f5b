"""Makes a row of torch from tensors, our call, the peers' calls, and the float64 reference."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from harness.row import PEAK_SIZE, TOLERANCE, Bar, Candidate, Frame, Results, Row
from harness.row import side as candidate

Call = Callable[..., Tensor]
Draw = Callable[[], dict[str, Tensor]]
Forms = Mapping[str, Callable[[Tensor], Tensor]]
WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class Side(NamedTuple):
    """A peer that takes tensors in another form: `form` makes them, `pick` undoes it for their gradients."""

    call: Call
    form: Forms
    pick: Forms
    checked: bool = True


def frame() -> Frame:
    a = torch.randn(PEAK_SIZE, PEAK_SIZE)
    return Frame("torch.mm", lambda: a @ a)


def row(
    name: str,
    draw: Draw,
    ours: Call,
    peers: Mapping[str, Call | Side],
    bars: Sequence[Bar] = (),
    flops: float = 0.0,
    *,
    gradients: bool = True,
    fixed: Sequence[str] = (),
    form: Forms | None = None,
    pick: Forms | None = None,
    reference: Call | None = None,
    tolerance: tuple[float, float] = TOLERANCE,
    share: tuple[float, float] | None = None,
    plan: str = "",
) -> Row:
    """The row of a function of tensors, which every side takes in the order in which `draw` names them.

    All are differentiated but those in `fixed`, or none without `gradients`; the gradient of the value is random.
    `form` turns a tensor, and the
    gradients of the peers, into the form in which our side takes it (`pick`: the gradients of every side, instead). The
    reference, by default the first peer, computes in float64.
    """
    form = form or {}
    pick = pick or form
    drawn = cache(lambda: (torch.manual_seed(0), draw())[1])  # on first use: a skipped row costs nothing

    def side(label: str, given: Call | Side, wide: bool = False) -> Candidate:
        own = given if isinstance(given, Side) else Side(given, {}, pick)
        return (differentiable if gradients else valued)(label, own, drawn, fixed, wide)

    exact = reference or next(iter(peers.values()))
    return Row(
        name=name,
        ours=side("isometry", Side(ours, form, {key: pick[key] for key in pick if key not in form})),
        peers=[side(label, peer) for label, peer in peers.items()],
        # made for the check alone, so that its tensors are freed
        reference=lambda: (side("float64", exact, wide=True).results or dict)(),
        bars=bars,
        flops=flops,
        tolerance=tolerance,
        share=share,
        plan=plan,
    )


def taken(side: Side, drawn: Callable[[], Mapping[str, Tensor]], wide: bool) -> dict[str, Tensor]:
    """The tensors as a side takes them, of its own."""
    given = {key: side.form[key](t) if key in side.form else t for key, t in drawn().items()}
    return {key: t.to(WIDE.get(t.dtype, t.dtype) if wide else t.dtype, copy=True) for key, t in given.items()}


def valued(
    name: str, side: Side, drawn: Callable[[], Mapping[str, Tensor]], _: Sequence[str], wide: bool = False
) -> Candidate:
    """A candidate that computes y, or several results, without gradients."""
    given = cache(lambda: taken(side, drawn, wide))
    made = candidate(name, torch.no_grad()(lambda: side.call(*given().values())))
    return made if side.checked else made._replace(results=None)


def differentiable(
    name: str, side: Side, drawn: Callable[[], Mapping[str, Tensor]], fixed: Sequence[str] = (), wide: bool = False
) -> Candidate:
    """A candidate that computes y and the gradients of its tensors from a fixed one of y.

    A loss is not computed, and so not timed.
    """

    @cache
    def prepared() -> tuple[dict[str, Tensor], Call, Tensor]:
        given = taken(side, drawn, wide)
        leaves = {key: t.requires_grad_() for key, t in given.items() if key not in fixed}
        call = partial(side.call, *given.values())
        with torch.no_grad():
            value = call()
        ct = torch.randn(value.shape, generator=torch.Generator().manual_seed(1), dtype=narrow(value.dtype))
        return leaves, call, ct.to(value.dtype)

    def run() -> Tensor:
        leaves, call, ct = prepared()
        for leaf in leaves.values():
            leaf.grad = None
        value: Any = call()
        value.backward(ct)
        return value

    def results() -> Results:
        found = {"value": run().detach()}
        for key, leaf in prepared()[0].items():
            assert leaf.grad is not None
            found[f"gradient of {key}"] = side.pick[key](leaf.grad) if key in side.pick else leaf.grad
        return found

    return Candidate(name, run, results if side.checked else None)


def narrow(dtype: torch.dtype) -> torch.dtype:
    """The type in which random tensors are drawn, so that all sides draw the same numbers."""
    return torch.complex64 if dtype.is_complex else torch.float32


def loop(step: Callable[..., Tensor], *sequences: Tensor) -> Tensor:
    """h <- step(h, a_t, b_t, ...) from h = 0 of the shape of the last; `unbind`, for a[t] makes backward quadratic."""
    h, states = torch.zeros_like(sequences[-1][0]), []
    for given in zip(*(sequence.unbind() for sequence in sequences), strict=True):
        h = step(h, *given)
        states.append(h)
    return torch.stack(states)
