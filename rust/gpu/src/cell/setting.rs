//! The arguments of a cell, checked, and its dispatches.

use super::Arguments;
use crate::activation::RowActivation;
use crate::device::{Record, too_large};
use crate::product::Operand;
use crate::recurrence::sequence::{checked, sent};
use crate::shader::{Shader, Variant, groups};
use crate::{Array, Field};
use isometry_core::{Error, Result};

/// Rows of so many columns.
pub(crate) fn of(array: &Array, columns: usize) -> Operand<'_> {
    Operand::new(array, 0, columns)
}

/// What the sizes of a cell are in n.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// Rows of W.
    pub w: usize,
    /// Rows of U.
    pub u: usize,
    /// Numbers of a state.
    pub state: usize,
    /// Numbers of a row of the widest array of all steps.
    pub most: usize,
}

/// A checked cell on its device.
pub(crate) struct Cell<'a> {
    pub arguments: Arguments<'a>,
    pub steps: usize,
    pub batch: usize,
    pub features: usize,
    pub n: usize,
    /// Numbers of a state.
    pub state: usize,
    /// Rows of U.
    pub wide: usize,
    pub phi: RowActivation,
    /// u32
    pub lengths: Option<Array>,
    /// Of the cell, for its shaders.
    setting: u32,
}

/// What the sizes of a pass of a shader say.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pass {
    pub count: usize,
    pub k: usize,
    pub pitch: usize,
    pub phase: u32,
    pub flag: bool,
}

impl<'a> Cell<'a> {
    pub fn new(arguments: &Arguments<'a>, form: Form, setting: u32) -> Result<Self> {
        let Arguments { x, w, u, h0, bias, activation, activation_bias, .. } = *arguments;
        let (&[steps, batch, features], &[_, n]) = (x.shape(), w.shape()) else {
            let got = format!("{:?} and {:?}", x.shape(), w.shape());
            return Err(Error::shape("x and w", format!("(T, B, d) and ({} n, n)", form.w), got));
        };
        if x.field() != Field::Real || steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states, {:?}", x.field());
            return Err(Error::shape("x", "at least one step, one sequence and one state, real", got));
        }
        let of_n = |times: usize| n.saturating_mul(times);
        let (state, wide) = (of_n(form.state), of_n(form.u));
        let arrays = [
            ("w", Some(w), &[of_n(form.w), n][..]),
            ("u", Some(u), &[wide, features]),
            ("h0", h0, &[batch, state]),
            ("b", bias, &[wide]),
        ];
        for (name, array, shape) in arrays {
            array.map_or(Ok(()), |array| checked(name, x, array, shape))?;
        }
        // rows of all arrays have 32-bit indices, some of them eight numbers more
        let most = of_n(form.most).saturating_add(8).max(features);
        if u32::try_from(steps.saturating_mul(batch).saturating_mul(most)).is_err() {
            return Err(too_large(format!(
                "{steps} steps of {batch} sequences are too many for the indices of the device, 32 bits"
            )));
        }
        let phi = RowActivation::new(x.context(), x.field(), activation, n, activation_bias)?;
        let lengths =
            arguments.lengths.map(|lengths| sent(x.context(), lengths, steps, batch)).transpose()?;
        Ok(Cell { arguments: *arguments, steps, batch, features, n, state, wide, phi, lengths, setting })
    }

    /// Refuses states, or their cotangents, of another size.
    pub fn check_states(&self, name: &'static str, states: &Array) -> Result<()> {
        checked(name, self.arguments.x, states, &[self.steps, self.batch, self.state])
    }

    pub fn rows(&self) -> usize {
        self.steps * self.batch
    }

    /// Pairs of features of so many rows.
    pub fn pairs(&self, rows: usize) -> usize {
        rows * self.n.div_ceil(2)
    }

    /// A real array.
    pub fn room(&self, shape: &[usize]) -> Result<Array> {
        Array::room(self.arguments.x.context(), Field::Real, shape)
    }

    /// (T, B, m)
    pub fn of_rows(&self, m: usize) -> Result<Array> {
        self.room(&[self.steps, self.batch, m])
    }

    /// (B, m)
    pub fn of_step(&self, m: usize) -> Result<Array> {
        self.room(&[self.batch, m])
    }

    /// Runs a shader on elements.
    pub fn run(
        &self,
        record: &mut Record,
        shader: &'static Shader,
        arrays: &[(&str, &Array)],
        pass: Pass,
    ) -> Result<()> {
        let (variant, sizes) = (self.variant(shader), self.sizes(pass)?);
        record.elements(variant, &self.bound(arrays), &sizes, pass.count)
    }

    /// Runs a shader on so many workgroups.
    pub fn run_groups(
        &self,
        record: &mut Record,
        shader: &'static Shader,
        arrays: &[(&str, &Array)],
        count: usize,
        pass: Pass,
    ) -> Result<()> {
        record.dispatch(self.variant(shader), &self.bound(arrays), &self.sizes(pass)?, groups(count))
    }

    fn variant(&self, shader: &'static Shader) -> Variant {
        Variant { shader, field: Field::Real, constants: &[] }
    }

    fn bound<'b>(&'b self, arrays: &[(&'b str, &'b Array)]) -> Vec<(&'b str, &'b Array)> {
        let lengths = self.lengths.as_ref().unwrap_or(self.arguments.x);
        [&[("lengths", lengths)], arrays].concat()
    }

    /// `Sizes` of cell.wgsl.
    fn sizes(&self, pass: Pass) -> Result<Vec<u32>> {
        let count = u32::try_from(pass.count).map_err(|_| {
            too_large(format!("{} elements are too many for the indices of the device, 32 bits", pass.count))
        })?;
        let [steps, batch, n, k, pitch] =
            [self.steps, self.batch, self.n, pass.k, pass.pitch].map(|size| size as u32);
        let [reverse, varied, flag] =
            [self.arguments.reverse, self.lengths.is_some(), pass.flag].map(u32::from);
        let mut sizes =
            vec![count, steps, batch, n, k, reverse, varied, self.setting, pitch, pass.phase, flag];
        sizes.extend(self.phi.sizes());
        Ok(sizes)
    }

    /// phi's biases, or anything.
    pub fn own(&self) -> &Array {
        self.phi.own().unwrap_or(self.arguments.x)
    }

    /// W from its row `from` on; its columns are those of a state.
    pub fn w(&self, from: usize) -> Operand<'a> {
        of(self.arguments.w, self.n).from(from, 0)
    }
}
