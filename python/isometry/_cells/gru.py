"""The gated recurrent unit: z and r are gates, W_h a matrix of w.

h_t = z * h_{t-1} + (1 - z) * c,  z, r = sigma(W_g h_{t-1} + U_g x_t + b_g),
c = phi(W_h (r * h_{t-1}) + U_h x_t + b_h), or phi(r * (W_h h_{t-1} + c_h) + U_h x_t + b_h) with reset "after".

Saved for backward are z, r and c of every step, and with reset "after" W_h h + c_h.
"""

from isometry._cells._declaration import Cell
from isometry._rules import check

#: The setting of reset "after" for arrays whose gates are in torch's order r, z, h.
R_FIRST = 2.0
GRU = Cell("gru", as_given="w and x", notes={"w": "the matrices of z, r and h"})


def setting(reset: str, hidden_bias: object = None) -> tuple[bool]:
    """Whether r acts on the product, after a check of the keyword, and that there is a c_h only where it does."""
    check.choice("reset", reset, "before", "after")
    if hidden_bias is not None and reset == "before":
        raise ValueError("hidden_bias must not be given with reset 'before': only reset 'after' has one")
    return (reset == "after",)
