"""The calls of an endless series, by number.

    PYTHONPATH=tests:tests/support python -m fuzz.series 0 1000     examines the first thousand

The generator seeded with a call's number draws family, face and bytes, the families as often as `tests/test_fuzz.py`
does. So any call can be repeated alone, and a long run goes on where another one has stopped. Prints a JSON line for
every call with a wrong outcome and one with the counts. --at FILE always holds the number of the call in progress,
also after a crash.
"""

import argparse
import json
import os
import warnings
from collections import Counter

import numpy as np

from faces import FACES, one_thread
from fuzz import examine
from fuzz.choices import LENGTH
from test_fuzz import CASES, EXAMPLES

BOUNDS = np.cumsum([EXAMPLES[family] for family, _ in CASES])


def drawn(number):
    """The family, the name of the face and the bytes of a call."""
    rng = np.random.default_rng(number)
    family, face = CASES[np.searchsorted(BOUNDS, rng.integers(BOUNDS[-1]), side="right")]
    return family, face, rng.bytes(LENGTH)


def examined(numbers, faces, wrong):
    """Examine the calls; gives each number and its face, and calls wrong(number, what) for a wrong outcome."""
    for number in numbers:
        family, name, data = drawn(number)
        try:
            examine.example(family, faces[name], data)
        except Exception as error:
            wrong(number, f"call {number} ({name}, {family}): {error or type(error).__name__}")
        yield number, name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--at", default=os.devnull)
    options = parser.parse_args()
    counts = Counter()
    file = os.open(options.at, os.O_WRONLY | os.O_CREAT)

    def numbers():
        for number in range(options.first, options.stop):
            os.pwrite(file, b"%20d" % number, 0)
            yield number

    def wrong(number, what):
        print(json.dumps({"number": number, "failure": what}), flush=True)

    warnings.simplefilter("error")
    for category in (DeprecationWarning, FutureWarning, UserWarning):
        warnings.filterwarnings("ignore", category=category, module="torch")
    with one_thread():
        faces = {name: face() for name, face in FACES.items()}
        for _, name in examined(numbers(), faces, wrong):
            counts[name] += 1
    print(json.dumps({"calls": counts}), flush=True)


if __name__ == "__main__":
    main()
