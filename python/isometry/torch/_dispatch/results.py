"""The results of a plan in the mode of a call."""

from .function import aliased
from .graph import in_graph
from .mode import DEVICE, GRAPH, KERNEL, RECORDED, TRACED, TRANSFORMED, Mode
from .plan import Plan, Results, Settings, Tensors
from .transforms import transformed


def computed(plan: Plan, how: Mode, backend: str | None, settings: Settings, tensors: Tensors) -> Results:
    """The results in this mode."""
    if how is KERNEL:
        return plan.run(settings, tensors, False, plan.place(backend))[0]
    if how is RECORDED:
        return plan.recorded(settings, backend, *aliased(tensors))
    if how is TRANSFORMED:
        return transformed(plan, settings, plan.place(backend), tensors)
    if how is GRAPH and plan.operators is not None:
        return in_graph(plan, settings, backend, tensors)
    there = how is DEVICE or how is TRACED
    return plan.on_device(settings, *tensors) if there else plan.formula(settings, *tensors)
