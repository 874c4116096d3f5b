//! The recurrence h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b), and its gradients.
//!
//! ```text
//! z_bar_t = phi'^H (h_bar_t + z_bar_{t+1} conj(W))          rows; h_bar the cotangents of the states
//! W_bar = sum z_bar_t^T conj(h_{t-1}),  V_bar = sum z_bar_t^T conj(x_t),  b_bar = sum z_bar_t,  x_bar_t = z_bar_t conj(V)
//! ```
//!
//! A few large products serve all steps at once; the steps themselves run in place (`steps.wgsl`).

mod backward;
mod forward;
pub(crate) mod sequence;
pub(crate) mod steps;

pub(crate) use backward::backward;
pub(crate) use forward::forward;
pub(crate) use sequence::within;
#[cfg(test)]
pub(crate) use {backward::pull, forward::run};
