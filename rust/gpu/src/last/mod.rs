//! The last factor of an operator on the device: diag(e), e real signs or e^{i theta}.
//!
//! cos theta and sin theta come from the CPU in double precision: those of WGSL are good to 2^-11 only, which no unitary matrix
//! survives.

use crate::device::Record;
use crate::shader::{Shader, Variant};
use crate::{Array, Kind};
use isometry_core::error::{Error, Result};

/// last.wgsl
pub static LAST: Shader = Shader { name: "last", source: include_str!("last.wgsl"), variants: &[&[]] };
/// pull.wgsl
pub static PULL: Shader = Shader { name: "pull", source: include_str!("pull.wgsl"), variants: &[&[]] };

/// diag(e) of every matrix of a batch.
#[derive(Clone, Debug)]
pub struct Last {
    /// e, (batch, n), of the numbers of the matrix.
    factors: Array,
    phases: bool,
}

impl Last {
    /// Entries s: one per matrix, of a last entry behind ones, or n.
    pub fn signs(kind: Kind, signs: &Array, batch: usize, n: usize) -> Result<Self> {
        let own = signs.download()?;
        let one = own.len() == batch && n != 1;
        if !one && own.len() != batch * n {
            return Err(Error::shape("signs", format!("{batch} or {} numbers", batch * n), own.len()));
        }
        let entry = |at: usize| match one {
            true if at % n + 1 == n => own[at / n],
            true => 1.0,
            false => own[at],
        };
        Self::of(kind, signs, batch, n, false, |at| (entry(at), 0.0))
    }

    /// Angles theta, (batch, n).
    pub fn phases(phases: &Array, batch: usize, n: usize) -> Result<Self> {
        let own = phases.download()?;
        if own.len() != batch * n {
            return Err(Error::shape("phases", format!("{} numbers", batch * n), own.len()));
        }
        let turned = |at: usize| f64::from(own[at]).sin_cos();
        Self::of(Kind::Complex, phases, batch, n, true, |at| (turned(at).1 as f32, turned(at).0 as f32))
    }

    fn of(
        kind: Kind,
        at: &Array,
        batch: usize,
        n: usize,
        phases: bool,
        e: impl Fn(usize) -> (f32, f32),
    ) -> Result<Self> {
        let numbers: Vec<f32> =
            (0..batch * n).flat_map(|at| <[f32; 2]>::from(e(at)).into_iter().take(kind.parts())).collect();
        Ok(Last { factors: Array::upload(at.context(), kind, &[batch, n], &numbers)?, phases })
    }

    /// out = X E, or X conj(E), of rows (batch, rows, n).
    pub(crate) fn scale(&self, record: &mut Record, x: &Array, conj: bool, out: &Array) -> Result<()> {
        let &[_, rows, n] = x.shape() else { return Err(Error::shape("x", "three axes", x.shape().len())) };
        let sizes = [x.len() as u32, rows as u32, n as u32, u32::from(conj)];
        let arrays = [("x", x), ("factors", &self.factors), ("out", out)];
        record.elements(Variant { shader: &LAST, kind: x.kind(), constants: &[] }, &arrays, &sizes, x.len())
    }

    /// e, (batch, n), of the numbers of the matrix.
    pub(crate) fn factors(&self) -> &Array {
        &self.factors
    }

    /// Whether E is e^{i theta}.
    pub(crate) fn has_phases(&self) -> bool {
        self.phases
    }

    /// The gradient of the signs or phases, (batch, n), from V and the cotangent of V E, (batch, rows, n).
    pub(crate) fn pull(&self, record: &mut Record, v: &Array, ct: &Array, out: &Array) -> Result<()> {
        self.pull_from(record, v, ct, out, u32::from(self.phases))
    }

    /// The gradient of the phases, (batch, n), from W = V E and its cotangent, (batch, rows, n).
    pub(crate) fn pull_phases(&self, record: &mut Record, w: &Array, ct: &Array, out: &Array) -> Result<()> {
        self.pull_from(record, w, ct, out, 2)
    }

    fn pull_from(&self, record: &mut Record, v: &Array, ct: &Array, out: &Array, phases: u32) -> Result<()> {
        let &[batch, rows, n] = v.shape() else {
            return Err(Error::shape("x", "three axes", v.shape().len()));
        };
        let sizes = [(batch * n) as u32, rows as u32, n as u32, phases];
        let arrays = [("v", v), ("ct", ct), ("factors", &self.factors), ("out", out)];
        record.elements(Variant { shader: &PULL, kind: v.kind(), constants: &[] }, &arrays, &sizes, batch * n)
    }
}
