"""`from_torch`: torch's recurrent layers on the kernels of this package."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ..._rules import check
from ._base import RecurrentLayer
from ._conversion import CELLS, LAYERS, Prepared, Way, prepared, to_ours
from ._replacing import check_module, replace, unseen, weights_of_others
from ._subclasses import rebased, unfit

_NAMES = {kind.__name__ for kind in (nn.RNNBase, nn.RNNCellBase, nn.RNNCell, *LAYERS, *CELLS)}
#: What an error of a layer inside a model is: the layer stays, with this reason.
_REFUSED = (NotImplementedError, TypeError, ValueError)
#: How many layers a warning names.
_SHOWN = 3


class Report(NamedTuple):
    """What `from_torch` did with the recurrent modules of a model: names, each with a reason."""

    replaced: list[tuple[str, str]]
    left: list[tuple[str, str]]

    def __str__(self) -> str:
        lines = [f"from_torch replaced {len(self.replaced)} and left {len(self.left)} of the recurrent modules"]
        return "\n  ".join(lines + [f"{name or 'module'}: {why}" for name, why in (*self.replaced, *self.left)])


def from_torch(module: nn.Module, *, cells: bool = False, subclasses: bool = False, report: bool = False) -> Any:
    """Convert a ``torch.nn.RNN``, ``GRU`` or ``LSTM``, or all of them in a model, to layers of this package.

    The weights are copied.

    Parameters
    ----------
    module : torch.nn.Module
        A ``torch.nn.RNN``, ``GRU`` or ``LSTM``, or a module that contains some.
    cells : bool
        Convert ``LSTMCell`` and ``GRUCell`` too.
    subclasses : bool
        Convert subclasses too, if they compute by torch's forward: without a forward of their own, or with one that
        calls ``super().forward``. Their methods stay.
    report : bool
        Return what was done as well.

    Returns
    -------
    RNN, GRU or LSTM
        A new layer that computes the same; its parameters are copies, on the same device and of the same dtype, each
        with its ``requires_grad``, in the same mode of training, with the attributes that were set on the layer alone.
        A ``GRU`` has ``reset="after"``, and keys of its own in the state dict: torch's load, but what the model before
        loads is ``to_torch(model).state_dict()``.
    torch.nn.Module
        For any other module, the module itself, with its layers replaced in place. A layer that is used in several
        places is replaced by one new layer, and parameters that layers share are shared afterwards. Make the optimiser
        afterwards, since the parameters are new.
    Report
        With ``report``, as the second of a pair: ``replaced`` and ``left``, lists of (name, reason) of the recurrent
        modules. Without it a warning names layers of torch that were left.

    Raises
    ------
    TypeError
        If module is not a module; if it is neither a layer of torch nor contains modules, or is a subclass or cell that
        was not asked for; or a weight is not dense, or not float16, bfloat16, float32 or float64.
    NotImplementedError
        If module is a layer with ``proj_size``, with hooks, of its parameters too, with a forward, parameters, buffers
        or submodules that were added to it, or with weights that a hook computes (``weight_norm``, ``prune``).

    Warns
    -----
    UserWarning
        If nothing in a model was replaced that holds no layers of this package, or layers were left.

    Notes
    -----
    Inside a model, a layer stays, with the reason, where an error above stands for a layer alone; where its weights are
    parametrized, or shared with a module that stays; and where a call of the model would not reach a new one: because
    the layer was compiled by itself, by ``torch.compile`` or ``torch.jit``, is inside a ``DistributedDataParallel`` or
    FSDP, or is also held by an attribute that is no submodule. Quantised modules stay too.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> theirs, x = torch.nn.GRU(3, 8), torch.randn(20, 5, 3)
    >>> ours = it.nn.from_torch(theirs)
    >>> torch.allclose(ours(x)[0], theirs(x)[0], atol=1e-6)
    True
    >>> model = torch.nn.ModuleDict({"a": torch.nn.LSTM(3, 8), "b": torch.nn.GRUCell(8, 8)})
    >>> model, report = it.nn.from_torch(model, report=True)
    >>> report.left
    [('b', 'is a GRUCell, which cells=True converts')]
    """
    check_module("module", module)
    asked = check.flag("cells", cells), check.flag("subclasses", subclasses)
    report = check.flag("report", report)
    theirs, why = _standing(module, *asked)
    if theirs is not None:
        found: Any = prepared(module, "module", _way(module, theirs), {}).filled({})
        done = Report([("", _became(theirs))], [])
        return (found, done) if report else found
    if isinstance(module, nn.RNNBase | nn.RNNCellBase) or not module._modules:
        why = why or f"is {check.article(type(module).__name__)}"
        raise TypeError(f"module must be a torch.nn.RNN, GRU or LSTM itself, or contain some: it {why}")
    done, unexpected = _converted(module, *asked)
    if not done.replaced and not any(isinstance(each, RecurrentLayer) for each in module.modules()):
        what = _some(done.left) if done.left else "it has no torch.nn.RNN, GRU or LSTM"
        warnings.warn(f"from_torch replaced nothing in {type(module).__name__}: {what}", stacklevel=2)
    elif unexpected and not report:
        count = len(unexpected) + len(done.replaced)
        warnings.warn(f"from_torch left {len(unexpected)} of {count} layers: {_some(unexpected)}", stacklevel=2)
    return (module, done) if report else module


def _some(left: list[tuple[str, str]]) -> str:
    more = f"; and {len(left) - _SHOWN} more (report=True lists them)" if len(left) > _SHOWN else ""
    return "; ".join(f"{name!r} ({why})" for name, why in left[:_SHOWN]) + more


def _became(theirs: Any) -> str:
    return f"a torch.nn.{theirs.__name__}"


def _way(module: Any, theirs: Any) -> Way:
    kind: Any = type(module)
    ours = {**LAYERS, **CELLS}[theirs]
    return to_ours(module, theirs, None if kind is theirs else rebased(kind, theirs, ours))


def _standing(module: nn.Module, cells: bool, subclasses: bool) -> tuple[Any, str | None]:
    """The class of torch that a module is to be converted as; or none, and why it stays if it is recurrent."""
    kind, known = type(module), {**LAYERS, **CELLS}
    if isinstance(module, torch.jit.ScriptModule):
        return None, "is compiled by torch.jit" if module.original_name in _NAMES else None
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        if parametrize.is_parametrized(module):
            return None, "has parametrized weights: torch.nn.utils.parametrize.remove_parametrizations first"
        theirs = next((each for each in kind.__mro__ if each in known), None)
        if theirs is None:
            return None, f"is {check.article(kind.__name__)}, which this package does not have"
        if theirs in CELLS and not cells:
            return None, f"is {check.article(kind.__name__)}, which cells=True converts"
        if kind is theirs:
            return theirs, None
        if not subclasses:
            return None, f"is the subclass {kind.__name__}: subclasses=True converts those that keep torch's forward"
        why = unfit(kind, theirs, known[theirs])
        return (theirs, None) if why is None else (None, f"is a subclass that does more than torch's layer: {why}")
    for each in kind.__mro__:
        if each.__name__ in _NAMES and each.__module__.startswith("torch."):
            return None, f"is {each.__module__}.{each.__name__}, which is quantised or can be"
    return None, None


def _converted(model: nn.Module, cells: bool, subclasses: bool) -> tuple[Report, list[tuple[str, str]]]:
    """Replaces the layers of a model; what was done, and what stayed though it is a layer that was asked for."""
    layers: dict[nn.Module, Any] = {}
    paths: dict[Any, str] = {}
    left: dict[str, str] = {}
    for path, each in model.named_modules():
        if any(path.startswith(above + ".") for above in left):
            continue
        theirs, why = _standing(each, cells, subclasses)
        if theirs is not None:
            layers[each], paths[each] = theirs, path
        elif why is not None:
            left[path] = why
    weights = {p: f"{path}.{name}" for each, path in paths.items() for name, p in each.named_parameters()}
    stay: dict[nn.Module, str] = {}
    for thing, why in unseen(model, paths | weights).items():
        for each in layers:
            if thing is each or any(thing is p for p in each.parameters()):
                stay.setdefault(each, why)
    ready = _ready(model, {each: kind for each, kind in layers.items() if each not in stay}, paths, stay)
    copies: dict[Tensor, nn.Parameter] = {}
    replace(model, {each: one.filled(copies) for each, one in ready.items()})
    unexpected = [(paths[each], why) for each, why in stay.items()]
    replaced = [(paths[each], _became(layers[each])) for each in ready]
    return Report(replaced, [*left.items(), *unexpected]), unexpected


def _ready(
    model: nn.Module, layers: Mapping[nn.Module, Any], paths: Mapping[Any, str], stay: dict[nn.Module, str]
) -> dict[nn.Module, Prepared]:
    """The new layers, without values; ``stay`` gets those that are refused, and those that share weights with them."""
    while True:
        others = weights_of_others(model, layers.keys() - stay.keys())
        ready, before = {}, len(stay)
        for each, theirs in layers.items():
            if each in stay:
                continue
            try:
                ready[each] = prepared(each, repr(paths[each]), _way(each, theirs), others)
            except _REFUSED as error:
                stay[each] = str(error)
        if len(stay) == before:
            return ready
