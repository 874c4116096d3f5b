"""A module that owns the tensors of an operator."""

from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn
from torch.compiler import is_compiling

from ..._rules import check
from .._dispatch.function import HALF, widened
from .._dispatch.mode import autocast
from .._hooks import need_values, settle, state_of
from .._stored import Contiguous, arrange, paired, unpaired
from ..operators import Adjoint, BlockDiagonal, Columns, Composition, Operator
from ..operators._declared import Declared
from ..operators._operator import dense
from ._reflections import built

#: In place of x: the operator is asked for, by whoever has put a forward of its own around that of the module.
_PRESENT: Any = object()


class OperatorModule(Contiguous):
    """An operator as a module: its arguments are parameters and buffers, trained, moved and saved with a model.

    As an attribute of a module, an operator itself registers no parameters, so an optimiser would not train it.

    Parameters
    ----------
    operator : Operator
        Any operator of this package, or a product, an adjoint, columns or blocks of these. Its tensors are copied, but
        a real `torch.nn.Parameter` is kept. The trained arguments become parameters, the fixed ones (signs, pairs,
        permutations, the margin) buffers, each under its own name; a complex argument has real and imaginary part in a
        last axis of length 2. The sign of a `Householder` is fixed, since W is orthogonal only for 1 and -1. An
        operator of a class of your own is stored as it is: register its trained tensors in a module of your own.

    Raises
    ------
    TypeError
        If operator is not an operator.

    See Also
    --------
    isometry.torch.parametrizations.orthogonal : a weight of any module.
    RNN : takes an operator as its W.
    :doc:`orthogonal-weights` : weights of modules, and operators as modules.

    Notes
    -----
    The call applies the operator to the vectors in the last axis of x. `operator()` builds it from the present values,
    which costs some microseconds; keep it no longer than a step. Reflection vectors that weight decay has made too
    short are scaled, as in the recurrent layers. float16 and bfloat16 are computed in float32; under autocast the
    result is float32, as that of an operator.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> model = torch.nn.Sequential(it.nn.OperatorModule(it.Cayley.random(8)), torch.nn.Linear(8, 2))
    >>> sorted(model.state_dict())
    ['0.signs', '0.upper', '1.bias', '1.weight']
    >>> model(torch.randn(5, 8)).square().sum().backward()
    >>> model[0].upper.grad.shape
    torch.Size([28])

    The first columns of a product of reflections, a 1000 x 16 weight with orthonormal columns:

    >>> frame = it.nn.OperatorModule(it.Householder.random(1000, 16).columns(16))
    >>> frame(torch.randn(3, 16)).shape, frame.operator().H(torch.randn(3, 1000)).shape
    (torch.Size([3, 1000]), torch.Size([3, 16]))
    """

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self._kind = type(operator)
        self._count = operator.shape[1] if isinstance(operator, Columns) else 0
        self._names: list[str | tuple[int, ...] | None] = []
        if isinstance(operator, Composition):
            self.operators = nn.ModuleList(OperatorModule(factor) for factor in operator.operators)
        elif isinstance(operator, Adjoint | BlockDiagonal | Columns):
            self.inner = OperatorModule(operator.operator)
        elif isinstance(operator, Declared):
            self._register(operator)
        elif isinstance(operator, Operator):
            self._own = operator
        else:
            check.kind("operator", "an operator of isometry.torch", operator)

    def _register(self, operator: Declared) -> None:
        declaration = operator._declaration
        required = declaration.arguments[: declaration.required]
        for i, (argument, t) in enumerate(zip(operator._flat, operator._arrays, strict=True)):
            name = f"{argument.name}_{i}" if argument.list else argument.name
            if t is None or argument.kind == "shape":  # has no elements
                self._names.append(None if t is None else tuple(t.shape))
                continue
            self._names.append(name)
            stored = t if isinstance(t, nn.Parameter) and not t.is_complex() else paired(t.detach()).clone()
            if argument.trained and (argument in required or argument.name not in declaration.loose):
                self.register_parameter(name, stored if isinstance(stored, nn.Parameter) else nn.Parameter(stored))
            else:
                self.register_buffer(name, stored.detach())
        arrange(self)
        self._complex = tuple(t is not None and t.is_complex() for t in operator._arrays)

    def operator(self) -> Operator:
        """The operator on the present values, differentiable in the parameters.

        Forward pre-hooks are run first, without an input, since `torch.nn.utils.prune` and others compute weights in
        them; RuntimeError for one that cannot.
        """
        settle(self, "operator")
        if not is_compiling() and "forward" in vars(self) and any(t.is_meta for t in state_of(self)):
            return cast("Operator", self.forward(_PRESENT))  # which brings the values for the time of a call
        return self._present()

    def _present(self) -> Operator:
        """`operator` after the hooks."""
        if issubclass(self._kind, Composition):
            return Composition(*(factor.operator() for factor in self.operators))  # type: ignore[operator]
        if issubclass(self._kind, Columns):
            return self.inner.operator().columns(self._count)
        if issubclass(self._kind, Adjoint):
            return self.inner.operator().H
        if issubclass(self._kind, BlockDiagonal):
            return BlockDiagonal(self.inner.operator())
        return self._declared() if issubclass(self._kind, Declared) else self._own

    def _declared(self) -> Any:
        kind: Any = self._kind
        given = zip(self._names, self._complex, strict=True)
        values = [self._value(name, complex_) if isinstance(name, str) else name for name, complex_ in given]
        return built(lambda *arrays: kind._of(arrays), kind._declaration.flat(len(values)), values)

    def _value(self, name: str, complex_: bool) -> Tensor:
        stored = widened(getattr(self, name))
        return unpaired(stored) if complex_ else stored

    def forward(self, x: Tensor) -> Tensor:
        """W x for every vector in the last axis of x (..., n_in)."""
        if x is _PRESENT:
            return self._present()  # type: ignore[return-value]
        half = dense("x", x).dtype in HALF
        result: Tensor = self._present()(x.float() if half else x)
        return result.to(x.dtype) if half and not result.is_complex() and not autocast(x.device) else result

    if TYPE_CHECKING:
        __call__ = forward

    def matrix(self) -> Tensor:
        """W, differentiable in the parameters; hooks as in `operator`. RuntimeError on the meta device."""
        need_values(self, "matrix")
        return self.operator().matrix()  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return "" if self._modules else repr(self._present())
