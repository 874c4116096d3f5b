"""What this process has asked of the GPU."""

from isometry import _core
from isometry.gpu.adapters import built


def statistics() -> dict[str, int]:
    """Counts of what this process has done on the GPU: dispatches, copies, submissions, waits, bytes.

    Differences of two such counts are the cost of the calls between them on any adapter: times differ from one to the
    next, counts do not. A forked child begins at 0.

    Returns
    -------
    dict
        ``"dispatches"`` of shaders; ``"copies"`` from one array on the GPU to another; ``"submissions"``, each of the
        commands of one call or of a download; ``"waits"`` of the CPU for the GPU; ``"uploaded"`` and ``"downloaded"``,
        in bytes.

    Raises
    ------
    NotImplementedError
        If this build has no GPU support.

    Examples
    --------
    >>> import isometry as iso
    >>> sorted(iso.gpu.statistics())
    ['copies', 'dispatches', 'downloaded', 'submissions', 'uploaded', 'waits']
    """
    built()
    return dict(_core.gpu_statistics())
