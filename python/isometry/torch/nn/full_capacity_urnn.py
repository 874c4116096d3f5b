"""Full-capacity uRNN: W is a free unitary matrix, kept unitary by its optimiser."""

from typing import Any, Self

import torch
from torch import Tensor

from .._bases import unrounded
from .._dispatch.function import REAL_OF
from .._stored import paired, unpaired
from ..operators.dense import Dense
from ._transition import OrthogonalRNN


class FullCapacityURNN(OrthogonalRNN):
    r"""Complex recurrent layer whose matrix may be any unitary matrix (full-capacity uRNN).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t), \qquad W^H W = I.

    W itself is the parameter. It starts unitary, and :class:`isometry.torch.optim.CayleyRMSprop` keeps it so; other
    optimisers do not. In a higher precision, by ``.double()`` or from a state of a lower one, a unitary W is unitary
    again. The states and the output are complex; a real input is promoted.

    Use it where memory needs any unitary matrix: with modReLU copying 1.000, adding 0.684, the best without gates. Do
    not use it with another optimiser, or for a noisy signal: tones 0.482 at best, `ORNN` 0.984.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    nonlinearity : str
        Any activation of :func:`isometry.torch.activate` that is defined for complex numbers.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V as pairs (hidden_size, features, 2).
    weight_l{k}[_reverse] : Parameter
        W as pairs (hidden_size, hidden_size, 2).
    activation_bias_l{k}[_reverse] or bias_l{k}[_reverse] : Parameter
        modReLU's bias (hidden_size,), or b as pairs (hidden_size, 2) with another activation.

    See Also
    --------
    ScuRNN, UnitaryORNN : unitary for all parameters, with any optimiser.
    isometry.torch.optim.CayleyRMSprop : the optimiser.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Wisdom, Powers, Hershey, Le Roux, Atlas. Full-capacity unitary recurrent neural networks. NIPS 2016.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.FullCapacityURNN(3, 8)
    >>> rest = [p for name, p in layer.named_parameters() if not name.startswith("weight_l")]
    >>> own = it.optim.CayleyRMSprop(layer.recurrent_parameters(), lr=1e-3, reorthogonalize=True)
    >>> other = torch.optim.Adam(rest, lr=1e-3)
    >>> for _ in range(3):
    ...     layer.zero_grad()
    ...     layer(torch.randn(20, 5, 3))[0].abs().sum().backward()
    ...     own.step()
    ...     other.step()
    >>> bool(it.orthogonality_error(layer.recurrent_matrix()) < 20)
    True
    >>> readout = torch.nn.Linear(2 * 8, 2)  # of real and imaginary parts
    >>> readout(it.real_state(layer(torch.randn(20, 5, 3))[0])).shape
    torch.Size([20, 5, 2])
    """

    is_complex = True
    weight_l0: torch.nn.Parameter
    _object, _trained = Dense, ("weight",)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        before = self.weight_l0.dtype
        super()._apply(fn, recurse)
        for suffix in self._suffixes:
            weight = getattr(self, "weight" + suffix)
            if _is_lower(before, weight):
                with torch.no_grad():
                    weight.copy_(_widened(weight, before))
        return self

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        for suffix in self._suffixes:
            weight, key = getattr(self, "weight" + suffix), f"{prefix}weight{suffix}"
            stored = state_dict.get(key)
            if local_metadata.get("assign_to_params_buffers") or not isinstance(stored, Tensor) or stored.is_meta:
                continue
            if stored.shape == weight.shape and _is_lower(stored.dtype, weight):
                state_dict[key] = _widened(stored.to(weight.dtype), stored.dtype)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _inverse(self, w: Tensor, _suffix: str, bound: float) -> dict[str, Tensor]:
        self._nearest(w, bound)
        return {"weight": w}

    def _sizes(self) -> dict[str, int]:
        return super()._sizes() | {"p": self._head_size, "q": self._head_size}


def _is_lower(stored: torch.dtype, weight: Tensor) -> bool:
    """Whether numbers of a dtype have fewer digits than a parameter that a kernel reads."""
    known = (
        type(weight) in (Tensor, torch.nn.Parameter)
        and not weight.is_meta
        and weight.dtype in REAL_OF
        and stored.is_floating_point
    )
    return known and torch.finfo(stored).eps > torch.finfo(weight.dtype).eps


def _widened(stored: Tensor, before: torch.dtype) -> Tensor:
    """A matrix, stored as pairs, that was rounded to a dtype before."""
    return paired(unrounded(unpaired(stored), before))
