"""The gated recurrent unit: z and r are gates, W_h a matrix of w or an operator.

h_t = z * h_{t-1} + (1 - z) * c,  z, r = sigma(W_g h_{t-1} + U_g x_t + b_g),
c = phi(W_h (r * h_{t-1}) + U_h x_t + b_h), or phi(r * (W_h h_{t-1} + c_h) + U_h x_t + b_h) with reset "after".

Saved for backward are z, r and c of every step, and with reset "after" W_h h + c_h.
"""

from dataclasses import replace

from isometry._cells._declaration import OWN_BIAS, Array, Cell

GRU = Cell(
    (
        Array("x", "T B d", needed=True),
        Array("w", "3 n n", needed=True, note="the matrices of z, r and h"),
        Array("u", "3 n d", needed=True),
        Array("b", "3 n"),
        Array("h0", "B n"),
        Array("hidden_bias", "n"),
        Array(OWN_BIAS, ""),
    ),
    as_given="w and x",
    settings=("after",),
    saved=lambda after: 3 + bool(after),
)
#: The same with an operator as W_h.
GORU = replace(
    GRU,
    arrays=(GRU.arrays[0], Array("w", "2 n n", needed=True, note="the matrices of z and r"), *GRU.arrays[2:]),
    matrices="w",
)
