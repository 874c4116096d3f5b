//! A = Q R: reflections in LAPACK's storage from given matrices, LAPACK's geqrf. Panels of [`PANEL`] columns are factored in the
//! cache; the columns behind a panel are multiplied by its Q^H = I - V D^* R^H V^H, in products.

use super::reflectors::{FULL, Factors, Hand, Places};
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{Operand, Product, Triangle};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::{check_len, work};
use isometry_kernels::qr::{Factor, factor_work};

/// Columns of a panel.
pub(super) const PANEL: usize = if cfg!(test) { 8 } else { 32 };
/// Up to this many columns, a matrix is one panel.
pub(super) const WHOLE: usize = if cfg!(test) { 8 } else { 64 };

/// The factors of a (batch, m, n): R on and above the diagonal of `out`, the vectors below; tau (batch, min(m, n)).
///
/// ```
/// use isometry_core::linalg::{Reflectors, geqrf, product};
///
/// // (3, 4) = Q R with R = -5 and Q = (-0.6, -0.8)
/// let (mut factors, mut tau, mut q) = ([0.0f64; 2], [0.0], [0.0; 2]);
/// geqrf(&[3.0, 4.0], (1, 2, 1), &mut factors, &mut tau, 1)?;
/// product(&Reflectors::new(&factors, &tau, 1, 2, 1)?, &mut q, 1)?;
/// assert!((factors[0] + 5.0).abs() < 1e-15);
/// assert!((q[0] + 0.6).abs() < 1e-15 && (q[1] + 0.8).abs() < 1e-15);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If an array has another length, or memory ends.
pub fn geqrf<T: Scalar>(
    a: &[T],
    (batch, m, n): (usize, usize, usize),
    out: &mut [T],
    tau: &mut [T],
    threads: usize,
) -> Result<()> {
    let k = m.min(n);
    check_len("a", a.len(), &[batch, m, n])?;
    check_len("out", out.len(), &[batch, m, n])?;
    check_len("tau", tau.len(), &[batch, k])?;
    if out.is_empty() {
        return Ok(());
    }
    let (to, tau) = (Shared(out.as_mut_ptr()), Shared(tau.as_mut_ptr()));
    let panel = if n <= WHOLE { n } else { PANEL };
    let behind = n - panel;
    let cost = work(&[n, k, m - k / 3]);
    let barriers = if behind == 0 { usize::MAX } else { 10 * k.div_ceil(panel) };
    Batch::new::<T>(batch, cost, barriers).split(threads).run(
        |arena| {
            let places = Places::<T>::carve(arena, m, if behind == 0 { 0 } else { panel }, false);
            (places, [(); 2].map(|()| arena.take::<T>(&[panel, behind])))
        },
        |arena: &mut Arena| -> (Region<T::Real>, Region<T::Real>) {
            let products = if behind == 0 { 0 } else { Product::<T>::scratch(m, m) };
            (arena.take(&[products]), arena.take(&[factor_work::<T>(m, panel)]))
        },
        |member, b, (places, small), (scratch, room)| {
            let hand = Hand { member, scratch: scratch.ptr() };
            let (out, tau) = (to.at(b * m * n), tau.at(b * k));
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                for first in (0..k).step_by(panel) {
                    let (width, rows) = (panel.min(n - first), m - first);
                    let at = out.add(first * n + first);
                    let (from, from_rows) =
                        if first == 0 { (a[b * m * n..].as_ptr(), n) } else { (at.cast_const(), n) };
                    if member.id == 0 {
                        let (tau, work) = (tau.add(first), room.ptr());
                        Factor { from, from_rows, out: at, out_rows: n, tau, m: rows, n: width, work }.call();
                    }
                    member.barrier();
                    let (rest, taken) = (n - first - width, width.min(rows));
                    if rest == 0 {
                        break;
                    }
                    if first == 0 {
                        for i in member.share(m, 4) {
                            let at = i * n + width;
                            std::ptr::copy_nonoverlapping(a[b * m * n + at..].as_ptr(), out.add(at), rest);
                        }
                        member.barrier();
                    }
                    let tau = std::slice::from_raw_parts(tau.add(first).cast_const(), taken);
                    let factors = Factors::new(hand, (at, n), tau, rows, places, false);
                    let trail = at.add(width);
                    let [h, g] = small.map(|region| region.ptr());
                    let (behind, h_, g_) =
                        (Operand::new(trail.cast_const(), n), Operand::new(h, rest), Operand::new(g, rest));
                    let inner = Product::new((taken, rest, rows), factors.v().h(), behind, h, rest);
                    hand.mul(inner.shapes(Triangle::Upper, FULL, FULL));
                    member.barrier();
                    let turned = Product::new((taken, rest, taken), factors.r().h(), h_, g, rest);
                    hand.mul(turned.shapes(Triangle::Lower, FULL, FULL));
                    member.barrier();
                    factors.scale_rows(member, g, rest, true);
                    member.barrier();
                    let outer =
                        Product::new((rows, rest, taken), factors.v(), g_, trail, n).alpha(-1.0).add();
                    hand.mul(outer.shapes(Triangle::Lower, FULL, FULL));
                    member.barrier();
                }
            }
        },
    )
}
