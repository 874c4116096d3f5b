//! Right-hand operands of the steps, packed once per call by all members together.

use super::affine::Term;
use crate::kernels::{Kernel, Operand, Simd, dispatch, lanes, pack_panel, packed_len, panel_offset};
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};

/// A k x n operand in panels of two vectors of columns.
pub struct Packed<T: Scalar> {
    k: usize,
    n: usize,
    data: Region<T::Real>,
}

impl<T: Scalar> Packed<T> {
    /// Room for a k x n operand.
    pub fn new(arena: &mut Arena, k: usize, n: usize) -> Self {
        Packed { k, n, data: arena.take(&[packed_len::<T>(k, n, lanes::<T::Real>())]) }
    }

    /// Packs this member's panels of b; a barrier has to follow.
    ///
    /// # Safety
    /// The operand has k rows and n columns in memory; all members pack the same operand; nobody reads meanwhile.
    pub unsafe fn fill(&self, b: Operand<T>, member: &Member<'_>) {
        let Packed { k, n, .. } = *self;
        // SAFETY: passed on from the caller; members fill different panels.
        unsafe { dispatch(Fill { b, k, n, out: self.data.ptr(), id: member.id, count: member.count }) }
    }

    /// The product of the rows at `a` with this operand.
    pub fn times(&self, a: *const T::Real) -> Term<T::Real> {
        Term { a, depth: self.k * T::PARTS, b: self.data.ptr() }
    }
}

struct Fill<T: Scalar> {
    b: Operand<T>,
    k: usize,
    n: usize,
    out: *mut T::Real,
    id: usize,
    count: usize,
}

impl<T: Scalar> Kernel<T::Real> for Fill<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = T::Real>>(self) {
        let Fill { b, k, n, out, id, count } = self;
        for col in (id * 2 * S::LANES..n * T::PARTS).step_by(count * 2 * S::LANES) {
            // SAFETY: the contract of `Packed::fill`; `packed_len` leaves room for every panel.
            unsafe { pack_panel::<T, S>(b, false, k, n, col, out.add(panel_offset(k * T::PARTS, col))) }
        }
    }
}
