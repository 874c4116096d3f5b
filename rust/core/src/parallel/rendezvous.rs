//! Assigns the jobs of a pool to calls: a job that arrives while the rendezvous is open joins the current call.
//!
//! A job is not tied to a call: it joins whatever call is open, waits briefly for the next one, and returns. One that
//! arrives late finds a closed rendezvous, or a later call with room for it. Before it has joined, it accesses only the state
//! word of the rendezvous, which is never freed. The caller does not return while a job is inside the call.

use super::call::Call;
use super::spin::Spin;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::time::Duration;

/// How long a caller waits for jobs before it starts without the missing ones: a sleeping thread needs 20 to 50 us.
const PATIENCE: Duration = Duration::from_micros(60);
/// How long a job waits for the next call: waking a sleeping thread costs 100 times as much as a barrier.
const LINGER: Duration = Duration::from_micros(60);

/// The state word counts jobs inside the call, free places in the call, and jobs spawned that have not returned, 16 bits
/// each; one bit says that the rendezvous is open.
const INSIDE: u64 = 1;
const PLACE: u64 = 1 << 16;
const JOB: u64 = 1 << 32;
const OPEN: u64 = 1 << 48;

fn inside(word: u64) -> usize {
    (word & 0xffff) as usize
}
fn places(word: u64) -> usize {
    (word >> 16 & 0xffff) as usize
}
fn jobs(word: u64) -> usize {
    (word >> 32 & 0xffff) as usize
}
fn has_room(word: u64) -> bool {
    word & OPEN != 0 && inside(word) < places(word)
}

/// Serves one call at a time, with its jobs.
pub(super) struct Rendezvous {
    word: AtomicU64,
    /// Whether a caller holds the rendezvous.
    taken: AtomicBool,
    call: AtomicPtr<Call<'static>>,
    /// Members of the open call once their number is fixed, 0 before.
    count: AtomicUsize,
    /// The process that has the jobs.
    pub process: u32,
}

impl Rendezvous {
    pub fn new() -> Self {
        Rendezvous {
            word: AtomicU64::new(0),
            taken: AtomicBool::new(false),
            call: AtomicPtr::new(null_mut()),
            count: AtomicUsize::new(0),
            process: std::process::id(),
        }
    }

    /// Runs the call on this thread and on up to `most` jobs; `send` is called for each job that has to be spawned.
    /// Returns false without effect if another caller holds the rendezvous. With `barriers` only jobs that arrive in time take
    /// part: one that is not scheduled on a busy machine would delay every barrier by a time slice.
    pub fn run(&self, call: &Call<'_>, most: usize, barriers: bool, send: impl Fn()) -> bool {
        if self.taken.swap(true, Acquire) {
            return false;
        }
        let opened = Opened(self, call);
        self.call.store((&raw const *call).cast_mut().cast(), Relaxed);
        self.count.store(usize::from(!barriers), Relaxed);
        let most = most.min(0xffff);
        let open = |word| OPEN + PLACE * most as u64 + JOB * jobs(word).max(most) as u64;
        let about = jobs(self.change(|word| Some(open(word))).unwrap_or_else(|word| word));
        (about..most).for_each(|_| send());
        if barriers {
            let mut spin = Spin::new();
            while inside(self.word.load(Relaxed)) < most && spin.turn(PATIENCE) {}
            let count = inside(self.close()) + 1;
            self.count.store(count, Release);
            call.join(0, count);
        } else {
            call.join(0, 1);
        }
        drop(opened);
        true
    }

    /// The body of a job: joins the open call and those that follow soon.
    pub fn serve(&self) {
        let mut spin = Spin::over();
        loop {
            if let Ok(word) = self.change(|word| has_room(word).then_some(word + INSIDE)) {
                // SAFETY: the caller stored the pointer before it opened the rendezvous, and keeps the call alive until this
                // job has left it (`Opened`).
                let call = unsafe { &*self.call.load(Relaxed) };
                Spin::until(|| self.count.load(Acquire) != 0);
                call.join(inside(word) + 1, self.count.load(Relaxed));
                // without barriers a member returns when no parts are left, so no more jobs are needed
                let _ = self.change(|word| Some((word & !OPEN) - INSIDE));
                spin = Spin::new();
            } else if !spin.turn(LINGER) && self.change(|word| (!has_room(word)).then(|| word - JOB)).is_ok()
            {
                return;
            }
        }
    }

    /// Closes the rendezvous; returns the previous word.
    fn close(&self) -> u64 {
        self.word.fetch_and(!OPEN, AcqRel)
    }

    /// Changes the word and returns its previous value; an error if `to` returns None.
    fn change(&self, to: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        self.word.fetch_update(AcqRel, Relaxed, to)
    }
}

/// Closes the rendezvous on drop, also when the caller unwinds, and waits for the jobs inside, unless they are those of the process
/// from which this one was forked during the call.
struct Opened<'a>(&'a Rendezvous, &'a Call<'a>);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.close();
        if self.1.is_broken() && std::process::id() != self.0.process {
            return;
        }
        Spin::until(|| inside(self.0.word.load(Acquire)) == 0);
        self.0.taken.store(false, Release);
    }
}
