"""One example is one string of bytes, which Hypothesis draws at once and shrinks well.

Every choice takes the next byte, zero being the simplest; numbers come from a generator seeded by the first four
bytes.
"""

import numpy as np

LENGTH = 128


class Choices:
    """A string of bytes read from its beginning; past its end every choice is the simplest one."""

    def __init__(self, data):
        self.rng = np.random.Generator(np.random.PCG64(int.from_bytes(data[:4], "little")))
        self._bytes = iter(data[4:])

    def below(self, count):
        """An integer of 0..count-1, count <= 256."""
        return next(self._bytes, 0) % count

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def of(self, options):
        return options[self.below(len(options))]

    def once_in(self, count):
        """True with probability 1 / count."""
        return self.below(count) == count - 1
