//! Operators on the device: the matrix and its gradient; applying goes through the matrix unless the object
//! overrides it.
//!
//! Arguments and gradients are in the order of the object's list in isometry-core, which also names their axes. Arrays have the
//! batch as their first axis: W is (batch, n_out, n_in), rows are (batch, rows, n).

use crate::device::{Context, Record};
use crate::product::{Operand, Product};
use crate::{Array, Field};
use isometry_core::{Error, Result, Side};
use std::sync::Arc;

/// A batch of linear operators on the device. A borrowed view, made and checked per call. Only this crate
/// implements it: its methods take a `Record`, which no other crate can name.
pub trait Operator {
    /// An array on its device, of the field of W.
    fn like(&self) -> &Array;
    /// (batch, n_out, n_in)
    fn sizes(&self) -> [usize; 3];

    /// The device.
    fn context(&self) -> &Arc<Context> {
        self.like().context()
    }

    /// The field of W.
    fn field(&self) -> Field {
        self.like().field()
    }

    /// Sizes of a row and of its result.
    fn features(&self, side: Side) -> (usize, usize) {
        let [_, p, q] = self.sizes();
        side.features((p, q))
    }

    /// Refuses rows of another size than n, or of another field.
    fn check_rows(&self, name: &'static str, x: &Array, n: usize) -> Result<()> {
        let (field, batch) = (self.field(), self.sizes()[0]);
        let fits = x.field() == field && matches!(x.shape(), &[b, _, last] if b == batch && last == n);
        let expected = || format!("({batch}, rows, {n}) of {field:?} numbers");
        fits.then_some(()).ok_or_else(|| {
            Error::shape(name, expected(), format!("{:?} of {:?} numbers", x.shape(), x.field()))
        })
    }

    /// Refuses matrices of another size or field.
    fn check_matrices(&self, name: &'static str, w: &Array) -> Result<()> {
        let [batch, p, q] = self.sizes();
        self.check_rows(name, w, q)?;
        if w.shape()[1] == p {
            return Ok(());
        }
        Err(Error::shape(name, format!("({batch}, {p}, {q})"), format!("{:?}", w.shape())))
    }

    /// W, (batch, n_out, n_in), written by a call that is being recorded.
    fn record_matrix(&self, record: &mut Record<'_>) -> Result<Array>;

    /// The gradients of the arguments that are wanted, from that of W. `w` is W, which is recomputed where it
    /// is needed but absent; both have been checked.
    fn record_matrix_vjp(
        &self,
        record: &mut Record<'_>,
        w: Option<&Array>,
        ct: &Array,
        wanted: &[bool],
    ) -> Result<Vec<Option<Array>>>;

    /// W x or W^H x of rows (batch, rows, n).
    fn record_apply(&self, record: &mut Record<'_>, x: &Array, side: Side) -> Result<Array> {
        self.check_rows("x", x, self.features(side).0)?;
        let w = self.record_matrix(record)?;
        through(record, &w, x, side)
    }

    /// The gradients of the application: of the arguments that are wanted, and of x if `x_wanted`.
    fn record_apply_vjp(
        &self,
        record: &mut Record<'_>,
        x: &Array,
        ct: &Array,
        side: Side,
        wanted: &[bool],
        x_wanted: bool,
    ) -> Result<Pulled> {
        let (from, into) = self.features(side);
        self.check_rows("x", x, from)?;
        self.check_rows("ct", ct, into)?;
        let w = self.record_matrix(record)?;
        let x_bar = if x_wanted { Some(through(record, &w, ct, side.other())?) } else { None };
        let arguments = match wanted.contains(&true) {
            true => {
                let w_bar = matrix_bar(record, &w, x, ct, side)?;
                self.record_matrix_vjp(record, Some(&w), &w_bar, wanted)?
            }
            false => wanted.iter().map(|_| None).collect(),
        };
        Ok(Pulled { arguments, x: x_bar })
    }

    /// W, in one submission unless it is long; so are the three that follow.
    fn matrix(&self, cancel: Cancel<'_>) -> Result<Array> {
        submitted(self.context(), cancel, |record| self.record_matrix(record))
    }

    /// The gradients from that of W.
    fn matrix_vjp(
        &self,
        w: Option<&Array>,
        ct: &Array,
        wanted: &[bool],
        cancel: Cancel<'_>,
    ) -> Result<Vec<Option<Array>>> {
        w.map_or(Ok(()), |w| self.check_matrices("w", w))?;
        self.check_matrices("ct", ct)?;
        submitted(self.context(), cancel, |record| self.record_matrix_vjp(record, w, ct, wanted))
    }

    /// W x or W^H x.
    fn apply(&self, x: &Array, side: Side, cancel: Cancel<'_>) -> Result<Array> {
        submitted(self.context(), cancel, |record| self.record_apply(record, x, side))
    }

    /// The gradients of [`Operator::apply`].
    fn apply_vjp(
        &self,
        x: &Array,
        ct: &Array,
        side: Side,
        wanted: &[bool],
        x_wanted: bool,
        cancel: Cancel<'_>,
    ) -> Result<Pulled> {
        submitted(self.context(), cancel, |record| {
            self.record_apply_vjp(record, x, ct, side, wanted, x_wanted)
        })
    }
}

/// Whether a call is cancelled.
pub(crate) type Cancel<'a> = &'a dyn Fn() -> bool;

/// Submits the dispatches that `f` records.
pub(crate) fn submitted<R>(
    context: &Arc<Context>,
    cancel: Cancel<'_>,
    f: impl FnOnce(&mut Record<'_>) -> Result<R>,
) -> Result<R> {
    let mut record = Record::until(context, cancel)?;
    let done = f(&mut record)?;
    record.submit()?;
    Ok(done)
}

/// Gradients of an application.
#[derive(Debug)]
pub struct Pulled {
    /// Of the arguments, in the order of the object's list.
    pub arguments: Vec<Option<Array>>,
    /// Of x.
    pub x: Option<Array>,
}

/// x W^T or x conj(W) for W (batch, p, q).
fn through(record: &mut Record<'_>, w: &Array, x: &Array, side: Side) -> Result<Array> {
    let &[batch, p, q] = w.shape() else { return Err(Error::shape("matrix", "three axes", w.shape().len())) };
    let ((from, into), rows) = (side.features((p, q)), x.shape()[1]);
    let out = Array::room(w.context(), w.field(), &[batch, rows, into])?;
    let right = Operand::new(w, p * q, q);
    let right = if side == Side::Forward { right.t() } else { right.conj() };
    let (x, c) = (Operand::new(x, rows * from, from), Operand::new(&out, rows * into, into));
    Product::new(batch, (rows, into, from), x, right, c).record(record, w.field())?;
    Ok(out)
}

/// The gradient of W from rows x and the cotangents of their results: ct^T conj(x), and x^T conj(ct) of the
/// adjoint.
fn matrix_bar(record: &mut Record<'_>, w: &Array, x: &Array, ct: &Array, side: Side) -> Result<Array> {
    let &[batch, p, q] = w.shape() else { return Err(Error::shape("matrix", "three axes", w.shape().len())) };
    let (rows, (left, right)) = (x.shape()[1], if side == Side::Forward { (ct, x) } else { (x, ct) });
    let out = Array::room(w.context(), w.field(), &[batch, p, q])?;
    let (a, b) = (Operand::new(left, rows * p, p).t(), Operand::new(right, rows * q, q).conj());
    Product::new(batch, (p, q, rows), a, b, Operand::new(&out, p * q, q)).record_deep(record, w.field())?;
    Ok(out)
}
