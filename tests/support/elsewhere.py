"""A substitute for a CUDA device: tensors of the plain types that report this device, and a list of fetched values.

Their memory is the CPU's, so torch computes correctly with them. Inside `with Elsewhere() as device:` torch's
operations are monitored: results of tensors sent there are there too, tensors of both places do not mix, and
`device.fetched` names each operation for which a real device would have to synchronise and send values to the host.
"""

import torch
from torch import Tensor
from torch._C import _functorch as functorch
from torch.overrides import TorchFunctionMode

from faces import TorchFace, array
from subjects import TorchSubject

DEVICE, HERE = torch.device("cuda", 0), torch.device("cpu")
ANSWERS = {Tensor.device.__get__: DEVICE, Tensor.is_cpu.__get__: False, Tensor.is_cuda.__get__: True}
FETCHES = {
    "numpy", "cpu", "item", "tolist", "equal", "allclose", "is_nonzero", "nonzero", "masked_select", "unique",
    "data_ptr", "__bool__", "__int__", "__float__", "__complex__", "__index__", "__contains__", "__array__",
    "__dlpack__", "linalg_solve", "linalg_inv",  # the last two raise for a zero pivot
}  # fmt: skip
CROSSINGS = {"to", "copy_", "__getitem__", "__get__"}  # accept tensors of both places


class Elsewhere(TorchFunctionMode):
    """The device, active while entered."""

    def __init__(self):
        super().__init__()
        self.fetched = []

    @staticmethod
    def send(value):
        """A tensor, or a module with all its parameters and buffers, moved to the device."""
        for t in (*value.parameters(), *value.buffers()) if isinstance(value, torch.nn.Module) else (value,):
            for level in levels(t):
                level.is_elsewhere = True
        return value

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name, kwargs = func.__name__, kwargs or {}
        tensors = list(flat((*args, *kwargs.values())))
        far = [t for t in tensors if is_far(t)]
        if far and func in ANSWERS:
            return ANSWERS[func]
        if far and name not in CROSSINGS and any(t.dim() and not is_far(t) for t in tensors):
            raise RuntimeError(f"{name}: expected all tensors to be on the same device")
        wanted = destination(name, args, kwargs)
        if far and (name in FETCHES or wanted == HERE):
            self.fetched.append(name)
        if wanted == DEVICE:
            args = [HERE if is_place(a) else a for a in args]
            kwargs = {k: HERE if is_place(a) else a for k, a in kwargs.items()}
        result = func(*args, **kwargs)
        if wanted == DEVICE or (far and wanted is None and name != "cpu"):
            for t in flat((result,)):
                self.send(t)
        return result


def levels(t):
    """A tensor, and those that it stands for inside of vmap."""
    yield t
    while functorch.is_functorch_wrapped_tensor(t):
        t = functorch.get_unwrapped(t)
        yield t


def is_far(value):
    return isinstance(value, Tensor) and any(hasattr(t, "is_elsewhere") for t in levels(value))


def is_place(value):
    return isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("cuda"))


def destination(name, args, kwargs):
    """The device named in a call, or None."""
    place = kwargs.get("device") or next((a for a in args if isinstance(a, torch.device)), None)
    if name == "to" and place is None and isinstance(args[1], Tensor | str):
        place = args[1] if isinstance(args[1], str) else DEVICE if is_far(args[1]) else HERE
    return place and torch.device(place)


def flat(values):
    """The tensors among arguments, or among results."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from flat(value)
        elif isinstance(value, Tensor):
            yield value


class ElsewhereFace(TorchFace):
    """The torch face on that device; used while one is entered."""

    def take(self, a, layout="plain"):
        t = super().take(a, layout)
        return t if t is None else Elsewhere.send(t)

    def home(self, t):
        with torch._C.DisableTorchFunction():  # the test reads the values, not the package
            return array(t)


class ElsewhereSubject(TorchSubject):
    face = ElsewhereFace()
