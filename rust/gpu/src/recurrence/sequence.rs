//! What both directions of a recurrence use.

use crate::Array;
use crate::activation::RowActivation;
use crate::cell::{Cell, of};
use crate::device::Record;
use crate::product::Product;
use crate::shader::shaders;
use isometry_core::Result;

shaders! {
    BEGIN "begin" "begin.wgsl",
    START "start" "start.wgsl",
    TRANSPOSE "transpose" "transpose.wgsl",
    WITHIN "within" "within.wgsl",
}

impl Cell<'_> {
    /// phi acts on the input part only, and is not the identity.
    pub fn on_input(&self) -> bool {
        self.flag(0) && !self.phi.is_identity()
    }

    /// phi of the steps.
    pub fn step_phi(&self) -> RowActivation {
        if self.on_input() { self.phi.identity() } else { self.phi.clone() }
    }

    /// Whether a backward pass needs the arguments of phi.
    pub fn wants_arguments(&self) -> bool {
        self.on_input() || !self.phi.readable()
    }

    /// z of all steps from the states, which are 0 past the ends of sequences: V x_t + b, and W h_{t-1} with it unless phi acts on the
    /// input part only. Unspecified past the ends.
    pub fn arguments(&self, record: &mut Record<'_>, x: &Array, states: &Array) -> Result<Array> {
        let z = self.drive(record, x)?;
        if self.on_input() {
            return Ok(z);
        }
        let Cell { steps, batch, n, field, reverse, .. } = *self;
        let (w, all) = (self.w(0)?.t(), of(&z, n));
        let (now, before) = if reverse { (0, batch) } else { (batch, 0) };
        let states = of(states, n).from(before, 0);
        Product::new(1, (self.rows() - batch, n, n), states, w, all.from(now, 0))
            .add()
            .record(record, field)?;
        let Some(h0) = self.some("h0").map(|h0| of(h0, n)) else { return Ok(z) };
        match (&self.lengths, reverse) {
            (Some(lengths), true) => {
                let first = self.of_step(n)?;
                Product::new(1, (batch, n, n), h0, w, of(&first, n)).record(record, field)?;
                let arrays = [("first", &first), ("lengths", lengths), ("x", &z)];
                record.elements(START.of(field), &arrays, &[first.len() as u32, n as u32], first.len())?;
            }
            (_, reverse) => {
                let first = if reverse { (steps - 1) * batch } else { 0 };
                Product::new(1, (batch, n, n), h0, w, all.from(first, 0)).add().record(record, field)?;
            }
        }
        Ok(z)
    }

    /// W^T
    pub fn transposed(&self, record: &mut Record<'_>) -> Result<Array> {
        let (w, n) = (self.transition()?, self.n);
        let out = self.room(&[n, n])?;
        let sizes = [(n * n) as u32, n as u32];
        record.elements(TRANSPOSE.of(self.field), &[("x", w), ("out", &out)], &sizes, n * n)?;
        Ok(out)
    }

    /// The rows of x (T, B, n) at which the sequences begin: an array and its first row.
    pub fn begin(&self, record: &mut Record<'_>, x: &Array) -> Result<(Array, usize)> {
        match (&self.lengths, self.reverse) {
            (_, false) => Ok((x.clone(), 0)),
            (None, true) => Ok((x.clone(), (self.steps - 1) * self.batch)),
            (Some(lengths), true) => {
                let (batch, n) = (self.batch, self.n);
                let out = self.of_step(n)?;
                let arrays = [("x", x), ("lengths", lengths), ("out", &out)];
                record.elements(BEGIN.of(self.field), &arrays, &[(batch * n) as u32, n as u32], batch * n)?;
                Ok((out, 0))
            }
        }
    }
}

/// A copy of rows (T, B, m), 0 past the ends of sequences of these lengths.
pub(crate) fn within(record: &mut Record<'_>, x: &Array, lengths: Option<&Array>) -> Result<Array> {
    let out = Array::room(record.context(), x.field(), x.shape())?;
    let [batch, n] = [1, 2].map(|axis| x.shape().get(axis).copied().unwrap_or(1) as u32);
    let sizes = [x.len() as u32, batch, n, u32::from(lengths.is_some())];
    let arrays = [("x", x), ("lengths", lengths.unwrap_or(x)), ("out", &out)];
    record.elements(WITHIN.of(x.field()), &arrays, &sizes, x.len())?;
    Ok(out)
}
