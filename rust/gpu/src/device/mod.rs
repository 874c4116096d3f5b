//! The device: adapters, the context of one, its memory, and dispatches.

mod adapter;
mod context;
mod current;
mod kept;
mod memory;
mod record;
mod scopes;
mod statistics;
#[cfg(test)]
mod tests;

pub use adapter::{Adapter, adapters};
pub use context::Context;
pub(crate) use context::{index, too_large};
pub use current::{context, reset};
pub use memory::Memory;
pub(crate) use record::{Record, WORK};
pub use statistics::statistics;
