//! A dense transition: h W^T forward, z_bar conj(W) backward, W_bar = Z_bar^T conj(H_prev).

use super::{Gather, Packed, Part, Step, Trace, Uses};
use crate::kernels::{Operand, Product, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes;
use isometry_kernels::recurrence::Affine;
use isometry_kernels::tile::Term;
use std::ops::Range;

/// W (p, q) row-major, packed for one or both directions.
pub struct DenseStep<'a, T: Scalar> {
    p: usize,
    q: usize,
    /// Real numbers from one state to the next.
    apart: usize,
    weight: &'a [T],
    forward: Option<Packed<T>>,
    backward: Option<Packed<T>>,
    bar: Option<Shared<T>>,
    /// W_bar of the second half of a batch.
    second: Region<T>,
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
        let Uses { forward, backward, given } = uses;
        let forward = forward.then(|| Packed::new(arena, q, p, given));
        let bar = bar.filter(|_| backward.is_some());
        let second = usize::from(bar.is_some() && backward == Some(2));
        let backward = backward.map(|_| Packed::new(arena, p, q, None));
        let second = arena.take(&[second, p, q]);
        DenseStep { p, q, apart: q * T::PARTS, weight, forward, backward, second, bar }
    }

    /// The same for states that are the first numbers of rows of so many real ones.
    pub fn apart(self, apart: usize) -> Self {
        DenseStep { apart, ..self }
    }

    /// W^H z_bar
    pub fn adjoint(&self, trace: Trace<T::Real>) -> Term<T::Real> {
        self.backward.as_ref().map_or(Term::NONE, |w| w.times_apart(trace.bar, trace.apart))
    }
}

// SAFETY: the products of a chunk need the scratch of `scratch`; there is nothing to keep.
unsafe impl<T: Scalar> Step<T> for DenseStep<'_, T> {
    fn work(&self) -> usize {
        sizes::work(&[self.p, self.q, T::PARTS, T::PARTS])
    }
    fn divisible(&self) -> bool {
        self.q * T::PARTS > 2 * lanes::<T::Real>()
    }
    fn scratch(&self, rows: usize) -> usize {
        Product::<T>::scratch(self.p, rows)
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

    unsafe fn forward(
        &self,
        previous: *const T::Real,
        mut map: Affine<T::Real>,
        rows: Range<usize>,
        part: &Part<'_>,
        _scratch: *mut T::Real,
    ) {
        if let Some(w) = &self.forward {
            map.terms[1] = w.times_apart(previous, self.apart);
        }
        // SAFETY: the map and the packed W have as many columns; this part's rows exist, and no other member writes its
        // columns of them.
        unsafe { map.run(rows, part.columns::<T::Real>(map.width)) }
    }

    unsafe fn backward(
        &self,
        trace: Trace<T::Real>,
        mut map: Affine<T::Real>,
        rows: Range<usize>,
        part: &Part<'_>,
        _scratch: *mut T::Real,
    ) {
        map.terms[1] = self.adjoint(trace);
        // SAFETY: as in `forward`.
        unsafe { map.run(rows, part.columns::<T::Real>(map.width)) }
    }

    unsafe fn gather(&self, chunk: &Gather<T::Real>, scratch: *mut T::Real, member: &Member<'_>) {
        let (&DenseStep { p, q, .. }, Some(bar)) = (self, self.bar) else { return };
        let bar = if chunk.half == 0 { bar.0 } else { self.second.ptr() };
        let z_bar = Operand::new(chunk.trace.bar.cast::<T>(), chunk.trace.apart / T::PARTS);
        let previous = Operand::new(chunk.previous.cast::<T>(), self.apart / T::PARTS);
        let product = Product::new((p, q, chunk.rows), z_bar.t(), previous.conj(), bar, q);
        let product = if chunk.first { product } else { product.add() };
        // SAFETY: `rows` rows of p and q elements at the pointers, p x q at `bar`; members write disjoint parts of it.
        unsafe { product.run(member, scratch) }
    }

    unsafe fn finish(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        let Some(bar) = self.bar.filter(|_| !self.second.is_empty()) else { return };
        for at in member.share(self.second.len(), 64) {
            // SAFETY: p x q at both, the second complete; members write disjoint elements.
            unsafe { *bar.at(at) += *self.second.at(at) };
        }
    }
}
