//! Right-hand operands of the steps, packed once per call by all members together.

use crate::kernels::{Operand, lanes, packed_len};
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use isometry_kernels::pack::Pack;
use isometry_kernels::tile::Term;

/// A k x n operand in panels of two vectors of columns.
pub struct Packed<T: Scalar> {
    k: usize,
    n: usize,
    data: Region<T::Real>,
}

impl<T: Scalar> Packed<T> {
    /// Memory for a k x n operand.
    pub fn new(arena: &mut Arena, k: usize, n: usize) -> Self {
        Packed { k, n, data: arena.take(&[packed_len::<T>(k, n, lanes::<T::Real>())]) }
    }

    /// Packs this member's panels of b; must be followed by a barrier.
    ///
    /// # Safety
    /// The operand is a readable k x n matrix; all members pack the same operand; the packed data is not read meanwhile.
    pub unsafe fn fill(&self, b: Operand<T>, member: &Member<'_>) {
        let Packed { k, n, .. } = *self;
        // SAFETY: the operand exists; members fill disjoint panels, for which there is room.
        unsafe { Pack { b, k, n, out: self.data.ptr(), id: member.id, count: member.count }.call() }
    }

    /// The product of the rows at `a` with this operand.
    pub fn times(&self, a: *const T::Real) -> Term<T::Real> {
        self.times_apart(a, self.k * T::PARTS)
    }

    /// The same where the rows are `rows` numbers apart.
    pub fn times_apart(&self, a: *const T::Real, rows: usize) -> Term<T::Real> {
        Term::rows(a, rows, self.k * T::PARTS, self.data.ptr())
    }
}
