"""Messages about arrays on the GPU, where nothing is converted, broadcast or transposed."""

from typing import NoReturn

from isometry._rules.check import Shape


def single(argument: str, dtype: str) -> NoReturn:
    """An array of another precision."""
    text = "the GPU computes in float32 and complex64: convert the arrays, or use backend='cpu'"
    raise TypeError(f"{argument} would be of {dtype}; {text}")


def laid_out(argument: str, found: Shape, needed: Shape) -> NoReturn:
    """An array whose numbers a call needs in another order or more than once."""
    raise ValueError(
        f"{argument} of shape {found} is needed as one of {needed}: on the GPU nothing is broadcast or transposed"
    )


def unconverted(argument: str, found: str, needed: str) -> NoReturn:
    """An array of another dtype than that of the call."""
    raise TypeError(f"{argument} must be of {needed}, not {found}: on the GPU nothing is converted")


def unchanged(argument: str) -> NoReturn:
    """An array for the result of a call whose results are on the GPU."""
    raise TypeError(f"{argument} cannot be given beside an array on the GPU: the results are new arrays there")
