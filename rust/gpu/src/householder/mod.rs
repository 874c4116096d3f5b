//! Products of Householder reflections on the device, by products of matrices alone (docs/math/householder.md):
//!
//! ```text
//! W = (I - U T^-1 U^H) E,     T = striu(U^H U) + diag(U^H U) / 2.
//! ```

pub(crate) mod inverse;
mod kept;
mod rows;
#[cfg(test)]
mod tests;

use crate::device::Record;
use crate::last::Last;
use crate::operator::Operator;
use crate::product::{Operand, Product};
use crate::shader::{groups, shaders};
use crate::{Array, Field};
use isometry_core::{Error, Result};
use std::cell::OnceCell;

/// Columns of a workgroup of balance.wgsl.
const WIDTH: usize = 32;

shaders! {
    BALANCE "balance" "balance.wgsl",
    HERMITIAN "hermitian" "hermitian.wgsl",
    FINISH "finish" "finish.wgsl",
}

/// A batch of products of reflections.
#[derive(Clone, Debug)]
pub struct Householder<'a> {
    vectors: &'a Array,
    last: Option<Last>,
    ready: OnceCell<Factors>,
    batch: usize,
    n: usize,
    m: usize,
}

/// U with columns of ordinary length, their scales, and T^-1.
#[derive(Clone, Debug)]
struct Factors {
    /// (batch, n, m)
    u: Array,
    /// (batch, m)
    scales: Array,
    /// (batch, m, m)
    inverse: Array,
}

impl<'a> Householder<'a> {
    /// A view of vectors (batch, n, m): the columns of each matrix U are the reflection vectors. E is the last factor.
    pub fn new(vectors: &'a Array, last: Option<Last>) -> Result<Self> {
        let &[batch, n, m] = vectors.shape() else {
            return Err(Error::shape("vectors", "(batch, n, m)", format!("{:?}", vectors.shape())));
        };
        last.as_ref().map_or(Ok(()), |last| last.check(vectors.field(), batch, n))?;
        Ok(Householder { vectors, last, ready: OnceCell::new(), batch, n, m })
    }

    fn room(&self, sizes: [usize; 2]) -> Result<Array> {
        Array::room(self.context(), self.field(), &[self.batch, sizes[0], sizes[1]])
    }

    /// The factors, recorded by the first call of this view that needs them, unless an earlier view has kept them.
    fn factors(&self, record: &mut Record<'_>) -> Result<&Factors> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready);
        }
        self.last.as_ref().map_or(Ok(()), |last| last.prepare(record))?;
        let found = self.kept_factors().map_or_else(|| self.factorised(record), Ok)?;
        Ok(self.ready.get_or_init(|| found))
    }

    fn factorised(&self, record: &mut Record<'_>) -> Result<Factors> {
        let (field, (n, m)) = (self.field(), (self.n, self.m));
        let scales = Array::room(self.context(), Field::Real, &[self.batch, m])?;
        let (u, gram) = (self.room([n, m])?, self.room([m, m])?);
        let arrays = [("vectors", self.vectors), ("balanced", &u), ("scales", &scales)];
        let columns = self.batch * m;
        let sizes = [columns, n, m].map(|size| size as u32);
        record.dispatch(BALANCE.of(field), &arrays, &sizes, groups(columns.div_ceil(WIDTH)))?;
        let columns = Operand::new(&u, n * m, m);
        Product::new(self.batch, (m, m, n), columns.h(), columns, Operand::new(&gram, m * m, m))
            .record_deep(record, field)?;
        let inverse = inverse::inverse(record, &gram)?;
        Ok(Factors { u, scales, inverse })
    }

    /// L <- M + M^H of its lower triangle.
    fn hermitian(&self, record: &mut Record<'_>, l: &Array) -> Result<()> {
        record.elements(HERMITIAN.of(self.field()), &[("l", l)], &[l.len() as u32, self.m as u32], l.len())
    }

    /// The gradient of the given vectors from that of the balanced ones, in place.
    fn finish(&self, record: &mut Record<'_>, factors: &Factors, bar: &Array) -> Result<()> {
        let sizes = [bar.len() as u32, self.n as u32, self.m as u32];
        record.elements(
            FINISH.of(self.field()),
            &[("scales", &factors.scales), ("bar", bar)],
            &sizes,
            bar.len(),
        )
    }

    /// The gradients in the order of the core's list: vectors, sign, phases.
    fn listed(&self, vectors: Option<Array>, last: Option<Array>) -> Vec<Option<Array>> {
        let phases = self.last.as_ref().is_some_and(Last::are_phases);
        let (sign, phases) = if phases { (None, last) } else { (last, None) };
        vec![vectors, sign, phases]
    }

    /// Whether (vectors, the last factor) have a gradient that is wanted.
    fn wants(&self, wanted: &[bool]) -> (bool, Option<&Last>) {
        let want = |i: usize| wanted.get(i).copied().unwrap_or(false);
        let last = self.last.as_ref();
        (want(0), last.filter(|last| want(if last.are_phases() { 2 } else { 1 })))
    }
}
