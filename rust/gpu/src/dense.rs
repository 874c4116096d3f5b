//! Any matrix as an operator: used for all objects without kernels here, whose matrix the CPU forms.

use crate::Array;
use crate::device::Record;
use crate::operator::Operator;
use isometry_core::{Error, Result};

/// A batch of matrices.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a> {
    weight: &'a Array,
}

impl<'a> Dense<'a> {
    /// A view of weight (batch, n_out, n_in).
    pub fn new(weight: &'a Array) -> Result<Self> {
        match weight.shape() {
            [_, _, _] => Ok(Dense { weight }),
            shape => Err(Error::shape("weight", "(batch, n_out, n_in)", format!("{shape:?}"))),
        }
    }
}

impl Operator for Dense<'_> {
    fn like(&self) -> &Array {
        self.weight
    }
    fn sizes(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.weight.shape()[axis])
    }

    fn record_matrix(&self, _record: &mut Record<'_>) -> Result<Array> {
        Ok(self.weight.clone())
    }

    fn record_matrix_vjp(
        &self,
        _record: &mut Record<'_>,
        _w: Option<&Array>,
        ct: &Array,
        wanted: &[bool],
    ) -> Result<Vec<Option<Array>>> {
        Ok(wanted.iter().map(|&wanted| wanted.then(|| ct.clone())).collect())
    }
}
