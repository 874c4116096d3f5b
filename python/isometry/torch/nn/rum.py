"""RUM: the rotational unit of memory."""

from typing import Any, Literal, NamedTuple, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._cells import rum as cell
from ..._rules import check, check_recurrence
from ..operators._operator import dense
from ..sequences.rum import _packed
from ._cell import CellLayer
from ._contract import LayerKeywords, Sweep, check_step


class RUM(CellLayer):
    r"""Rotational unit of memory (RUM): a recurrent layer that rotates its state, by input and state.

    .. math::

        (u'_t, \tau_t) = W h_{t-1} + U x_t + b, \qquad u_t = \sigma(u'_t), \qquad e_t = U_e x_t + b_e, \\
        R_t = R_{t-1}^\lambda \, \mathrm{Rotation}(e_t, \tau_t), \qquad
        h'_t = u_t * h_{t-1} + (1 - u_t) * \phi(e_t + R_t h_{t-1}), \qquad
        h_t = h'_t \text{ or } \eta \, h'_t / \|h'_t\|.

    With ``lam=1`` every call starts from :math:`R = I`: the memory is not part of ``h_0`` and ``h_n``
    (``isometry.torch.rum`` takes and returns it). The state of :meth:`step` is the pair (h, R).

    Use it if you do not know which layer to take: with tanh it is the best of the study on average, 0.91 of the best
    layer of each task, torch's GRU 0.75. Do not use it to reproduce everything after many steps, copying 0.415 at best,
    `ScuRNN` 1.000, or for state tracking, permutations 0.788 at best, `GRU` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    lam : {0, 1}
        Whether rotations accumulate in an associative memory, a matrix of hidden_size^2 numbers for each sequence.
    eta : float, optional
        The length to which states are normalised; without it they are not normalised.
    nonlinearity : str
        phi, "relu" by default; for the modReLUs ``activation_bias`` is a parameter, or zero with ``bias=False``.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``last_only`` and ``checkpoint``, here "none" or, with
        ``lam=0``, "sqrt".

    Attributes
    ----------
    weight_hh_l{k}[_reverse] : Parameter
        W (2 hidden_size, hidden_size): the rows of u', then of tau.
    weight_ih_l{k}[_reverse] : Parameter
        U (2 hidden_size, features).
    bias_l{k}[_reverse] : Parameter
        b (2 hidden_size).
    embed_weight_l{k}[_reverse], embed_bias_l{k}[_reverse] : Parameter
        U_e (hidden_size, features) and b_e (hidden_size).

    See Also
    --------
    GORU : gates beside an orthogonal matrix.
    isometry.torch.rum : as a function, with the memory.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    Notes
    -----
    W, U and U_e are drawn uniformly within +-sqrt(6 / (n + columns)); biases are zero. Every call starts from R = I.

    References
    ----------
    Dangovski, Jing, Nakov, Tatalović, Soljačić. Rotational unit of memory. TACL 2019.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.RUM(3, 8, eta=1.0)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    """

    _own_keywords = ("lam", "eta", "nonlinearity")
    _cell = "rum"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        lam: Literal[0, 1] = 0,
        eta: float | None = None,
        nonlinearity: str = "relu",
        **keywords: Unpack[LayerKeywords],
    ) -> None:
        self.lam = check.whole("lam", lam)
        self.eta = eta
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    def _check_keywords(self) -> None:
        super()._check_keywords()
        check_recurrence.activation(self.nonlinearity, "nonlinearity")
        even, per_unit = check_recurrence.ACTIVATIONS[self.nonlinearity]
        if even and self.hidden_size % 2:
            kind = f"nonlinearity {self.nonlinearity!r}"
            raise ValueError(f"hidden_size must be even with {kind}, not {self.hidden_size}")
        self._units = self.hidden_size // per_unit if per_unit else 0

    def _settings(self) -> tuple[float | None, ...]:
        return cell.setting(self.lam, self.eta)

    @property
    def _activation(self) -> str:
        return self.nonlinearity

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        shapes = super()._shapes(features)
        return shapes | {"activation_bias": (self._units,)} if self.bias and self._units else shapes

    def _reset(self, suffix: str) -> None:
        self._draw_weights(suffix, "weight_hh", "weight_ih", "embed_weight")

    def _unbiased(self) -> Tensor | None:
        """The bias of a modReLU in a layer with ``bias=False``."""
        return self.weight_ih_l0.new_zeros(self._units, dtype=self._weight_dtype) if self._units else None

    def _arrays(self, suffix: str) -> dict[str, Tensor | None]:
        own = self._read("activation_bias" + suffix) if self.bias and self._units else self._unbiased()
        return _packed({**super()._arrays(suffix), "activation_bias": own})

    def _as_given(self, suffix: str) -> tuple[Tensor, ...] | None:
        """With ``lam=1`` a step has a memory to return."""
        return None if self.lam else super()._as_given(suffix)

    def step(self, input: Tensor, hx: Any = None) -> Any:
        """As of every layer; with ``lam=1`` the state is a pair (h, R), R (num_layers, B, hidden_size, hidden_size).

        A tensor as ``hx``, or None, then starts from R = I.
        """
        if not self.lam:
            return super().step(input, hx)
        check_step(self, input)
        h, memory = hx if isinstance(hx, tuple) else (hx, None)
        before: Any = _Remembered(h, memory)
        state: Any = self(input.unsqueeze(int(self.batch_first and input.dim() == 2)), before)[1]
        return tuple(state)

    def _one_state(self, hx: Any, input: Any, step: bool = False) -> Any:
        return hx if isinstance(hx, _Remembered) else super()._one_state(hx, input, step)

    def _output(self, input: Any, hx: Any, starts: Tensor | None, start_state: Any = None) -> tuple[Any, Any]:
        """`forward`; with the memory beside the state one time step, of which the memory is returned too."""
        if not isinstance(hx, _Remembered):
            return super()._output(input, hx, starts, start_state)
        h, memory = hx
        h = super()._one_state(h, input)
        if memory is not None:
            dense("hx[1]", memory, "a torch.Tensor, the memories of all layers stacked")
        alone = input.dim() == 2
        time = int(self.batch_first and not alone)
        given = input.unsqueeze(1) if alone else input.transpose(0, time)
        if alone:
            h, memory = (None if t is None else t.unsqueeze(1) for t in (h, memory))
        self._check_forward(given, h, 3, given.size(1))
        x = self._widened(given)
        shape = (self.num_layers, x.size(1), self.hidden_size, self.hidden_size)
        if memory is not None and tuple(memory.shape) != shape:
            raise RuntimeError(f"Expected memory size {shape}, got {list(memory.size())}")
        new, memories = [], []
        for number, suffix in enumerate(self._suffixes):
            h0, r0 = (None if t is None else self._widened(t[number]) for t in (h, memory))
            h0 = self._start(suffix) if h0 is None else h0
            x, r = self._by_kernel(Sweep(suffix, x, h0), r0=r0)
            new.append(self._rounded(x))
            memories.append(self._rounded(r))
            if self.dropout and self.training:
                x = F.dropout(x, self.dropout)
        state = _Remembered(torch.cat(new), torch.stack(memories))
        if alone:
            return new[-1].squeeze(1), _Remembered(*[t.squeeze(1).clone() for t in state])
        return new[-1].transpose(0, time), state


class _Remembered(NamedTuple):
    """The state of a step, and the memory beside it."""

    h: Any
    memory: Any
