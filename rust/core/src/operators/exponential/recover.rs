//! The principal logarithms of given rotations of the plane and of space.

use crate::cpu::Law;
use crate::error::{Error, Result};
use crate::operators::recovered::{closed, recovered};
use crate::scalar::Scalar;
use crate::sizes::{check_len, triangles};

/// Writes the upper triangles (batch, n (n - 1) / 2) of A for real w (batch, n, n), n = 2 or 3.
///
/// ```
/// use isometry_core::operators::exponential::from_matrix;
/// use std::f64::consts::FRAC_PI_2;
///
/// let mut upper = [0.0];
/// from_matrix(&[0.0, 1.0, -1.0, 0.0], &mut upper, (1, 2), 1e-8)?;
/// assert!((upper[0] - FRAC_PI_2).abs() < 1e-15);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If some |W^H W - I| exceeds `tol`, or a determinant is -1; other sizes, a complex type, arrays of other lengths.
pub fn from_matrix<T: Scalar>(w: &[T], upper: &mut [T], (batch, n): (usize, usize), tol: f64) -> Result<()> {
    check_len("w", w.len(), &[batch, n, n])?;
    check_len("upper", upper.len(), &triangles(batch, n))?;
    if !closed::<T>(n) {
        return Err(Error::Unsupported(
            "there is a closed form for real matrices of two or three rows only".into(),
        ));
    }
    recovered(w, (Law::Exponential, false), None, upper, n, tol, |b, _, det| {
        if det > 0.0 {
            return Ok(());
        }
        let what = format!(
            "must have determinant 1 to be the exponential of a real matrix, but that of matrix {b} is -1; a complex w has a \
             logarithm always, and nearest=True takes the nearest rotation"
        );
        Err(Error::value("w", what))
    })
}
