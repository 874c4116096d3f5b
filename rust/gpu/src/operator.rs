//! What an operator on the device is: the matrix and its gradient; applying goes through the matrix unless the object does better.
//!
//! Arguments and gradients are in the order of the object's list in isometry-core, which also names their axes. Arrays have the
//! batch as their first axis: W is (batch, n_out, n_in), rows are (batch, rows, n).

use crate::device::{Context, Record};
use crate::product::{Operand, Product};
use crate::{Array, Kind};
use isometry_core::error::{Error, Result};
use isometry_core::operator::Side;
use std::sync::Arc;

/// A batch of linear operators on the device. A borrowed view made per call, its sizes checked when it was made.
pub trait Operator {
    /// The device.
    fn context(&self) -> &Arc<Context>;
    /// Of which numbers W is.
    fn kind(&self) -> Kind;
    /// Number of matrices.
    fn batch(&self) -> usize;
    /// (n_out, n_in)
    fn shape(&self) -> (usize, usize);

    /// W, (batch, n_out, n_in).
    fn matrix(&self) -> Result<Array>;

    /// The gradients of the arguments that are wanted, from that of W. `w` is what [`Operator::matrix`] returned.
    fn matrix_vjp(&self, w: &Array, ct: &Array, wanted: &[bool]) -> Result<Vec<Option<Array>>>;

    /// W x or W^H x of rows (batch, rows, n).
    fn apply(&self, x: &Array, side: Side) -> Result<Array> {
        check_rows("x", x, self.kind(), self.batch(), features(self.shape(), side).0)?;
        through(&self.matrix()?, x, side)
    }

    /// The gradients of [`Operator::apply`]: of the arguments that are wanted, and of x if `x_wanted`.
    fn apply_vjp(
        &self,
        x: &Array,
        ct: &Array,
        side: Side,
        wanted: &[bool],
        x_wanted: bool,
    ) -> Result<Pulled> {
        let (from, into) = features(self.shape(), side);
        check_rows("x", x, self.kind(), self.batch(), from)?;
        check_rows("ct", ct, self.kind(), self.batch(), into)?;
        let w = self.matrix()?;
        let x_bar = if x_wanted { Some(through(&w, ct, other(side))?) } else { None };
        let some = wanted.contains(&true);
        let arguments = match some {
            true => self.matrix_vjp(&w, &matrix_bar(&w, x, ct, side)?, wanted)?,
            false => wanted.iter().map(|_| None).collect(),
        };
        Ok(Pulled { arguments, x: x_bar })
    }
}

/// Gradients of an application.
#[derive(Debug)]
pub struct Pulled {
    /// Of the arguments, in the order of the object's list.
    pub arguments: Vec<Option<Array>>,
    /// Of x.
    pub x: Option<Array>,
}

/// Sizes of a row (n_in, n_out) on one side.
pub(crate) fn features((p, q): (usize, usize), side: Side) -> (usize, usize) {
    if side == Side::Forward { (q, p) } else { (p, q) }
}

pub(crate) fn other(side: Side) -> Side {
    if side == Side::Forward { Side::Adjoint } else { Side::Forward }
}

/// Refuses rows of other sizes or numbers.
pub(crate) fn check_rows(name: &'static str, x: &Array, kind: Kind, batch: usize, n: usize) -> Result<()> {
    let fits = x.kind() == kind && matches!(x.shape(), &[b, _, last] if b == batch && last == n);
    let expected = || format!("({batch}, rows, {n}) of {kind:?} numbers");
    fits.then_some(())
        .ok_or_else(|| Error::shape(name, expected(), format!("{:?} of {:?} numbers", x.shape(), x.kind())))
}

/// x W^T or x conj(W) for W (batch, p, q).
pub(crate) fn through(w: &Array, x: &Array, side: Side) -> Result<Array> {
    let &[batch, p, q] = w.shape() else { return Err(Error::shape("matrix", "three axes", w.shape().len())) };
    let ((from, into), rows) = (features((p, q), side), x.shape()[1]);
    let out = Array::room(w.context(), w.kind(), &[batch, rows, into])?;
    let mut record = Record::new(w.context())?;
    let right = Operand::new(w, p * q, q);
    let right = if side == Side::Forward { right.t() } else { right.conj() };
    let (x, c) = (Operand::new(x, rows * from, from), Operand::new(&out, rows * into, into));
    Product::new(batch, (rows, into, from), x, right, c).record(&mut record, w.kind())?;
    record.submit()?;
    Ok(out)
}

/// The gradient of W from rows x and the cotangents of what they became: ct^T conj(x), and x^T conj(ct) of the adjoint.
pub(crate) fn matrix_bar(w: &Array, x: &Array, ct: &Array, side: Side) -> Result<Array> {
    let &[batch, p, q] = w.shape() else { return Err(Error::shape("matrix", "three axes", w.shape().len())) };
    let (rows, (left, right)) = (x.shape()[1], if side == Side::Forward { (ct, x) } else { (x, ct) });
    let out = Array::room(w.context(), w.kind(), &[batch, p, q])?;
    let mut record = Record::new(w.context())?;
    let (a, b) = (Operand::new(left, rows * p, p).t(), Operand::new(right, rows * q, q).conj());
    Product::new(batch, (p, q, rows), a, b, Operand::new(&out, p * q, q))
        .record_deep(&mut record, w.kind())?;
    record.submit()?;
    Ok(out)
}
