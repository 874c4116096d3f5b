//! Sharing one head among all members: what does not depend on the state for a window of chunks, chunk by chunk; then the pass
//! of the states through the window, shared by columns of V.
//!
//! Heads are shared where whole ones would leave threads idle. What is computed of a chunk is the same, so the bits are too.

use crate::kernels::lanes;
use super::workspace::chunk_rows;
use super::{Delta, SEGMENT};
use crate::parallel::Member;
use crate::scalar::Real;

/// The most segments of a window per member.
const MOST: usize = 4;

impl<R: Real> Delta<'_, R> {
    /// Whether a call shares each of `tasks` heads: if whole ones keep the threads busy for less than 4/5 of the time.
    pub(super) fn shares(&self, tasks: usize, threads: usize) -> bool {
        let slots = tasks.next_multiple_of(threads);
        threads > 1 && self.longest() > SEGMENT && slots.saturating_mul(4) > tasks.saturating_mul(5)
    }
}

/// Windows of the heads of a sequence.
#[derive(Clone, Copy)]
pub struct Window {
    /// Value heads.
    heads: usize,
    /// Segments of each head.
    segments: usize,
    /// Chunks of a segment.
    parts: usize,
    /// Parts of the columns of V that members can share.
    panels: usize,
}

impl Window {
    /// For `threads` members that share the chunks of `tasks` heads evenly.
    pub fn new<R: Real>(delta: &Delta<'_, R>, tasks: usize, threads: usize) -> Self {
        let even = threads / common(threads, tasks);
        let heads = delta.value_heads;
        Window {
            heads,
            segments: even.min(MOST * threads / heads).max(1),
            parts: SEGMENT / chunk_rows(&delta.gate),
            panels: delta.value.div_ceil(2 * lanes::<R>()),
        }
    }

    /// Its rows.
    pub fn rows(self) -> usize {
        self.segments * SEGMENT
    }

    /// Its chunks, those of all heads; each has memory of its own.
    pub fn chunks(self) -> usize {
        self.heads * self.segments * self.parts
    }

    /// The place of a head's chunk `i`.
    pub fn place(self, head: usize, i: usize) -> usize {
        head * self.segments * self.parts + i
    }

    /// `member` as it shares the columns of a head: the heads begin at different members.
    pub fn turned<'a>(self, member: &Member<'a>, head: usize) -> Member<'a> {
        member.among((member.id + head * self.panels) % member.count, member.count)
    }
}

/// The greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}
