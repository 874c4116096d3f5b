//! How far a matrix is from unitary.

use super::{Buffer, Operand, Product};
use crate::parallel::Member;
use crate::scalar::Scalar;

/// max |W^H W - I| of the n x n matrix, NaN if there is one in W.
pub fn unitarity_defect<W: Scalar<Real = f64>>(w: &[W], n: usize) -> f64 {
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
