//! Rows through the axes, one after another: between two axes a row stays in the first-level cache.
//!
//! Axes are contracted from the last to the first. The array between them has the result's sizes after the
//! axis, the argument's before it: `outer` x (the axis) x `inner` elements.

use super::Kronecker;
use super::group::{self, Group};
use crate::rows::{MatrixBars, RowPass, RowPull, Rows};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::work;
use isometry_kernels::kronecker::{Inner, Outer, Small};

/// An axis on its way from the argument to the result.
struct Axis<'g, T: Scalar> {
    group: &'g Group<T>,
    /// Which matrix of the stack.
    k: usize,
    outer: usize,
    inner: usize,
}

impl<T: Scalar> Axis<'_, T> {
    /// Contracts with W_f, or with W_f^H.
    ///
    /// # Safety
    /// x and y have the elements before and after, apart from each other.
    #[inline(always)]
    unsafe fn apply(&self, side: Side, x: *const T, y: *mut T) {
        let Group { p, q, last, .. } = *self.group;
        let (into, from) = side.other().features((p, q));
        let own =
            self.group.operands[usize::from(side == Side::Adjoint)].as_ptr().wrapping_add(self.k * p * q);
        let (outer, inner) = (self.outer, self.inner);
        // SAFETY: the contract above.
        unsafe {
            if last {
                let sizes = (outer, into, from);
                Small { count: 1, sizes, a: x, b: own, c: y, steps: [0; 3] }.call();
            } else {
                let (sizes, steps) = ((into, inner, from), [0, from * inner, into * inner]);
                Small { count: outer, sizes, a: own, b: x, c: y, steps }.call();
            }
        }
    }

    /// Adds y_bar conj(x), or its conjugate (`Group::conjugated`), to the gradient of the factor.
    ///
    /// # Safety
    /// x and y_bar have the elements before and after; `sums` has those of the factor.
    unsafe fn pull(&self, x: *const T, y_bar: *const T, sums: *mut T) {
        let (p, q) = (self.group.p, self.group.q);
        // SAFETY: the contract above.
        unsafe {
            if self.group.conjugated() {
                Inner { sizes: (p, q, self.outer), a: y_bar, b: x, c: sums }.call();
            } else {
                Outer { count: self.outer, sizes: (p, q, self.inner), a: y_bar, b: x, c: sums }.call();
            }
        }
    }
}

impl<T: Scalar> Kronecker<'_, T> {
    /// The i-th axis to be contracted, the last one first, for matrix k.
    #[inline(always)]
    fn axis(&self, k: usize, i: usize, side: Side) -> Axis<'_, T> {
        let group = &self.groups[self.groups.len() - 1 - i];
        let (outer, inner) = group.around[usize::from(side == Side::Adjoint)];
        Axis { group, k, outer, inner }
    }
}

// SAFETY: every matrix has its groups; the arrays between axes have at most `most` elements.
unsafe impl<T: Scalar> Rows<T> for Kronecker<'_, T> {
    fn work(&self) -> usize {
        let axis = |i| {
            let Axis { group, outer, inner, .. } = self.axis(0, i, Side::Forward);
            work(&[outer, inner, group.p, group.q, T::PARTS, T::PARTS])
        };
        (0..self.groups.len()).map(axis).fold(0, usize::saturating_add)
    }

    /// The arrays between the axes, and two for the cotangent; or the gradient of a group, and what multiplies it.
    fn scratch(&self, _rows: usize) -> usize {
        let between = work(&[self.groups.len() + 2, self.most, T::PARTS]);
        let dealt = |group: &Group<T>| work(&[3, group.p, group.q, T::PARTS]);
        self.groups.iter().map(dealt).fold(between, usize::max)
    }

    fn sums(&self) -> usize {
        self.groups.iter().map(|group| work(&[group.p, group.q, T::PARTS])).sum()
    }

    unsafe fn apply_rows(&self, pass: RowPass, x: *const T, out: *mut T, scratch: *mut T::Real) {
        let RowPass { k, rows, side } = pass;
        let (into, from) = if side == Side::Forward { (self.p, self.q) } else { (self.q, self.p) };
        let (room, last) = (scratch.cast::<T>(), self.groups.len() - 1);
        for row in 0..rows {
            // SAFETY: the contract of the trait; the arrays between axes have at most `most` elements.
            unsafe {
                let mut x = x.add(row * from);
                for i in 0..=last {
                    let axis = self.axis(k, i, side);
                    let y = if i == last { out.add(row * into) } else { room.add(i % 2 * self.most) };
                    axis.apply(side, x, y);
                    x = y;
                }
            }
        }
    }

    unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, scratch: *mut T::Real) {
        let (RowPass { k, rows, side }, RowPull { x, ct, sums, x_bar }) = (pass, pull);
        // Re <ct, W^H x> = Re <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged.
        let (x, ct) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let (p, q, last) = (self.p, self.q, self.groups.len() - 1);
        let between = |i: usize| scratch.cast::<T>().wrapping_add(i * self.most);
        let sums = sums.cast::<T>();
        for row in 0..rows {
            // SAFETY: the contract of the trait; the arrays between axes have at most `most` elements.
            unsafe {
                let (x, ct) = (x.add(row * q), ct.add(row * p));
                for i in 0..=last {
                    let axis = self.axis(k, i, Side::Forward);
                    let before = if i == 0 { x } else { between(i - 1).cast_const() };
                    match x_bar.filter(|_| side == Side::Adjoint) {
                        _ if i < last => axis.apply(Side::Forward, before, between(i)),
                        Some(out) => axis.apply(Side::Forward, before, out.add(row * p)),
                        None => {}
                    }
                }
                let mut y_bar = ct;
                for i in (0..=last).rev() {
                    let axis = self.axis(k, i, Side::Forward);
                    let before = if i == 0 { x } else { between(i - 1).cast_const() };
                    axis.pull(before, y_bar, sums.add(axis.group.place));
                    let next = match x_bar.filter(|_| side == Side::Forward) {
                        _ if i > 0 => between(last + 1 + i % 2),
                        Some(out) => out.add(row * q),
                        None => break,
                    };
                    axis.apply(Side::Adjoint, y_bar, next);
                    y_bar = next;
                }
            }
        }
    }

    unsafe fn deal(
        &self,
        k: usize,
        sums: &mut [T::Real],
        mut bars: MatrixBars<'_, T>,
        scratch: *mut T::Real,
    ) {
        for group in &self.groups {
            let own = &sums[group.place * T::PARTS..][..group.p * group.q * T::PARTS];
            // SAFETY: the scratch has three times the elements of a group; zero bits are numbers.
            let room = unsafe {
                scratch.write_bytes(0, 3 * own.len());
                std::slice::from_raw_parts_mut(scratch.cast::<T>(), 3 * group.p * group.q)
            };
            let (bar, room) = room.split_at_mut(group.p * group.q);
            for (bar, pair) in bar.iter_mut().zip(own.chunks_exact(T::PARTS)) {
                let sum = T::new(pair[0], pair[T::PARTS - 1]);
                *bar = if group.conjugated() { sum.conj() } else { sum };
            }
            let factors = &self.factors[group.factors.clone()];
            for f in 0..factors.len() {
                if let Some(gradient) = bars.own(group.factors.start + f) {
                    gradient.fill(T::zero());
                    group::pull(factors, k, f, bar, room, gradient);
                }
            }
        }
    }
}
