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
    /// Shape of the argument: that of its gradient.
    shape: Vec<usize>,
    phases: bool,
}

impl Last {
    /// e = (1, ..., 1, s), one s for each matrix.
    pub fn sign(kind: Kind, sign: &Array, n: usize) -> Result<Self> {
        let own = sign.download()?;
        let entry = |at: usize| if at % n + 1 == n { own[at / n] } else { 1.0 };
        Self::of(kind, sign, [own.len(), n], false, |at| (entry(at), 0.0))
    }

    /// Fixed real entries, (batch, n).
    pub fn signs(kind: Kind, signs: &Array, n: usize) -> Result<Self> {
        let own = signs.download()?;
        Self::of(kind, signs, [own.len() / n.max(1), n], false, |at| (own[at], 0.0))
    }

    /// Angles theta, (batch, n).
    pub fn phases(phases: &Array, n: usize) -> Result<Self> {
        let own = phases.download()?;
        let turned = |at: usize| f64::from(own[at]).sin_cos();
        let sizes = [own.len() / n.max(1), n];
        Self::of(Kind::Complex, phases, sizes, true, |at| (turned(at).1 as f32, turned(at).0 as f32))
    }

    fn of(
        kind: Kind,
        given: &Array,
        sizes: [usize; 2],
        phases: bool,
        e: impl Fn(usize) -> (f32, f32),
    ) -> Result<Self> {
        let entries = (0..sizes[0] * sizes[1]).map(|at| <[f32; 2]>::from(e(at)));
        let numbers: Vec<f32> = entries.flat_map(|entry| entry.into_iter().take(kind.parts())).collect();
        let factors = Array::upload(given.context(), kind, &sizes, &numbers)?;
        Ok(Last { factors, shape: given.shape().to_vec(), phases })
    }

    /// Refuses a diagonal of other sizes or numbers than the matrices (batch, n, n).
    pub fn check(&self, kind: Kind, batch: usize, n: usize) -> Result<()> {
        if self.factors.shape() == [batch, n] && self.factors.kind() == kind {
            return Ok(());
        }
        let argument = if self.phases { "phases" } else { "signs" };
        let (shape, own) = (self.factors.shape(), self.factors.kind());
        Err(Error::shape(
            argument,
            format!("({batch}, {n}) for {kind:?} numbers"),
            format!("{shape:?} for {own:?} ones"),
        ))
    }

    /// Whether e = e^{i theta}.
    pub fn are_phases(&self) -> bool {
        self.phases
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

    /// The gradient of the sign or of the phases from V and the cotangent of V E, (batch, rows, n).
    pub(crate) fn bar(&self, record: &mut Record, v: &Array, ct: &Array) -> Result<Array> {
        self.pull(record, v, ct, u32::from(self.phases))
    }

    /// The gradient of the phases from W = V E and its cotangent, (batch, rows, n).
    pub(crate) fn bar_from_matrix(&self, record: &mut Record, w: &Array, ct: &Array) -> Result<Array> {
        self.pull(record, w, ct, 2)
    }

    fn pull(&self, record: &mut Record, v: &Array, ct: &Array, mode: u32) -> Result<Array> {
        let &[batch, rows, n] = v.shape() else {
            return Err(Error::shape("x", "three axes", v.shape().len()));
        };
        let out = Array::room(v.context(), Kind::Real, &self.shape)?;
        let sizes = [(batch * n) as u32, rows as u32, n as u32, mode];
        let arrays = [("v", v), ("ct", ct), ("factors", &self.factors), ("out", &out)];
        let variant = Variant { shader: &PULL, kind: v.kind(), constants: &[] };
        record.elements(variant, &arrays, &sizes, batch * n)?;
        Ok(out)
    }
}
