"""One example is one string of bytes, so that Hypothesis draws it at once and shrinks it well.

Every choice takes the next byte, zero being the simplest; numbers come from a generator that the first four bytes seed.
"""

import numpy as np

LENGTH = 128


class Choices:
    """A string of bytes read from its beginning; behind its end every choice is the simplest one."""

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
        """True once in so many examples."""
        return self.below(count) == count - 1
