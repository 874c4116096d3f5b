//! Orders n = p 2^k of Hadamard matrices, H_n = H_{2^k} (x) H_p: Sylvester's construction, and Paley's.
//!
//! With chi(a) = 1, -1 or 0 for a square, another element or 0 of the field of q elements, q a power of a prime,
//!
//! ```text
//! I:  q = p - 1, q = 3 (mod 4),       H_p = I + [[0, 1^T], [-1, Q]],                                   Q[i, j] = chi(j - i),
//! II: q = p / 2 - 1, q = 1 (mod 4),   H_p = [[0, 1^T], [1, Q]] (x) [[1, 1], [1, -1]] + I (x) [[1, -1], [-1, -1]].
//! ```
//!
//! The elements for q = r^e are the polynomials of degree < e over the integers modulo the prime r, numbered by their
//! digits to the base r, modulo the first x^e + c that makes them a field.

use crate::error::Result;
use crate::kernels::reserved;

/// An order: n = p 2^levels, with p = 1 or the smallest one that has a construction, that of the lower exponent e, I before II.
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

/// r and e of q = r^e with a prime r; e = 0 where there are none.
fn power(q: usize) -> (usize, u32) {
    let r = (2..).take_while(|d| d * d <= q).find(|d| q.is_multiple_of(*d)).unwrap_or(q);
    let (mut rest, mut e) = (q, 0);
    while r > 1 && rest.is_multiple_of(r) {
        (rest, e) = (rest / r, e + 1);
    }
    (r, if rest == 1 { e } else { 0 })
}

/// a + times b, digit by digit modulo r; times is at most r, the square of which is at most q.
fn sum(mut a: usize, times: usize, mut b: usize, r: usize) -> usize {
    let (mut found, mut place) = (0, 1);
    while a > 0 || b > 0 {
        found += (a % r + times * (b % r)) % r * place;
        (a, b, place) = (a / r, b / r, place.saturating_mul(r));
    }
    found
}

/// Which elements of the field of q = r^e are squares of others than 0.
fn squares(q: usize, (r, e): (usize, u32)) -> Result<Vec<bool>> {
    let mut square = reserved(q)?;
    square.resize(q, false);
    if e < 2 {
        (1..q).for_each(|a| square[(a as u128 * a as u128 % q as u128) as usize] = true);
        return Ok(square);
    }
    for c in 1..q {
        square.fill(false);
        let mut count = 0;
        for a in 1..q {
            // a a by Horner's rule: times x, where x^e = -c, plus a digit times a
            let (mut found, mut place) = (0, q / r);
            while place > 0 {
                let top = found / (q / r);
                found = sum(sum(found % (q / r) * r, r - top, c, r), a / place % r, a, r);
                place /= r;
            }
            count += usize::from(!std::mem::replace(&mut square[found], true));
        }
        // in a field, and in it alone, there are so many, and 0 is none
        if !square[0] && count == (q - 1) / 2 {
            break;
        }
    }
    Ok(square)
}

/// The digits of a number to one base, each changed, as those to another.
fn recoded(mut a: usize, e: u32, from: usize, to: usize, digit: impl Fn(usize) -> usize) -> usize {
    let (mut found, mut place) = (0, 1);
    for _ in 0..e {
        found += digit(a % from) * place;
        (a, place) = (a / from, place.saturating_mul(to));
    }
    found
}

impl Order {
    /// The construction of order n, if there is one.
    ///
    /// ```
    /// use isometry_core::operators::hadamard::Order;
    ///
    /// assert!([256, 12, 20, 52, 768].iter().all(|&n| Order::of(n).is_some()));
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
            let first = if p.is_multiple_of(4) { power(p - 1).1 } else { 0 };
            let second = if first != 1 && p % 8 == 4 { power(p / 2 - 1).1 } else { 0 };
            let q = if first > 0 && (second == 0 || first <= second) { p - 1 } else { p / 2 - 1 };
            (first + second > 0).then_some(Order { n, p, levels, q })
        })
    }

    /// Whether H_p[i, j] is negative, for p > 1: by rows.
    #[doc(hidden)]
    pub fn negative(self) -> Result<impl Fn(usize, usize) -> bool> {
        let (p, q) = (self.p, self.q.max(1));
        let (r, e) = power(q);
        let square = squares(q, (r, e))?;
        // The digits of chi's j - i for e > 1: to the base 2 r - 1, at[j] - at[i] + middle has j_k - i_k + r - 1.
        let wide = 2 * r - 1;
        let size = if e < 2 { 0 } else { wide.saturating_pow(e) };
        let (mut at, mut apart) = (reserved(if e < 2 { 0 } else { q })?, reserved(size)?);
        if e > 1 {
            at.extend((0..q).map(|a| recoded(a, e, r, wide, |digit| digit)));
            apart.extend((0..size).map(|a| square[recoded(a, e, wide, r, |digit| (digit + 1) % r)]));
        }
        let middle = size / 2;
        // [[0, 1^T], [border, Q]] off its diagonal
        let chi = move |i: usize, j: usize, border: bool| match (i, j) {
            (0, _) => false,
            (_, 0) => border,
            _ if e < 2 => !square[(j + q - i) % q],
            _ => !apart[middle + at[j - 1] - at[i - 1]],
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
