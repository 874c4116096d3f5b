"""The LSTM, with gates in the order of torch.

(i', f', g', o') = W h_{t-1} + U x_t + b,  i, f, o = sigma(i', f', o'),  g = tanh(g'),
c_t = f * c_{t-1} + i * g,  h_t = o * tanh(c_t).

A state is (h, c), 2n numbers, also in h0. Saved for backward are the gates of every step.
"""

from isometry._cells._declaration import Cell

LSTM = Cell("lstm", as_given="w and x", notes={"w": "the rows of i, f, g and o"})
