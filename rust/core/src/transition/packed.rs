//! Right-hand operands of the steps: packed once per call by all members together, or packed by the caller, who then
//! makes many calls of few steps with the same matrices, or not packed where one step of few rows reads them once.

use crate::error::Result;
use crate::kernels::{Operand, lanes, packed_len};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::Arena;
use crate::sizes::check_len;
use isometry_kernels::pack::Pack;
use isometry_kernels::recurrence::{Affine, FEW};
use isometry_kernels::tile::Term;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Multiplications up to which few rows read an operand in place in less time than it takes to pack it and to read it packed.
pub const SHORT: usize = 8;

/// A k x n operand in panels of two vectors of columns.
pub struct Packed<T: Scalar> {
    k: usize,
    n: usize,
    data: Shared<T::Real>,
    /// By the caller.
    given: bool,
    /// The operand, with the strides of its rows and columns, where it is read in place, or multiplied once: a single
    /// member then packs each panel as it multiplies it, in a cache, and no other memory is written.
    once: Option<(Shared<T::Real>, [usize; 2])>,
    /// Whether its columns are contiguous and the rows so few that it is not packed at all.
    in_place: bool,
    /// Whether a single member packs it panel by panel.
    late: AtomicBool,
}

/// Real numbers of W (n, k), packed for W h.
///
/// ```
/// use isometry_core::recurrence::packed;
///
/// assert!(packed::<f32>(100, 100) >= 100 * 100); // whole vectors
/// ```
pub fn packed<T: Scalar>(n: usize, k: usize) -> usize {
    packed_len::<T>(k, n, lanes::<T::Real>())
}

/// Packs W (n, k) for W h, into [`packed`] numbers.
///
/// A program that makes many calls of few steps packs once. (Without packs, calls of up to eight steps and three sequences
/// read W in place, and round differently.)
///
/// ```
/// use isometry_core::operators::dense::Dense;
/// use isometry_core::recurrence::{self, Run, Sequence, pack, packed};
/// use isometry_core::Budget;
///
/// let (w, v, x, budget) = ([0.1f32; 4], [1.0; 2], [1.0], Budget::of(1));
/// let mut packs = vec![0.0; packed::<f32>(2, 1) + packed::<f32>(2, 2)];
/// let (of_v, of_w) = packs.split_at_mut(packed::<f32>(2, 1));
/// pack(&v, 2, 1, of_v)?;
/// pack(&w, 2, 2, of_w)?;
/// let operator = Dense::new(&w, 1, 2, 2)?;
/// let step = |packs| {
///     let run = Run { h0: Some(&[0.5; 2]), packs, ..Run::new([1, 1, 1, 2], &x) };
///     let mut state = [0.0; 2];
///     let sequence = Sequence { run, input_weight: &v, bias: None, on_input: false };
///     recurrence::forward(&operator, &sequence, &mut state, &budget).map(|()| state)
/// };
/// assert_eq!(step(Some(&packs))?, step(None)?);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If an array has another length.
pub fn pack<T: Scalar>(weight: &[T], n: usize, k: usize, out: &mut [T::Real]) -> Result<()> {
    check_len("weight", weight.len(), &[n, k])?;
    check_len("out", out.len(), &[packed::<T>(n, k)])?;
    if out.is_empty() {
        return Ok(());
    }
    let into = Packed::<T>::at([k, n], Shared(out.as_mut_ptr()), false);
    // SAFETY: W has n rows and k columns, the output room for them.
    Member::alone(|member| unsafe { into.fill(Operand::new(weight.as_ptr(), k).t(), member) });
    Ok(())
}

/// The next of operands that are packed one after the other, W (n, k), if they are given and there is one.
pub fn next_pack<'p, T: Scalar>(
    packs: &mut Option<&'p [T::Real]>,
    [n, k]: [usize; 2],
) -> Option<&'p [T::Real]> {
    let (own, behind) = (*packs)?.split_at_checked(packed::<T>(n, k))?;
    *packs = Some(behind);
    Some(own)
}

impl<T: Scalar> Packed<T> {
    /// A k x n operand as the caller has packed it ([`pack`]), which is only read, or memory for it.
    pub fn new(arena: &mut Arena, k: usize, n: usize, given: Option<&[T::Real]>) -> Self {
        let Some(given) = given else {
            return Packed::at([k, n], Shared(arena.take(&[packed::<T>(n, k)]).ptr()), false);
        };
        assert_eq!(given.len(), packed::<T>(n, k), "an operand packed for other sizes");
        Packed::at([k, n], Shared(given.as_ptr().cast_mut()), true)
    }

    fn at([k, n]: [usize; 2], data: Shared<T::Real>, given: bool) -> Self {
        Packed { k, n, data, given, once: None, in_place: false, late: AtomicBool::new(false) }
    }

    /// The same for the operand b, by which at most so many rows at a time are multiplied, so many times.
    pub fn of(
        arena: &mut Arena,
        [k, n]: [usize; 2],
        given: Option<&[T::Real]>,
        (b, [rows, times]): (Operand<T>, [usize; 2]),
    ) -> Self {
        let own = T::PARTS == 1 && given.is_none();
        let in_place = own && b.rows == 1 && rows <= FEW && times <= SHORT;
        let once =
            (in_place || (own && times == 1)).then_some((Shared(b.data.cast_mut().cast()), [b.rows, b.cols]));
        let none = Shared(std::ptr::null_mut());
        let own = if in_place { Packed::at([k, n], none, false) } else { Packed::new(arena, k, n, given) };
        Packed { once, in_place, ..own }
    }

    /// Packs this member's panels of b; must be followed by a barrier.
    ///
    /// # Safety
    /// The operand is a readable k x n matrix; all members pack the same operand; the packed data is not read meanwhile.
    pub unsafe fn fill(&self, b: Operand<T>, member: &Member<'_>) {
        let Packed { k, n, data, given, .. } = *self;
        if self.in_place {
            return;
        }
        if self.once.is_some() && member.count == 1 {
            self.late.store(true, Relaxed);
        } else if !given {
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

    /// Makes it the i-th product of a map; the only way to multiply by an operand that is packed late, or not at all.
    pub fn join(&self, map: &mut Affine<T::Real>, i: usize, a: *const T::Real, rows: usize) {
        map.terms[i] = self.times_apart(a, rows);
        if let Some((data, [rows, cols])) = self.once.filter(|_| self.in_place || self.late.load(Relaxed)) {
            map.matrices[i] = Operand { data: data.0, rows, cols, conj: false };
            map.in_place[i] = self.in_place;
        }
    }
}
