//! Right-hand operands of the steps: packed once per call by all members together, or packed by the caller, who then
//! makes many calls of few steps with the same matrices.

use crate::error::Result;
use crate::kernels::{Operand, lanes, packed_len};
use crate::parallel::{Member, Shared};
use crate::scalar::{Real, Scalar};
use crate::scratch::Arena;
use crate::sizes::check_len;
use isometry_kernels::pack::Pack;
use isometry_kernels::tile::Term;

/// A k x n operand in panels of two vectors of columns.
pub struct Packed<T: Scalar> {
    k: usize,
    n: usize,
    data: Shared<T::Real>,
    /// By the caller.
    given: bool,
}

/// Real numbers of W (n, k), packed for W h.
pub fn packed<T: Scalar>(n: usize, k: usize) -> usize {
    packed_len::<T>(k, n, lanes::<T::Real>())
}

/// Packs W (n, k) for W h, into [`packed`] numbers.
pub fn pack<T: Scalar>(weight: &[T], n: usize, k: usize, out: &mut [T::Real]) -> Result<()> {
    check_len("weight", weight.len(), &[n, k])?;
    check_len("out", out.len(), &[packed::<T>(n, k)])?;
    if out.is_empty() {
        return Ok(());
    }
    let into = Packed::<T> { k, n, data: Shared(out.as_mut_ptr()), given: false };
    // SAFETY: W has n rows and k columns, the output room for them.
    Member::alone(|member| unsafe { into.fill(Operand::new(weight.as_ptr(), k).t(), member) });
    Ok(())
}

/// Operands that the caller has packed one after the other, or none.
pub struct Packs<'a, R>(pub Option<&'a [R]>);

impl<'a, R: Real> Packs<'a, R> {
    /// Refuses another length than that of all W (n, k) together.
    pub fn check(&self, sizes: &[[usize; 2]]) -> Result<()> {
        let all = sizes.iter().map(|&[n, k]| packed::<R>(n, k)).fold(0, usize::saturating_add);
        self.0.map_or(Ok(()), |given| check_len("packs", given.len(), &[all]))
    }

    /// The next one, of W (n, k).
    pub fn next(&mut self, n: usize, k: usize) -> Option<&'a [R]> {
        let (own, rest) = self.0?.split_at(packed::<R>(n, k));
        self.0 = Some(rest);
        Some(own)
    }
}

impl<T: Scalar> Packed<T> {
    /// W (n, k) as the caller has packed it, else memory for it.
    pub fn next(packs: &mut Packs<'_, T::Real>, arena: &mut Arena, n: usize, k: usize) -> Self {
        packs.next(n, k).map_or_else(|| Packed::new(arena, k, n), |given| Packed::given(k, n, given))
    }

    /// Memory for a k x n operand.
    pub fn new(arena: &mut Arena, k: usize, n: usize) -> Self {
        Packed { k, n, data: Shared(arena.take(&[packed::<T>(n, k)]).ptr()), given: false }
    }

    /// An operand that the caller has packed ([`pack`]), which is only read; its length was checked.
    pub fn given(k: usize, n: usize, data: &[T::Real]) -> Self {
        debug_assert_eq!(data.len(), packed::<T>(n, k));
        Packed { k, n, data: Shared(data.as_ptr().cast_mut()), given: true }
    }

    /// Packs this member's panels of b; must be followed by a barrier.
    ///
    /// # Safety
    /// The operand is a readable k x n matrix; all members pack the same operand; the packed data is not read meanwhile.
    pub unsafe fn fill(&self, b: Operand<T>, member: &Member<'_>) {
        let Packed { k, n, data, given } = *self;
        if !given {
            // SAFETY: the operand exists; members fill disjoint panels, for which there is room.
            unsafe { Pack { b, k, n, out: data.0, id: member.id, count: member.count }.call() }
        }
    }

    /// The product of the rows at `a` with this operand.
    pub fn times(&self, a: *const T::Real) -> Term<T::Real> {
        self.times_apart(a, self.k * T::PARTS)
    }

    /// The same where the rows are `rows` numbers apart.
    pub fn times_apart(&self, a: *const T::Real, rows: usize) -> Term<T::Real> {
        Term::rows(a, rows, self.k * T::PARTS, self.data.0)
    }
}
