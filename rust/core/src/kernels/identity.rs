//! The rows of the identity, which a map of rows turns into its matrix.

use super::Buffer;
use crate::error::Result;
use crate::scalar::Scalar;
use crate::sizes::size;

/// `count` times I (n, n).
pub fn identity<T: Scalar>(count: usize, n: usize) -> Result<Buffer<T>> {
    let mut all = Buffer::zeroed(size("identity", &[count, n, n])?)?;
    for one in all.chunks_exact_mut((n * n).max(1)) {
        one.iter_mut().step_by(n + 1).for_each(|x| *x = T::one());
    }
    Ok(all)
}
