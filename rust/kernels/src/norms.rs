//! Passes over arrays: squared norms of the columns of a row-major matrix; whether an array is zero.

use crate::dispatch::{compiled, kernel};
use crate::scalar::Real;

compiled! {
    /// Passes, compiled for each real type.
    NormKernels: Real for f32, f64; {
        /// [`Squares`]
        fn squares(Squares);
        /// [`Zeros`]
        fn zeros(Zeros) -> bool;
    }
}

/// Sums of squares down `width` columns of `rows` rows, each from the first row to the last.
///
/// # Safety
/// The rows exist; `sums` has room for one row.
pub struct Squares<R> {
    /// The rows.
    pub u: *const R,
    /// Number of rows.
    pub rows: usize,
    /// Distance of the rows.
    pub stride: usize,
    /// Number of columns.
    pub width: usize,
    /// The sums.
    pub sums: *mut R,
}

kernel!(Squares::<R>, |&Squares { u, rows, stride, width, sums }| {
    // four vectors at a time: consecutive cache lines of a row
    for col in (0..width).step_by(4 * S::LANES) {
        // SAFETY: the rows and `sums` exist (contract of `Squares`).
        unsafe {
            let mut acc = [S::zero(); 4];
            for i in 0..rows {
                for j in 0..4 {
                    let at = col + j * S::LANES;
                    if at < width {
                        let x = S::load_n(u.add(i * stride + at), width - at);
                        acc[j] = S::mul_add(x, x, acc[j]);
                    }
                }
            }
            for j in 0..4 {
                let at = col + j * S::LANES;
                if at < width {
                    S::store_n(sums.add(at), acc[j], width - at);
                }
            }
        }
    }
});

/// Whether every number is zero.
///
/// # Safety
/// x points to `len` numbers.
pub struct Zeros<R> {
    /// The numbers.
    pub x: *const R,
    /// Number of them.
    pub len: usize,
}

kernel!(Zeros::<R>, |own| -> bool {
    let (zero, one) = (R::zero(), num_traits::One::one());
    // SAFETY: whole vectors, and a masked one, within the slice; `lanes` holds one vector.
    unsafe {
        let mut found = S::zero();
        for at in (0..own.len).step_by(S::LANES) {
            let x = S::load_n(own.x.add(at), own.len - at);
            // NaN is not equal to zero either
            found = S::add(found, S::select_eq(x, S::zero(), S::zero(), S::splat(one)));
        }
        let mut lanes = [zero; 16];
        S::store(lanes.as_mut_ptr(), found);
        lanes.iter().all(|&count| count == zero)
    }
});
