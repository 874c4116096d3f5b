//! The last factor E = I, diag(1, ..., 1, s) or diag(e^{i theta}): its diagonal, its product with rows x, and from the
//! cotangent g of E x
//!
//! ```text
//! s_bar = sum Re(g_{n-1} conj(x_{n-1})),   theta_bar_j = sum Im(g_j conj(e_j x_j)),   x_bar = conj(E) g.
//! ```

use super::{Householder, Last};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::side::Side;

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn has_last(&self) -> bool {
        !matches!(self.last, Last::None)
    }

    /// The diagonal of E, if it is not I, into `e` (n). Each member writes its share; a barrier follows.
    ///
    /// # Safety
    /// `e` has n elements.
    pub(super) unsafe fn diagonal(&self, member: &Member<'_>, b: usize, e: *mut T) {
        if !self.has_last() {
            return;
        }
        for i in member.share(self.n, 16) {
            // SAFETY: inside the array, own share.
            unsafe { e.add(i).write(self.last.factor(b, i, self.n)) };
        }
        member.barrier();
    }

    /// out = E x or conj(E) x; a copy if there is no E. No barrier.
    ///
    /// # Safety
    /// x and out have `rows` rows of n, e has n elements if there is an E; out is x or does not overlap it.
    pub(super) unsafe fn scaled(
        &self,
        member: &Member<'_>,
        e: *const T,
        side: Side,
        x: *const T,
        rows: usize,
        out: *mut T,
    ) {
        let n = self.n;
        for i in member.share(rows, 1) {
            for j in 0..n {
                // SAFETY: the row belongs to this member; `e` is read only if there is an E.
                unsafe {
                    let value = *x.add(i * n + j);
                    let by = if self.has_last() { *e.add(j) } else { T::one() };
                    *out.add(i * n + j) = value * if side == Side::Adjoint { by.conj() } else { by };
                }
            }
        }
    }

    /// Adds the gradient of E to `last`, and writes x_bar. No barrier.
    ///
    /// # Safety
    /// x, g and x_bar have `rows` rows of n, `last` the sums of all matrices, e is that of matrix b; g is complete.
    pub(super) unsafe fn pull_last(
        &self,
        member: &Member<'_>,
        (b, e): (usize, *const T),
        [x, g]: [*const T; 2],
        rows: usize,
        last: Option<Shared<T::Real>>,
        x_bar: Option<*mut T>,
    ) {
        let (n, mine) = (self.n, member.share(self.n, 16));
        // SAFETY: the columns belong to this member only.
        unsafe {
            if let Some(last) = last {
                for i in 0..rows {
                    for j in mine.clone() {
                        let (x, g) = (*x.add(i * n + j), *g.add(i * n + j));
                        match self.last {
                            Last::Phases(_) => *last.at(b * n + j) += (g * (x * *e.add(j)).conj()).im(),
                            Last::Sign(_) if j + 1 == n => *last.at(b) += (g * x.conj()).re(),
                            _ => {}
                        }
                    }
                }
            }
            let Some(x_bar) = x_bar else { return };
            if std::ptr::eq(x_bar, g) && !self.has_last() {
                return;
            }
            for i in 0..rows {
                for j in mine.clone() {
                    let by = if self.has_last() { (*e.add(j)).conj() } else { T::one() };
                    *x_bar.add(i * n + j) = *g.add(i * n + j) * by;
                }
            }
        }
    }
}
