//! Waiting without sleep, for what is a few microseconds away.

use std::time::{Duration, Instant};

/// One wait. A turn takes 10 to 50 ns, by the processor's make, so the clock decides when patience is over.
pub(super) struct Spin {
    turns: u32,
    end: Option<Instant>,
    over: bool,
}

/// Turns between two looks at the clock, which cost about two turns each.
const BETWEEN_LOOKS: u32 = 32;

impl Spin {
    pub fn new() -> Self {
        Spin { turns: 0, end: None, over: false }
    }

    /// A wait whose patience is over from the start.
    pub fn over() -> Self {
        Spin { over: true, ..Spin::new() }
    }

    /// One turn; false once `patience` has passed.
    #[inline]
    pub fn turn(&mut self, patience: Duration) -> bool {
        std::hint::spin_loop();
        self.turns = self.turns.wrapping_add(1);
        if !self.over && self.turns.is_multiple_of(BETWEEN_LOOKS) {
            let time = Instant::now();
            self.over = time >= *self.end.get_or_insert(time + patience);
        }
        !self.over
    }

    /// Turns until `done`. An early yield lets a busy machine take the core away for a whole time slice, so it comes late.
    #[inline]
    pub fn until(done: impl Fn() -> bool) {
        let mut spin = Spin::new();
        while !done() {
            spin.turn_or_yield();
        }
    }

    /// One turn of a wait that has no end of its own.
    #[inline]
    pub fn turn_or_yield(&mut self) {
        if !self.turn(BEFORE_YIELD) {
            std::thread::yield_now();
        }
    }
}

const BEFORE_YIELD: Duration = Duration::from_micros(45);
