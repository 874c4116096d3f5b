//! Cells over time: h_t from h_{t-1} and x_t, and backward through it.
//!
//! One driver (`driver/`) owns time, chunks, threads, lengths, direction and interruption;
//! a `Cell` (`driver/cell.rs`) owns the arithmetic of one step. The affine cell, h_t = phi(W h_{t-1} + V x_t + b),
//! has a [`Transition`] W: a matrix, any operator on rows, or an object with a step of its own. The gated
//! recurrent unit ([`gru`]), the LSTM ([`lstm`]), the rotational unit ([`rum`]), the network of oscillators ([`cornn`]) and the long expressive memory ([`lem`]) are cells of their own. Each state is summed in
//! an order that depends on the sizes of the problem only (in one step of up to three sequences also on whether the matrices
//! were packed before), so that results are the same for any number of threads.
//!
//! A forward pass keeps all states, or with a [`Checkpoint`] those at the borders of segments; backward then obtains
//! the others again, chunk by chunk (`driver/replay.rs`), in the memory of a window (`driver/window.rs`).

mod affine;
pub(crate) mod beside;
mod call;
mod cells;
pub mod cornn;
mod declaration;
mod driver;
mod ensemble;
pub mod gru;
pub mod lem;
pub mod lstm;
mod pairs;
mod parts;
mod real;
pub mod rum;
#[cfg(test)]
pub(crate) mod tests;
mod time;
mod unit;

pub use crate::transition::{Route, Transition, Workload, pack, packed};
pub use affine::{ARGUMENTS, Affine, Sequence, backward, forward};
pub use call::{Call, Object, Outcome};
pub use cells::{CELLS, declared, sequence, sequence_vjp};
pub use declaration::Declaration;
pub use driver::{Cotangent, Trajectory, Written};
pub use ensemble::ensemble;
pub use time::{Checkpoint, Run, Starts};
pub use unit::Unit;
