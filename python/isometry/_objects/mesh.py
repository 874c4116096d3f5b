"""Meshes of 2 x 2 blocks: W = D F_1 F_2 ... F_L, on pairs of neighbours (brick) or at distances n/2, ..., 2, 1 (fft).

Sizes and layout are the shape of the first argument, an empty array (n, layers, kind, 0) of the type of W: so they go
wherever the arguments go, through derivatives, compiled graphs and kernels.
"""

from collections.abc import Iterator
from typing import Any

from isometry._objects._declaration import Declaration, Determinant
from isometry._rules import check

#: The layout of each kind, and the side from which its layers are counted; kinds count from 1.
KINDS = (("brick", "left"), ("brick", "right"), ("fft", "left"))


def count(n: int, layers: int, kind: int) -> int:
    """Number of pairs."""
    if kind == len(KINDS):
        return n // 2 * layers
    return (layers + 1) // 2 * (n // 2) + layers // 2 * ((n - 1) // 2)


MESH = Declaration(
    "Mesh",
    "mesh",
    empty=("layers", "pairs"),
    bind=lambda sizes: {"pairs": count(**sizes)},
    checked=("signs",),
    exists={"fft": lambda n: not n & (n - 1)},
    required=2,
    determinant=Determinant(lambda sizes: (-1) ** sizes["pairs"], products=("signs",), turns={"phi": -1, "phases": 1}),
)


def frame(
    n: object, layers: object, layout: object, first: object, angles: tuple[int, ...] = ()
) -> tuple[int, int, int, int]:
    """The shape of the first argument of a mesh of these sizes, after checking them; angles is the shape of theta."""
    size = check.count("n", n, 1)  # type: ignore[arg-type]
    check.choice("layout", layout, "brick", "fft")
    check.choice("first", first, "left", "right")
    if layout == "brick":
        if layers is None and angles[-1:] == (size * (size - 1) // 2,):
            layers = size  # a whole mesh
        if layers is None:
            raise ValueError(
                "layers must be given with layout 'brick'; only 'fft' and theta of n (n - 1) / 2 angles determine them"
            )
        return size, check.count("layers", layers, 1), 1 + KINDS.index(("brick", str(first))), 0  # type: ignore[arg-type]
    if not MESH.exists[str(layout)](size):
        raise ValueError(f"n must be a power of two with layout 'fft', not {size}")
    if first != "left":
        raise ValueError("first must be 'left' with layout 'fft', whose layers have no other order")
    depth = size.bit_length() - 1
    if layers is not None and check.whole("layers", layers) != depth:
        raise ValueError(f"layers must be None or log2 n = {depth} with layout 'fft', not {layers}")
    return size, depth, len(KINDS), 0


def layers(n: int, count: int, kind: int) -> Iterator[tuple[int, int, int]]:
    """(first element that has a partner, pairs, distance p) of each layer, leftmost first.

    From that element on the pairs are (2 p k + q, 2 p k + p + q), q < p.
    """
    for layer in range(count):
        if kind == len(KINDS):
            yield 0, n // 2, n >> (layer + 1)
        else:
            start = (layer if kind == 1 else count - 1 - layer) % 2
            yield start, (n - start) // 2, 1


def brick_only(layout: str) -> None:
    """A mesh that has angles in the convention of Clements et al."""
    if layout != "brick":
        raise ValueError(f"clements needs a mesh with layout 'brick', not {layout!r}")


class Sized:
    """The sizes of a mesh, read off its frame."""

    __slots__ = ()

    frame: Any

    @property
    def n(self) -> int:
        """Size of W."""
        return int(self.frame.shape[0])

    @property
    def layers(self) -> int:
        """L, log2 n in the fft layout."""
        return int(self.frame.shape[1])

    @property
    def layout(self) -> str:
        """The names "brick" or "fft"."""
        return KINDS[self.frame.shape[2] - 1][0]

    @property
    def first(self) -> str:
        """Whether the leftmost or the rightmost layer of a brick mesh has the pairs (0, 1), (2, 3), ..."""
        return KINDS[self.frame.shape[2] - 1][1]

    def _parts(self) -> list[str]:
        n, layers, _kind, _pairs, *rest = super()._parts()  # type: ignore[misc]
        layout = [f"layout={self.layout!r}"] if self.layout != "brick" else []
        return [n, layers, *layout, *([f"first={self.first!r}"] if self.first != "left" else []), *rest]
