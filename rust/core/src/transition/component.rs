//! A part of a cell: what it needs, and what it does before the first step of a call and after the last.

use crate::parallel::Member;

/// What a part of a cell needs.
#[derive(Clone, Copy)]
pub struct Needs {
    /// Multiply-adds of one step per row: with the state before it, and with its input.
    pub work: [usize; 2],
    /// Members may share the columns of a step.
    pub divisible: bool,
    /// Real numbers at the start of a member's scratch that belong to it from `prepare` to `finish`; one part of a cell may have some.
    pub held: usize,
    /// Those behind them that it uses in single calls.
    pub free: usize,
}

impl Needs {
    /// Nothing.
    pub const NONE: Self = Needs { work: [0; 2], divisible: true, held: 0, free: 0 };

    #[inline]
    fn and(self, other: Self) -> Self {
        let work = [0, 1].map(|i| self.work[i].saturating_add(other.work[i]));
        let (held, free) = (self.held.max(other.held), self.free.max(other.free));
        Needs { work, divisible: self.divisible && other.divisible, held, free }
    }

    /// Multiply-adds of one step per row.
    pub fn step(&self) -> usize {
        self.work[0].saturating_add(self.work[1])
    }

    /// Real numbers of scratch of a member.
    pub fn scratch(&self) -> usize {
        self.held.saturating_add(self.free)
    }
}

/// A part of a cell, or the whole, which needs and does what its own parts do together. All members call `prepare` and `finish`
/// together; the driver places barriers before and after them.
///
/// # Safety
/// A member needs no more scratch than that.
///
/// Of its methods: the memory lives, and nobody else uses it.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub unsafe trait Component<R>: Sync {
    /// Calls `f` with each of its own parts.
    fn each(&self, _f: &mut dyn FnMut(&dyn Component<R>)) {}

    /// What it needs for its steps, and to gather up to `rows` rows.
    fn needs(&self, rows: usize) -> Needs {
        self.together(rows)
    }

    /// What its own parts need together.
    fn together(&self, rows: usize) -> Needs {
        let mut all = Needs::NONE;
        self.each(&mut |part| all = all.and(part.needs(rows)));
        all
    }

    /// Writes the initial data of the call, before there are members.
    unsafe fn fill(&self) {
        // SAFETY: the contract of the trait.
        self.each(&mut |part| unsafe { part.fill() });
    }

    /// Packs operands. Every member calls this with the scratch of its later calls.
    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        self.each(&mut |part| unsafe { part.prepare(scratch, member) });
    }

    /// Completes the gradients, once all members have gathered them.
    unsafe fn finish(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        self.each(&mut |part| unsafe { part.finish(scratch, member) });
    }
}
