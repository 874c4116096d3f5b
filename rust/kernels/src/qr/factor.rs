//! A = Q R, LAPACK's geqrf: for each column, from its diagonal entry alpha and the entries x below,
//!
//! ```text
//! beta = -sign(Re alpha) ||(alpha, x)||,  tau = (beta - alpha) / beta,  v = (1, x / (alpha - beta)),
//! A <- (I - tau v v^H)^H A.
//! ```
//!
//! x^H A does not need v. It is computed in the pass that applies the previous reflection; its entry for the column x itself is
//! ||x||^2. Where ||x||^2 may underflow or overflow, the column is first divided by its largest entry. tau = 0 if x = 0 and
//! alpha is real.

use super::rows::{Column, pause, project, spread, sweep};
use crate::dispatch::kernel;
use crate::householder::scaled_add;
use crate::scalar::{Real, Scalar};
use num_traits::{Float, One, Zero};

/// Real numbers of workspace for m x n.
pub fn factor_work<T: Scalar>(m: usize, n: usize) -> usize {
    (m + 2) * (n * T::PARTS).next_multiple_of(16) + m * T::PARTS
}

/// Writes the factors of the m x n matrix at `from` to `out`, R on and above the diagonal, v below; they may be the same
/// memory.
///
/// # Safety
/// The matrices exist; `tau` has min(m, n) elements, `work` the numbers of [`factor_work`].
pub struct Factor<T: Scalar> {
    /// A
    pub from: *const T,
    /// Row stride of A.
    pub from_rows: usize,
    /// v and R
    pub out: *mut T,
    /// Row stride of the result.
    pub out_rows: usize,
    /// tau
    pub tau: *mut T,
    /// m
    pub m: usize,
    /// n
    pub n: usize,
    /// Workspace.
    pub work: *mut T::Real,
}

/// One column: its reflection, and 1 / (alpha - beta).
struct Reflection<T: Scalar> {
    beta: T::Real,
    tau: T,
    f: T,
    /// The entries below the diagonal, or those divided by the largest.
    x: Column<T>,
}

kernel!(Factor::<T>, |&Factor { from, from_rows, out, out_rows, tau, m, n, work }| {
    let (width, pitch) = (n * T::PARTS, (n * T::PARTS).next_multiple_of(S::LANES));
    let (g, w) = (work.wrapping_add(m * pitch), work.wrapping_add((m + 1) * pitch));
    let column = work.wrapping_add((m + 2) * pitch).cast::<T>();
    // SAFETY: the matrices and `work` have their sizes; rows of `work` are whole vectors.
    unsafe {
        spread::<S>(from.cast(), from_rows * T::PARTS, (m, width), (work, pitch));
        let stride = pitch / T::PARTS;
        for j in 0..m.min(n) {
            pause(m - j, pitch);
            let row = work.add(j * pitch);
            let below = row.add(pitch);
            let vectors = (j * T::PARTS / S::LANES * S::LANES, pitch);
            let alpha = *row.cast::<T>().add(j);
            let len = m - j - 1;
            let x = Column { data: below.cast::<T>().add(j).cast_const(), stride, len };
            if j == 0 {
                project::<T, S>(x, (below, pitch), vectors, g);
            }
            let norm2 = (*g.cast::<T>().add(j)).re();
            let own = if safe(norm2, alpha.abs2()) {
                Some(reflection(alpha, x, norm2, One::one()))
            } else {
                let own = scaled(alpha, x, column);
                if let Some(own) = &own {
                    project::<T, S>(own.x, (below, pitch), vectors, g);
                }
                own
            };
            // the identity is tau = 0 and v = 0: x is zero
            let zero = T::zero();
            let Reflection { beta, tau: own_tau, f, x } =
                own.unwrap_or(Reflection { beta: alpha.re(), tau: zero, f: zero, x });
            *tau.add(j) = own_tau;
            let (inner, outer) = (f.conj(), own_tau.conj());
            for v in (vectors.0..pitch).step_by(S::LANES) {
                let r = S::load(row.add(v));
                let y = scaled_add::<T, S>(S::load(g.add(v)), inner, r);
                let y = scaled_add::<T, S>(y, outer, S::zero());
                S::store(w.add(v), y);
                S::store(row.add(v), S::sub(r, y));
            }
            *row.cast::<T>().add(j) = T::real(beta);
            for i in 0..len {
                let v = x.at(i) * f;
                *column.add(i) = v;
                *out.add((j + 1 + i) * out_rows + j) = v;
            }
            // the row of the next diagonal entry, which is not part of its x
            let next = j + 1;
            let vectors = (next * T::PARTS / S::LANES * S::LANES, pitch);
            if len == 0 || next == n {
                continue;
            }
            for v in (vectors.0..pitch).step_by(S::LANES) {
                let at = below.add(v);
                S::store(at, scaled_add::<T, S>(S::load(w.add(v)), -*column, S::load(at)));
            }
            let rest = below.add(pitch);
            let x = Column { data: rest.cast::<T>().add(next).cast_const(), stride, len: len - 1 };
            sweep::<T, S>((column.add(1).cast_const(), w), x, (rest, pitch), vectors, g);
        }
        for i in 0..m.min(n) {
            let row = work.add(i * pitch).cast::<T>();
            std::ptr::copy_nonoverlapping(row.add(i), out.add(i * out_rows + i), n - i);
        }
    }
});

/// Whether these sums of squares neither under- nor overflow; NaN passes.
#[inline(always)]
fn safe<R: Real>(below: R, alpha: R) -> bool {
    let least = R::min_positive_value() / (R::EPS * R::EPS);
    // x^H A must not overflow either
    !(below < least || below + alpha > (R::one() / least).sqrt())
}

/// The reflection of a column divided by `scale`.
#[inline(always)]
fn reflection<T: Scalar>(alpha: T, x: Column<T>, norm2: T::Real, scale: T::Real) -> Reflection<T> {
    let norm = (norm2 + alpha.abs2()).sqrt();
    let beta = -norm.copysign(alpha.re());
    let off = alpha - T::real(beta);
    let one = T::Real::one();
    let f = if T::PARTS == 1 { T::one() / off } else { off.conj().scale(one / off.abs2()) };
    Reflection { beta: beta * scale, tau: (-off).scale(one / beta), f, x }
}

/// The reflection by way of the column divided by its largest entry; None where the reflection is the identity.
#[inline(never)]
unsafe fn scaled<T: Scalar>(alpha: T, x: Column<T>, column: *mut T) -> Option<Reflection<T>> {
    let largest = |size: T::Real, x: T| size.max(Float::abs(x.re())).max(Float::abs(x.im()));
    let zero = T::Real::zero();
    // SAFETY: `column` has room for the entries of x.
    unsafe {
        let below = (0..x.len).fold(zero, |size, i| largest(size, x.at(i)));
        if below == zero && alpha.im() == zero {
            return None;
        }
        let size = largest(below, alpha);
        let over = |x: T| T::new(x.re() / size, x.im() / size);
        let mut norm2 = zero;
        for i in 0..x.len {
            let own = over(x.at(i));
            norm2 += own.abs2();
            *column.add(i) = own;
        }
        let own = Column { data: column.cast_const(), stride: 1, len: x.len };
        Some(reflection(over(alpha), own, norm2, size))
    }
}
