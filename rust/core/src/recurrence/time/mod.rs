//! Time: the rows of each step, chunks of steps, the segments of a checkpoint, and the arrays that steps read.

pub mod checkpoint;
pub mod chunk;
pub mod halves;
pub mod schedule;
pub mod starts;
pub mod timeline;

pub use checkpoint::{Checkpoint, Segments, refuse_undoing};
pub use chunk::{Chunk, ChunkRow, copied};
pub use halves::{Half, halves};
pub use schedule::Schedule;
pub use starts::Starts;
pub use timeline::{Copies, Run, Timeline, rows_apart};
