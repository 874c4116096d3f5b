"""The two faces behind one interface: calls a given package and returns named NumPy arrays.

The package may be the real one or a broken one. No argument may change, whether the call succeeds or raises.
"""

import contextlib
import operator

import numpy as np

from faces import LAYOUTS, array, tensor, torch_layouts
from fuzz.call import Kind, Raw, Seed
from isometry._core import CELLS
from registry import gathered, spread

BUILDERS = ("random", "from_matrix", "from_skew", "from_trapezoid")


def named(function, result):
    """The parts of a result by their names."""
    if function == "apply_vjp":
        return {**spread(result[0]), "x": result[1]}
    if function == "matrix_vjp":
        return spread(result)
    if function == "activate_vjp":
        return present({"z": result[0], "bias": result[1]})
    if function.removesuffix("_vjp") in CELLS:
        return of_cell(result)
    if function == "linalg.procrustes_vjp":
        return {"a": result}
    if function.startswith("linalg.") and isinstance(result, tuple):
        return dict(zip(("a", "tau", "other"), result, strict=False))
    if function == "delta_rule":
        return {"o": result[0], "state": result[1]}
    if function == "delta_rule_vjp":
        return present(result)
    if function in ("tasks.adding", "tasks.copying", "tasks.permutations", "tasks.characters"):
        return {"in": result[0], "out": result[1]}
    return {"matrix": result.matrix()} if function in BUILDERS else {"value": result}


def of_cell(result):
    """Gradients, those of both parts of a state side by side; or the states, and what comes beside them."""
    if isinstance(result, dict):
        own = {f"transition.{k}": g for k, g in spread(result.get("transition", {})).items()}
        parts = present({k: g for k, g in result.items() if k != "transition"})
        return own | {k: np.concatenate(g, -1) if isinstance(g, tuple) else g for k, g in parts.items()}
    return present({"value": result[0], "other": result[1]}) if isinstance(result, tuple) else {"value": result}


def present(parts):
    return {k: a for k, a in parts.items() if a is not None}


class Face:
    """Runs calls against a package."""

    def __init__(self, package):
        self.package = package

    def run(self, call, arguments=None):
        arguments = call.arguments if arguments is None else arguments
        given = {k: self.dressed(a, call.layouts.get(k, 0)) for k, a in arguments.items()}
        before, budget = {k: self.bytes(a) for k, a in given.items()}, self.package.get_num_threads()
        try:
            self.package.set_num_threads(call.threads)
            found = self.result(call, dict(given))
            self.apart(found, given)
            return found
        finally:
            self.package.set_num_threads(budget)
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

    def served(self, call, given):
        """The function to call; its arguments stay in `given`."""
        if call.on == "package":
            if call.held:
                held = {k: given.pop(k) for k in call.held if k in given}
                if "transition" not in given:
                    made = getattr(self.package, call.cls)(**gathered(held))
                    given["transition"] = self.package.BlockDiagonal(operator=made) if call.blocks else made
            return operator.attrgetter(self.function(call))(self.package)
        owner = getattr(self.package, call.cls)
        if call.on == "operator":
            owner = owner(**gathered({k: given.pop(k) for k in call.held if k in given}))
        return getattr(owner, self.function(call))

    def pairs(self, call, given):
        """The arguments, with the two parts of states apart."""
        apart = lambda a: (a[..., : call.split], a[..., call.split :])
        of_states = [
            name for name in ("start_state", "states", "ct") if call.split and hasattr(given.get(name), "shape")
        ]
        return given | {name: apart(given[name]) for name in of_states}

    def again(self, call, served, first):
        """A second draw from the same seed is bitwise equal."""
        second = served(**{k: self.dressed(a, call.layouts.get(k, 0)) for k, a in call.arguments.items()})
        assert self.same(first.matrix(), second.matrix()), "not reproducible from its seed"


class NumpyFace(Face):
    name = "numpy"
    mixes = True  # precisions
    checks = True  # takes check_finite
    grades_numbers = True  # has gradients of arguments that are Python numbers
    layouts = tuple(LAYOUTS.values())
    ways = len(layouts) + 1  # and as a list
    foreign = ()  # arguments not passed to the package

    def dressed(self, value, layout):
        if isinstance(value, Raw):
            return value.value
        if isinstance(value, Seed):
            return value.number if layout % 2 else np.random.default_rng(value.number)
        if isinstance(value, Kind):
            return (value.name, np.dtype(value.name))[layout % 2]
        if not isinstance(value, np.ndarray) or not value.ndim:
            return value
        if layout >= len(self.layouts):
            # A list has float64 or complex128, the types NumPy reads into it.
            return value.tolist() if value.size and value.dtype in (np.float64, np.complex128) else value
        return self.layouts[layout](value)

    def memory(self, value):
        return value if isinstance(value, np.ndarray) and value.dtype.kind in "fciub" else None

    def same(self, a, b):
        return a.tobytes() == b.tobytes()

    def function(self, call):
        return call.function

    def result(self, call, given):
        served = self.served(call, given)
        result = served(**self.pairs(call, given))
        if call.function == "set_num_threads":
            return {"value": np.asarray(self.package.get_num_threads())}
        if call.function == "random":
            self.again(call, served, result)
        return named(call.function, result)


class TorchFace(NumpyFace):
    name = "torch"
    mixes = checks = grades_numbers = False
    layouts = tuple(torch_layouts().values())
    ways = len(layouts)
    foreign = ("ct", "states")

    def dressed(self, value, layout):
        import torch

        if isinstance(value, Raw):
            return value.value
        if isinstance(value, Seed):
            return torch.Generator().manual_seed(value.number)
        if isinstance(value, Kind):
            return getattr(torch, value.name)
        if not isinstance(value, np.ndarray):
            return value
        t = tensor(value)
        return self.layouts[layout](t) if t.ndim else t

    def memory(self, value):
        import torch

        plain = isinstance(value, torch.Tensor) and value.layout is torch.strided and value.dtype is not torch.bfloat16
        return array(value) if plain else None

    def same(self, a, b):
        return super().same(array(a), array(b))

    def function(self, call):
        return call.function.removesuffix("_vjp")

    def result(self, call, given):
        import torch

        ct = given.pop("ct", None)
        given.pop("states", None)
        tensors = {k: given[k] for k in call.wanted if isinstance(given.get(k), torch.Tensor)}
        leaves = {k: t.requires_grad_() for k, t in tensors.items() if t.is_floating_point() or t.is_complex()}
        served = self.served(call, given)
        result = served(**self.pairs(call, given))
        if call.function == "set_num_threads":
            return {"value": np.asarray(self.package.get_num_threads())}
        if call.function == "random":
            self.again(call, served, result)
        if ct is None:
            return {k: array(a) for k, a in named(call.function, result).items()}
        recurrent = call.function.removesuffix("_vjp") in CELLS
        if recurrent and isinstance(result, tuple):  # both parts of a state, or the states without the memory
            result = torch.cat(result, -1) if call.split else result[0]
        unused = {"allow_unused": recurrent, "materialize_grads": recurrent}  # of a state before no step
        grads = torch.autograd.grad(result, list(leaves.values()), ct, **unused)
        parts = {k: array(g) for k, g in zip(leaves, grads, strict=True)}
        return {f"transition.{k}" if recurrent and k in call.held else k: g for k, g in parts.items()}


FACES = {"numpy": NumpyFace, "torch": TorchFace}


@contextlib.contextmanager
def one_thread():
    """Torch's own operations on one thread: small ones wait milliseconds for a second on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def real(name):
    """The face with the package itself."""
    import isometry
    import isometry.torch

    return FACES[name]({"numpy": isometry, "torch": isometry.torch}[name])
