//! Orders n = p 2^k of Hadamard matrices, H_n = H_{2^k} (x) H_p: Sylvester's construction, and Paley's for primes.
//!
//! With chi(a) = 1, -1 or 0 for a square, another number or 0 modulo the prime q,
//!
//! ```text
//! I:  q = p - 1, q = 3 (mod 4),       H_p = I + [[0, 1^T], [-1, Q]],                                   Q[i, j] = chi(j - i),
//! II: q = p / 2 - 1, q = 1 (mod 4),   H_p = [[0, 1^T], [1, Q]] (x) [[1, 1], [1, -1]] + I (x) [[1, -1], [-1, -1]].
//! ```

use crate::error::Result;
use crate::kernels::reserved;

/// An order: n = p 2^levels, with p = 1 or the smallest one that has a construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// n
    pub n: usize,
    /// p
    pub p: usize,
    /// k
    pub levels: u32,
    /// q; 0 where p = 1.
    q: usize,
}

fn prime(q: usize) -> bool {
    q > 1 && (2..).take_while(|d| d * d <= q).all(|d| !q.is_multiple_of(d))
}

impl Order {
    /// The construction of order n, if there is one.
    ///
    /// ```
    /// use isometry_core::operators::hadamard::Order;
    ///
    /// assert!([256, 12, 20, 768].iter().all(|&n| Order::of(n).is_some()));
    /// assert!([0, 6, 10, 18].iter().all(|&n| Order::of(n).is_none()));
    /// ```
    pub fn of(n: usize) -> Option<Order> {
        if n.is_power_of_two() {
            return Some(Order { n, p: 1, levels: n.trailing_zeros(), q: 0 });
        }
        if n == 0 {
            return None;
        }
        (0..=n.trailing_zeros().saturating_sub(2)).rev().find_map(|levels| {
            let p = n >> levels;
            let q = if p.is_multiple_of(4) && prime(p - 1) { p - 1 } else { p / 2 - 1 };
            let found = q == p - 1 || (p % 8 == 4 && prime(q));
            found.then_some(Order { n, p, levels, q })
        })
    }

    /// Whether H_p[i, j] is negative, for p > 1: by rows.
    #[doc(hidden)]
    pub fn negative(self) -> Result<impl Fn(usize, usize) -> bool> {
        let (p, q) = (self.p, self.q);
        let mut square = reserved(q)?;
        square.resize(q, false);
        (1..q).for_each(|a| square[(a as u128 * a as u128 % q as u128) as usize] = true);
        // [[0, 1^T], [border, Q]] off its diagonal
        let chi = move |i: usize, j: usize, border: bool| match (i, j) {
            (0, _) => false,
            (_, 0) => border,
            _ => !square[(j + q - i) % q],
        };
        Ok(move |i: usize, j: usize| {
            if q == p - 1 {
                return i != j && chi(i, j, true);
            }
            let (u, v, odd) = (i / 2, j / 2, i % 2 * (j % 2) == 1);
            if u == v { i % 2 + j % 2 > 0 } else { chi(u, v, false) != odd }
        })
    }
}
