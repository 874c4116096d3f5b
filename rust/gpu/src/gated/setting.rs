//! The arguments of a gated unit, checked, and what both directions use.

use super::Gated;
use crate::activation::RowActivation;
use crate::device::{Record, too_large};
use crate::product::{Base, Operand, Product};
use crate::recurrence::sequence::{checked, sent, within};
use crate::shader::{Shader, Variant};
use crate::{Array, Field};
use isometry_core::{Error, Result};

/// Rows of so many columns.
pub(super) fn of(array: &Array, columns: usize) -> Operand<'_> {
    Operand::new(array, 0, columns)
}

/// A checked unit on its device.
pub(super) struct Setting<'a> {
    pub gated: Gated<'a>,
    pub steps: usize,
    pub batch: usize,
    pub features: usize,
    pub n: usize,
    pub phi: RowActivation,
    /// u32
    lengths: Option<Array>,
}

/// A pass of a shader: over which pairs of features, at which step, and which of its phases.
#[derive(Clone, Copy, Default)]
pub(super) struct Pass {
    pub count: usize,
    pub k: usize,
    pub phase: u32,
    pub flag: bool,
}

impl<'a> Setting<'a> {
    pub fn new(gated: &Gated<'a>) -> Result<Self> {
        let Gated { x, w, u, h0, bias, hidden_bias, after, .. } = *gated;
        let (&[steps, batch, features], &[_, n, _]) = (x.shape(), w.shape()) else {
            let got = format!("{:?} and {:?}", x.shape(), w.shape());
            return Err(Error::shape("x and w", "(T, B, d) and (3, n, n)", got));
        };
        if x.field() != Field::Real || steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states, {:?}", x.field());
            return Err(Error::shape("x", "at least one step, one sequence and one state, real", got));
        }
        let arrays = [
            ("w", Some(w), &[3, n, n][..]),
            ("u", Some(u), &[3, n, features]),
            ("h0", h0, &[batch, n]),
            ("b", bias, &[3, n]),
            ("hidden_bias", hidden_bias, &[3, n]),
        ];
        for (name, array, shape) in arrays {
            array.map_or(Ok(()), |array| checked(name, x, array, shape))?;
        }
        if hidden_bias.is_some() && !after {
            return Err(Error::value("hidden_bias", "belongs to reset \"after\" only"));
        }
        // rows of all arrays have 32-bit indices
        if u32::try_from(steps.saturating_mul(batch).saturating_mul((5 * n).max(features))).is_err() {
            return Err(too_large(format!(
                "{steps} steps of {batch} sequences are too many for the indices of the device, 32 bits"
            )));
        }
        let phi = RowActivation::new(x.context(), x.field(), gated.activation, n, gated.activation_bias)?;
        let lengths = gated.lengths.map(|lengths| sent(x.context(), lengths, steps, batch)).transpose()?;
        Ok(Setting { gated: *gated, steps, batch, features, n, phi, lengths })
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
        Array::room(self.gated.x.context(), Field::Real, shape)
    }

    /// (T, B, m)
    pub fn of_rows(&self, m: usize) -> Result<Array> {
        self.room(&[self.steps, self.batch, m])
    }

    /// (B, m)
    pub fn of_step(&self, m: usize) -> Result<Array> {
        self.room(&[self.batch, m])
    }

    pub fn run(
        &self,
        record: &mut Record,
        shader: &'static Shader,
        arrays: &[(&str, &Array)],
        pass: Pass,
    ) -> Result<()> {
        let lengths = self.lengths.as_ref().unwrap_or(self.gated.x);
        let flags = [self.gated.reverse, self.lengths.is_some(), self.gated.after].map(u32::from);
        let [count, k, steps, batch, n] =
            [pass.count, pass.k, self.steps, self.batch, self.n].map(|size| size as u32);
        let [reverse, varied, after] = flags;
        let mut sizes = vec![count, steps, batch, n, k, reverse, varied, after, pass.phase];
        sizes.push(u32::from(pass.flag));
        sizes.extend(self.phi.sizes());
        let all = [&[("lengths", lengths)], arrays].concat();
        let variant = Variant { shader, field: Field::Real, constants: &[] };
        record.elements(variant, &all, &sizes, pass.count)
    }

    /// phi's biases, or anything.
    pub fn own(&self) -> &Array {
        self.phi.own().unwrap_or(self.gated.x)
    }

    /// x, 0 past the ends of the sequences.
    pub fn inputs(&self, record: &mut Record) -> Result<Array> {
        match &self.lengths {
            Some(lengths) => within(record, self.gated.x, Some(lengths)),
            None => Ok(self.gated.x.clone()),
        }
    }

    /// U x_t + b for all steps, (T, B, 3 n).
    pub fn drive(&self, record: &mut Record, x: &Array) -> Result<Array> {
        let (d, wide) = (self.features, 3 * self.n);
        let out = self.of_rows(wide)?;
        let base = self.gated.bias.map_or(Base::Nothing, |bias| Base::Array(Operand::row(bias)));
        Product::new(1, (self.rows(), wide, d), of(x, d), of(self.gated.u, d).t(), of(&out, wide))
            .plus(base)
            .record(record, Field::Real)?;
        Ok(out)
    }

    /// W from its row `from` on; its columns are those of a state.
    pub fn w(&self, from: usize) -> Operand<'a> {
        of(self.gated.w, self.n).from(from, 0)
    }

    /// c_h as the base of products with W from its row `from` on.
    pub fn hidden(&self, from: usize) -> Base<'a> {
        self.gated.hidden_bias.map_or(Base::Nothing, |bias| Base::Array(Operand::row(bias).from(0, from)))
    }
}
