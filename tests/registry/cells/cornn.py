"""The coupled oscillatory network, whose state is y and z side by side."""

from reference.cornn import cornn
from registry.cells.entry import Cell, Variant

LAW = {"dt": 0.3, "gamma": 1.5, "epsilon": 0.7}

CORNN = Cell(
    stem="cornn",
    arrays={"x": "T B d", "w": "2 n n", "u": "n d", "b": "n", "y0": "B n", "z0": "B n"},
    states=cornn,
    mistakes=(
        *(({name: float("nan")}, ValueError, f"{name} must be a finite number") for name in LAW),
        ({"gamma": "stiff"}, TypeError, "gamma must be a number"),
        ({"nonlinearity": "tanh"}, TypeError, "nonlinearity"),
    ),
    variants={
        "plain": Variant(LAW),
        # the settings of the adding problem: eigenvalues of the linear part near the unit circle
        "stiff": Variant({"dt": 0.06, "gamma": 66.0, "epsilon": 15.0}),
        # the state stays as it is, without gradients of the weights
        "no step": Variant({"dt": 0.0, "gamma": 1.0, "epsilon": 1.0}),
    },
    first=("y0", "z0"),
    activations=(),
    units=lambda n, d: d + 2 * n,
)
