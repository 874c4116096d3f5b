//! From the inverse to the transform, and its distance from orthogonal.

use super::check::probe;
use crate::dispatch::kernel;
use crate::scalar::{Real, Scalar};
use num_traits::One;
use std::ops::Range;

/// Rows of W = (2 S - I) D from S; | ||w_i||^2 - 1 | and |(W D^* z)_i|^2 of each row.
///
/// # Safety
/// The arrays exist; these rows are not accessed by others.
pub struct Finish<T: Scalar> {
    /// S
    pub s: *mut T,
    /// Row stride of S.
    pub pitch: usize,
    /// W
    pub w: *mut T,
    /// n
    pub n: usize,
    /// The rows.
    pub rows: Range<usize>,
    /// d; None for D = I.
    pub last: Option<*const T>,
    /// Room for 3 n PARTS numbers.
    pub columns: *mut T::Real,
    /// n deviations, n probes.
    pub norms: *mut T::Real,
}

kernel!(Finish::<T>, |&Finish { s, pitch, w, n, ref rows, last, columns, norms }| {
    // SAFETY: the arrays exist, and these rows are accessed here only (contract of `Finish`).
    unsafe {
        // per real column: z, the factor of the column, the factor of the other part of its element (complex D)
        let (z, own, other) = (columns, columns.add(n * T::PARTS), columns.add(2 * n * T::PARTS));
        for j in 0..n {
            let d = last.map_or(T::one(), |d| *d.add(j));
            for part in 0..T::PARTS {
                let at = j * T::PARTS + part;
                *z.add(at) = probe(j);
                *own.add(at) = d.re();
                *other.add(at) = if part == 0 { -d.im() } else { d.im() };
            }
        }
        let two = S::splat(S::R::of(2.0));
        let live = n * T::PARTS;
        // per-lane sums, for LANES rows at a time: row r of the transposed block holds lane r of all
        let mut block = ([S::zero(); 16], [S::zero(); 16]);
        for i in rows.clone() {
            let (from, row) = (s.add(i * pitch).cast::<S::R>(), w.add(i * n).cast::<S::R>());
            // 2 (s - 1/2) rounds like 2 s - 1
            let diagonal = from.add(i * T::PARTS);
            *diagonal -= S::R::of(0.5);
            let (mut squares, mut probes) = (S::zero(), S::zero());
            for j in (0..live).step_by(S::LANES) {
                let mut v = S::mul(two, S::load_n(from.add(j), live - j));
                squares = S::mul_add(v, v, squares);
                probes = S::mul_add(v, S::load_n(z.add(j), live - j), probes);
                if last.is_some() {
                    let own = S::mul(v, S::load_n(own.add(j), live - j));
                    v = if T::PARTS == 1 {
                        own
                    } else {
                        S::mul_add(S::swap_pairs(v), S::load_n(other.add(j), live - j), own)
                    };
                }
                S::store_n(row.add(j), v, live - j);
            }
            let place = (i - rows.start) % S::LANES;
            (block.0[place], block.1[place]) = (squares, probes);
            if place == S::LANES - 1 || i + 1 == rows.end {
                let (first, count) = (i - place, place + 1);
                S::transpose(&mut block.0[..S::LANES]);
                S::transpose(&mut block.1[..S::LANES]);
                let mut norm = S::splat(-S::R::one());
                let mut sum = [S::zero(); 2];
                for lane in 0..S::LANES {
                    norm = S::add(norm, block.0[lane]);
                    sum[lane % T::PARTS] = S::add(sum[lane % T::PARTS], block.1[lane]);
                }
                S::store_n(norms.add(first), S::abs(norm), count);
                let squared = S::mul_add(sum[0], sum[0], S::mul(sum[1], sum[1]));
                S::store_n(norms.add(n + first), squared, count);
            }
        }
    }
});
