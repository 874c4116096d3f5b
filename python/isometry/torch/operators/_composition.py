"""`Composition` on tensors: the product of operators, applied factor by factor."""

from __future__ import annotations

import torch
from torch import Tensor

from ... import _determinants
from ..._rules import check, check_expression
from ..._rules.index import Key, picked
from .._dispatch.function import COMPLEX_OF, dtype_name
from ._expressions import kind_of
from ._operator import Operator


class Composition(Operator):
    """The product of several operators, ``op1 @ op2``.

    W = W_1 W_2 ... W_k, and W_k acts first.

    Parameters
    ----------
    *operators : Operator
        W_1, W_2, ..., each as wide as the next is high, of one precision (real meets complex); their batch shapes
        broadcast against each other. A composition among them counts as its factors.

    Raises
    ------
    ValueError
        No operator, or shapes that do not fit.
    TypeError
        Arguments other than operators of the torch interface, or of two precisions.

    See Also
    --------
    Adjoint : the conjugate transpose.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    Rows go through the factors one by one, the last one first; the matrix is that of the first factor with the others
    applied to its rows.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> product = it.Cayley(torch.ones(3)) @ it.Dense(torch.ones(3, 2))
    >>> product
    Composition(Cayley(n=3, dtype=torch.float32), Dense(p=3, q=2, dtype=torch.float32))
    >>> len(product.operators), product(torch.ones(5, 2)).shape
    (2, torch.Size([5, 3]))
    """

    __slots__ = ("_operators",)

    _operators: tuple[Operator, ...]

    def __init__(self, *operators: Operator) -> None:
        flat: list[Operator] = []
        for operator in operators:
            check_expression.operator("operators", Operator, operator)
            flat.extend(operator.operators if isinstance(operator, Composition) else (operator,))
        check_expression.factors([operator.shape for operator in flat])
        batch: tuple[int, ...] = ()
        dtype = flat[0].dtype
        for operator in flat:
            batch = check.broadcast(product=batch, factor=operator.batch_shape)
            if operator.dtype is not dtype:
                check.same_precision("a factor", dtype_name(operator.dtype), "another", dtype_name(dtype))
                dtype = COMPLEX_OF[dtype]
        self._operators = tuple(flat)
        self._shape = flat[0].shape[0], flat[-1].shape[1]
        self._batch_shape = batch
        self._dtype = dtype

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The factors."""
        return self._operators

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor:
        first, *rest = self._operators
        w = first.matrix(backend=backend, check_finite=check_finite)
        for operator in rest:
            w = operator._from_right(w, backend)
        return w

    def _rows(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        factors = self._operators if adjoint else self._operators[::-1]
        if not self._batch_shape:
            for operator in factors:
                x = operator._act(x, adjoint, backend)
            return x
        nb, k = x.shape[:2]
        x = x.reshape(*self._batch_shape, k, x.shape[-1])
        for operator in factors:
            x = operator._act(x, adjoint, backend, True)
        return x.reshape(nb, k, x.shape[-1])

    def _determinant(self, backend: str | None) -> Tensor:
        found: Tensor | None = _determinants.of_product(self._operators, backend, self.matrix)
        return super()._determinant(backend) if found is None else found

    # -------------------------------------------------------- expressions

    def _made_of(self) -> tuple[Operator, ...]:
        return self._operators

    def _parts(self) -> list[str]:
        return [repr(operator) for operator in self._operators]

    def _picked(self, key: Key) -> Composition:
        return Composition(*(picked(op, op.batch_shape, key) for op in self._operators))

    @property
    def device(self) -> torch.device:
        """Where the tensors of the factors are."""
        return self._operators[0].device

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are recorded for one of the tensors."""
        return any(operator.requires_grad for operator in self._operators)

    def detach(self) -> Composition:
        return Composition(*(operator.detach() for operator in self._operators))

    def _moved(self, dtype: torch.dtype | None, device: torch.device | None) -> Composition:
        made = [op.to(dtype=kind_of(self._dtype, op.dtype, dtype), device=device) for op in self._operators]
        same = all(a is b for a, b in zip(made, self._operators, strict=True))
        return self if same else Composition(*made)


Operator._product = Composition
