//! The end of a call before its result. The thread that made the call asks its caller between pieces of work ([`poll`]); once the
//! answer is to stop, each of the call's threads leaves by unwinding from the next place where it polls or waits.
//!
//! What is polled is a state of the thread, so that loops need no argument for it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Work between two checks for signals, in multiply-adds or in numbers that a pass reads: a fraction of a millisecond.
pub const BETWEEN: usize = 1 << 20;

/// A call that may be stopped, by itself or with the one that it is a part of.
struct Stop<'a> {
    ask: &'a dyn Fn() -> bool,
    stopped: AtomicBool,
    /// The thread that made it, which alone asks.
    thread: *const Thread,
    /// Null, or the call that it is a part of.
    outer: *const Stop<'static>,
}

/// The call of a thread, as its other threads take it over.
#[derive(Clone, Copy)]
pub struct Here(*const Stop<'static>);
// SAFETY: other threads read only the atomic flag and compare an address, while the call lives.
unsafe impl Send for Here {}
// SAFETY: as above.
unsafe impl Sync for Here {}

/// What a thread knows: its call, and the work until the next question.
struct Thread {
    call: Cell<*const Stop<'static>>,
    left: Cell<usize>,
}

thread_local! {
    static THREAD: Thread = const { Thread { call: Cell::new(null()), left: Cell::new(BETWEEN) } };
}

/// The payload of the unwinding.
struct Stopped;

/// Runs `f`, whose work `ask` may stop: then None. `ask` is called on this thread only.
pub fn stoppable<R>(ask: &dyn Fn() -> bool, f: impl FnOnce() -> R) -> Option<R> {
    let (thread, outer) = THREAD.with(|thread| (&raw const *thread, thread.call.get()));
    let stop = Stop { ask, stopped: AtomicBool::new(false), thread, outer };
    let entered = Entered::new((&raw const stop).cast());
    let outcome = catch_unwind(AssertUnwindSafe(f));
    drop(entered);
    match outcome {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Stopped>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Leaves the call that this thread works for.
pub fn leave() -> ! {
    resume_unwind(Box::new(Stopped))
}

/// After a piece of work, or before it: leaves the call if it has been stopped. Outside of [`stoppable`] nothing happens.
#[inline]
pub fn poll(work: usize) {
    THREAD.with(|thread| match thread.left.get().checked_sub(work) {
        Some(left) => thread.left.set(left),
        None => look(thread),
    });
}

#[cold]
fn look(thread: &Thread) {
    thread.left.set(BETWEEN);
    let mut call = thread.call.get();
    // SAFETY: null, or a call that does not return before this thread has left it.
    while let Some(stop) = unsafe { call.as_ref() } {
        if std::ptr::eq(stop.thread, thread) {
            // the answer may compute, too: as a call of its own, not as a part of this one, which it would ask again
            let _outside = Entered::new(null());
            if (stop.ask)() {
                stop.stopped.store(true, Relaxed);
            }
        }
        if stop.stopped.load(Relaxed) {
            leave();
        }
        call = stop.outer;
    }
}

/// The call of this thread.
pub fn here() -> Here {
    Here(THREAD.with(|thread| thread.call.get()))
}

impl Here {
    /// Makes it the call of this thread, for the lifetime of what is returned.
    ///
    /// # Safety
    /// The call does not return meanwhile.
    pub unsafe fn enter(self) -> Entered {
        Entered::new(self.0)
    }
}

/// A thread in a call; on drop its state is what it was.
#[must_use]
pub struct Entered(*const Stop<'static>);

impl Entered {
    fn new(call: *const Stop<'static>) -> Self {
        THREAD.with(|thread| Entered(thread.call.replace(call)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        THREAD.with(|thread| thread.call.set(self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_of_a_stopped_call_leaves_it_and_no_other() {
        poll(usize::MAX); // outside
        let asked = Cell::new(0);
        let ask = || {
            poll(usize::MAX); // not of the call that asks
            asked.replace(asked.get() + 1) > 1
        };
        let work = || (0..usize::MAX).for_each(|_| poll(BETWEEN));
        let inner = || stoppable(&|| true, work).is_none();
        assert_eq!(stoppable(&ask, || assert!(inner())), Some(()));
        let run = || {
            let here = here();
            std::thread::scope(|scope| {
                // SAFETY: the call ends after this scope.
                let other = scope.spawn(|| stoppable(&|| false, || drop(unsafe { here.enter() })).is_some());
                assert!(other.join().unwrap());
                let other = scope.spawn(|| {
                    catch_unwind(AssertUnwindSafe(|| {
                        // SAFETY: as above.
                        let _here = unsafe { here.enter() };
                        work()
                    }))
                    .is_err()
                });
                catch_unwind(AssertUnwindSafe(work)).unwrap_err();
                assert!(other.join().unwrap());
            });
            poll(usize::MAX)
        };
        assert_eq!((stoppable(&ask, run), asked.get() > 1), (None, true));
        assert!(catch_unwind(|| stoppable(&|| true, || panic!("of the caller"))).is_err());
        poll(usize::MAX);
    }
}
