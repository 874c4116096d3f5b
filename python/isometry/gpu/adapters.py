"""The adapters of this machine, and the one in use."""

from typing import NamedTuple

from isometry import _core


class Adapter(NamedTuple):
    """A GPU as its driver describes it.

    See Also
    --------
    adapters : the list of them.
    :doc:`gpu` : how one is chosen.
    """

    name: str
    kind: str  # "discrete GPU", "integrated GPU", "virtual GPU", "CPU" or "other"
    backend: str  # "Vulkan", "Metal" or "DirectX 12"
    driver: str
    most_bytes: int  # of one array
    used: bool  # by calls with backend="gpu"


def adapters() -> list[Adapter]:
    """The adapters that can serve ``backend="gpu"``.

    The first is used, unless the environment variable ISOMETRY_GPU_ADAPTER names another, by part of its name or by its
    place in this list. An adapter that runs on the CPU is used only where the variable names it.

    Returns
    -------
    list of Adapter
        Their descriptions, with the largest array of each; empty if there is none, or if this build has no GPU support.

    Examples
    --------
    >>> import isometry as iso
    >>> all(adapter.backend in ("Vulkan", "Metal", "DirectX 12") for adapter in iso.gpu.adapters())
    True
    """
    found = getattr(_core, "gpu_adapters", list)
    return [Adapter(*row) for row in found()]


def synchronize() -> None:
    """Wait until the GPU has finished all calls, for timing; `Array.download` waits by itself.

    Raises
    ------
    NotImplementedError
        If there is no adapter, or if this build has no GPU support.
    RuntimeError
        If the device was lost.
    """
    built()
    _core.gpu_wait()


def reset() -> None:
    """Close the GPU and free its memory: every `Array` is lost, and the next call that needs the GPU opens it again.

    The adapter is then chosen again, by the value that ISOMETRY_GPU_ADAPTER has at that time.

    Raises
    ------
    NotImplementedError
        If this build has no GPU support.
    """
    built()
    _core.gpu_reset()


def built() -> None:
    """Refuse the call if the extension was built without the feature gpu."""
    if not hasattr(_core, "gpu_wait"):
        raise NotImplementedError("this build of isometry has no GPU support (the feature gpu of its Rust crate)")
