//! The distance of a matrix from unitary.

use super::{Operand, Product, Triangle};
use crate::error::{Error, Result};
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};

/// Workspace of the check of a matrix.
#[derive(Clone, Copy)]
pub struct Unitarity<W: Scalar<Real = f64>> {
    n: usize,
    gram: Region<W>,
    scratch: Region<f64>,
}

/// Refuses matrix `b` of the argument "w".
pub fn not_unitary<W: Scalar>(b: usize, defect: f64, tol: f64) -> Error {
    let kind = if W::PARTS == 1 { "orthogonal" } else { "unitary" };
    let what = format!(
        "must be {kind}: max |W^H W - I| of matrix {b} is {defect:.1e}, tolerance {tol:.1e}; nearest=True, or procrustes, \
         takes the nearest such matrix"
    );
    Error::value("w", what)
}

impl<W: Scalar<Real = f64>> Unitarity<W> {
    /// For n x n matrices.
    pub fn carve(arena: &mut Arena, n: usize) -> Self {
        Unitarity { n, gram: arena.take(&[n, n]), scratch: arena.take(&[Product::<W>::scratch(n, n)]) }
    }

    /// Returns an error that names matrix `b` of the argument "w" unless max |W^H W - I| <= tol.
    ///
    /// # Safety
    /// The memory of the room is alive, and not otherwise in use.
    pub unsafe fn check(self, w: &[W], b: usize, tol: f64) -> Result<()> {
        // SAFETY: the workspace is alive and not otherwise in use.
        let defect = unsafe { self.defect(w, [Triangle::Full; 2]) };
        if defect <= tol { Ok(()) } else { Err(not_unitary::<W>(b, defect, tol)) }
    }

    /// Whether max |R^H R - I| <= tol for an upper triangular R with zeros below its diagonal, in a third of the
    /// operations of `check`.
    ///
    /// # Safety
    /// As for `check`.
    pub unsafe fn of_triangle(self, r: &[W], tol: f64) -> bool {
        // SAFETY: the caller's.
        unsafe { self.defect(r, [Triangle::Lower, Triangle::Upper]) <= tol }
    }

    /// max |W^H W - I|, NaN if W contains NaN; the shapes of W^H and W.
    unsafe fn defect(self, w: &[W], [left, right]: [Triangle; 2]) -> f64 {
        let Unitarity { n, gram, scratch } = self;
        assert_eq!(w.len(), n * n, "n x n numbers");
        let w = Operand::new(w.as_ptr(), n);
        // SAFETY: two disjoint n x n matrices; the room is used by this call only.
        Member::alone(|solo| unsafe {
            let product = Product::new((n, n, n), w.h(), w, gram.ptr(), n);
            product.shapes(left, right, Triangle::Upper).run(solo, scratch.ptr());
        });
        let mut worst = 0.0;
        for (i, j) in (0..n).flat_map(|i| (i..n).map(move |j| (i, j))) {
            // SAFETY: the product has written the diagonal and all above it.
            let x = unsafe { *gram.at(i * n + j) };
            let x = if i == j { x - W::one() } else { x }.modulus();
            // NaN persists
            worst = if x <= worst { worst } else { x + 0.0 * worst };
        }
        worst
    }
}
