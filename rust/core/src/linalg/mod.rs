//! Products of Householder reflections in LAPACK's storage, for any tau (docs/math/linalg.md):
//!
//! ```text
//! Q = H_1 H_2 ... H_k,      H_j = I - tau_j v_j v_j^H,
//! Q = I - V T V^H,          T = (I + D S)^-1 D = D (I + S D)^-1,      D = diag(tau),  S = striu(V^H V).
//! ```
//!
//! V (m x k) is the part of the array below its diagonal, with ones on the diagonal; what the array holds there and above is
//! not read. Both triangular matrices have a unit diagonal: nothing divides by tau or by 1 - tau ||v||^2, here or in the
//! gradients, so a factor may be the identity or a projector.

mod apply;
mod procrustes;
mod product;
mod qr;
mod qr_vjp;
mod reflectors;
#[cfg(test)]
mod tests;

pub use apply::{Bars, Order, apply, apply_vjp};
pub use procrustes::{SMALL, procrustes, procrustes_vjp};
pub use product::{product, product_vjp};
pub use qr::geqrf;
pub use qr_vjp::geqrf_vjp;
pub use reflectors::Reflectors;
