"""DeltaProduct: a state multiplied by reflections that every input draws anew."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..._backend import Place
from ..._rules import check
from .._dispatch.private import transforms_active
from .._hooks import sources
from ..delta._plan import DELTA_RULE, Options
from ..delta.delta_rule import delta_rule
from ..formulas._precision import full_precision
from ..formulas.delta import softplus_gate
from ._base import RecurrentLayer
from ._contract import LayerKeywords, Sweep, check_step
from ._step import OneStep
from ._streaming import held_for_steps

#: The two linear maps, each a weight and its bias, and the factor of the gates (`softplus_gate`).
_Weights = tuple[tuple[Tensor, Tensor | None], tuple[Tensor, Tensor | None], Tensor | None]
#: Initial biases of keys and rates are uniform up to these. Keys that differ little between tokens make the transition
#: of nearly every step the same at first, as in the other layers; rates near 0 and 2 keep what was stored.
_KEYS, _RATES = 2.0, 6.0
#: Ranges of the initial gates: of a (uniform) and of the softplus at zero input (logarithmic), as in Mamba-2.
_SCALE, _SOFTPLUS = (1.0, 16.0), (1e-3, 1e-1)


class DeltaProduct(RecurrentLayer):
    r"""Recurrent layer whose transition is a product of Householder reflections that the input determines.

    The state of a head is a matrix S (K x V), K = V = hidden_size / heads. An input :math:`x_t` determines a query,
    m = ``householders`` keys, values and rates, and a gate:

    .. math::

        q_t &= \mathrm{unit}(\mathrm{silu}(W_q x_t + b_q)), \qquad
        k_{t,j} = \mathrm{unit}(\mathrm{silu}(W_{k,j} x_t + b_{k,j})), \qquad
        v_{t,j} = \mathrm{silu}(W_{v,j} x_t + b_{v,j}), \\
        \beta_{t,j} &= 2 \sigma(w_{\beta,j}^T x_t + b_{\beta,j}), \qquad
        g_t = -a \, \mathrm{softplus}(w_g^T x_t + b_g), \\
        S &\leftarrow e^{g_t} S, \qquad
        S \leftarrow (I - \beta_{t,j} k_{t,j} k_{t,j}^T) S + \beta_{t,j} k_{t,j} v_{t,j}^T \;\; (j = 1 \dots m), \qquad
        o_t = S^T q_t.

    The output is o_t, of all heads side by side; the state S is another array. Without a gate the transition keeps the
    norm of S for rates of 2 and no values; its eigenvalues lie in [-1, 1], with ``negative=False`` in [0, 1]. A
    permutation of n things is a product of at most n - 1 reflections: m = 2 suffices to track products of permutations
    of three things, m = 4 of five.

    Use it to remember a few of many inputs, cue 0.707, torch's GRU 0.122, or to track permutations with as many
    reflections as they need. Do not use it to track them with one a step, permutations 0.184, `GRU` 1.000, or for a
    noisy signal: tones 0.117, `ORNN` 0.984.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    heads : int
        Number of heads, a divisor of hidden_size.
    householders : int
        m, the number of reflections of a step.
    gate : bool
        Whether the state decays by a gate; g_t = 0 otherwise.
    negative : bool
        Whether rates reach 2, and eigenvalues -1; otherwise rates reach 1.
    **keywords
        Those of :class:`ORNN`, including ``last_only``. ``checkpoint`` must be "none": one state per 64 reflections is
        saved, not one per step.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        W_q and W_v (hidden_size + m hidden_size, features).
    bias_l{k}[_reverse] : Parameter
        b_q and b_v.
    transition_weight_l{k}[_reverse] : Parameter
        W_k, w_beta and, with a gate, w_g of all heads (m hidden_size + m heads + heads, features).
    transition_bias_l{k}[_reverse] : Parameter
        b_k, b_beta and b_g.
    log_decay_l{k}[_reverse] : Parameter
        log a (heads,), with a gate.

    Raises
    ------
    ValueError
        ``heads`` that does not divide hidden_size, a checkpoint. Other errors are those of ``torch.nn.RNN``.

    See Also
    --------
    isometry.torch.delta_rule : the recurrence as a function.
    GRU : state tracking with gates.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`delta-rule` : the variants and their costs.

    Notes
    -----
    A step costs some 6 m hidden_size^2 / heads operations beside its projections; all steps are one call of
    :func:`isometry.torch.delta_rule`, in chunks of 64 reflections, and packed sequences follow each other without
    padding. Saved for backward are the projections, some (3 + 4 m) hidden_size numbers a step, and a state per 64
    reflections.

    References
    ----------
    Siems, Carstensen, Zela, Hutter, Pontil, Grazzi. DeltaProduct: Improving state-tracking in linear RNNs via
    Householder products. NeurIPS 2025. Grazzi, Siems, Zela, Franke, Hutter, Pontil. Unlocking state-tracking in linear
    RNNs through negative eigenvalues. ICLR 2025. The documentation's mathematics of the delta rule lists the choices.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.DeltaProduct(3, 8, heads=2, householders=2)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 2, 4, 4]))
    """

    _own_keywords = ("heads", "householders", "gate", "negative")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        heads: int = 1,
        householders: int = 1,
        gate: bool = True,
        negative: bool = True,
        **keywords: Unpack[LayerKeywords],
    ) -> None:
        self.heads = check.count("heads", heads, 1)
        self.householders = check.count("householders", householders, 1)
        self.gate, self.negative = check.flag("gate", gate), check.flag("negative", negative)
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    def _check_keywords(self) -> None:
        if self.hidden_size % self.heads:
            raise ValueError(f"heads must be a divisor of hidden_size = {self.hidden_size}, not {self.heads}")
        if self.checkpoint != "none":
            raise ValueError(f"checkpoint must be 'none', not {self.checkpoint!r}: few states are kept without one")

    # ------------------------------------------------------------ parameters

    @property
    def _state(self) -> tuple[int, ...]:
        size = self.hidden_size // self.heads
        return self.heads, size, size

    @property
    def _parts(self) -> tuple[int, int, int]:
        """Rows of the transition's weight: keys, rates, gates."""
        m, heads = self.householders, self.heads
        return m * self.hidden_size, m * heads, heads if self.gate else 0

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        rows, own = (1 + self.householders) * self.hidden_size, sum(self._parts)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, features), "transition_weight": (own, features)}
        shapes |= {"bias": (rows,), "transition_bias": (own,)} if self.bias else {}
        return shapes | ({"log_decay": (self.heads,)} if self.gate else {})

    def _reset(self, suffix: str) -> None:
        self._draw_weights(suffix, "weight_ih", "transition_weight")
        if self.bias:
            keys, rates, gates = getattr(self, "transition_bias" + suffix).split(self._parts)
            nn.init.uniform_(keys, -_KEYS, _KEYS)
            nn.init.uniform_(rates, -_RATES, _RATES)
        if not self.gate:
            return
        decay = getattr(self, "log_decay" + suffix)
        small, large = map(math.log, _SOFTPLUS)
        softplus = torch.empty_like(decay).uniform_(small, large).exp()
        nn.init.uniform_(decay, *_SCALE).log_()
        if self.bias:
            gates.copy_(softplus.expm1().log())
        else:  # softplus(0) = log 2
            decay += (softplus / math.log(2)).log()

    def recurrent_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters of the transition, of every layer and direction, for a separate learning rate."""
        for suffix in self._suffixes:
            for name in self._names:
                if name.startswith(("transition", "log_decay")):
                    yield from sources(self, name + suffix, "recurrent_parameters")

    # ------------------------------------------------------------ forward

    def _weights(self, suffix: str) -> _Weights:
        weight, transition = self._read("weight_ih" + suffix), self._read("transition_weight" + suffix)
        biases = [self._read(name + suffix) if self.bias else None for name in ("bias", "transition_bias")]
        if not self.gate:
            return (weight, biases[0]), (transition, biases[1]), None
        factor, shift = softplus_gate(self._read("log_decay" + suffix))
        shift = F.pad(shift, (sum(self._parts[:2]), 0))
        return (weight, biases[0]), (transition, shift if biases[1] is None else biases[1] + shift), factor

    def _drawn(self, weights: _Weights, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """Queries, keys, values, rates, and the gates, for x (B, T, features)."""
        n, heads, (batch, tokens) = self.hidden_size, self.heads, x.shape[:2]
        first, second, factor = weights
        rows = batch, tokens * self.householders, heads
        qv, transition = F.silu(F.linear(x, *first)), F.linear(x, *second)
        keys, rates, _ = self._parts
        q = qv[..., :n].reshape(batch, tokens, heads, -1)
        k, v = (t.reshape(*rows, n // heads) for t in (F.silu(transition[..., :keys]), qv[..., n:]))
        beta = torch.sigmoid(transition[..., keys : keys + rates].reshape(rows)) * (2.0 if self.negative else 1.0)
        return q, k, v, beta, None if factor is None else factor * F.softplus(transition[..., keys + rates :])

    def _output(self, input: Any, hx: Any, starts: Tensor | None, start_state: Any = None) -> tuple[Any, Tensor]:
        output, last = super()._output(input, hx, starts, start_state)
        # computed sequence by sequence
        return output.contiguous() if isinstance(output, Tensor) else output, last

    def _kernel(self, suffix: str) -> OneStep:
        start = self._start(suffix)
        return partial(self._stepped, self._weights(suffix), None if start is None else start.detach())

    @full_precision
    def _stepped(
        self, weights: _Weights, start: Tensor | None, x: Tensor, h0: Tensor | None, shape: tuple[int, ...], at: Place
    ) -> tuple[Tensor, Tensor]:
        """The output after x (B, d) or (1, B, d), and the states of this shape; `start` is h0 where none is given."""
        x, h0 = x.flatten(0, -2), start if h0 is None else h0
        h0, options = None if h0 is None else h0.expand(len(x), *self._state), Options(self.householders, 1.0, True)
        (o, state), _ = DELTA_RULE.run(options, (*self._drawn(weights, x.unsqueeze(1)), h0, None), False, at)
        return o.flatten(1), state if state.shape == shape else state.unsqueeze_(0)  # no view: it is the caller's

    def _outcome(self, sweep: Sweep) -> tuple[Tensor, Tensor]:
        return self._swept(sweep.x, sweep)

    @full_precision
    def _swept(self, x: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        suffix, _, h0, lengths, reverse, output, _, starts, start_state = sweep
        steps, batch = x.shape[:2]
        pieces = None if starts is None else _pieces(starts, reverse)
        x, at, ends = x.transpose(0, 1), None, None
        if pieces is not None:
            at, ends = pieces.at.to(x.device), pieces.ends
            x = x.flatten(0, 1).index_select(0, at).unsqueeze(0)
        elif lengths is not None:
            at, ends = _in_order(lengths, steps, reverse)
            at = at.to(x.device)
            x = x.flatten(0, 1).index_select(0, at).unsqueeze(0)
        elif reverse:
            x = x.flip(1)
        *drawn, g = self._drawn(self._weights(suffix), x)
        if starts is not None and pieces is None:
            g = _forgetting(g, starts, start_state, reverse, self.heads, x)
        h0 = None if h0 is None else h0.expand(batch, *self._state)
        if pieces is not None:
            h0 = pieces.states(h0, start_state, x.new_zeros(1).expand(batch, *self._state))
        own = {"householders": self.householders, "scale": 1.0, "normalise": True}
        o, last = delta_rule(*drawn, g=g, initial_state=h0, cu_seqlens=ends, **own)  # type: ignore[arg-type]
        o = o.flatten(2)
        if pieces is not None:
            last = last.index_select(0, pieces.last.to(x.device))
            if output == "last":
                return o[0].index_select(0, (pieces.ends[1:][pieces.last] - 1).to(x.device)), last
        if output == "last":
            return (o[:, -1] if ends is None else o[0, ends[1:].to(o.device) - 1]), last
        if at is not None:
            o = o.new_zeros(batch * steps, self.hidden_size).index_copy(0, at, o[0]).unflatten(0, (batch, steps))
        elif reverse:
            o = o.flip(1)
        return o.transpose(0, 1), last

    def step(self, input: Tensor, hx: Tensor | None = None) -> Any:
        """The output and the state after one time step, for inputs that arrive one at a time.

        Parameters
        ----------
        input : Tensor, shape (B, input_size) or (input_size,)
            The input of this step.
        hx : Tensor, shape (num_layers, B, heads, K, V), or without B, optional
            The state before it; by default as in a call of the layer.

        Returns
        -------
        output : Tensor, shape (B, hidden_size) or (hidden_size,)
            The output of the last layer: it is no part of the state.
        state : Tensor
            The state after it, shaped as ``hx``.

        Raises
        ------
        ValueError
            As of every layer.

        Notes
        -----
        There is no W to be formed: inside `cached` a step is a call of the kernel, without the checks of the layer's.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> layer, state = it.nn.DeltaProduct(3, 8), None
        >>> with torch.no_grad():
        ...     for x_t in torch.randn(20, 5, 3):
        ...         output, state = layer.step(x_t, state)
        >>> output.shape, state.shape
        (torch.Size([5, 8]), torch.Size([1, 5, 1, 8, 8]))
        """
        own = held_for_steps(self, input)
        if own is not None and (found := own.step(input, self._one_state(hx, input))) is not None:
            return found[0].reshape(*input.shape[:-1], self.hidden_size), found[1]
        check_step(self, input)
        time = int(self.batch_first and input.dim() == 2)
        output, state = self(input.unsqueeze(time), hx)
        return (output if self.last_only else output.squeeze(time)), state


def _in_order(lengths: Tensor, steps: int, reverse: bool) -> tuple[Tensor, Tensor]:
    """Of padded sequences (B, T), one after the other and each in the order it is read: the places b T + t of their
    steps in (B T,), and where each begins and the last ends.
    """
    lengths = lengths.cpu()
    t, length = torch.arange(steps, device="cpu"), lengths.unsqueeze(1)
    rows = torch.arange(len(lengths), device="cpu").unsqueeze(1)
    places = rows * steps + (length - 1 - t if reverse else t)
    return places[t < length], F.pad(lengths.cumsum(0), (1, 0))


def _forgetting(
    g: Tensor | None, starts: Tensor, start_state: Tensor | None, reverse: bool, heads: int, x: Tensor
) -> Tensor:
    """Gates of x (B, T, d) that keep nothing of the state before marked steps."""
    if start_state is not None:
        raise ValueError("starts must be the same for all members of a vmap, where a state before them is given")
    starts = starts.transpose(0, 1)
    if reverse:  # the mark of a step is between it and the one before, which is read after it
        starts = F.pad(starts[:, 1:], (0, 1)).flip(1)
    g = x.new_zeros(()) if g is None else g
    return torch.where(starts.unsqueeze(-1), -math.inf, g).expand(*starts.shape, heads)


class _Pieces(NamedTuple):
    """The pieces into which marks divide the columns of a batch, one after another."""

    at: Tensor  #: the steps, numbers of rows of (B T)
    ends: Tensor  #: the first step of each piece, and their number
    columns: Tensor  #: the column of each piece
    begins: Tensor  #: whether a piece starts from the given state, not from that of marks
    marks: Tensor  #: the step of the mark that a piece starts from
    last: Tensor  #: of each column, the piece whose last state is that of the column

    def states(self, h0: Tensor | None, start: Tensor | None, zero: Tensor) -> Tensor | None:
        """The state before every piece."""
        if h0 is None and start is None:
            return None
        columns, begins, marks = (t.to(zero.device) for t in (self.columns, self.begins, self.marks))
        given, fresh = zero if h0 is None else h0, zero if start is None else start
        own = fresh.dim() > zero.dim()  # of each mark
        fresh = fresh[marks, columns] if own else fresh.expand(zero.shape).index_select(0, columns)
        where = begins.view(-1, *(1,) * (zero.dim() - 1))
        return torch.where(where, given.index_select(0, columns), fresh)


def _pieces(starts: Tensor, reverse: bool) -> _Pieces | None:
    """The pieces of columns with these marks (T, B), whose values are read; None if `vmap` maps over them."""
    marks = starts.detach().cpu().transpose(0, 1)
    batch, steps = marks.shape
    heads = marks | (torch.arange(steps, device="cpu") == 0)
    try:
        first = heads.flatten().nonzero().squeeze(1)
    except RuntimeError:
        if transforms_active():
            return None
        raise
    ends = torch.cat((first, torch.tensor([batch * steps], device="cpu")))
    columns = first.div(steps, rounding_mode="floor")
    at, sizes = torch.arange(batch * steps, device="cpu"), ends.diff()
    if reverse:  # every piece from its own end
        at = (ends[:-1] + ends[1:] - 1).repeat_interleave(sizes) - at
        after = ends[1:] % steps
        return _Pieces(at, ends, columns, after == 0, after, (first % steps == 0).nonzero().squeeze(1))
    begins = (first % steps == 0) & ~marks[columns, 0]
    return _Pieces(at, ends, columns, begins, first % steps, (ends[1:] % steps == 0).nonzero().squeeze(1))
