//! A dense transition: h W^T forward, z_bar conj(W) backward, W_bar = Z_bar^T conj(H_prev).

use super::{Component, Gather, Needs, On, Outer, Packed, Step, Trace, Uses};
use crate::kernels::{Operand, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::Arena;
use crate::sizes;
use isometry_kernels::recurrence::Affine;

/// W (p, q) row-major, packed for one or both directions.
pub struct DenseStep<'a, T: Scalar> {
    p: usize,
    q: usize,
    /// Real numbers from one state to the next.
    apart: usize,
    weight: &'a [T],
    forward: Option<Packed<T>>,
    backward: Option<Packed<T>>,
    outer: Outer<T>,
}

impl<'a, T: Scalar> DenseStep<'a, T> {
    /// For W of p rows, whose gradient goes to `bar`.
    pub fn carve(
        arena: &mut Arena,
        (p, q): (usize, usize),
        weight: &'a [T],
        bar: Option<Shared<T>>,
        uses: Uses<'_, T::Real>,
    ) -> Self {
        let Uses { forward, backward, given, products } = uses;
        let w = Operand::new(weight.as_ptr(), q);
        let forward = forward.then(|| Packed::of(arena, [q, p], given, (w.t(), products)));
        let outer = Outer::carve(arena, [p, q], bar.filter(|_| backward.is_some()), backward.unwrap_or(1));
        let backward = backward.map(|_| Packed::of(arena, [p, q], None, (w.conj(), products)));
        DenseStep { p, q, apart: q * T::PARTS, weight, forward, backward, outer }
    }

    /// The same for states that are the first numbers of rows of so many real ones.
    pub fn apart(self, apart: usize) -> Self {
        DenseStep { apart, ..self }
    }

    /// Makes W^H z_bar the i-th product of a map.
    pub fn adjoint(&self, map: &mut Affine<T::Real>, i: usize, trace: Trace<T::Real>) {
        if let Some(w) = &self.backward {
            w.join(map, i, trace.bar, trace.apart);
        }
    }
}

// SAFETY: the products of a chunk need the scratch of `needs`.
unsafe impl<T: Scalar> Component<T::Real> for DenseStep<'_, T> {
    fn needs(&self, rows: usize) -> Needs {
        let work = [sizes::work(&[self.p, self.q, T::PARTS, T::PARTS]), 0];
        let divisible = self.q * T::PARTS > 2 * lanes::<T::Real>();
        Needs { work, divisible, held: 0, free: self.outer.scratch(rows) }
    }

    unsafe fn prepare(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        let w = Operand::new(self.weight.as_ptr(), self.q);
        // SAFETY: W has p rows and q columns; all members pack it, and a barrier follows.
        unsafe {
            if let Some(packed) = &self.forward {
                packed.fill(w.t(), member);
            }
            if let Some(packed) = &self.backward {
                packed.fill(w.conj(), member);
            }
        }
    }

    unsafe fn finish(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.outer.finish(member) }
    }
}

// SAFETY: there is nothing to keep.
unsafe impl<T: Scalar> Step<T> for DenseStep<'_, T> {
    unsafe fn forward(&self, previous: *const T::Real, mut map: Affine<T::Real>, on: On<'_, T::Real>) {
        let On { rows, part, .. } = on;
        if let Some(w) = &self.forward {
            w.join(&mut map, 1, previous, self.apart);
        }
        // SAFETY: the map and the packed W have as many columns; this part's rows exist, and no other member writes its
        // columns of them.
        unsafe { map.run(rows, part.columns::<T::Real>(map.width)) }
    }

    unsafe fn backward(&self, trace: Trace<T::Real>, mut map: Affine<T::Real>, on: On<'_, T::Real>) {
        let On { rows, part, .. } = on;
        self.adjoint(&mut map, 1, trace);
        // SAFETY: as in `forward`.
        unsafe { map.run(rows, part.columns::<T::Real>(map.width)) }
    }

    unsafe fn gather(&self, chunk: &Gather<T::Real>, scratch: *mut T::Real, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.outer.gather(chunk, self.apart, scratch, member) }
    }
}
