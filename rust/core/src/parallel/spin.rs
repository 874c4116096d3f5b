//! Busy waiting for events expected within microseconds.

use std::time::{Duration, Instant};

/// One wait. A turn takes 10 to 50 ns, depending on the processor, so the timeout is measured with the clock.
pub(super) struct Spin {
    turns: u32,
    end: Option<Instant>,
    over: bool,
}

/// Turns between two readings of the clock, each of which costs about two turns.
const BETWEEN_LOOKS: u32 = 32;

impl Spin {
    pub fn new() -> Self {
        Spin { turns: 0, end: None, over: false }
    }

    /// A wait whose timeout has already passed.
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

    /// Spins until `done`. It yields late, since after a yield a busy machine may not return the core for a time slice.
    #[inline]
    pub fn until(done: impl Fn() -> bool) {
        let mut spin = Spin::new();
        while !done() {
            spin.turn_or_yield();
        }
    }

    /// One turn of a wait without timeout.
    #[inline]
    pub fn turn_or_yield(&mut self) {
        if !self.turn(BEFORE_YIELD) {
            std::thread::yield_now();
        }
    }
}

const BEFORE_YIELD: Duration = Duration::from_micros(45);
