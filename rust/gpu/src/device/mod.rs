//! The device: adapters, the context of one, its memory, and dispatches.

mod adapter;
mod context;
mod memory;
mod record;

pub use adapter::{Adapter, adapters};
pub use context::{Context, context, reset};
pub use memory::Memory;
pub use record::{IDENTITY, Record};
