"""The LSTM, with gates in the order of torch.

(i', f', g', o') = W h_{t-1} + U x_t + b,  i, f, o = sigma(i', f', o'),  g = tanh(g'),
c_t = f * c_{t-1} + i * g,  h_t = o * tanh(c_t).

A state is (h, c), 2n numbers, also in h0. Saved for backward are the gates of every step.
"""

from isometry._cells._declaration import OWN_BIAS, Array, Cell

#: The arrays of layers are those of the kernel, which are torch's: the rows of all gates in one matrix.
STACKED = Cell("lstm", as_given="w and x", notes={"w": "the rows of i, f, g and o"})
LSTM = Cell(
    "lstm",
    as_given="w and x",
    own=(
        Array("x", "T B d", needed=True),
        Array("w", "4 n n", needed=True, note="the matrices of i, f, g and o"),
        Array("u", "4 n d", needed=True),
        Array("b", "4 n"),
        Array("h0", "B n"),
        Array("c0", "B n"),
        Array(OWN_BIAS, ""),
    ),
    state=("h0", "c0"),
)
