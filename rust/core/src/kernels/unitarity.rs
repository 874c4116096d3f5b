//! How far a matrix is from unitary.

use super::{Buffer, Operand, Product};
use crate::error::{Error, Result};
use crate::parallel::Member;
use crate::scalar::Scalar;

/// Refuses matrix `b` of the argument "w", here n x n in double precision, unless max |W^H W - I| <= tol.
pub fn check_unitary<W: Scalar<Real = f64>>(w: &[W], n: usize, b: usize, tol: f64) -> Result<()> {
    let defect = unitarity_defect(w, n);
    if defect <= tol {
        return Ok(());
    }
    let kind = if W::PARTS == 1 { "orthogonal" } else { "unitary" };
    let what = format!("must be {kind}: max |W^H W - I| of matrix {b} is {defect:.1e}, tolerance {tol:.1e}");
    Err(Error::value("w", what))
}

/// max |W^H W - I| of the n x n matrix, NaN if there is one in W.
fn unitarity_defect<W: Scalar<Real = f64>>(w: &[W], n: usize) -> f64 {
    assert_eq!(w.len(), n * n, "n x n numbers");
    let gram = Buffer::<W>::scratch(n * n);
    let scratch = Buffer::<f64>::scratch(Product::<W>::scratch(n, n));
    let w = Operand::new(w.as_ptr(), n);
    // SAFETY: two separate n x n matrices.
    Member::alone(|solo| unsafe {
        Product::new((n, n, n), w.h(), w, gram.ptr(), n).run(solo, scratch.ptr());
    });
    let mut worst = 0.0;
    for (at, &x) in gram.iter().enumerate() {
        let x = if at % (n + 1) == 0 { x - W::one() } else { x }.modulus();
        // once NaN, always NaN
        worst = if x <= worst { worst } else { x + 0.0 * worst };
    }
    worst
}
