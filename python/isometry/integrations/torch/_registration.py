"""Kernels registered over torch's operators as long as a registration lasts."""

from collections.abc import Callable
from itertools import product
from threading import Lock, RLock, active_count
from typing import Any

import torch

from isometry.torch._dispatch.private import uncompiled

from .. import _registration
from ._operators import KEYS, OPERATORS, Operator, traced


class _Computed:
    """How many calls were computed, by these kernels and by torch; and whether the kernels take all that they can, or,
    where nobody is registered, None."""

    def __init__(self) -> None:
        self.always: bool | None = None
        self._lock = Lock()
        self._counts = {key: [0, 0] for key in ("lstm", "gru", "rnn", "lstm_cell", "gru_cell", "rnn_cell")}

    def add(self, key: str, ours: bool) -> None:
        """One more call."""
        with self._lock:
            self._counts[key][not ours] += 1

    def now(self) -> dict[str, tuple[int, int]]:
        """The counts up to now."""
        with self._lock:
            return {key: (ours, theirs) for key, (ours, theirs) in self._counts.items()}


class Registration(_registration.Registration):
    """The result of `register`: `remove()`, or the end of a `with` block, gives the operators back to torch.

    See Also
    --------
    register : makes one.
    :doc:`faster-gru` : what is computed by which kernels.
    """

    def __init__(self, always: bool) -> None:
        super().__init__(_ended)
        self.always = always
        self._from = _COMPUTED.now()
        self._to: dict[str, tuple[int, int]] | None = None

    def counts(self) -> dict[str, tuple[int, int]]:
        """The calls on the CPU since this registration, or of its time once it is removed.

        Returns
        -------
        dict
            Keys "lstm", "gru", "rnn", "lstm_cell", "gru_cell" and "rnn_cell", those without calls left out; values
            pairs of int, the calls that these kernels computed, and those that torch computed (of cells: while one
            registration said always).
        """
        until = self._to or _COMPUTED.now()
        found = {key: (ours - self._from[key][0], theirs - self._from[key][1]) for key, (ours, theirs) in until.items()}
        return {key: pair for key, pair in found.items() if any(pair)}


_LOCK = RLock()
_HELD: list[Registration] = []
_COMPUTED = _Computed()
#: The kernels of the cells, and the others.
_LIBRARIES: dict[bool, torch.library.Library] = {}


def register(*, always: bool = False) -> Registration:
    """Compute torch's recurrent layers and cells by the kernels of this package, for all threads of the process.

    Parameters
    ----------
    always : bool
        Whether these kernels compute all calls that they can, those of cells too. By default a call that torch computes
        faster is left to it: docs/faster-gru.md has the rule and its measurements. Of several registrations one that
        says always decides.

    Returns
    -------
    Registration
        Its `remove()`, or the end of `with register(): ...`, undoes the call. Until then, or to the end of the process,
        it lasts, whether the result is kept or not. Its `counts()` says how many calls were computed, and by whom.

    Raises
    ------
    RuntimeError
        An operator of torch whose arguments are not the known ones, or over which another package has registered a
        kernel; the message names it, and nothing is registered.

    Notes
    -----
    Computed are the operators ``lstm``, ``gru``, ``rnn_tanh`` and ``rnn_relu``, of padded and packed sequences, and
    those of the cells, for dense tensors on the CPU in float32 and float64. Modules, parameters, hooks,
    parametrisations, optimisers and wrappers are unchanged; values and gradients are torch's up to rounding, and
    dropout between layers draws what torch draws. Anything else (half precision, autocast, ``proj_size``, other
    devices, empty sequences, wrong arguments, forward mode, torch.func, and whatever is traced) torch computes or
    refuses as before.

    A call of a layer that is left to torch costs some 20 microseconds more than without a registration.

    Examples
    --------
    >>> import torch
    >>> from isometry.integrations.torch import register
    >>> with register(always=True) as registration:
    ...     output, (h_n, c_n) = torch.nn.LSTM(3, 8)(torch.randn(20, 5, 3))
    >>> registration.counts()
    {'lstm': (1, 0)}
    """
    with _LOCK:
        if not _LIBRARIES:
            for operator in OPERATORS:
                operator.check()
        made = Registration(bool(always))
        _HELD.append(made)
        _arrange()
    return made


def _ended(registration: Registration) -> None:
    """The end of a registration."""
    with _LOCK:
        if registration in _HELD:
            _HELD.remove(registration)
            registration._to = _COMPUTED.now()
            _arrange()


def _arrange() -> None:
    """Registers the kernels, or takes them away, as registrations are held or not; those of the cells for `always`.

    torch frees a kernel that is taken away though another thread may be about to call it: it stays while there are
    others, and leaves all calls to torch.
    """
    _COMPUTED.always = any(held.always for held in _HELD) if _HELD else None
    for cells, wanted in ((False, bool(_HELD)), (True, bool(_COMPUTED.always))):
        if wanted and cells not in _LIBRARIES:
            library = _LIBRARIES[cells] = torch.library.Library("aten", "IMPL")
            for operator, key in product([o for o in OPERATORS if o.cell is cells], KEYS):
                library.impl(operator.name, _kernel(operator), key)
        elif not wanted and cells in _LIBRARIES and active_count() == 1:
            _LIBRARIES.pop(cells)._destroy()


def _kernel(operator: Operator) -> Callable[..., Any]:
    """What torch calls for an operator."""
    computed, by_torch, key = operator.computed, operator.by_torch(), operator.key

    @uncompiled
    def kernel(*given: Any) -> Any:
        always = _COMPUTED.always
        found = None if always is None else computed(given, always)
        if found is not None:
            _COMPUTED.add(key, True)
            return found
        found = by_torch(*given)
        if always is not None and not traced(given[0]):
            _COMPUTED.add(key, False)
        return found

    return kernel
