//! The device: adapters, the context of one, its memory, and dispatches.

mod adapter;
mod context;
mod memory;
mod record;

pub use adapter::{Adapter, adapters};
pub use context::{Context, context};
pub use memory::Memory;
pub(crate) use record::Record;
