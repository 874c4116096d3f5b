"""Layers with a transition: W is an operator whose arguments are parameters and buffers of the layer; and those of
them that are plain recurrences, h <- phi(W h + V x + b)."""

from collections.abc import Iterator, Mapping
from typing import Any, Unpack, cast

import torch
from torch import Tensor, nn

from ..._rules import check, check_recurrence
from .._dispatch.function import HALF
from .._hooks import need_values, settle, sources
from .._stored import paired
from ..operators._block_diagonal import BlockDiagonal, diagonal
from ..operators._inverse import projected
from ._base import RecurrentLayer
from ._contract import DivisibleKeywords, check_weights
from ._reflections import built
from ._step import Kernel
from ._streaming import held

#: By name, the parameters of the module that has one, and its name there.
Owned = dict[str, tuple[dict[str, Any], str]]


class TransitionLayer(RecurrentLayer):
    """A layer whose W is an operator of a class of this package.

    A subclass names the class of the operator and the arguments that are parameters; the declaration gives their
    shapes. ``_fixed`` gives the values of the arguments that are buffers, ``_options`` the keywords that are not
    arrays, ``_sizes`` the sizes, and ``_random`` the initial operator, unless it is that of the class.
    """

    _object: type[Any]
    _divisible = True
    _trained: tuple[str, ...]
    _untrained: tuple[str, ...] = ()  # arguments that are buffers
    nonlinearity: str

    # ------------------------------------------------------------ phi

    def _check_keywords(self) -> None:
        super()._check_keywords()
        check_recurrence.activation(self.nonlinearity, "nonlinearity")
        per_unit = check_recurrence.ACTIVATIONS[self.nonlinearity][1]
        bias = (self.hidden_size // per_unit,) if per_unit else None
        # The length of modReLU's own bias; 0 for other activations.
        self._biased_units = check_recurrence.activation_units(
            self.nonlinearity, self.hidden_size, bias, complex_=self.is_complex, features_of="hidden_size"
        )

    def _activation_bias(self, suffix: str) -> Tensor | None:
        """The bias of modReLU, zero if the layer does not train one; None for other activations."""
        if not self._biased_units:
            return None
        if self.bias:
            return self._read("activation_bias" + suffix)
        device = self.weight_ih_l0.device
        return torch.zeros(self._biased_units, dtype=self._weight_dtype, device=device)

    # ------------------------------------------------------------ hooks

    def _sizes(self) -> dict[str, int]:
        """The sizes of the declaration, for one head."""
        return {"n": self._head_size}

    def _options(self) -> dict[str, Any]:
        """Keywords of the operator, and of `random`, besides parameters and buffers."""
        return {}

    def _random(self) -> Any:
        """An operator with the initial values of one head, in double precision on the CPU."""
        kind = torch.complex128 if self.is_complex else torch.float64
        return self._object.random(**{"n": self._head_size, **self._options()}, dtype=kind, device="cpu")

    def _transition_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and stored shapes of the parameters of one W."""
        sizes, declaration = self._sizes(), self._object._declaration
        check_recurrence.layer_transition(
            type(self).__name__, tuple(sizes[size] for size in declaration.matrix), self._head_size
        )
        arguments = declaration.by_name
        shapes = {name: arguments[name].shape(sizes) for name in self._trained}
        stored = {name: s if arguments[name].real else self._stored(*s) for name, s in shapes.items()}
        return {name: self._of_heads(*s) for name, s in stored.items()}

    def _draw_transition(self) -> dict[str, Tensor]:
        """Initial values of one head under the same names (complex ones as complex tensors), in double precision on the
        CPU.
        """
        drawn = self._random()
        return {name: getattr(drawn, name) for name in self._trained}

    def _transition(self, suffix: str) -> Any:
        """The operator of one recurrence, built from its parameters and buffers: W, or the stack of its blocks."""
        names, arguments = (*self._trained, *self._untrained), self._object._declaration.by_name
        make = lambda *values: self._object(**dict(zip(names, values, strict=True)), **self._options())
        return built(make, [arguments[name] for name in names], [self._argument(name, suffix) for name in names])

    def _whole(self, suffix: str) -> Any:
        """The operator W of one recurrence."""
        operator = self._transition(suffix)
        return operator if self._heads == 1 else BlockDiagonal(operator)

    def _operator(self, suffix: str) -> Any:
        """The same, inside `cached` the one that is held."""
        own = held(self)
        return self._whole(suffix) if own is None else own.transition(suffix)

    def _argument(self, name: str, suffix: str) -> Tensor:
        """One argument of the operator, complex if the layer is and the declaration allows it."""
        own = self._object._declaration.by_name[name].own
        return self._value(name + suffix) if own else self._read(name + suffix)

    # ------------------------------------------------------------ W

    def recurrent_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters of W, of every layer and direction, for a separate learning rate."""
        for suffix in self._suffixes:
            for name in self._transition_shapes():
                yield from sources(self, name + suffix, "recurrent_parameters")

    def recurrent_matrix(self, layer: int = 0, reverse: bool = False) -> Tensor:
        """W (hidden_size, hidden_size) of one layer and direction, differentiable.

        Raises
        ------
        IndexError
            If the layer does not exist.
        ValueError
            If ``reverse`` is given for a layer that is not bidirectional.
        TypeError
            If the weights have a precision that the layer does not compute in.
        RuntimeError
            If a forward pre-hook, which is run first, cannot compute weights without an input; on the meta device.
        """
        settle(self, "recurrent_matrix")
        need_values(self, "recurrent_matrix")
        check_weights(type(self).__name__, self.weight_ih_l0, self.is_complex)
        return self._rounded(self._whole(self._suffix(layer, reverse)).matrix())

    @torch.no_grad()
    def set_recurrent_matrix(self, w: Tensor, layer: int = 0, reverse: bool = False) -> None:
        """Set the parameters of one W so that it is a given matrix; not differentiable.

        Parameters
        ----------
        w : Tensor, shape (hidden_size, hidden_size)
            A matrix that the layer can represent, such as ``recurrent_matrix()`` of another one.
        layer, reverse
            As in `recurrent_matrix`.

        Raises
        ------
        ValueError
            A matrix that no parameters reach, which then stay as they were: another shape, one that is not orthogonal,
            too few reflections or blocks, another determinant, numbers outside of the blocks of the heads; a layer
            without an inverse map.
        TypeError
            If w is no tensor, or not a dense one.
        RuntimeError
            If a hook or a parametrization computes one of these parameters. Otherwise as `recurrent_matrix`.

        Notes
        -----
        Parameters are found in double precision. W of them, in the precision of the computation, must be within
        32 n eps of w, the Frobenius norm of the difference for orthogonal matrices; eps is that of float32 for float16
        and bfloat16, or of w if that is larger, once for each number of w. In half precision these parameters are then
        rounded, and W is within 2 n eps of w for the eps of the half precision: 0.12 for 8 units in bfloat16, of which
        a third to a twentieth is usual. A layer of which w is ``recurrent_matrix()`` stays as it is.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> layer, w = it.nn.ExpRNN(3, 4), torch.eye(4).roll(2, 0)
        >>> layer.set_recurrent_matrix(w)
        >>> torch.allclose(layer.recurrent_matrix(), w, atol=1e-5)
        True
        """
        suffix, n = self._suffix(layer, reverse), self.hidden_size
        if not isinstance(w, Tensor):
            check.kind("w", "a torch.Tensor", w)
        if w.layout is not torch.strided:
            check.strided("w", w.layout)
        if tuple(w.shape) != (n, n):
            raise ValueError(f"w must have shape {(n, n)}, not {tuple(w.shape)}")
        if w.is_complex() and not self.is_complex:
            raise ValueError("w must be real, as W of this layer is")
        now = self.recurrent_matrix(layer, reverse)
        if now.dtype is w.dtype and torch.equal(now, w.to(now.device)):
            return
        owned, stored = self._of_transition(suffix), self.weight_ih_l0.dtype
        for parameters, key in owned.values():
            if key not in parameters:
                raise RuntimeError(f"set_recurrent_matrix cannot set {key}: a hook or a parametrization computes it")
        given = torch.finfo(w.dtype).eps if w.is_floating_point() or w.is_complex() else 0.0
        w = w.detach().to("cpu", torch.complex128 if self.is_complex else torch.float64)
        eps, each = torch.finfo(self._weight_dtype).eps, max(given, torch.finfo(stored).eps)
        bound = float(torch.linalg.norm(w)) * (each + 32 * n**0.5 * eps)
        values = self._inverse(self._blocks(w, bound), suffix, bound)
        if missing := [name for name, value in values.items() if value is None]:
            raise ValueError(f"w is not reached by the {missing[0]} of this layer")
        found = {name: paired(value) for name, value in values.items()}
        for name, (parameters, key) in owned.items():
            own, needed = tuple(parameters[key].shape), tuple(found[name].shape)
            if own != needed:
                raise ValueError(f"w is not reached by the {name} of this layer, {own}: {needed} would be needed")
        self._try(w, suffix, found, self._weight_dtype, bound)
        if stored in HALF:
            self._try(w, suffix, found, stored, 2 * n * torch.finfo(stored).eps)
        for name, (parameters, key) in owned.items():
            parameters[key].copy_(found[name])

    def _blocks(self, w: Tensor, bound: float) -> Tensor:
        """The blocks (heads, k, k) of w, which is zero outside of them up to this distance; w itself of one head."""
        if self._heads == 1:
            return w
        parts = w.unflatten(0, (self._heads, -1)).unflatten(-1, (self._heads, -1))
        blocks = parts.diagonal(dim1=0, dim2=2).movedim(-1, 0)
        check_recurrence.block_diagonal(float(torch.linalg.norm(w - diagonal(blocks))), bound, self._heads)
        return blocks.contiguous()

    def _try(self, w: Tensor, suffix: str, found: Mapping[str, Tensor], dtype: torch.dtype, bound: float) -> None:
        """Refuse parameters which, in this precision, have a W further than this from w, in Frobenius norm."""
        owned = self._of_transition(suffix)
        before = {name: parameters[key] for name, (parameters, key) in owned.items()}
        try:
            for name, (parameters, key) in owned.items():
                t = found[name].to(before[name].device, dtype, copy=True)  # a hook may change it
                parameters[key] = nn.Parameter(t, requires_grad=False)
            settle(self, "set_recurrent_matrix")
            distance = torch.linalg.norm(self._whole(suffix).matrix().to(w.device, w.dtype) - w)
        finally:
            for name, (parameters, key) in owned.items():
                parameters[key] = before[name]
        check_recurrence.reached_matrix(float(distance), bound)

    def _of_transition(self, suffix: str) -> Owned:
        """The parameters of one W, by name."""
        return {name: (self._parameters, name + suffix) for name in self._transition_shapes()}

    def _nearest(self, w: Tensor, bound: float) -> Tensor:
        """The orthogonal or unitary matrix that w is up to this distance, in Frobenius norm."""
        if not torch.isfinite(w).all():
            raise ValueError("w must be finite")
        nearest = projected(w, True)
        check_recurrence.unitary_matrix(float(torch.linalg.norm(nearest - w)), bound, w.is_complex())
        return nearest

    def _inverse(self, w: Tensor, suffix: str, bound: float) -> dict[str, Tensor]:
        """Parameters of W by name, as numbers of the states' field, for w in double precision on the CPU, which is one
        of a W up to this distance; with heads for the stack of its blocks.
        """
        inverse = getattr(self._object, "from_matrix", None)
        if inverse is None:
            raise ValueError(f"{type(self).__name__} has no map from W to its parameters")
        fixed = {name: getattr(self, name + suffix).to(w.device, torch.float64) for name in self._untrained}
        operator = inverse(self._nearest(w, bound), **fixed)
        return {name: getattr(operator, name) for name in self._trained}

    def _reset_transition(self, suffix: str) -> None:
        """Draw the initial values of one W."""
        drawn = [self._draw_transition() for _ in range(self._heads)]
        for name, value in drawn[0].items():
            every = value if self._heads == 1 else torch.stack([one[name] for one in drawn])
            getattr(self, name + suffix).copy_(paired(every))


class PlainLayer(TransitionLayer):
    """A layer of h <- phi(W h + V x + b)."""

    _own_keywords: tuple[str, ...] = ("nonlinearity",)
    _cell = "recurrence"
    slope = 0.1

    def _check_keywords(self) -> None:
        super()._check_keywords()
        if self.checkpoint == "reversible":
            check_recurrence.reversible(self.nonlinearity, False, self._unitary(), "nonlinearity")

    def _unitary(self) -> bool:
        """Whether W is orthogonal or unitary for all parameters."""
        return self._object._declaration.unitary

    def _bias_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and stored shapes of the parts of b."""
        return {"bias": self._stored(self.hidden_size)}

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        shapes = {"weight_ih": self._stored(self.hidden_size, features), **self._transition_shapes()}
        if self.bias:
            shapes |= {"activation_bias": (self._biased_units,)} if self._biased_units else self._bias_shapes()
        return shapes

    def _bias(self, suffix: str) -> Tensor:
        """b."""
        return self._value("bias" + suffix)

    def _arrays(self, suffix: str) -> dict[str, Tensor | None]:
        """The arrays of `recurrence` that are parameters."""
        return {
            "input_weight": self._value("weight_ih" + suffix),
            "bias": self._bias(suffix) if self.bias and not self._biased_units else None,
            "activation_bias": self._activation_bias(suffix),
        }

    def _kernel(self, suffix: str) -> Kernel:
        return Kernel("recurrence", (False,), self.nonlinearity, self.slope, self._arrays(suffix))


class OrthogonalRNN(PlainLayer):
    """A layer whose W is orthogonal or unitary: an operator that a subclass names; it sets ``is_complex`` if W is."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        nonlinearity: str | None = "modrelu",
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        self._nonlinearity_given = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    def _check_keywords(self) -> None:
        given = self._nonlinearity_given
        self.nonlinearity = cast("str", self._best_nonlinearity() if given is None else given)
        super()._check_keywords()

    def _best_nonlinearity(self) -> str | None:
        """What a class takes where None is given; None is refused by a class that does not say."""
        return None

    def _oplu(self) -> str:
        """OPLU, the best of a real W over the tasks of benches/study, which takes pairs of units; else leaky ReLU."""
        return "leaky_relu" if self._head_size % 2 else "oplu"

    def _reset(self, suffix: str) -> None:
        self._draw_weights(suffix, "weight_ih")
        self._reset_transition(suffix)
