//! The last factor of an operator on the device: diag(e), e real signs or e^{i theta}.
//!
//! cos theta and sin theta are those of `angle.wgsl`, within two units in the last place of the exact ones
//! for every finite angle: those of WGSL are accurate to 2^-11 only, too little for a unitary matrix. So no
//! argument leaves the device.

#[cfg(test)]
mod tests;

use crate::device::Record;
use crate::rows::sum;
use crate::shader::{groups, shaders};
use crate::{Array, Field};
use isometry_core::internal::sizes::check_len;
use isometry_core::{Error, Result};

shaders! {
    FACTORS "factors" "factors.wgsl",
    LAST "last" "last.wgsl",
    PULL "pull" "pull.wgsl",
}

/// Columns of a workgroup of pull.wgsl.
const WIDTH: usize = 32;
/// Least rows of a part of a sum over rows.
const LEAST: usize = 256;
/// Workgroups that occupy a device.
const GROUPS: usize = 512;

/// The form in which e is given, with its number in the shaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// e = (1, ..., 1, s)
    Sign = 0,
    /// e
    Signs = 1,
    /// theta
    Phases = 2,
}

/// diag(e) of every matrix of a batch.
#[derive(Clone, Debug)]
pub struct Last {
    /// One sign for each matrix, or (batch, n) signs or angles.
    given: Array,
    form: Form,
    /// e, (batch, n), of the numbers of the matrix; the given array itself where it holds these.
    factors: Array,
}

impl Last {
    /// e = (1, ..., 1, s), one s for each matrix.
    pub fn sign(field: Field, sign: &Array, n: usize) -> Result<Self> {
        Self::of(field, sign, [sign.len(), n], Form::Sign)
    }

    /// Fixed real entries, (batch, n).
    pub fn signs(field: Field, signs: &Array, n: usize) -> Result<Self> {
        Self::of(field, signs, [signs.len() / n.max(1), n], Form::Signs)
    }

    /// Angles theta, (batch, n).
    pub fn phases(phases: &Array, n: usize) -> Result<Self> {
        Self::of(Field::Complex, phases, [phases.len() / n.max(1), n], Form::Phases)
    }

    fn of(field: Field, given: &Array, sizes: [usize; 2], form: Form) -> Result<Self> {
        if given.field() != Field::Real {
            return Err(Error::value(argument(form), "must be Real, not Complex"));
        }
        if form != Form::Sign {
            check_len(argument(form), given.len(), &sizes)?;
        }
        let own = form == Form::Signs && field == Field::Real;
        let factors =
            if own { given.reshaped(&sizes)? } else { Array::room(given.context(), field, &sizes)? };
        Ok(Last { given: given.clone(), form, factors })
    }

    /// Writes e, before a call reads it.
    pub(crate) fn prepare(&self, record: &mut Record<'_>) -> Result<()> {
        let (field, count) = (self.factors.field(), self.factors.len());
        if self.form == Form::Signs && field == Field::Real {
            return Ok(());
        }
        let n = self.factors.shape()[1];
        let arrays = [("given", &self.given), ("factors", &self.factors)];
        record.elements(FACTORS.of(field), &arrays, &[count as u32, n as u32, self.form as u32], count)
    }

    /// Refuses a diagonal whose sizes or numbers do not match the matrices (batch, n, n).
    pub fn check(&self, field: Field, batch: usize, n: usize) -> Result<()> {
        if self.factors.shape() == [batch, n] && self.factors.field() == field {
            return Ok(());
        }
        let (shape, own) = (self.factors.shape(), self.factors.field());
        Err(Error::shape(
            argument(self.form),
            format!("({batch}, {n}) for {field:?} numbers"),
            format!("{shape:?} for {own:?} ones"),
        ))
    }

    /// The array that was given.
    pub(crate) fn given(&self) -> &Array {
        &self.given
    }

    /// Whether e = e^{i theta}.
    pub fn are_phases(&self) -> bool {
        self.form == Form::Phases
    }

    /// out = X E, or X conj(E), of rows (batch, rows, n).
    pub(crate) fn scale(&self, record: &mut Record<'_>, x: &Array, conj: bool, out: &Array) -> Result<()> {
        let &[_, rows, n] = x.shape() else { return Err(Error::shape("x", "three axes", x.shape().len())) };
        let sizes = [x.len() as u32, rows as u32, n as u32, u32::from(conj)];
        let arrays = [("x", x), ("factors", &self.factors), ("out", out)];
        record.elements(LAST.of(x.field()), &arrays, &sizes, x.len())
    }

    /// e, (batch, n), of the numbers of the matrix.
    pub(crate) fn factors(&self) -> &Array {
        &self.factors
    }

    /// The gradient of the sign or of the phases from V and the cotangent of V E, (batch, rows, n).
    pub(crate) fn bar(&self, record: &mut Record<'_>, v: &Array, ct: &Array) -> Result<Array> {
        self.pull(record, v, ct, u32::from(self.are_phases()))
    }

    /// The gradient of the phases from W = V E and its cotangent, (batch, rows, n).
    pub(crate) fn bar_from_matrix(&self, record: &mut Record<'_>, w: &Array, ct: &Array) -> Result<Array> {
        self.pull(record, w, ct, 2)
    }

    fn pull(&self, record: &mut Record<'_>, v: &Array, ct: &Array, mode: u32) -> Result<Array> {
        let &[batch, rows, n] = v.shape() else {
            return Err(Error::shape("x", "three axes", v.shape().len()));
        };
        let out = Array::room(v.context(), Field::Real, self.given.shape())?;
        let columns = batch * n;
        let [x, y, _] = groups(columns.div_ceil(WIDTH));
        let parts = (GROUPS / (x * y).max(1)).min(rows / LEAST).max(1);
        let into = match parts {
            1 => out.clone(),
            _ => Array::room(v.context(), Field::Real, &[parts, out.len()])?,
        };
        let sizes = [columns, rows, n, rows.div_ceil(parts)].map(|size| size as u32);
        let sizes = [sizes[0], sizes[1], sizes[2], sizes[3], mode];
        let arrays = [("v", v), ("ct", ct), ("factors", &self.factors), ("out", &into)];
        record.dispatch(PULL.of(v.field()), &arrays, &sizes, [x, y, parts])?;
        if parts > 1 {
            sum(record, (parts, out.len()), &into, &out)?;
        }
        Ok(out)
    }
}

fn argument(form: Form) -> &'static str {
    match form {
        Form::Sign => "sign",
        Form::Signs => "signs",
        Form::Phases => "phases",
    }
}
