//! Algorithm 2 of Mhammedi et al. 2017: n - 1 reflections of an orthogonal or unitary matrix (docs/math/householder.md).
//!
//! R = W; for k = 0, ..., n - 2, with x = R[k:, k]: u maps x to ||x|| e_0 (real; with the opposite phase if complex), R
//! <- H(u) R. R becomes the last factor: diag(1, ..., 1, s), or a diagonal of phases. All in double precision. The columns behind
//! a panel of [`PANEL`] are multiplied by its reflections together, R <- (I - U T^-H U^H) R.

use crate::error::{Error, Result};
use crate::kernels::{Operand, Product, Triangle, Unitarity, invert_work, wy};
use crate::parallel::{Member, in_callers_mode};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region, Scratch};
use crate::sizes::check_len;
use isometry_kernels::householder::Reflect;

/// Columns of a panel.
const PANEL: usize = if cfg!(test) { 4 } else { 32 };

/// The sum of squares below which some may have lost digits.
const SMALL: f64 = f64::MIN_POSITIVE / (f64::EPSILON * f64::EPSILON);

/// Writes unit lower-trapezoidal `vectors` (batch, n, n - 1) and the last factor of `w` (batch, n, n): a sign per matrix
/// (batch) for real types, phases (batch, n) for complex ones. `cancel` is called before every reflection.
///
/// ```
/// use isometry_core::operators::{Last, householder::{Householder, from_matrix}};
/// use isometry_core::{Budget, Cpu};
///
/// let (exchange, mut vectors, mut sign, mut w) = ([0.0, 1.0, 1.0, 0.0], [0.0f64; 2], [0.0], [0.0; 4]);
/// from_matrix(&exchange, 1, 2, 1e-8, &mut vectors, &mut sign, &|| false)?;
/// Householder::new(&vectors, Last::Sign(&sign), 1, 2, 1)?.matrix(&mut w, None, &Budget::of(1))?;
/// assert!(w.iter().zip(exchange).all(|(x, y)| (x - y).abs() < 1e-15));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If max|W^H W - I| exceeds `tol` for any matrix; arrays of other lengths; lack of memory; [`Error::Interrupted`] once `cancel`
/// returns true. The outputs are then unspecified.
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
    let room = Scratch::new(|arena| {
        let all: [Region<T::Wide>; 3] = [[n, n], [n, 1], [n, 1]].map(|sizes| arena.take(&sizes));
        (all, Unitarity::<T::Wide>::carve(arena, n), Trailing::<T::Wide>::carve(arena, n))
    })?;
    let (all, unitarity, ref trailing) = *room;
    // SAFETY: each region is used only here, while the memory is alive.
    let [r, u, row] = all.map(|region| unsafe { region.zeroed() });
    for b in 0..batch {
        let widen = |r: &mut [T::Wide]| r.iter_mut().zip(&w[b * n * n..]).for_each(|(to, x)| *to = x.widen());
        widen(r);
        let vectors = &mut vectors[b * n * m..(b + 1) * n * m];
        vectors.fill(T::zero());
        for first in (0..m).step_by(PANEL) {
            let end = if first + PANEL < m { first + PANEL } else { n };
            for k in first..end.min(m) {
                if in_callers_mode(cancel) {
                    return Err(Error::Interrupted);
                }
                reflector(r, n, k, u);
                // SAFETY: U has n rows, and the three arrays have the sizes of the step.
                unsafe {
                    (first..n).for_each(|i| *trailing.u.at((i - first) * PANEL + k - first) = u[i]);
                    Reflect { r: r.as_mut_ptr(), u: u.as_ptr(), row: row.as_mut_ptr(), n, k, end }.call();
                }
            }
            // by rows, since every number of a column is on another cache line
            for (i, k) in (first..n).flat_map(|i| (first..end.min(m)).map(move |k| (i, k))) {
                // SAFETY: the panel has n - first rows.
                vectors[i * m + k] = T::narrow(unsafe { *trailing.u.at((i - first) * PANEL + k - first) });
            }
            // SAFETY: the panel is full where columns are left; R has n rows and columns.
            unsafe { trailing.reflect(r.as_mut_ptr(), n, first, end) };
        }
        for k in 0..lasts {
            let corner = if T::PARTS == 1 { r[n * n - 1] } else { r[k * n + k] };
            let value =
                if T::PARTS == 1 { 1f64.copysign(corner.re()) } else { corner.im().atan2(corner.re()) };
            last[b * lasts + k] = <T::Real as crate::scalar::Real>::of(value);
        }
        // W^H W = R^H R, and R is cheaper to check; if it misses the tolerance, W is checked, and its defect reported
        (1..n).for_each(|i| r[i * n..i * n + i].fill(Default::default()));
        // SAFETY: the workspace is used only here, while the memory is alive.
        if !unsafe { unitarity.of_triangle(r, tol) } {
            widen(r);
            // SAFETY: as above.
            unsafe { unitarity.check(r, b, tol)? };
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
    let squares = |u: &[W]| u[k + 1..].iter().map(|x| x.abs2()).sum::<f64>();
    let (mut tail, head) = (squares(u), u[k]);
    let norm = (head.abs2() + tail).sqrt();
    if W::PARTS == 1 {
        let mut largest = 1.0;
        // of numbers whose squares have few digits or none: those of the vector divided by the largest
        if head.re() > 0.0 && tail < SMALL {
            largest = u[k + 1..].iter().map(|x| x.re().abs()).fold(0.0, f64::max);
            if largest == 0.0 {
                u.fill(W::zero());
                u[n - 1] = W::one();
                return;
            }
            u[k + 1..].iter_mut().for_each(|x| *x = W::real(x.re() / largest));
            tail = squares(u);
        }
        // without cancellation
        let first = if head.re() > 0.0 { -tail * largest / (head.re() + norm) } else { head.re() - norm };
        u[k] = W::real(first);
    } else {
        let size = head.modulus();
        let phase = if size == 0.0 { W::one() } else { W::new(head.re() / size, head.im() / size) };
        u[k] = head + phase.scale(norm);
    }
    let length = (u[k].abs2() + tail).sqrt();
    for x in &mut u[k..] {
        *x = x.scale(1.0 / length);
    }
}

/// Memory for the columns behind a panel.
struct Trailing<W: Scalar> {
    /// The vectors of the panel, from its first row on.
    u: Region<W>,
    ti: Region<W>,
    /// U^H R and T^-H U^H R
    small: [Region<W>; 2],
    work: Frame,
    scratch: Region<W::Real>,
}

impl<W: Scalar> Trailing<W> {
    fn carve(arena: &mut Arena, n: usize) -> Self {
        let behind = n.saturating_sub(PANEL);
        Trailing {
            u: arena.take(&[n, PANEL]),
            ti: arena.take(&[PANEL, PANEL]),
            small: [(); 2].map(|()| arena.take(&[PANEL, behind])),
            work: invert_work::<W>(arena, PANEL),
            scratch: arena.take(&[Product::<W>::scratch(n, n)]),
        }
    }

    /// R[first:, end:] <- its product with the reflections of the panel that begins at `first`.
    ///
    /// # Safety
    /// The panel is full unless end is n; R is n x n.
    unsafe fn reflect(&self, r: *mut W, n: usize, first: usize, end: usize) {
        let (rows, rest, at) = (n - first, n - end, r.wrapping_add(first * n + end));
        if rest == 0 {
            return;
        }
        let ([p, q], ti, scratch) = (self.small.map(Region::ptr), self.ti.ptr(), self.scratch.ptr());
        let (u, behind) = (Operand::new(self.u.ptr().cast_const(), PANEL), Operand::new(at.cast_const(), n));
        let (p_, q_) = (Operand::new(p.cast_const(), rest), Operand::new(q.cast_const(), rest));
        let (full, lower, upper) = (Triangle::Full, Triangle::Lower, Triangle::Upper);
        // SAFETY: the caller's; the arrays do not overlap.
        Member::alone(|solo| unsafe {
            wy::inverse(solo, u, (rows, PANEL), lower, ti, PANEL, self.work, scratch);
            let ti = Operand::new(ti.cast_const(), PANEL).h();
            Product::new((PANEL, rest, rows), u.h(), behind, p, rest)
                .shapes(upper, full, full)
                .run(solo, scratch);
            Product::new((PANEL, rest, PANEL), ti, p_, q, rest).shapes(lower, full, full).run(solo, scratch);
            let outer = Product::new((rows, rest, PANEL), u, q_, at, n).alpha(-1.0).add();
            outer.shapes(lower, full, full).run(solo, scratch);
        });
    }
}
