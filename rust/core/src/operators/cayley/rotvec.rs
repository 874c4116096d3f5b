//! Rotation vectors of space.

use crate::error::{Error, Result};
use crate::scalar::{Scalar, parts, parts_mut};
use crate::sizes::check_len;
use isometry_kernels::quaternion::Rodrigues;

/// Writes the upper triangles (batch, 3) of the A that give the rotations by real vectors r (batch, 3); returns whether some |r| is an
/// odd multiple of pi to rounding, for which there is no A.
///
/// ```
/// use isometry_core::operators::cayley::from_rotvec;
/// use std::f64::consts::FRAC_PI_2;
///
/// let mut upper = [0.0; 3];
/// assert!(!from_rotvec(&[0.0, 0.0, FRAC_PI_2], &mut upper, 1)?); // a quarter turn about z
/// assert!((upper[0] - 1.0).abs() < 1e-15 && upper[1..] == [0.0, 0.0]); // A_01 = tan(angle / 2)
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// Arrays of other lengths, or a complex type.
pub fn from_rotvec<T: Scalar>(rotvec: &[T], upper: &mut [T], batch: usize) -> Result<bool> {
    check_len("rotvec", rotvec.len(), &[batch, 3])?;
    check_len("upper", upper.len(), &[batch, 3])?;
    if T::PARTS != 1 {
        return Err(Error::Unsupported("rotation vectors are real".into()));
    }
    let (rotvec, upper) = (parts(rotvec).as_ptr(), parts_mut(upper).as_mut_ptr());
    // SAFETY: the arrays have three numbers for each rotation.
    Ok(unsafe { Rodrigues { rotvec, count: batch, upper }.call() })
}
