//! A dense transition: h W^T forward, z_bar conj(W) backward, W_bar = Z_bar^T conj(H_prev).

use crate::kernels::{Operand, Product, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes;
use crate::transition::Packed;
use crate::transition::Part;
use crate::transition::{Gather, Step, Trace};
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// W (n, n) row-major, packed for both directions.
pub struct DenseStep<'a, T: Scalar> {
    n: usize,
    weight: &'a [T],
    forward: Option<Packed<T>>,
    backward: Option<Packed<T>>,
    bar: Option<Shared<T>>,
    /// W_bar of the second half of a batch.
    second: Region<T>,
}

impl<'a, T: Scalar> DenseStep<'a, T> {
    /// For a forward pass, or for a backward pass that fills `bar` from this many halves; `again` also packs
    /// W for steps recomputed in backward.
    pub fn carve(
        arena: &mut Arena,
        n: usize,
        weight: &'a [T],
        backward: bool,
        again: bool,
        (bar, halves): (Option<Shared<T>>, usize),
    ) -> Self {
        let mut pack = |wanted: bool| wanted.then(|| Packed::new(arena, n, n));
        let (forward, backward) = (pack(!backward || again), pack(backward));
        let second = usize::from(bar.is_some() && halves == 2);
        DenseStep { n, weight, forward, backward, second: arena.take(&[second, n, n]), bar }
    }

    /// For a forward pass with W packed by the caller.
    pub fn given(arena: &mut Arena, n: usize, weight: &'a [T], packed: &[T::Real]) -> Self {
        let second = arena.take(&[0]);
        DenseStep { n, weight, forward: Some(Packed::given(n, n, packed)), backward: None, second, bar: None }
    }
}

impl<T: Scalar> Step<T> for DenseStep<'_, T> {
    fn work(&self) -> usize {
        sizes::work(&[self.n, self.n, T::PARTS, T::PARTS])
    }
    fn divisible(&self) -> bool {
        self.n * T::PARTS > 2 * lanes::<T::Real>()
    }
    fn scratch(&self, rows: usize) -> usize {
        Product::<T>::scratch(self.n, rows)
    }

    unsafe fn prepare(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        let w = Operand::new(self.weight.as_ptr(), self.n);
        // SAFETY: W has n rows and columns; all members pack it, and a barrier follows.
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
            map.terms[1] = w.times(previous);
        }
        // SAFETY: the map and the packed W have n columns; this part's rows exist, and no other member writes its
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
        if let Some(w) = &self.backward {
            map.terms[1] = w.times_apart(trace.bar, trace.apart);
        }
        // SAFETY: the map and the packed W have n columns; this part's rows exist, and no other member writes its
        // columns of them.
        unsafe { map.run(rows, part.columns::<T::Real>(map.width)) }
    }

    unsafe fn gather(&self, chunk: &Gather<T::Real>, scratch: *mut T::Real, member: &Member<'_>) {
        let (n, Some(bar)) = (self.n, self.bar) else { return };
        let bar = if chunk.half == 0 { bar.0 } else { self.second.ptr() };
        let z_bar = Operand::new(chunk.trace.bar.cast::<T>(), chunk.trace.apart / T::PARTS);
        let previous = Operand::new(chunk.previous.cast::<T>(), n);
        let product = Product::new((n, n, chunk.rows), z_bar.t(), previous.conj(), bar, n);
        let product = if chunk.first { product } else { product.add() };
        // SAFETY: `rows` rows of n elements at both pointers, n x n at `bar`; members write disjoint parts of it.
        unsafe { product.run(member, scratch) }
    }

    unsafe fn finish(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        let Some(bar) = self.bar.filter(|_| !self.second.is_empty()) else { return };
        for at in member.share(self.second.len(), 64) {
            // SAFETY: n x n at both, the second complete; members write disjoint elements.
            unsafe { *bar.at(at) += *self.second.at(at) };
        }
    }
}
