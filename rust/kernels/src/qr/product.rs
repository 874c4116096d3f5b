//! The first columns of a product of reflections, one after another from the last to the first, as LAPACK's orgqr, for any tau:
//!
//! ```text
//! w = tau_j (e_j^T + v_j^H Q),  row j of Q = e_j^T - w,  Q <- Q - v_j w below row j,
//! ```
//!
//! where only the rows below j and the columns behind j of Q are in use. v_{j-1}^H Q is summed in the same pass.

use super::rows::{Column, sweep};
use crate::dispatch::kernel;
use crate::householder::scaled_add;
use crate::scalar::Scalar;

/// Real numbers of workspace for m x k.
pub fn product_work<T: Scalar>(m: usize, k: usize) -> usize {
    (m + 2) * (k * T::PARTS).next_multiple_of(16) + m * T::PARTS
}

/// out (m x k) = H_1 ... H_k E for v below the diagonal of a (m x k), k <= m.
///
/// # Safety
/// The matrices exist and do not overlap; `tau` has k elements, `work` the numbers of [`product_work`].
pub struct Product<T: Scalar> {
    /// v
    pub a: *const T,
    /// tau
    pub tau: *const T,
    /// The result.
    pub out: *mut T,
    /// m
    pub m: usize,
    /// k
    pub k: usize,
    /// Workspace.
    pub work: *mut T::Real,
}

kernel!(Product::<T>, |&Product { a, tau, out, m, k, work }| {
    let (width, pitch) = (k * T::PARTS, (k * T::PARTS).next_multiple_of(S::LANES));
    let (g, w) = (work, work.wrapping_add(pitch));
    let column = work.wrapping_add(2 * pitch).cast::<T>();
    // rows of whole vectors are computed in place
    let q = if width == pitch { out.cast() } else { column.wrapping_add(m).cast::<S::R>() };
    // SAFETY: the matrices and `work` have their sizes; rows of Q are whole vectors.
    unsafe {
        for i in 0..m {
            for v in (0..pitch).step_by(S::LANES) {
                S::store(q.add(i * pitch + v), S::zero());
            }
        }
        for v in (0..pitch).step_by(S::LANES) {
            S::store(g.add(v), S::zero());
        }
        for j in (0..k).rev() {
            let (row, below) = (q.add(j * pitch), q.add((j + 1) * pitch));
            *g.cast::<T>().add(j) = T::one();
            let first = j * T::PARTS / S::LANES * S::LANES;
            for v in (first..pitch).step_by(S::LANES) {
                let y = scaled_add::<T, S>(S::load(g.add(v)), *tau.add(j), S::zero());
                S::store(w.add(v), y);
                S::store(row.add(v), S::sub(S::zero(), y));
            }
            *row.cast::<T>().add(j) += T::one();
            let len = m - j - 1;
            for i in 0..len {
                *column.add(i) = *a.add((j + 1 + i) * k + j);
            }
            // without a next column any other serves
            let next = j.saturating_sub(1);
            let first = next * T::PARTS / S::LANES * S::LANES;
            for v in (first..first.max(j * T::PARTS / S::LANES * S::LANES)).step_by(S::LANES) {
                S::store(w.add(v), S::zero());
            }
            let x = Column { data: a.wrapping_add((j + 1) * k + next), stride: k, len };
            sweep::<T, S>((column.cast_const(), w), x, (below, pitch), (first, pitch), g);
            let f = (*a.add(j * k + next)).conj();
            for v in (first..pitch).step_by(S::LANES) {
                S::store(g.add(v), scaled_add::<T, S>(S::load(row.add(v)), f, S::load(g.add(v))));
            }
        }
        if width != pitch {
            for i in 0..m {
                std::ptr::copy_nonoverlapping(q.add(i * pitch).cast::<T>(), out.add(i * k), k);
            }
        }
    }
});
