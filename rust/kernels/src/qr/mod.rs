//! QR factorisation by reflections of a matrix that fits in the cache, its gradient, and the product of such reflections: one
//! after another, vectors along the rows.

mod factor;
mod product;
mod pull;
mod rows;

pub use factor::{Factor, factor_work};
pub use product::{Product, product_work};
pub use pull::{Pull, pull_work};

use crate::dispatch::compiled;
use crate::scalar::{Scalar, c32, c64};

compiled! {
    /// QR factorisations, compiled for each element type.
    QrKernels: Scalar for f32, f64, c32, c64; {
        /// [`Factor`]
        fn qr_factor(Factor);
        /// [`Product`]
        fn qr_product(Product);
        /// [`Pull`]
        fn qr_pull(Pull);
    }
}
