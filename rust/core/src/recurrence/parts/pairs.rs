//! Cells whose state is a pair, 2n numbers: the n of one part, then those of the other. Their arguments, and what is common to their
//! steps forward.

use super::super::driver::window::{Pointer, Window};
use super::super::time::checkpoint::Checkpoint;
use super::super::time::timeline::{Run, Timeline};
use super::drive::Drive;
use super::padded::padded;
use crate::activation::Activation;
use crate::argument::Array;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::sizes::{check_len, work};
use isometry_kernels::recurrence::Area;
use std::ops::Range;

/// The arrays of such a cell.
#[derive(Clone, Copy)]
pub struct PairArrays<'a, R: Real> {
    /// Its states have 2n numbers.
    pub run: Run<'a, R>,
    pub w: &'a [R],
    pub u: &'a [R],
    pub b: Option<&'a [R]>,
    /// Matrices (n, n) of W, and (n, d) of U.
    pub matrices: [usize; 2],
}

impl<'a, R: Real> PairArrays<'a, R> {
    /// n
    pub fn n(&self) -> usize {
        self.run.n / 2
    }

    /// Refuses sizes that do not fit.
    pub fn check(&self) -> Result<()> {
        let (n, Run { features, activation, activation_bias, .. }) = (self.n(), self.run);
        if !self.run.n.is_multiple_of(2) {
            return Err(Error::shape("n", "an even state size, that of both parts", self.run.n.to_string()));
        }
        if activation != Activation::Tanh || activation_bias.is_some() {
            return Err(Error::value("activation", "must be tanh, without a bias"));
        }
        self.run.check()?;
        let [of_w, of_u] = self.matrices;
        check_len("w", self.w.len(), &[of_w, n, n])?;
        check_len("u", self.u.len(), &[of_u, n, features])?;
        self.b.map_or(Ok(()), |b| check_len("b", b.len(), &[of_u, n]))
    }

    /// In the order of the gradients, with h0 for the state before the first step; there is no bias of an activation.
    pub fn arrays(&self) -> [Array<'a, R>; 7] {
        let Run { x, h0, starts, .. } = self.run;
        let state = starts.and_then(|starts| starts.state);
        let [x, w, u] = [x, self.w, self.u].map(Array::Own);
        let [b, h0, state] = [self.b, h0, state].map(Array::own);
        [x, w, u, b, h0, Array::None, state]
    }

    /// As the steps read them; they have passed their check.
    pub fn prepared(&self, checkpoint: Option<Checkpoint>) -> Result<Pairs<'a, R>> {
        let (n, line) = (self.n(), self.run.timeline(checkpoint)?);
        Ok(Pairs { line, n, w: self.w, u: self.u, bias: padded(self.b)?, of_u: self.matrices[1] })
    }
}

/// The arrays as the steps read them.
pub struct Pairs<'a, R: Real> {
    pub line: Timeline<'a, R>,
    pub n: usize,
    pub w: &'a [R],
    u: &'a [R],
    /// b for whole vectors; empty without.
    bias: Buffer<R>,
    /// Matrices of U.
    of_u: usize,
}

impl<'a, R: Real> Pairs<'a, R> {
    /// U and its rows.
    pub fn inputs(&self) -> (&'a [R], usize) {
        (self.u, self.of_u * self.n)
    }

    /// Multiply-adds of U x per row.
    pub fn input_work(&self) -> usize {
        work(&[self.of_u, self.n, self.line.features])
    }

    /// U x_t + b of these matrices, which the caller may have packed.
    pub fn drive(&self, arena: &mut Arena, of: Range<usize>, given: Option<&[R]>) -> Drive<'_, R> {
        let u = &self.u[of.start * self.n * self.line.features..];
        let bias = if self.bias.is_empty() { &[][..] } else { &self.bias[of.start * self.n..] };
        Drive::carve(arena, &self.line, (u, of.len() * self.n), bias, given)
    }

    /// These rows and columns of one part.
    pub fn area(&self, rows: &Range<usize>, columns: &Range<usize>) -> Area {
        Area { n: self.n, rows: rows.clone(), columns: columns.clone() }
    }

    /// These of the rows of n numbers that step t saves, side by side.
    pub fn saved<P: Pointer>(&self, t: usize, window: &Window<P>, of: Range<usize>) -> P {
        window.saved(t, of.start, self.line.schedule.batch * self.n, of.len())
    }
}
