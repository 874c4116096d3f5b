//! One row (key) of the delta rule on a state: S is read and written once.

use super::rows::dot;
use crate::dispatch::kernel;
use crate::simd::Simd;
use num_traits::{One, Zero};

/// With S' = diag(a) S: u = beta (v - S'^T k), S <- S' + k u^T, and o = S^T q of the new state; k and q times their factors.
///
/// # Safety
/// The states are (n, width) and may be the same; k has n numbers, q is null or has n, a is null or has n if `wide`, else one;
/// v has `width` and o too, where q is given.
pub struct Token<R> {
    /// The state.
    pub s: *const R,
    /// The new state.
    pub next: *mut R,
    /// Rows of the state.
    pub n: usize,
    /// Columns of the state.
    pub width: usize,
    /// The gate (null: ones).
    pub a: *const R,
    /// Whether each row has its own.
    pub wide: bool,
    /// The key.
    pub k: *const R,
    /// Its factor.
    pub k_by: R,
    /// The value.
    pub v: *const R,
    /// The rate.
    pub beta: R,
    /// The query (null: none).
    pub q: *const R,
    /// Its factor.
    pub q_by: R,
    /// The output.
    pub o: *mut R,
}

/// Vectors of columns at a time.
const WIDE: usize = 4;

kernel!(Token::<R>, |own| {
    let block = WIDE * S::LANES;
    // SAFETY: the state has these rows and columns, the vectors these numbers.
    unsafe {
        let across = match own.q.is_null() {
            true => R::zero(),
            false => own.k_by * own.q_by * dot::<S>(own.k, own.q, own.n),
        };
        for col in (0..own.width).step_by(block) {
            if col + block <= own.width {
                columns::<S, true>(own, col, across);
            } else {
                columns::<S, false>(own, col, across);
            }
        }
    }
});

/// Some columns of the state, [`WIDE`] vectors if `FULL`, else fewer.
#[inline(always)]
unsafe fn columns<S: Simd, const FULL: bool>(token: &Token<S::R>, col: usize, across: S::R) {
    let Token { s, next, n, width, a, wide, k, k_by, v, beta, q, q_by, o } = *token;
    let part = |j: usize| if FULL { S::LANES } else { (width - col).saturating_sub(j * S::LANES) };
    let one = S::R::one();
    // SAFETY: the gate of a row.
    let gate = |d: usize| if a.is_null() { one } else { unsafe { *a.add(if wide { d } else { 0 }) } };
    // SAFETY: the contract of `Token`; vectors beyond the last column are not touched.
    unsafe {
        let (mut read, mut asked) = ([S::zero(); WIDE], [S::zero(); WIDE]);
        for d in 0..n {
            let (key, row) = (S::splat(gate(d) * k_by * *k.add(d)), s.add(d * width + col));
            let query = S::splat(if q.is_null() { S::R::zero() } else { gate(d) * q_by * *q.add(d) });
            for j in 0..WIDE {
                if part(j) > 0 {
                    let at = row.add(j * S::LANES);
                    let own = if FULL { S::load(at) } else { S::load_n(at, part(j)) };
                    read[j] = S::mul_add(key, own, read[j]);
                    asked[j] = S::mul_add(query, own, asked[j]);
                }
            }
        }
        for j in 0..WIDE {
            if part(j) > 0 {
                let at = col + j * S::LANES;
                read[j] = S::mul(S::splat(beta), S::sub(S::load_n(v.add(at), part(j)), read[j]));
                if !q.is_null() {
                    S::store_n(o.add(at), S::mul_add(S::splat(across), read[j], asked[j]), part(j));
                }
            }
        }
        for d in 0..n {
            let gate = S::splat(gate(d));
            let (key, at) = (S::splat(k_by * *k.add(d)), d * width + col);
            for j in 0..WIDE {
                if part(j) > 0 {
                    let at = at + j * S::LANES;
                    let own = if FULL { S::load(s.add(at)) } else { S::load_n(s.add(at), part(j)) };
                    let new = S::mul_add(key, read[j], S::mul(gate, own));
                    if FULL {
                        S::store(next.add(at), new);
                    } else {
                        S::store_n(next.add(at), new, part(j));
                    }
                }
            }
        }
    }
}
