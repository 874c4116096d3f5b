//! Sharing one head among all members: what does not depend on the state for a window of chunks, chunk by chunk; then the pass
//! of the states through the window, shared by columns of V.
//!
//! Heads are shared where whole ones would leave threads idle. What is computed of a chunk is the same, so the bits are too.

use super::state::panel;
use super::workspace::chunk_rows;
use super::{Delta, SEGMENT};
use crate::parallel::Member;
use crate::scalar::Real;
use isometry_kernels::stop::{BETWEEN, poll};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What all members may lose by sharing until the caller continues alone.
const SLACK: Duration = Duration::from_micros(500);

/// Segments of a window for each member that make the shares even.
const MOST: usize = 4;

impl<R: Real> Delta<'_, R> {
    /// Whether a call shares each of `tasks` heads: if whole ones keep the threads busy for less than 2/3 of the time.
    pub(super) fn shares(&self, tasks: usize, threads: usize) -> bool {
        let slots = tasks.next_multiple_of(threads);
        threads > 1 && self.longest() > SEGMENT && slots.saturating_mul(2) > tasks.saturating_mul(3)
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
    /// For `threads` members that share the chunks of `tasks` heads evenly; `most` segments for each of them,
    /// or up to [`MOST`] to be even.
    pub fn new<R: Real>(delta: &Delta<'_, R>, tasks: usize, threads: usize, most: usize) -> Self {
        let heads = delta.value_heads;
        let even = (threads / common(threads, tasks)).min(MOST * threads / heads).max(1);
        Window {
            heads,
            segments: even * (most * threads / (heads * even)).max(1),
            parts: SEGMENT / chunk_rows(&delta.gate),
            panels: delta.value.div_ceil(panel::<R>()),
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

/// A window, counted in the order of the pass: sequence and number.
pub type Place = (usize, usize);

/// The time of a member, in all and at barriers. On a busy machine members may share a core, and every barrier then costs a time
/// slice: the caller detects that all of them together are slower than it would be alone, and continues alone.
pub struct Meter<'a> {
    alone: &'a AtomicBool,
    member: &'a Member<'a>,
    start: Instant,
    waited: Duration,
}

impl<'a> Meter<'a> {
    pub fn new(alone: &'a AtomicBool, member: &'a Member<'a>) -> Self {
        Meter { alone, member, start: Instant::now(), waited: Duration::ZERO }
    }

    /// A barrier.
    pub fn meet(&mut self) {
        let start = Instant::now();
        self.member.barrier();
        self.waited += start.elapsed();
    }

    /// The barrier behind the first part of a window; returns whether the caller alone goes on, from this window on. All members get
    /// the same answer, since only the caller changes it, before this barrier.
    pub fn alone(&mut self) -> bool {
        poll(BETWEEN);
        if self.member.id == 0 && self.member.count > 1 && self.slow() {
            self.alone.store(true, Relaxed);
        }
        self.meet();
        self.member.count > 1 && self.alone.load(Relaxed)
    }

    /// The caller's share of the work is the largest. (Unit tests take every third answer for slow.)
    fn slow(&self) -> bool {
        if cfg!(test) {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            return COUNT.fetch_add(1, Relaxed).is_multiple_of(3);
        }
        let all = self.start.elapsed();
        let alone = all.saturating_sub(self.waited) * u32::try_from(self.member.count).unwrap_or(u32::MAX);
        all > alone + SLACK
    }
}

/// The greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}
