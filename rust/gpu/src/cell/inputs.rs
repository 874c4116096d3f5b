//! What a cell reads of all steps before it begins, and the gradients of that.

use super::{Cell, Gradients, PREVIOUS, Pass, of};
use crate::Array;
use crate::device::Record;
use crate::product::{Base, Operand, Product};
use crate::recurrence::within;
use crate::rows::sum;
use isometry_core::Result;

impl Cell<'_> {
    /// The names of U and b.
    fn names(&self) -> [&'static str; 2] {
        if self.declared.operator == "transition" { ["input_weight", "bias"] } else { ["u", "b"] }
    }

    /// x, 0 past the ends of the sequences: values there may be NaN, and must not be multiplied by the zeros of their gradients.
    pub fn inputs(&self, record: &mut Record<'_>) -> Result<Array> {
        let x = self.array("x")?;
        match &self.lengths {
            Some(lengths) => within(record, x, Some(lengths)),
            None => Ok(x.clone()),
        }
    }

    /// U x_t + b for all steps, (T, B, rows of U).
    pub fn drive(&self, record: &mut Record<'_>, x: &Array) -> Result<Array> {
        let (d, wide, [u, b]) = (self.features, self.wide, self.names());
        let out = self.of_rows(wide)?;
        let base = self.some(b).map_or(Base::Nothing, |bias| Base::Array(Operand::row(bias)));
        Product::new(1, (self.rows(), wide, d), of(x, d), of(self.array(u)?, d).t(), of(&out, wide))
            .plus(base)
            .record(record, self.field)?;
        Ok(out)
    }

    /// Memory for the summands of the gradient of the activation's bias, if it is wanted.
    pub fn along(&self, record: &mut Record<'_>, out: &Gradients) -> Result<Option<Array>> {
        out.wants("activation_bias").then(|| self.phi.along(record, self.rows())).transpose()
    }

    /// The gradient of the activation's bias from its summands.
    pub fn bias_gradient(
        &self,
        record: &mut Record<'_>,
        along: Option<&Array>,
        out: &mut Gradients,
    ) -> Result<()> {
        along.map_or(Ok(()), |along| {
            out.put("activation_bias", self.phi.bias_bar(record, along)?);
            Ok(())
        })
    }

    /// Adds to the cotangent g of the state before step k, with `pitch` numbers a row, what comes through the products with the first rows of W.
    pub fn through_products(
        &self,
        record: &mut Record<'_>,
        k: usize,
        (now, rows): (&Array, usize),
        (g, pitch): (&Array, usize),
        out: &Gradients,
    ) -> Result<()> {
        if k == 0 && !out.wants("h0") {
            return Ok(());
        }
        Product::new(1, (self.batch, self.n, rows), of(now, self.wide), self.w(0)?, of(g, pitch))
            .add()
            .record(record, self.field)
    }

    /// The states before all steps, (T, B, numbers of a state); zeros past the ends of sequences.
    pub fn previous(&self, record: &mut Record<'_>, states: &Array) -> Result<Array> {
        let previous = self.of_rows(self.state)?;
        let start = self.some("h0");
        let arrays = [("states", states), ("start", start.unwrap_or(states)), ("previous", &previous)];
        let count = self.rows() * self.state;
        let pass = Pass { count, pitch: self.state, flag: start.is_some(), ..Pass::default() };
        self.run(record, &PREVIOUS, &arrays, pass)?;
        Ok(previous)
    }

    /// The gradients of x, U and b from the cotangents of U x_t + b, (T, B, rows of U).
    pub fn input_gradients(
        &self,
        record: &mut Record<'_>,
        bars: &Array,
        x: &Array,
        out: &mut Gradients,
    ) -> Result<()> {
        let (d, wide, rows, field, [u, b]) =
            (self.features, self.wide, self.rows(), self.field, self.names());
        let of_bars = of(bars, wide);
        if out.wants("x") {
            let bar = self.of_rows(d)?;
            Product::new(1, (rows, d, wide), of_bars, of(self.array(u)?, d).conj(), of(&bar, d))
                .record(record, field)?;
            out.put("x", bar);
        }
        if out.wants(u) {
            let bar = self.room(&[wide, d])?;
            Product::new(1, (wide, d, rows), of_bars.t(), of(x, d).conj(), of(&bar, d))
                .record_deep(record, field)?;
            out.put(u, bar);
        }
        if out.wants(b) {
            let bar = self.room(&[wide])?;
            sum(record, (rows, wide), bars, &bar)?;
            out.put(b, bar);
        }
        Ok(())
    }

    /// A gradient of W, (m, n): the sum of left^T right over all rows.
    pub fn weight_gradient(
        &self,
        record: &mut Record<'_>,
        m: usize,
        left: Operand<'_>,
        right: Operand<'_>,
    ) -> Result<Array> {
        let bar = self.room(&[m, self.n])?;
        Product::new(1, (m, self.n, self.rows()), left.t(), right, of(&bar, self.n))
            .record_deep(record, self.field)?;
        Ok(bar)
    }
}
