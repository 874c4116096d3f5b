"""Calls of kernels: what a kind of call computes, and how it is computed in each mode of torch."""
