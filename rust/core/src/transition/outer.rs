//! The gradient of a matrix that multiplies the rows of many steps: W_bar = Z_bar^T conj(X), summed over chunks and over the
//! halves of a batch.

use super::Gather;
use crate::kernels::{Operand, Product};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};

/// W_bar (p, q) row-major.
pub struct Outer<T: Scalar> {
    p: usize,
    q: usize,
    bar: Option<Shared<T>>,
    /// That of the second half of a batch.
    second: Region<T>,
}

impl<T: Scalar> Outer<T> {
    /// Gathered at `bar`, if it is wanted, from so many halves.
    pub fn carve(arena: &mut Arena, [p, q]: [usize; 2], bar: Option<Shared<T>>, halves: usize) -> Self {
        let second = usize::from(bar.is_some() && halves == 2);
        Outer { p, q, bar, second: arena.take(&[second, p, q]) }
    }

    /// Real numbers of scratch to gather so many rows.
    pub fn scratch(&self, rows: usize) -> usize {
        if self.bar.is_some() { Product::<T>::scratch(self.p, rows) } else { 0 }
    }

    /// Adds the rows of a chunk, whose x are `apart` real numbers apart.
    ///
    /// # Safety
    /// All members add the same rows together, each with scratch of its own; nobody else uses the sums.
    pub unsafe fn gather(
        &self,
        chunk: &Gather<T::Real>,
        apart: usize,
        scratch: *mut T::Real,
        member: &Member<'_>,
    ) {
        let (&Outer { p, q, .. }, Some(bar)) = (self, self.bar) else { return };
        let bar = if chunk.half == 0 { bar.0 } else { self.second.ptr() };
        let z_bar = Operand::new(chunk.trace.bar.cast::<T>(), chunk.trace.apart / T::PARTS);
        let x = Operand::new(chunk.previous.cast::<T>(), apart / T::PARTS);
        let product = Product::new((p, q, chunk.rows), z_bar.t(), x.conj(), bar, q);
        let product = if chunk.first { product } else { product.add() };
        // SAFETY: `rows` rows of p and q elements at the pointers, p x q at `bar`; members write disjoint parts of it.
        unsafe { product.run(member, scratch) }
    }

    /// Adds the halves.
    ///
    /// # Safety
    /// Every chunk has been gathered by all members.
    pub unsafe fn finish(&self, member: &Member<'_>) {
        let Some(bar) = self.bar.filter(|_| !self.second.is_empty()) else { return };
        for at in member.share(self.second.len(), 64) {
            // SAFETY: p x q at both, the second complete; members write disjoint elements.
            unsafe { *bar.at(at) += *self.second.at(at) };
        }
    }
}
