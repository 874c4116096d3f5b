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
use crate::shader::shaders;
use isometry_core::{Error, Result};

shaders! {
    FACTORS "factors" "factors.wgsl",
    SCALED "scaled" "scaled.wgsl",
    UNIT "unit" "unit.wgsl",
    UNIT_VJP "unit_vjp" "unit_vjp.wgsl",
}

/// Whether the reset gate acts behind W_h; only then is there a bias c_h of W_h h.
pub(crate) fn setting(cell: &Cell<'_>) -> Result<u32> {
    let after = cell.flag(0);
    if !after && cell.some("hidden_bias").is_some() {
        return Err(Error::value("hidden_bias", "belongs to reset \"after\" only"));
    }
    Ok(u32::from(after))
}
