"""The NumPy face without torch: values and vector-Jacobian products (VJPs), a row each, against NumPy and SciPy.

A peer's VJP uses the same formulas as ours, written with the products and solves of its library; the arrays of both
sides are C-ordered. Without SciPy its peers are left out.
"""
