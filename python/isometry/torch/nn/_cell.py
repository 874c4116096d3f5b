"""A layer whose parameters are the arrays of its cell."""

from torch import Tensor

from ... import _core
from ..._cells import public
from ..._cells._declaration import Array, Cell
from ..._rules import check_recurrence
from ._base import RecurrentLayer
from ._step import Kernel


def _parameters(cell: Cell) -> dict[str, Array]:
    """The arrays of a cell that are parameters, by their names in a layer, weights first."""
    own = [array for array in cell.arrays[1:] if array.factors and not array.axes.startswith("B")]
    as_torch = {"w": "weight_hh", "u": "weight_ih", "b": "bias"}
    return {as_torch.get(array.name, array.name): array for array in sorted(own, key=lambda array: not array.needed)}


#: What the function of each cell takes.
DECLARED = {name: public(name) for name in _core.CELLS}
PARAMETERS = {name: _parameters(cell) for name, cell in DECLARED.items()}


class CellLayer(RecurrentLayer):
    """Parameters, checks and the kernel of a layer, from the declaration of the cell that ``_cell`` names.

    The arrays that belong to no sequence are its parameters, those that may be missing its biases; the settings of the
    cell are attributes of their names. Initial values are those of torch's layers. A subclass differs by hooks.
    """

    def _check_keywords(self) -> None:
        super()._check_keywords()
        memory = DECLARED[self._cell].memory(*self._settings())
        check_recurrence.checkpoint(self.checkpoint, affine=False, memory=memory)

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        sizes = {"d": features, "n": self.hidden_size}
        of_head = sizes | {"n": self._head_size}
        own = [(name, array) for name, array in PARAMETERS[self._cell].items() if array.needed or self.bias]
        return {
            name: self._of_heads(*array.shape(of_head)) if array.squares else array.shape(sizes) for name, array in own
        }

    def _reset(self, suffix: str) -> None:
        self._draw_as_torch(suffix)

    def _settings(self) -> tuple[float | None, ...]:
        """The settings of the cell."""
        names = DECLARED[self._cell].settings
        return tuple([getattr(self, name) for name in names]) if names else ()

    @property
    def _activation(self) -> str:
        return "tanh"

    def _arrays(self, suffix: str) -> dict[str, Tensor | None]:
        """The arrays of the cell that are parameters; None for a missing bias."""
        has, own = self._names, PARAMETERS[self._cell].items()
        return {array.name: self._read(name + suffix) if name in has else None for name, array in own}

    def _as_given(self, _suffix: str) -> tuple[Tensor, ...] | None:
        return None if hasattr(type(self), "_transition") else ()

    def _kernel(self, suffix: str) -> Kernel:
        return Kernel(self._cell, self._settings(), self._activation, 0.1, self._arrays(suffix))
