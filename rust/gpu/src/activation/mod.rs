//! Nonlinearities on the device: h = phi(z), z_bar = phi'(z)^H h_bar, of the table in [`isometry_core::activation`].
//!
//! `activation.wgsl` has the formulas as functions of two features, for shaders to import; the kernels here apply them to rows.
//! NaN passes through all, as on the CPU: it is found by its bits (`bits.wgsl`).

#[cfg(test)]
pub(crate) mod tests;

use crate::cell::refused;
use crate::device::{Context, Record};
use crate::rows::sum;
use crate::shader::shaders;
use crate::{Array, Field};
use isometry_core::activation::Activation;
use isometry_core::{Error, Result};
use std::sync::Arc;

shaders! {
    ACTIVATE "activate" "activate.wgsl",
    ACTIVATE_VJP "activate_vjp" "activate_vjp.wgsl",
}

/// phi(z) of rows z, (rows, n) or more axes; the bias of the modReLUs is real, (n), or (n/2) in the real representation.
pub fn activate(z: &Array, activation: Activation, bias: Option<&Array>) -> Result<Array> {
    let phi = RowActivation::new(z.context(), z.field(), activation, features(z)?, bias)?;
    let h = Array::room(z.context(), z.field(), z.shape())?;
    let mut record = Record::new(z.context())?;
    phi.value(&mut record, z, &h)?;
    record.submit()?;
    Ok(h)
}

/// z_bar = phi'(z)^H ct, and the gradient of the bias if it is wanted: sum Re(conj(e) ct) over the rows, e = z / |z|.
pub fn activate_vjp(
    z: &Array,
    activation: Activation,
    bias: Option<&Array>,
    ct: &Array,
    bias_wanted: bool,
) -> Result<(Array, Option<Array>)> {
    let n = features(z)?;
    let phi = RowActivation::new(z.context(), z.field(), activation, n, bias)?;
    z.fits("ct", ct)?;
    if ct.shape() != z.shape() {
        return Err(Error::shape("ct", format!("{:?}", z.shape()), format!("{:?}", ct.shape())));
    }
    phi.check_wanted(bias_wanted)?;
    let z_bar = Array::room(z.context(), z.field(), z.shape())?;
    let mut record = Record::new(z.context())?;
    let along = if bias_wanted { Some(phi.along(&mut record, z.len() / n.max(1))?) } else { None };
    phi.pull(&mut record, z, ct, &z_bar, along.as_ref())?;
    let bias_bar = along.map(|along| phi.bias_bar(&mut record, &along)).transpose()?;
    record.submit()?;
    Ok((z_bar, bias_bar))
}

/// Numbers of a row.
fn features(z: &Array) -> Result<usize> {
    z.shape().last().copied().ok_or_else(|| Error::shape("z", "rows", "no axes"))
}

/// An activation for rows of n features, with its biases.
#[derive(Clone, Debug)]
pub(crate) struct RowActivation {
    activation: Activation,
    field: Field,
    n: usize,
    own: Option<Array>,
    /// `RowActivation` of activation.wgsl.
    pub sizes: [u32; 3],
}

impl RowActivation {
    /// Refuses what [`Activation::check`] refuses, and what the shader does not have.
    pub fn new(
        context: &Arc<Context>,
        field: Field,
        activation: Activation,
        n: usize,
        own: Option<&Array>,
    ) -> Result<Self> {
        activation.check_sizes(n, field == Field::Complex, own.map(Array::len))?;
        own.map_or(Ok(()), |own| own.check_real("activation_bias", context))?;
        let (code, slope, halves) = match activation {
            Activation::Identity => (0, 0.0, false),
            Activation::Tanh => (1, 0.0, false),
            Activation::Relu => (2, 0.0, false),
            Activation::LeakyRelu { slope } => (3, slope as f32, false),
            Activation::Oplu => (4, 0.0, false),
            Activation::OpluHalves => (4, 0.0, true),
            Activation::Modrelu if field == Field::Real => (5, 0.0, false),
            Activation::Modrelu => (6, 0.0, false),
            Activation::ModreluRealrep => (7, 0.0, true),
            other => return refused(&format!("{other:?}")),
        };
        let sizes = [code, slope.to_bits(), u32::from(halves)];
        Ok(RowActivation { activation, field, n, own: own.cloned(), sizes })
    }

    /// The identity on the same rows.
    pub fn identity(&self) -> Self {
        RowActivation { activation: Activation::Identity, own: None, sizes: [0; 3], ..*self }
    }

    pub fn is_identity(&self) -> bool {
        self.activation == Activation::Identity
    }

    /// Whether phi' can be computed from h.
    pub fn readable(&self) -> bool {
        match self.activation {
            Activation::Oplu | Activation::OpluHalves | Activation::ModreluRealrep => false,
            Activation::Modrelu => self.field == Field::Real,
            _ => true,
        }
    }

    /// Biases.
    pub fn own(&self) -> Option<&Array> {
        self.own.as_ref()
    }

    /// Refuses a gradient of biases that were not given.
    pub fn check_wanted(&self, bias: bool) -> Result<()> {
        if bias && self.own.is_none() {
            return Err(Error::value("activation_bias_bar", "belongs to modrelu and modrelu_realrep only"));
        }
        Ok(())
    }

    /// Memory for the summands of the gradient of the bias.
    pub fn along(&self, record: &mut Record<'_>, rows: usize) -> Result<Array> {
        Array::room(record.context(), Field::Real, &[rows, self.activation.bias_units(self.n)])
    }

    /// The gradient of the bias from its summands.
    pub fn bias_bar(&self, record: &mut Record<'_>, along: &Array) -> Result<Array> {
        let units = self.activation.bias_units(self.n);
        let bar = Array::room(record.context(), Field::Real, &[units])?;
        sum(record, (along.len() / units.max(1), units), along, &bar)?;
        Ok(bar)
    }

    /// h = phi(z); in other memory.
    pub fn value(&self, record: &mut Record<'_>, z: &Array, h: &Array) -> Result<()> {
        let pairs = self.pairs(z);
        let mut sizes = vec![pairs as u32, self.n as u32];
        sizes.extend(self.sizes);
        let arrays = [("z", z), ("own", self.own.as_ref().unwrap_or(z)), ("h", h)];
        record.elements(ACTIVATE.of(self.field), &arrays, &sizes, pairs)
    }

    /// z_bar = phi'(z)^H ct, and the summands of the gradient of the bias; in other memory.
    pub fn pull(
        &self,
        record: &mut Record<'_>,
        z: &Array,
        ct: &Array,
        z_bar: &Array,
        along: Option<&Array>,
    ) -> Result<()> {
        let pairs = self.pairs(z);
        let mut sizes = vec![pairs as u32, self.n as u32, u32::from(along.is_some())];
        sizes.extend(self.sizes);
        let along = along.cloned().map_or_else(|| Array::room(record.context(), Field::Real, &[1]), Ok)?;
        let own = self.own.as_ref().unwrap_or(z);
        let arrays = [("z", z), ("ct", ct), ("own", own), ("z_bar", z_bar), ("along", &along)];
        record.elements(ACTIVATE_VJP.of(self.field), &arrays, &sizes, pairs)
    }

    /// Pairs of features of all rows.
    fn pairs(&self, z: &Array) -> usize {
        z.len() / self.n.max(1) * self.n.div_ceil(2)
    }
}
