"""Cayley steps on the Stiefel manifold as torch optimisers."""

from collections.abc import Callable
from typing import Any, Literal, overload

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, ParamsT

from ..._rules import check, check_stiefel
from .._dispatch.function import REAL_OF, dtype_name
from .._divided import is_divided
from ..stiefel import moved, product


class _Cayley(Optimizer):
    """Cayley steps of matrices (..., n, n), real, complex or real pairs (..., n, n, 2); a subclass scales the
    gradients."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with options of its own; see ``torch.optim.Optimizer``."""
        super().add_param_group(param_group)
        try:
            self._check(self.param_groups[-1])
        except Exception:
            self.param_groups.pop()
            raise

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state of ``state_dict()``; see ``torch.optim.Optimizer``. A refused one changes nothing."""
        before = self.state, self.param_groups
        super().load_state_dict(state_dict)
        try:
            for group in self.param_groups:
                self._check(group)
                for p in group["params"]:
                    self._check_state(p, self.state.get(p, {}), group)
        except Exception:
            self.state, self.param_groups = before
            raise

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # those of another optimiser or release may lack options
            for name, value in self.defaults.items():
                group.setdefault(name, value)

    def _check(self, group: dict[str, Any]) -> None:
        """Refuse options and parameters that do not fit."""
        lr = group["lr"]
        if isinstance(lr, Tensor):
            if lr.numel() != 1 or not lr.is_floating_point():
                what = f"{dtype_name(lr.dtype)} of shape {tuple(lr.shape)}"
                raise ValueError(f"lr must be a number or a real tensor of one element, not {what}")
            lr = lr.item()
        check_stiefel.rate("lr", lr)
        check.flag("reorthogonalize", group["reorthogonalize"])
        for p in group["params"]:
            if is_divided(p):
                raise TypeError(f"a parameter must be whole, not a sharded {type(p).__name__}")
            self._holds_pairs(p, group)

    def _holds_pairs(self, p: Tensor, group: dict[str, Any]) -> bool:
        """Whether a parameter holds pairs, after checking it."""
        if p.layout is not torch.strided:
            check.strided("a parameter", p.layout)
        if p.dtype not in REAL_OF:
            check.floating("a parameter", dtype_name(p.dtype))
        return check_stiefel.is_pairs(tuple(p.shape), p.is_complex(), group["pairs"])

    def _check_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Refuse what was kept for a parameter if it does not fit."""

    def _scaled(self, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        """The gradient that the step takes; the one given is not modified."""
        raise NotImplementedError(f"{type(self).__name__} must define _scaled()")

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Move every parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients again.

        Returns
        -------
        float or Tensor, optional
            What the closure returns.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, p.grad, group)
        return loss

    def _move(self, p: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        if gradient.layout is not torch.strided:
            check.strided("the gradient of a parameter", gradient.layout)
        pairs = self._holds_pairs(p, group)
        w, g = (torch.view_as_complex(t.contiguous()) if pairs else t for t in (p, gradient))
        lr = group["lr"]
        # a tensor is not read on the host, which would wait for its device
        rate = lr.reshape(()).to(w.real.dtype) if isinstance(lr, Tensor) else float(lr)
        g = self._scaled(g, self.state[p], group)
        if not isinstance(rate, Tensor) and not rate:
            return
        new = moved(w, g, rate, "lr")
        if group["reorthogonalize"]:
            gap = product(new.mH, new)
            gap.diagonal(dim1=-2, dim2=-1).sub_(1)
            new = new - 0.5 * product(new, gap)
        # no step, no rounding: torch.distributed makes one of rate and gradient zero to have a state to load into
        steps = (g != 0).flatten(-2).any(-1)[..., None, None] & (rate != 0)
        w = torch.where(steps, new, w)
        p.copy_(torch.view_as_real(w) if pairs else w)


class CayleySGD(_Cayley):
    r"""Gradient descent of orthogonal or unitary matrices by Cayley steps.

    .. math::

        W \leftarrow (I + \tfrac{\eta}{2} A)^{-1} (I - \tfrac{\eta}{2} A) \, W, \qquad A = G W^H - W G^H,

    with the gradient G of W and the learning rate eta. W stays unitary, and the loss falls for a small enough rate
    unless W is critical.

    Parameters
    ----------
    params : iterable
        Matrices (..., n, n), real or complex, or real pairs (..., n, n, 2) of real and imaginary parts, or groups of
        them with options of their own. They should start orthogonal or unitary.
    lr : float or Tensor
        The learning rate, at least 0. A tensor of one element, on the CPU or beside the parameters, is read by every
        step without waiting for its device: what is written into it holds from the next step on.
    pairs : bool, optional
        Whether parameters hold pairs; needed only for the ambiguous shape (..., 2, 2, 2).
    reorthogonalize : bool
        End each step with W <- W (3 I - W^H W) / 2, which removes rounding errors, some eps per step. A rate or a
        gradient of zero is no step: it changes no bit of W.

    Raises
    ------
    ValueError
        A negative rate, a parameter of another shape.
    TypeError
        A parameter that is not dense and whole, or not float32, float64, complex64 or complex128.

    See Also
    --------
    CayleyRMSprop : with a scaled gradient.
    isometry.torch.nn.FullCapacityURNN : a layer that needs such an optimiser.
    :doc:`orthogonal-weights` : weights that stay orthogonal under any optimiser.

    References
    ----------
    Wisdom, Powers, Hershey, Le Roux, Atlas. Full-capacity unitary recurrent neural networks. NIPS 2016.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> w, target = torch.nn.Parameter(torch.eye(3)), it.Exponential(torch.tensor([0.5, 0.0, -1.0])).matrix()
    >>> optimizer = it.optim.CayleySGD([w], lr=0.2)
    >>> for _ in range(200):
    ...     optimizer.zero_grad()
    ...     (w - target).square().sum().backward()
    ...     optimizer.step()
    >>> bool((w - target).abs().max() < 1e-3), bool(it.orthogonality_error(w) < 20)
    (True, True)
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor, *, pairs: bool | None = None, reorthogonalize: bool = False
    ) -> None:
        super().__init__(params, {"lr": lr, "pairs": pairs, "reorthogonalize": reorthogonalize})

    def _scaled(self, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:  # noqa: ARG002
        return gradient


class CayleyRMSprop(_Cayley):
    r"""RMSprop of orthogonal or unitary matrices by Cayley steps.

    .. math::

        r \leftarrow \alpha r + (1 - \alpha) |G|^2, \qquad G \leftarrow G / (\sqrt r + \epsilon),

    then the step of :class:`CayleySGD` with the scaled G. r starts at 0.

    Parameters
    ----------
    params, lr, pairs, reorthogonalize
        As in :class:`CayleySGD`.
    alpha : float
        The decay of the running average, in [0, 1).
    eps : float
        Added to the root, greater than 0.
    scaling : str
        "elementwise": every entry has its own average. "norm": one average per matrix, of the mean of |G|^2, which
        keeps the direction of steepest descent.

    Raises
    ------
    ValueError
        Options out of range, a parameter of another shape.
    TypeError
        A parameter that is not dense and whole, or not float32, float64, complex64 or complex128.

    See Also
    --------
    CayleySGD : without scaling.
    isometry.torch.nn.FullCapacityURNN : a layer that needs such an optimiser.
    :doc:`orthogonal-weights` : weights that stay orthogonal under any optimiser.

    References
    ----------
    Wisdom, Powers, Hershey, Le Roux, Atlas. Full-capacity unitary recurrent neural networks. NIPS 2016.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.FullCapacityURNN(3, 8)
    >>> optimizer = it.optim.CayleyRMSprop(layer.recurrent_parameters(), lr=1e-4, reorthogonalize=True)
    >>> layer(torch.randn(20, 5, 3))[0].abs().sum().backward()
    >>> optimizer.step()
    >>> bool(it.orthogonality_error(layer.recurrent_matrix()) < 20)
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor,
        alpha: float = 0.9,
        eps: float = 1e-8,
        scaling: Literal["elementwise", "norm"] = "elementwise",
        *,
        pairs: bool | None = None,
        reorthogonalize: bool = False,
    ) -> None:
        options = {"lr": lr, "alpha": alpha, "eps": eps, "scaling": scaling}
        super().__init__(params, options | {"pairs": pairs, "reorthogonalize": reorthogonalize})

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        check_stiefel.rmsprop(group["alpha"], group["eps"], group["scaling"])

    def _check_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        average = state.get("square_avg")
        if average is not None:
            shape = tuple(p.shape[:-1] if self._holds_pairs(p, group) else p.shape)
            shape = (*shape[:-2], 1, 1) if group["scaling"] == "norm" else shape
            check.exact("square_avg", tuple(average.shape), shape)

    def _scaled(self, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        squares = gradient.abs().square()
        if group["scaling"] == "norm":
            # row by row: a mean over both axes depends on their order in memory and on threads
            squares = squares.contiguous().mean(-1).mean(-1)[..., None, None]
        average = state.setdefault("square_avg", torch.zeros_like(squares))
        average.mul_(group["alpha"]).add_(squares, alpha=1 - group["alpha"])
        return gradient / (average.sqrt() + group["eps"])
