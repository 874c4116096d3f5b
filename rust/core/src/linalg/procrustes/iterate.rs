//! W of matrices too large for a lane: Halley's iteration with weights, by products and an inverse (QDWH),
//!
//! ```text
//! G = X^H X,    Z = I + c G,    X <- X (b/c I + (a - b/c) Z^-1),    s <- s (a + b s^2) / (1 + c s^2)
//! a = h(l),  b = (a - 1)^2 / 4,  c = a + b - 1,    h(l) = sqrt(1 + d) + sqrt(8 - 4 d + 8 (2 - l^2) / (l^2 sqrt(1 + d))) / 2,
//! d = (4 (1 - l^2) / l^4)^(1/3),
//! ```
//!
//! where all singular values are in \[l, 1\] (Nakatsukasa, Bai, Gygi 2010). Z is positive definite, so its inverse needs no pivots, and
//! l is kept from below [`LEAST`], so that the condition of Z, at most 1 + c, costs no more than two digits; the smallest singular
//! values then grow by a = h(LEAST) per iteration. Z^-1 tells when they have arrived: its largest eigenvalue is
//! 1 / (1 + c s_n^2). At the end X (3 I - G) / 2.
//!
//! A singular value that is exactly zero does not grow. Once some singular values are small and all others are 1, the iteration stops,
//! [`complete`] changes the small ones alone, and the iteration starts again. If the two groups are not separated, the iteration runs
//! to its [`limit`]; the singular values that are still small then are rounding errors. W is accepted if ||W^H W - I|| is small.

use super::found;
use super::passes::{BLOCK, Passes, Sums};
use super::singular::complete;
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{
    Buffer, InverseOwn, Operand, Product, Triangle, collected, inverse_shared, invert, reserved,
};
use crate::parallel::Shared;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::work;
use num_traits::Float;
use std::sync::atomic::AtomicBool;

/// The smallest l of the weights in the first iterations: a = 17.5, c = 85.
const LEAST: f64 = 0.055;
/// The number of these. What takes more is nearly singular, and each inverse moves singular vectors by its rounding errors.
const FIRST: usize = 6;
/// The smallest l of the others: a = 7.6, c = 17.
const LATER: f64 = 0.2;
/// Before all singular values are to be zero or one, steps with the weights of l = 1, of third order.
const LAST: usize = 3;
/// The step before which they may be for the first time: all but one of these have followed the first.
const SPLIT: usize = FIRST + LAST - 1;
/// The largest sum of s_i^2 (1 - s_i^2) then; one more step of third order, and the large ones are 1 to rounding.
const BETWEEN: f64 = 1e-4;
/// How often the small ones are changed: each time they grow by some digits, or are arbitrary.
const ROUNDS: usize = 8;
/// Steps of Lanczos' method for the largest eigenvalue of Z^-1.
const STEPS: usize = 4;

/// What the members of a matrix share.
#[derive(Clone, Copy)]
struct Space<T: Scalar> {
    x: Region<T>,
    y: Region<T>,
    g: Region<T>,
    inverse: Frame,
    sums: Sums<T>,
}

impl<T: Scalar> Space<T> {
    fn carve(arena: &mut Arena, m: usize, n: usize) -> Self {
        Space {
            x: arena.take(&[m, n]),
            y: arena.take(&[m, n]),
            g: arena.take(&[n, n]),
            inverse: inverse_shared::<T>(arena, n),
            sums: Sums::carve(arena, (m, n), STEPS),
        }
    }
}

/// W of a (batch, rows, columns), min(rows, columns) > 0.
pub(super) fn nearest<T: Scalar>(
    a: &[T],
    sizes: (usize, usize, usize),
    out: &mut [T],
    threads: usize,
) -> Result<()> {
    let (batch, rows, columns) = sizes;
    let each = rows * columns;
    let mut left = pass(Some(a), sizes, &collected(0..batch)?, out, threads)?;
    for _ in 0..ROUNDS {
        for &(b, apart) in &left {
            let own = b * each..(b + 1) * each;
            complete(&a[own.clone()], &mut out[own], (rows, columns), apart, threads)?;
        }
        left = pass(None, sizes, &collected(left.iter().map(|(b, _)| *b))?, out, threads)?;
    }
    found(AtomicBool::new(!left.is_empty()))
}

/// Iterates these matrices, of `a`, or in their places; returns which have small singular values left, and whether they are apart.
fn pass<T: Scalar>(
    a: Option<&[T]>,
    (_, rows, columns): (usize, usize, usize),
    which: &[usize],
    out: &mut [T],
    threads: usize,
) -> Result<Vec<(usize, bool)>> {
    let (m, n) = (rows.max(columns), rows.min(columns));
    let cost = work(&[8, n, n, 2 * m + n]);
    let mut missed = Buffer::<u32>::zeroed(which.len())?;
    let (out, missed_at) = (Shared(out.as_mut_ptr()), Shared(missed.as_mut_ptr()));
    Batch::new::<T>(which.len(), cost, 8 * (12 + n / 64)).split(threads).run(
        |arena| Space::<T>::carve(arena, m, n),
        |arena| -> (InverseOwn<T>, Region<T::Real>) {
            (InverseOwn::carve(arena, n), arena.take(&[Product::<T>::scratch(m.max(n), m)]))
        },
        |member, k, space, (own, scratch)| {
            let (at, wide) = (which[k] * m * n, columns > rows);
            let passes = Passes { member, n, sums: space.sums, scratch: scratch.ptr() };
            let matrix = Matrix { passes, m, n, space: *space, own: *own };
            let from = a.map(|a| a[at..].as_ptr());
            // SAFETY: the arrays have the matrix, and all members that compute it make this call; one says how it ended.
            unsafe {
                let left = matrix.nearest((from, wide), out.at(at));
                if member.id == 0 {
                    *missed_at.at(k) = left.map_or(0, |apart| 1 + u32::from(apart));
                }
            }
        },
    )?;
    let mut left = reserved(which.len())?;
    left.extend(which.iter().zip(&*missed).filter(|(_, m)| **m > 0).map(|(&b, m)| (b, *m > 1)));
    Ok(left)
}

/// A, or A^H where A is wide: m x n.
struct Matrix<'a, T: Scalar> {
    passes: Passes<'a, T>,
    m: usize,
    n: usize,
    space: Space<T>,
    own: InverseOwn<T>,
}

/// Iterations: enough for singular values a hundredth of rounding, and for the last of them to arrive.
fn limit<T: Scalar>() -> usize {
    let growth = |l| weights(l)[0].ln();
    let rest = (100.0 / T::Real::EPS.f64()).ln() - FIRST as f64 * growth(LEAST);
    FIRST + (rest / growth(LATER)).ceil() as usize + 5
}

/// The weights for singular values in [l, 1].
fn weights(l: f64) -> [f64; 3] {
    let l2 = l * l;
    let d = (4.0 * (1.0 - l2) / (l2 * l2)).cbrt();
    let root = (1.0 + d).sqrt();
    let a = root + (8.0 - 4.0 * d + 8.0 * (2.0 - l2) / (l2 * root)).max(0.0).sqrt() / 2.0;
    let b = (a - 1.0) * (a - 1.0) / 4.0;
    [a, b, a + b - 1.0]
}

impl<T: Scalar> Matrix<'_, T> {
    /// None where W was found, else X is stored in its place: whether the small singular values are apart, alike on all members. It
    /// begins with A, or with what is there.
    ///
    /// # Safety
    /// `from` and `out` have m n elements; the space is common to all members, all of which make the call.
    unsafe fn nearest(&self, (from, wide): (Option<*const T>, bool), out: *mut T) -> Option<bool> {
        // SAFETY: barriers separate writes from reads by other members.
        unsafe {
            match from {
                Some(from) => {
                    let scale = self.passes.scale(from, self.m);
                    self.load((from, wide), |x| scale.of(x));
                }
                None => self.load((out, wide), |x| x),
            }
            let mut places = [self.space.x, self.space.y].map(|place| place.ptr());
            let left = self.iterate(&mut places, from.is_some());
            self.store(places[0], (out, wide));
            left
        }
    }

    /// X <- A, scaled.
    unsafe fn load(&self, (from, wide): (*const T, bool), of: impl Fn(T) -> T) {
        let (m, n) = (self.m, self.n);
        self.rows(|i, j| {
            // SAFETY: the array and X have m n elements; members write disjoint rows.
            unsafe {
                let x = of(*from.add(if wide { j * m + i } else { i * n + j }));
                *self.space.x.ptr().add(i * n + j) = if wide { x.conj() } else { x };
            }
        });
    }

    /// X, in the first of the places, becomes W; else whether what has not arrived is small. NaN arrives.
    unsafe fn iterate(&self, places: &mut [*mut T; 2], fresh: bool) -> Option<bool> {
        let Self { passes: Passes { member, scratch, .. }, m, n, space, own } = *self;
        let eps = T::Real::EPS.f64();
        let g = space.g.ptr();
        let near = (0.3 * eps.sqrt()).max(4.0 * eps * n as f64);
        let rounding = 4.0 * eps * n as f64;
        let (mut l, mut size, mut apart) = (0.0f64, 1.0, false);
        let limit = limit::<T>();
        for step in 0..=limit {
            let [x, y] = *places;
            let ax = Operand::new(x.cast_const(), n);
            let ag = Operand::new(g.cast_const(), n);
            // SAFETY: barriers separate dependent passes; each writes this member's part.
            unsafe {
                Product::new((n, n, m), ax.h(), ax, g, n)
                    .shapes(Triangle::Full, Triangle::Full, Triangle::Upper)
                    .run(member, scratch);
                member.barrier();
                let [error, norm] = self.passes.norms(g);
                if !error.is_finite() {
                    self.rows(|i, j| *x.add(i * n + j) = T::new(T::Real::nan(), T::Real::nan()));
                    return None;
                }
                if step == 0 && fresh {
                    // ||X||_2^2 <= ||G||_F
                    size = 1.0 / norm.sqrt();
                }
                let done = error < near && (step > 0 || !fresh);
                if !done && (step == limit || norm == 0.0 || apart) {
                    return Some(apart || norm == 0.0);
                }
                places.swap(0, 1);
                if done {
                    self.passes.hermitian(g, -0.5, 1.5);
                    Product::new((m, n, n), ax, ag, y, n).run(member, scratch);
                    member.barrier();
                    return None;
                }
                // ||I - G|| bounds every 1 - s_i^2
                l = l.max((1.0 - error).max(0.0).sqrt());
                let small = l < LATER;
                // before, others may still grow
                let between = if step < SPLIT { rounding } else { BETWEEN.max(rounding) };
                apart = small && step > 0 && (n as f64 - norm * norm - error * error).abs() < 2.0 * between;
                l = match step {
                    ..FIRST => l.max(LEAST),
                    _ if step + LAST >= limit || (small && (FIRST..SPLIT).contains(&step)) || apart => 1.0,
                    _ => l.max(LATER),
                };
                let [a, b, c] = weights(l);
                self.passes.hermitian(g, c * size * size, 1.0);
                invert(member, g, n, n, space.inverse, own);
                let [_, top] = self.passes.ends(g, STEPS, step);
                // s_n from below; a coarse estimate as soon as the small ones stand out, else they still grow
                let least = ((1.0 / top.clamp(f64::MIN_POSITIVE, 1.0) - 1.0).max(0.0) / c).sqrt();
                let least = if least < 0.1 { 0.0 } else { (0.7 * least).min(1.0) };
                l = (least * (a + b * least * least) / (1.0 + c * least * least)).min(1.0);
                self.passes.mean(g, (a - b / c) * size, b / c * size);
                Product::new((m, n, n), ax, ag, y, n).run(member, scratch);
                member.barrier();
                size = 1.0;
            }
        }
        Some(false)
    }

    /// `f(i, j)` for this member's rows; ends with a barrier.
    fn rows(&self, f: impl Fn(usize, usize)) {
        for i in self.passes.member.share(self.m, BLOCK) {
            (0..self.n).for_each(|j| f(i, j));
        }
        self.passes.member.barrier();
    }

    /// Writes W, or W^H.
    unsafe fn store(&self, x: *const T, (out, wide): (*mut T, bool)) {
        let (m, n) = (self.m, self.n);
        self.rows(|i, j| {
            // SAFETY: both have m n elements; members write disjoint elements.
            unsafe {
                let x = *x.add(i * n + j);
                if wide { *out.add(j * m + i) = x.conj() } else { *out.add(i * n + j) = x }
            }
        });
    }
}
