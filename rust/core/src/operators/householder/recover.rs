//! Algorithm 2 of Mhammedi et al. 2017: n - 1 reflections of an orthogonal or unitary matrix (docs/math/householder.md).
//!
//! R = W; for k = 0, ..., n - 2, with x = R[k:, k]: u maps x to ||x|| e_0 (real; with the opposite phase if complex), R
//! <- H(u) R. R becomes the last factor: diag(1, ..., 1, s), or a diagonal of phases. All in double precision.

use crate::error::{Error, Result};
use crate::kernels::Unitarity;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region, Scratch};
use crate::sizes::check_len;
use isometry_kernels::householder::Reflect;

/// Writes unit lower-trapezoidal `vectors` (batch, n, n - 1) and the last factor of `w` (batch, n, n): a sign per matrix
/// (batch) for real types, phases (batch, n) for complex ones. Fails, with the outputs unspecified, if max|W^H W - I|
/// exceeds `tol` for any matrix, or once `cancel`, called before every reflection, returns true.
pub fn from_matrix<T: Scalar>(
    w: &[T],
    batch: usize,
    n: usize,
    tol: f64,
    vectors: &mut [T],
    last: &mut [T::Real],
    cancel: &dyn Fn() -> bool,
) -> Result<()> {
    let (m, lasts) = (n.saturating_sub(1), if T::PARTS == 1 { usize::from(n > 0) } else { n });
    check_len("w", w.len(), &[batch, n, n])?;
    check_len("vectors", vectors.len(), &[batch, n, m])?;
    check_len("last", last.len(), &[batch, lasts])?;
    if w.is_empty() {
        return Ok(());
    }
    let carve = |arena: &mut Arena| {
        let all: [Region<T::Wide>; 3] = [[n, n], [n, 1], [n, 1]].map(|sizes| arena.take(&sizes));
        (all, Unitarity::<T::Wide>::carve(arena, n))
    };
    let room = Scratch::new(carve)?;
    let (all, unitarity) = *room;
    // SAFETY: each region is used only here, while the memory is alive.
    let [r, u, row] = all.map(|region| unsafe { region.zeroed() });
    for b in 0..batch {
        for (wide, x) in r.iter_mut().zip(&w[b * n * n..]) {
            *wide = x.widen();
        }
        // SAFETY: the workspace is used only here, while the memory is alive.
        unsafe { unitarity.check(r, b, tol)? };
        let vectors = &mut vectors[b * n * m..(b + 1) * n * m];
        vectors.fill(T::zero());
        for k in 0..m {
            if cancel() {
                return Err(Error::Interrupted);
            }
            reflector(r, n, k, u);
            for i in k..n {
                vectors[i * m + k] = T::narrow(u[i]);
            }
            let step = Reflect { r: r.as_mut_ptr(), u: u.as_ptr(), row: row.as_mut_ptr(), n, k };
            // SAFETY: the three arrays have the sizes of the step.
            unsafe { step.call() };
        }
        for k in 0..lasts {
            let corner = if T::PARTS == 1 { r[n * n - 1] } else { r[k * n + k] };
            let value =
                if T::PARTS == 1 { 1f64.copysign(corner.re()) } else { corner.im().atan2(corner.re()) };
            last[b * lasts + k] = <T::Real as crate::scalar::Real>::of(value);
        }
    }
    Ok(())
}

/// The unit vector u of step k, zero above row k.
fn reflector<W: Scalar<Real = f64>>(r: &[W], n: usize, k: usize, u: &mut [W]) {
    u.fill(W::zero());
    for i in k..n {
        u[i] = r[i * n + k];
    }
    let tail: f64 = u[k + 1..].iter().map(|x| x.abs2()).sum();
    let head = u[k];
    let norm = (head.abs2() + tail).sqrt();
    if W::PARTS == 1 {
        if tail == 0.0 && head.re() > 0.0 {
            u.fill(W::zero());
            u[n - 1] = W::one();
            return;
        }
        // without cancellation
        let first = if head.re() > 0.0 { -tail / (head.re() + norm) } else { head.re() - norm };
        u[k] = W::real(first);
    } else {
        let size = head.modulus();
        let phase = if size == 0.0 { W::one() } else { head.scale(1.0 / size) };
        u[k] = head + phase.scale(norm);
    }
    let length = (u[k].abs2() + tail).sqrt();
    for x in &mut u[k..] {
        *x = x.scale(1.0 / length);
    }
}
