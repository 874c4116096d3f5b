//! What a cell reads of all steps before it begins, and the gradients of that.

use super::{Cell, Gradients, PREVIOUS, Pass, Wanted, of};
use crate::device::Record;
use crate::product::{Base, Operand, Product};
use crate::recurrence::sequence::within;
use crate::rows::sum;
use crate::{Array, Field};
use isometry_core::Result;

impl Cell<'_> {
    /// x, 0 past the ends of the sequences.
    pub fn inputs(&self, record: &mut Record) -> Result<Array> {
        match &self.lengths {
            Some(lengths) => within(record, self.arguments.x, Some(lengths)),
            None => Ok(self.arguments.x.clone()),
        }
    }

    /// U x_t + b for all steps, (T, B, rows of U).
    pub fn drive(&self, record: &mut Record, x: &Array) -> Result<Array> {
        let (d, wide) = (self.features, self.wide);
        let out = self.of_rows(wide)?;
        let base = self.arguments.bias.map_or(Base::Nothing, |bias| Base::Array(Operand::row(bias)));
        Product::new(1, (self.rows(), wide, d), of(x, d), of(self.arguments.u, d).t(), of(&out, wide))
            .plus(base)
            .record(record, Field::Real)?;
        Ok(out)
    }

    /// The states before all steps, (T, B, numbers of a state); zeros past the ends of sequences.
    pub fn previous(&self, record: &mut Record, states: &Array) -> Result<Array> {
        let previous = self.of_rows(self.state)?;
        let start = self.arguments.h0;
        let arrays = [("states", states), ("start", start.unwrap_or(states)), ("previous", &previous)];
        let count = self.rows() * self.state;
        let pass = Pass { count, pitch: self.state, flag: start.is_some(), ..Pass::default() };
        self.run(record, &PREVIOUS, &arrays, pass)?;
        Ok(previous)
    }

    /// The gradients of x, U and b from the cotangents of U x_t + b, (T, B, rows of U).
    pub fn input_gradients(
        &self,
        record: &mut Record,
        bars: &Array,
        x: &Array,
        wanted: Wanted,
    ) -> Result<Gradients> {
        let (d, wide, rows) = (self.features, self.wide, self.rows());
        let (of_bars, mut out) = (of(bars, wide), Gradients::default());
        if wanted.x {
            let bar = self.of_rows(d)?;
            Product::new(1, (rows, d, wide), of_bars, of(self.arguments.u, d), of(&bar, d))
                .record(record, Field::Real)?;
            out.x = Some(bar);
        }
        if wanted.u {
            let bar = self.room(&[wide, d])?;
            Product::new(1, (wide, d, rows), of_bars.t(), of(x, d), of(&bar, d))
                .record_deep(record, Field::Real)?;
            out.u = Some(bar);
        }
        if wanted.bias {
            let bar = self.room(&[wide])?;
            sum(record, (rows, wide), bars, &bar)?;
            out.bias = Some(bar);
        }
        Ok(out)
    }

    /// A gradient of W, (m, n): the sum of left^T right over all rows.
    pub fn weight_gradient(
        &self,
        record: &mut Record,
        m: usize,
        left: Operand<'_>,
        right: Operand<'_>,
    ) -> Result<Array> {
        let bar = self.room(&[m, self.n])?;
        Product::new(1, (m, self.n, self.rows()), left.t(), right, of(&bar, self.n))
            .record_deep(record, Field::Real)?;
        Ok(bar)
    }
}
