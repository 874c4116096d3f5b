//! Time: the rows of each step, chunks of steps, the segments of a checkpoint, and the arrays that steps read.

pub mod checkpoint;
pub mod chunk;
pub mod halves;
pub mod schedule;
pub mod starts;
pub mod timeline;
