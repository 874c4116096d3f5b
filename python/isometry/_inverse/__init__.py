"""Inverse maps that both faces compute with NumPy: from stacks (nb, n, n), in double precision, to arguments."""
