"""One time step per call, and W formed once: the methods `step` and `cached` of every recurrent layer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor

from ._contract import check_step
from ._streaming import Cached, held_for_steps


class Stepping:
    """The methods of layers whose inputs arrive one at a time."""

    batch_first: bool
    __call__: Any
    _one_state: Any
    _parted: Any

    def step(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The state after one time step, for inputs that arrive one at a time.

        Parameters
        ----------
        input : Tensor, shape (B, input_size) or (input_size,)
            The input of this step.
        hx : Tensor, shape (num_layers, B, hidden_size), or (num_layers, hidden_size) without a batch, optional
            The state before it, of all layers; by default as in a call of the layer. Of an `LSTM` a pair of them, h and
            c.

        Returns
        -------
        Tensor
            The state after it, shaped as ``hx``: the ``h_n`` of a call of the layer with a sequence of this one step.
            Its last row, ``[-1]``, is the output; of an `LSTM` the last row of h.

        Raises
        ------
        ValueError
            For a layer of two directions, of which one starts at the end of a sequence, and for an input of more
            dimensions. Other errors are those of a call.

        Notes
        -----
        A step is a call of the layer, with its hooks, and forms W. Inside :meth:`cached`, without hooks, it does not,
        and costs about as much as a step of ``torch.nn.RNN``. In half precision the state is rounded at every step, by
        a call of the layer only at the end.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> layer, x, state = it.nn.ScoRNN(3, 8), torch.randn(20, 5, 3), None
        >>> with torch.no_grad(), layer.cached():
        ...     for x_t in x:
        ...         state = layer.step(x_t, state)
        >>> torch.allclose(state, layer(x)[1], atol=1e-5)
        True
        """
        own = held_for_steps(self)
        if own is not None and (found := own.step(input, self._one_state(hx, input, True))) is not None:
            return self._parted(found[1])
        check_step(self, input)
        last: Tensor = self(input.unsqueeze(int(self.batch_first and input.dim() == 2)), hx)[1]
        return last

    def cached(self) -> AbstractContextManager[None]:
        """A context in which W is formed once, for calls of the layer and of :meth:`step`.

        W is formed when it is first needed, and again after a parameter or buffer has changed: by an optimiser,
        ``load_state_dict``, another device. As in autograd, a change through ``.data`` in place is not seen.

        With gradients, calls share one W and its graph, so one ``backward()`` serves them all. When it has computed
        the gradient of W, the next call forms W again.

        The context holds for the thread, or the asynchronous task, that entered it, not for threads started inside.
        Contexts of the same layer can be nested, and share W. `torch.compile`, `torch.func` and forward mode form W as
        they do outside. `torch.utils.checkpoint` with ``use_reentrant=False`` raises a CheckpointError inside, since
        the recomputation does not form W again. Do not set attributes of the layer, such as ``nonlinearity``, inside.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> layer = it.nn.ORNN(3, 8)
        >>> with torch.no_grad(), layer.cached():
        ...     state = layer.step(torch.randn(3))
        ...     state = layer.step(torch.randn(3), state)
        >>> state.shape
        torch.Size([1, 8])
        """
        return Cached(self)
