"""Arrays in the memory of the GPU, and the adapters of this machine.

With ``backend="gpu"`` a call copies NumPy arrays to the GPU, and its result back. Where one of them is an `Array` the
results are too: parameters and sequences stay on the GPU from call to call.
"""

from isometry.gpu._array import Array
from isometry.gpu._statistics import statistics
from isometry.gpu.adapters import Adapter, adapters, reset, synchronize

__all__ = ["Adapter", "Array", "adapters", "reset", "statistics", "synchronize"]
