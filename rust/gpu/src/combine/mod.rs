//! alpha a + beta b of arrays of one shape: a step along a gradient, the difference of a result and a target.

#[cfg(test)]
mod tests;

use crate::device::Record;
use crate::shader::shaders;
use crate::{Array, Field};
use isometry_core::{Error, Result};

shaders! {
    COMBINE "combine" "combine.wgsl",
}

/// A factor: real and imaginary part. That of a real array is real.
pub type Factor = (f32, f32);

/// alpha a + beta b, or alpha a.
pub fn combine(a: &Array, alpha: Factor, b: Option<(&Array, Factor)>) -> Result<Array> {
    let (other, beta) = b.unwrap_or((a, (0.0, 0.0)));
    a.fits("arrays", other)?;
    if a.shape() != other.shape() {
        return Err(Error::shape("arrays", format!("{:?}", a.shape()), format!("{:?}", other.shape())));
    }
    if a.field() == Field::Real && (alpha.1 != 0.0 || beta.1 != 0.0) {
        return Err(Error::value("factor", "of a real array must be real"));
    }
    let out = Array::room(a.context(), a.field(), a.shape())?;
    let factors = [alpha.0, alpha.1, beta.0, beta.1].map(f32::to_bits);
    let sizes = [&[a.len() as u32, u32::from(b.is_some())], &factors[..]].concat();
    let mut record = Record::new(a.context())?;
    record.elements(COMBINE.of(a.field()), &[("a", a), ("b", other), ("out", &out)], &sizes, a.len())?;
    record.submit()?;
    Ok(out)
}
