//! The gated recurrent unit over a sequence, real numbers, of `isometry_core::recurrence::gru`: W_h is a matrix.
//!
//! Forward, a step is a product with all matrices and a pass over its rows, two of each where the reset gate acts before W_h. Backward computes
//! for all steps at once what does not depend on the recursion (`factors.wgsl`), from the states alone; a step is then a pass
//! and a product, and products over all rows give the gradients.

mod backward;
mod forward;

pub(crate) use backward::backward;
pub(crate) use forward::forward;

use crate::cell::Cell;
use crate::shader::Shader;
use isometry_core::{Error, Result};

macro_rules! shaders {
    ($($name:ident $file:literal),*) => {$(
        #[doc = $file]
        pub(crate) static $name: Shader =
            Shader { name: $file, source: include_str!(concat!($file, ".wgsl")), variants: &[&[]] };
    )*};
}

shaders!(FACTORS "factors", SCALED "scaled", UNIT "unit", UNIT_VJP "unit_vjp");

/// Whether the reset gate acts behind W_h; only then is there a bias c_h of W_h h.
pub(crate) fn setting(cell: &Cell<'_>) -> Result<u32> {
    let after = cell.flag(0);
    if !after && cell.some("hidden_bias").is_some() {
        return Err(Error::value("hidden_bias", "belongs to reset \"after\" only"));
    }
    Ok(u32::from(after))
}
