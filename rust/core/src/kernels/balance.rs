//! Rescales columns of extreme norm. H(u) depends on the direction of u alone, so each column may be multiplied by a
//! power of two, which is exact; with u' = c u the gradient is u_bar = c u'_bar. Otherwise 2 / ||u||^2, or a product of
//! several, overflows or is flushed to zero long before ||u||^2 itself leaves the range of the type.

use super::Buffer;
use super::norms::{column_norms2, panel_norms2};
use crate::error::Result;
use crate::parallel;
use crate::scalar::{Real, Scalar};
use crate::sizes::{check_len, work};
use num_traits::{Float, One, Zero};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Columns whose norms need no allocation, which would be noticeable in small calls.
const FEW: usize = 32;

/// A copy of the vectors with moderate norms, and the factor of every column.
pub struct Balanced<T: Scalar> {
    /// (batch, n, m)
    pub vectors: Buffer<T>,
    scale: Buffer<T::Real>,
    m: usize,
}

/// None if all squared norms are moderate already: no copy is made. They are computed on up to so many threads.
pub fn balance<T: Scalar>(
    vectors: &[T],
    [batch, n, m]: [usize; 3],
    threads: usize,
) -> Result<Option<Balanced<T>>> {
    check_len("vectors", vectors.len(), &[batch, n, m])?;
    if vectors.is_empty() {
        return Ok(None);
    }
    let size = n * m;
    // the fourth root of the range of the type, on either side of 1
    let reach = Float::sqrt(Float::sqrt(T::Real::max_value()));
    let ordinary = |norm: &T::Real| *norm < reach && *norm > T::Real::one() / reach;
    let (mut few, mut many) =
        ([T::zero(); FEW], Buffer::zeroed(if m > FEW { work(&[batch, m]) } else { 0 })?);
    // a pass over memory: a number takes as long as two multiply-adds
    let threads = parallel::worth(threads, work(&[2, vectors.len(), T::PARTS]));
    let moderate = if m > FEW && threads > 1 {
        // every part has the columns of a matrix, or some of them where there are fewer matrices than threads
        let columns = m.div_ceil(threads.div_ceil(batch)).next_multiple_of(FEW);
        let all = AtomicBool::new(true);
        let parts = vectors.chunks_exact(size).zip(many.chunks_exact_mut(m));
        let panel = |u, (i, room)| (u, i * columns, room);
        let parts: Vec<_> = parts
            .flat_map(|(u, room)| room.chunks_mut(columns).enumerate().map(move |own| panel(u, own)))
            .collect();
        parallel::each(
            threads,
            parts.into_iter(),
            || (),
            |(), _, (u, j, room)| {
                if all.load(Relaxed) && !panel_norms2(u, (m, j), room).iter().all(ordinary) {
                    all.store(false, Relaxed);
                }
            },
        );
        all.into_inner()
    } else {
        let room = if m > FEW { &mut many[..m] } else { &mut few[..m] };
        vectors.chunks_exact(size).all(|u| column_norms2(u, room).iter().all(ordinary))
    };
    if moderate {
        return Ok(None);
    }
    let mut balanced = Buffer::<T>::zeroed(vectors.len())?;
    let mut scale = Buffer::<T::Real>::zeroed(batch * m)?;
    for b in 0..batch {
        let (from, to) = (&vectors[b * size..(b + 1) * size], &mut balanced[b * size..(b + 1) * size]);
        for j in 0..m {
            let column = (0..n).map(|i| from[i * m + j]);
            let largest = column.fold(T::Real::zero(), |most, x| {
                Float::max(Float::max(most, Float::abs(x.re())), Float::abs(x.im()))
            });
            // Zero, infinite and NaN columns have no direction and are left unchanged.
            let c = if largest > T::Real::zero() && Float::is_finite(largest) {
                power_of_two::<T::Real>(largest)
            } else {
                T::Real::one()
            };
            scale[b * m + j] = c;
            for i in 0..n {
                to[i * m + j] = from[i * m + j].scale(c);
            }
        }
    }
    Ok(Some(Balanced { vectors: balanced, scale, m }))
}

/// 2^-e for a number in [2^e, 2^(e+1)), limited to the range of the type on both sides.
fn power_of_two<R: Real>(x: R) -> R {
    let limit = Float::log2(R::max_value()).f64() - 2.0;
    R::of(2f64.powf((-Float::log2(x).f64().floor()).clamp(-limit, limit)))
}

impl<T: Scalar> Balanced<T> {
    /// Converts the gradient of the balanced vectors into that of the given ones, in place.
    pub fn pull(&self, bar: &mut [T]) {
        let m = self.m;
        let size = self.vectors.len() / (self.scale.len() / m);
        for (bar, scale) in bar.chunks_exact_mut(size).zip(self.scale.chunks_exact(m)) {
            for row in bar.chunks_exact_mut(m) {
                for (x, c) in row.iter_mut().zip(scale) {
                    *x = x.scale(*c);
                }
            }
        }
    }
}
