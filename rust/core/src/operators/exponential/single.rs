//! The matrices of one exponential in memory, row by row, their products shared by the members of a call.

use super::Exponential;
use super::series::{self, A, Factor, G, SLOTS, Slot, Space, Symmetry};
use crate::kernels::{Operand, Product};
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};
use isometry_kernels::exponential::{BLOCK, Combine, Fold, Measure, TERMS};
use num_traits::Zero;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Sums of a row are over 2^POWER, which keeps them from overflowing.
const POWER: u32 = 32;
/// 2^-POWER
const PART: f64 = 1.0 / (1u64 << POWER) as f64;

/// What the members share.
#[derive(Clone, Copy)]
pub(super) struct Shared<T: Scalar> {
    matrices: Region<T>,
    sums: [Region<T::Real>; 2],
}

impl<T: Scalar> Shared<T> {
    /// For n x n matrices.
    pub(super) fn carve(arena: &mut Arena, n: usize) -> Self {
        Shared { matrices: arena.take(&[SLOTS, n, pitch::<T>(n)]), sums: [(); 2].map(|()| arena.take(&[n])) }
    }
}

/// The memory of each member.
pub(super) fn own<T: Scalar>(arena: &mut Arena, n: usize) -> Region<T::Real> {
    arena.take(&[Product::<T>::scratch(n, n)])
}

/// Row stride: whole cache lines.
fn pitch<T: Scalar>(n: usize) -> usize {
    n.next_multiple_of(LINE / size_of::<T>())
}

/// One member's view of the matrices.
pub(super) struct Single<'m, T: Scalar> {
    member: &'m Member<'m>,
    shared: Shared<T>,
    scratch: *mut T::Real,
    n: usize,
    pitch: usize,
    levels: usize,
}

impl<'m, T: Scalar> Single<'m, T> {
    /// A of matrix b of the view, and its levels.
    ///
    /// # Safety
    /// `shared` is common to all members, `own` ([`own`]) separate for each, both for the view's n and alive; all members
    /// make the same calls of all methods.
    pub(super) unsafe fn new(
        member: &'m Member<'m>,
        view: &Exponential<'_, T>,
        b: usize,
        shared: Shared<T>,
        own: Region<T::Real>,
    ) -> Self {
        let n = view.n;
        let mut single = Single { member, shared, scratch: own.ptr(), n, pitch: pitch::<T>(n), levels: 0 };
        let (upper, diagonal) = view.from(b);
        for i in member.share(n, 1) {
            let row = single.at(A).wrapping_add(i * single.pitch);
            // row i has n - 1 - i elements above the diagonal
            let first = i * (2 * n - i - 1) / 2;
            // SAFETY: the parameters of matrix b and the row exist.
            unsafe {
                let row = row.add(i);
                row.write(T::zero());
                std::ptr::copy_nonoverlapping(upper.wrapping_add(first), row.add(1), n - 1 - i);
                single.clear(A, i);
            }
        }
        member.barrier();
        single.folded(A, A, None, [1.0, 0.0], Symmetry::Skew);
        if let Some(diagonal) = diagonal {
            // not before: a fold adds x - conj(x), which may overflow
            for i in member.share(n, 1) {
                let x = single.at(A).wrapping_add(i * (single.pitch + 1));
                // SAFETY: the parameters of matrix b and the row exist.
                unsafe { x.write(T::new(T::Real::zero(), *diagonal.add(i))) };
            }
            member.barrier();
        }
        single.levels = series::levels(single.norms(A)[0], POWER);
        let levels = single.levels;
        single.scale(A, -(levels as i32));
        single
    }

    /// K of W and its cotangent, n x n each, in [`G`].
    ///
    /// # Safety
    /// Both exist.
    pub(super) unsafe fn pull(&self, w: *const T, ct: *const T) {
        let Single { n, pitch, member, .. } = *self;
        let (t, ct, w) = (self.at(1), Operand::new(ct, n), Operand::new(w, n).h());
        for i in member.share(n, 1) {
            // SAFETY: the rows exist and belong to this member.
            unsafe { self.clear(G, i) };
        }
        // SAFETY: the arrays exist; T is not one of them.
        unsafe { Product::new((n, n, n), ct, w, t, pitch).run(member, self.scratch) };
        member.barrier();
        self.folded(G, 1, None, [1.0, -1.0], Symmetry::Skew);
    }

    /// Writes a matrix, n x n; ends with a barrier.
    ///
    /// # Safety
    /// `out` has n n elements and is not accessed by others.
    pub(super) unsafe fn store(&self, m: Slot, out: *mut T) {
        for i in self.member.share(self.n, 1) {
            // SAFETY: the rows exist.
            unsafe {
                std::ptr::copy_nonoverlapping(self.at(m).add(i * self.pitch), out.add(i * self.n), self.n);
            }
        }
        self.member.barrier();
    }

    /// Writes the gradients of the parameters from a skew matrix; ends with a barrier.
    ///
    /// # Safety
    /// `upper` has n (n - 1) / 2 elements, `diagonal` n; others do not access them.
    pub(super) unsafe fn pack(&self, m: Slot, (upper, diagonal): (Option<*mut T>, Option<*mut T::Real>)) {
        let (n, pitch) = (self.n, self.pitch);
        for i in self.member.share(n, 1) {
            let row = self.at(m).wrapping_add(i * pitch + i);
            // SAFETY: the rows exist, and the triangle has n - 1 - i elements of row i.
            unsafe {
                if let Some(upper) = upper {
                    let to = upper.wrapping_add(i * (2 * n - i - 1) / 2);
                    std::ptr::copy_nonoverlapping(row.add(1), to, n - 1 - i);
                }
                if let Some(diagonal) = diagonal {
                    *diagonal.add(i) = (*row).im() * T::Real::of(0.5);
                }
            }
        }
        self.member.barrier();
    }

    fn at(&self, m: Slot) -> *mut T {
        self.shared.matrices.at(m * self.n * self.pitch)
    }

    /// Zeros after row i, since passes run over the padding.
    unsafe fn clear(&self, m: Slot, i: usize) {
        let (n, pitch) = (self.n, self.pitch);
        // SAFETY: the row has `pitch` elements.
        unsafe { self.at(m).add(i * pitch + n).write_bytes(0, pitch - n) };
    }

    /// [`Fold`], ends with a barrier.
    fn folded(&self, to: Slot, from: Slot, sum: Option<Slot>, by: [f64; 2], symmetry: Symmetry) {
        let Single { n, pitch, member, .. } = *self;
        let sign = if symmetry == Symmetry::Skew { -1.0 } else { 1.0 };
        for row in (member.id * BLOCK..n).step_by(BLOCK * member.count) {
            let (from, to, sum) = (self.at(from), self.at(to), sum.map(|sum| self.at(sum)));
            let (by, sign) = (by.map(T::Real::of), T::Real::of(sign));
            // SAFETY: the matrices exist; members write different blocks, which no other reads.
            unsafe { Fold { from, to, sum, pitch, n, row, by, sign }.call() };
        }
        member.barrier();
    }

    /// The largest sum of a row of |x|, over 2^[`POWER`], and the sum of all squares; the same on all members.
    fn norms(&self, m: Slot) -> [f64; 2] {
        let (n, parts) = (self.n, T::PARTS);
        let sums = self.shared.sums.map(Region::ptr);
        // SAFETY: the matrix exists; members write different sums, and read them after the barrier.
        unsafe {
            let rows = self.member.share(n, 1);
            let (m, scale) = (self.at(m).cast_const().cast(), T::Real::of(PART));
            Measure { m, rows, pitch: self.pitch * parts, width: n * parts, scale, sums }.call();
            self.member.barrier();
            let of = |k: usize| (0..n).map(move |i| (*sums[k].add(i)).f64());
            let norms = [of(0).fold(0.0, |most, x| if x <= most { most } else { x }), of(1).sum()];
            self.member.barrier();
            norms
        }
    }

    /// M <- M 2^by, in two steps where the factor may be too small for a number.
    fn scale(&self, m: Slot, by: i32) {
        let half = if by.abs() < 100 { 0 } else { by / 2 };
        for by in [half, by - half] {
            if by != 0 {
                self.combine(m, 0.0, &[(2f64.powi(by), m)]);
            }
        }
    }
}

impl<T: Scalar> Space for Single<'_, T> {
    type R = T::Real;

    fn product(&self, c: Slot, a: Factor, b: Slot, base: Option<Slot>, symmetry: Symmetry) {
        let Single { n, pitch, member, .. } = *self;
        let a = match a {
            Factor::Of(a) => Operand::new(self.at(a).cast_const(), pitch),
            Factor::Adjoint(a) => Operand::new(self.at(a).cast_const(), pitch).h(),
        };
        let b = Operand::new(self.at(b).cast_const(), pitch);
        let mut product = Product::new((n, n, n), a, b, self.at(c), pitch);
        if let Some(base) = base {
            product = product.onto(self.at(base), pitch);
        }
        if symmetry != Symmetry::Any {
            use crate::kernels::Triangle::{Full, Upper};
            product = product.shapes(Full, Full, Upper);
        }
        // SAFETY: the matrices exist, C is neither A nor B; the barrier separates it from what reads C.
        unsafe { product.run(member, self.scratch) };
        member.barrier();
        if symmetry != Symmetry::Any {
            self.folded(c, c, None, [1.0, 0.0], symmetry);
        }
    }

    fn combine(&self, to: Slot, unit: f64, terms: &[(f64, Slot)]) {
        let mut all = [(T::Real::zero(), std::ptr::null()); TERMS];
        for (to, &(c, m)) in all.iter_mut().zip(terms) {
            *to = (T::Real::of(c), self.at(m).cast_const().cast());
        }
        let rows = self.member.share(self.n, 1);
        let (out, unit, pitch) = (self.at(to).cast(), T::Real::of(unit), self.pitch * T::PARTS);
        // SAFETY: the matrices exist; members write different rows.
        unsafe { Combine { out, terms: all, unit, rows, pitch, element: (T::PARTS, 1) }.call() };
        self.member.barrier();
    }

    fn fold(&self, to: Slot, from: Slot, c: f64, symmetry: Symmetry, sum: Option<Slot>) {
        self.folded(to, from, sum, [c, if symmetry == Symmetry::Skew { -c } else { c }], symmetry);
    }

    fn shrink(&self, m: Slot) {
        self.scale(m, -(self.levels as i32));
    }

    fn keep(&self, x: &mut Slot, y: &mut Slot, _level: usize) {
        std::mem::swap(x, y);
    }

    fn levels(&self) -> usize {
        self.levels
    }

    fn size(&self) -> usize {
        self.n
    }

    /// ||A||_2^4 = ||B^2||_2 is at most the largest row sum of B^2, and at most ||B^2||_F, over sqrt 2 for a
    /// real B^2, whose eigenvalues come in pairs. For independent entries that is a fraction of the row sum
    /// of A.
    fn refine(&mut self, b: Slot, b2: Slot) {
        let [row, squares] = self.norms(b2);
        let fewer = series::fewer((row / PART).min(series::spectral::<T>(squares)), self.levels);
        if fewer > 0 {
            self.levels -= fewer;
            for (m, power) in [(A, 1), (b, 2), (b2, 4)] {
                self.scale(m, power * fewer as i32);
            }
        }
    }
}
