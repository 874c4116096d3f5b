"""The checks of benches/reliability.py by their names, in the order of the page."""

from checks import conformance, fuzz, killed, memory, mutation, threads, valgrind

CHECKS = {
    "conformance": conformance.CHECK,
    "fuzz": fuzz.CHECK,
    "kill": killed.CHECK,
    "memory": memory.CHECK,
    "threads": threads.CHECK,
    "mutation": mutation.CHECK,
    "valgrind": valgrind.CHECK,
}
