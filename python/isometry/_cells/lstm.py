"""The LSTM, with gates in the order of torch.

(i', f', g', o') = W h_{t-1} + U x_t + b,  i, f, o = sigma(i', f', o'),  g = tanh(g'),
c_t = f * c_{t-1} + i * g,  h_t = o * tanh(c_t).

A state is (h, c), 2n numbers, also in h0. Saved for backward are the gates of every step.
"""

from isometry._cells._declaration import OWN_BIAS, Array, Cell

LSTM = Cell(
    (
        Array("x", "T B d", needed=True),
        Array("w", "4n n", needed=True, note="the rows of i, f, g and o"),
        Array("u", "4n d", needed=True),
        Array("b", "4n"),
        Array("h0", "B 2n"),
        Array(OWN_BIAS, ""),
    ),
    as_given="w and x",
    saved=lambda: 2,
    width=2,
)
