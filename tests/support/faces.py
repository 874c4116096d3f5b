"""Both packages behind one interface, NumPy arrays in, NumPy arrays out: a call is written once and run on either.

A face calls its package, the real one or one with a fault. Results are arrays by name; gradients are those of the
functions `*_vjp` of NumPy, and those of autograd in torch.
"""

import contextlib
import operator

import numpy as np
import torch

import isometry
import isometry.torch
import place
from fuzz.call import Raw
from isometry._core import CELLS
from registry import spread

# ---------------------------------------------------------------- memory layouts


def strided(a):
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1] + 3), 9, a.dtype)
    view = wide[..., 1 : 2 * a.shape[-1] + 1 : 2]
    view[...] = a
    return view


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, np.uint8)
    view = raw[1:].view(a.dtype).reshape(a.shape) if a.nbytes else a.copy()
    view[...] = a
    return view


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = {
    "plain": lambda a: a,
    "fortran": lambda a: np.array(a, order="F"),
    "strided": strided,
    "offset": lambda a: np.concatenate([np.full((1, *a.shape[1:]), 9, a.dtype), a])[1:],
    "reversed": lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
    "reversed rows": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "unaligned": unaligned,
    "read-only": read_only,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
}


def gaps(t):
    wide = torch.full((*t.shape[:-1], 2 * t.shape[-1] + 3), 9, dtype=t.dtype, device=t.device)
    view = wide[..., 1 : 2 * t.shape[-1] + 1 : 2]
    return view.copy_(t)


def turned(t):
    axes = tuple(reversed(range(t.ndim)))
    return t.permute(axes).contiguous().permute(axes)


TORCH_LAYOUTS = {
    "plain": lambda t: t,
    "transposed": turned,
    "strided": gaps,
    "offset": lambda t: torch.cat([torch.full_like(t[:1], 9), t])[1:],
    "conjugate bit": lambda t: t.conj().resolve_conj().conj() if t.is_complex() else t,
    "negative bit": lambda t: torch.complex(torch.zeros_like(t), -t).conj().imag if t.is_floating_point() else t,
}


def tensor(a):
    return torch.from_numpy(np.array(a, order="C")).to(place.device)


def array(t):
    return t.detach().resolve_conj().resolve_neg().cpu().numpy()


# ---------------------------------------------------------------- results by name


def named(function, result):
    """The parts of a result by their names."""
    if function == "apply_vjp":
        return {**spread(result[0]), "x": result[1]}
    if function in ("matrix_vjp", "inv.matrix_vjp"):
        return spread(result)
    if function == "activate_vjp":
        return present({"z": result[0], "bias": result[1]})
    if function.removesuffix("_vjp") in CELLS:
        return of_cell(result)
    return {"value": result}


def of_cell(result):
    """Gradients, those of both parts of a state side by side; or the states, and what comes beside them."""
    if isinstance(result, dict):
        own = {f"transition.{k}": g for k, g in spread(result.get("transition", {})).items()}
        parts = present({k: g for k, g in result.items() if k != "transition"})
        return own | {k: np.concatenate(g, -1) if isinstance(g, tuple) else g for k, g in parts.items()}
    return present({"value": result[0], "other": result[1]}) if isinstance(result, tuple) else {"value": result}


def present(parts):
    return {k: a for k, a in parts.items() if a is not None}


# ---------------------------------------------------------------- faces


class NumpyFace:
    name = "numpy"
    mixes = True  # arguments of several precisions
    checks = True  # takes check_finite
    grades_numbers = True  # has gradients of arguments that are Python numbers
    layouts = LAYOUTS
    ways = (*LAYOUTS, "list")
    foreign = ()  # arguments not passed to the package

    def __init__(self, package=isometry):
        self.package = package

    @property
    def unchecked(self):
        """The keywords with which NaN passes."""
        return {"check_finite": False} if self.checks else {}

    # ------------------------------------------------------------ arrays

    def take(self, a, layout="plain"):
        """An array as the package takes it."""
        if not np.ndim(a):
            return a
        if layout == "list":
            # A list has float64 or complex128, the types NumPy reads into it.
            return a.tolist() if a.size and a.dtype in (np.float64, np.complex128) else a
        return LAYOUTS[layout](a)

    def home(self, value):
        """A result, or an operator, as an array of NumPy."""
        return np.asarray(value)

    def dressed(self, value, layout):
        if isinstance(value, Raw):
            return value.value
        return self.take(value, layout) if isinstance(value, np.ndarray | np.generic) else value

    def memory(self, value):
        return value if isinstance(value, np.ndarray) and value.dtype.kind in "fciub" else None

    # ------------------------------------------------------------ calls

    def given(self, call, arguments=None):
        """All arguments as the package takes them."""
        arguments = call.arguments if arguments is None else arguments
        return {k: self.dressed(a, call.layouts.get(k, "plain")) for k, a in arguments.items()}

    def run(self, call, given=None):
        """The results by name, on the number of threads of the call if it has one."""
        given = dict(self.given(call) if given is None else given)
        budget = self.package.get_num_threads()
        try:
            if call.threads:
                self.package.set_num_threads(call.threads)
            return self.result(call, given)
        finally:
            if call.threads:
                self.package.set_num_threads(budget)

    def examined(self, call, arguments=None):
        """The results; no argument may change, whether the call succeeds or raises."""
        given = self.given(call, arguments)
        before = {k: self.bytes(a) for k, a in given.items()}
        try:
            found = self.run(call, given)
            self.apart(found, given)
            return found
        finally:
            changed = [k for k, a in given.items() if self.bytes(a) != before[k]]
            assert not changed, f"{', '.join(changed)} modified"

    def apart(self, found, given):
        """No result shares memory with an argument; torch may return a cotangent as a gradient."""
        for name, a in given.items():
            memory = None if name in self.foreign else self.memory(a)
            shared = [k for k, r in found.items() if memory is not None and np.may_share_memory(memory, r)]
            assert not shared, f"{shared[0]} shares memory with {name}"

    def bytes(self, value):
        memory = self.memory(value)
        return None if memory is None else memory.tobytes()

    def function(self, call):
        return call.function

    def served(self, call, given):
        """The function to call; its arguments stay in `given`."""
        held = {k: given.pop(k) for k in call.held if k in given}
        if call.on == "package":
            if held and "transition" not in given:
                given["transition"] = call.made(self.package, held)
            return operator.attrgetter(self.function(call))(self.package)
        return operator.attrgetter(self.function(call))(call.made(self.package, held))

    def pairs(self, call, given):
        """The arguments, with the two parts of states apart."""
        apart = lambda a: (a[..., : call.split], a[..., call.split :])
        of_states = [
            name for name in ("start_state", "states", "ct") if call.split and hasattr(given.get(name), "shape")
        ]
        return given | {name: apart(given[name]) for name in of_states}

    def raw(self, call, given):
        return self.served(call, given)(**self.pairs(call, given))

    def result(self, call, given):
        return named(call.function, self.raw(call, given))


class TorchFace(NumpyFace):
    name = "torch"
    mixes = checks = grades_numbers = False
    layouts = TORCH_LAYOUTS
    ways = tuple(TORCH_LAYOUTS)
    foreign = ("ct", "states")

    def __init__(self, package=isometry.torch, recorded=False):
        super().__init__(package)
        self.recorded = recorded  # whether gradients are computed so that they can be differentiated again

    def take(self, a, layout="plain"):
        if a is None:
            return None
        t = tensor(a)
        return TORCH_LAYOUTS[layout](t) if t.ndim else t

    def home(self, value):
        if isinstance(value, torch.Tensor):
            return array(value)
        return value if isinstance(value, np.ndarray) else np.asarray(value.to("cpu"))

    def memory(self, value):
        plain = isinstance(value, torch.Tensor) and value.layout is torch.strided and value.dtype is not torch.bfloat16
        return self.home(value) if plain else None

    def function(self, call):
        return call.function.removesuffix("_vjp")

    def result(self, call, given):
        ct = given.pop("ct", None)
        given.pop("states", None)
        tensors = {k: given[k] for k in call.wanted if isinstance(given.get(k), torch.Tensor)}
        leaves = {k: t.requires_grad_() for k, t in tensors.items() if t.is_floating_point() or t.is_complex()}
        result = self.raw(call, given)
        if ct is None:
            return {k: self.home(a) for k, a in named(call.function, result).items()}
        recurrent = call.function.removesuffix("_vjp") in CELLS
        if recurrent and isinstance(result, tuple):  # both parts of a state, or the states without the memory
            result = torch.cat(result, -1) if call.split else result[0]
        unused = {"allow_unused": recurrent, "materialize_grads": recurrent}  # of a state before no step
        grads = torch.autograd.grad(result, list(leaves.values()), ct, create_graph=self.recorded, **unused)
        parts = {k: self.home(g) for k, g in zip(leaves, grads, strict=True)}
        return {f"transition.{k}" if recurrent and k in call.held else k: g for k, g in parts.items()}


@contextlib.contextmanager
def one_thread():
    """Torch's own operations on one thread: small ones wait milliseconds for a second on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


FACES = {"numpy": NumpyFace, "torch": TorchFace}
