//! Parameters of given rotations of the plane and of space, in double precision.

use crate::cpu::Law;
use crate::error::Result;
use crate::kernels::not_unitary;
use crate::scalar::{Real, Scalar};
use isometry_kernels::quaternion::Recover;

/// Matrices of a call of the kernel.
const GROUP: usize = 64;

/// Whether there is a closed form for n x n matrices of this type.
pub(super) fn closed<T: Scalar>(n: usize) -> bool {
    T::PARTS == 1 && (n == 2 || n == 3)
}

/// Writes the upper triangles of A for w (batch, n, n) and, if `choose`, the diagonals of D (batch, n); else reads them, which an
/// exponential does not have. `check(b, upper, det)` refuses the parameters of a matrix, with the determinant of W, or of W D^-1
/// for a given D; a matrix that is not orthogonal within `tol` is refused before.
pub(super) fn recovered<T: Scalar>(
    w: &[T],
    (law, choose): (Law, bool),
    mut signs: Option<&mut [T::Real]>,
    upper: &mut [T],
    n: usize,
    tol: f64,
    check: impl Fn(usize, &[f64], f64) -> Result<()>,
) -> Result<()> {
    assert!(closed::<T>(n), "rotations of the plane and of space");
    let len = n * (n - 1) / 2;
    for (group, (w, upper)) in w.chunks(GROUP * n * n).zip(upper.chunks_mut(GROUP * len)).enumerate() {
        let count = upper.len() / len;
        let signs = signs.as_deref_mut().map(|signs| &mut signs[group * GROUP * n..][..count * n]);
        let [mut wide, mut found, mut last] = [[0.0; 9 * GROUP]; 3];
        let [mut defects, mut determinants] = [[0.0; GROUP]; 2];
        wide.iter_mut().zip(w).for_each(|(wide, x)| *wide = x.re().f64());
        if let Some(signs) = &signs {
            last.iter_mut().zip(&**signs).for_each(|(wide, x)| *wide = x.f64());
        }
        // SAFETY: the arrays have room for the matrices of a group.
        unsafe {
            Recover::<f64> {
                w: wide.as_ptr(),
                n,
                count,
                law,
                signs: last.as_mut_ptr(),
                choose,
                upper: found.as_mut_ptr(),
                defects: defects.as_mut_ptr(),
                determinants: determinants.as_mut_ptr(),
            }
            .call();
        }
        for (i, found) in found.chunks(len).take(count).enumerate() {
            let b = group * GROUP + i;
            let orthogonal = defects[i] <= tol;
            if !orthogonal {
                return Err(not_unitary::<f64>(b, defects[i], tol));
            }
            let given = signs.as_deref().filter(|_| !choose).map(|signs| &signs[i * n..][..n]);
            let det = given.map_or(1.0, |signs| signs.iter().map(|x| x.f64()).product());
            check(b, found, det * determinants[i])?;
        }
        upper.iter_mut().zip(&found).for_each(|(x, wide)| *x = T::real(T::Real::of(*wide)));
        if let Some(signs) = signs.filter(|_| choose) {
            signs.iter_mut().zip(&last).for_each(|(x, wide)| *x = T::Real::of(*wide));
        }
    }
    Ok(())
}
