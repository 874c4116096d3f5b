"""Products of Hadamard and diagonal matrices: W = H_n D_k ... H_n D_1, D_j = diag(signs_j), H_n orthonormal.

H_n exists here for n = p 2^k, H_n = H_{2^k} (x) H_p, with p = 1 or an order of Paley's constructions.
"""

from functools import lru_cache
from itertools import count
from typing import Any

from isometry._objects._declaration import Declaration, Determinant


def _power(q: int) -> tuple[int, int]:
    """r and e of q = r^e with a prime r; e = 0 where there are none."""
    r, e = 2, 0
    while r * r <= q and q % r:
        r += 1
    if r * r > q:
        return q, int(q > 1)
    while q % r == 0:
        q, e = q // r, e + 1
    return r, e if q == 1 else 0


def _elements(p: int) -> int:
    """q of the construction of order p: of those that exist that of the lower exponent, I before II; else 0."""
    first = _power(p - 1)[1] if p % 4 == 0 else 0
    second = _power(p // 2 - 1)[1] if first != 1 and p % 8 == 4 else 0
    if first and (not second or first <= second):
        return p - 1
    return p // 2 - 1 if second else 0


def block(n: int) -> int:
    """p of the order n = p 2^k: 1, or the smallest that has a construction; 0 if there is none."""
    if n < 1 or not n & (n - 1):
        return min(n, 1)
    p = n
    while p % 2 == 0:
        p //= 2
    for p in [p << j for j in range(2, n.bit_length()) if n % (p << j) == 0]:
        if _elements(p):
            return p
    return 0


def ordered(argument: str, n: int) -> int:
    """p of the order n, which must exist."""
    n = int(n)  # a symbolic size of torch.compile becomes a number
    if p := block(n):
        return p
    below = next(m for m in range(n - 1, 0, -1) if block(m))
    above = next(m for m in count(n + 1) if block(m))
    raise ValueError(
        f"{argument} must have as its last size n an order of Hadamard matrices, p 2^k with p = 1 or of Paley's "
        f"constructions; {n} is none, the nearest orders are {below} and {above}"
    )


def of_rows(shape: tuple[int, ...]) -> None:
    """The last axis of x has an order."""
    if not shape or not shape[-1]:
        raise ValueError(f"x must have shape (..., n) with n >= 1, not {tuple(shape)}")
    ordered("x", shape[-1])


def _sum(a: int, times: int, b: int, r: int) -> int:
    """a + times b in the field, whose elements are polynomials over the integers modulo r, by their digits to the base
    r."""
    found, place = 0, 1
    while a or b:
        found += (a + times * b) % r * place
        a, b, place = a // r, b // r, place * r
    return found


def _squares(q: int, r: int) -> set[int]:
    """The squares of the non-zero elements of the field of q = r^e, modulo the first x^e + c that makes it a field:
    there are (q - 1) / 2, and 0 is none."""
    for c in range(q):
        found = set()
        for a in range(1, q):
            square, place = 0, q // r
            while place:  # a a by Horner's rule: times x, where x^e = -c, plus a digit times a
                top, square = divmod(square, q // r)
                square = _sum(_sum(square * r, -top, c, r), a // place % r, a, r)
                place //= r
            found.add(square)
        if 0 not in found and 2 * len(found) == q - 1:
            return found
    raise AssertionError(q)


@lru_cache(32)
def paley(p: int) -> tuple[tuple[int, ...], ...]:
    """H_p by rows of +1 and -1, for p > 1: with chi the quadratic character of the field of q elements, q a power of a
    prime,

    I:  q = p - 1, q = 3 (mod 4),      H = I + [[0, 1^T], [-1, Q]],                             Q[i, j] = chi(j - i),
    II: q = p / 2 - 1, q = 1 (mod 4),  H = [[0, 1^T], [1, Q]] (x) [[1, 1], [1, -1]] + I (x) [[1, -1], [-1, -1]].
    """
    q = _elements(p)
    first, r = q == p - 1, _power(q)[0]
    squares = _squares(q, r)
    chi = [0] + [1 if a in squares else -1 for a in range(1, q)]
    rows = [[0] + [1] * q] + [[-1 if first else 1] + [chi[_sum(j, -1, i, r)] for j in range(q)] for i in range(q)]
    if first:
        return tuple(tuple(s + (i == j) for j, s in enumerate(row)) for i, row in enumerate(rows))
    pairs = (((1, 1), (1, -1)), ((1, -1), (-1, -1)))
    return tuple(
        tuple(pairs[i == j][u][v] * (s or 1) for j, s in enumerate(row) for v in (0, 1))
        for i, row in enumerate(rows)
        for u in (0, 1)
    )


def _bound(sizes: dict[str, Any]) -> dict[str, int]:
    ordered("signs", sizes["n"])
    return {}


HADAMARD = Declaration(
    "Hadamard",
    "hadamard",
    bind=_bound,
    loose=("signs",),
    # det H_n is 1 but for n = 2: a skew matrix S has det(I + S) > 0, and a symmetric one of trace 0 has p / 2 negative
    # eigenvalues, of which there are an even number.
    determinant=Determinant(lambda sizes: (-1) ** sizes["k"] if sizes["n"] == 2 else 1, products=("signs",)),
    exists={"": lambda n: block(n) > 0},
)
