//! Where a caller and the jobs of a pool meet: jobs that come while the gate is open join the call behind it.
//!
//! A job owns nothing of a call and knows none: it comes, joins whatever call is open, lingers for the next one, and leaves. So
//! one that comes late finds a closed gate, or a later call that has room. All that it looks at before it has joined is one
//! word of the gate, which is never freed. The caller goes no further while a job that has joined is inside.

use super::call::Call;
use super::spin::Spin;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::time::Duration;

/// How long a caller waits for jobs before it starts with those who came: a sleeping thread needs 20 to 50 us.
const PATIENCE: Duration = Duration::from_micros(60);
/// How long a job that took part stays for the next call: waking a sleeping thread costs 100 times what a barrier does.
const LINGER: Duration = Duration::from_micros(60);

/// The word of the gate counts jobs inside the call, places that the call has for them, and jobs that were sent and have not
/// left, 16 bits each; one bit says that the gate is open.
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

/// One call at a time, and the jobs that serve it.
pub(super) struct Gate {
    word: AtomicU64,
    /// A caller has the gate.
    taken: AtomicBool,
    call: AtomicPtr<Call<'static>>,
    /// Members of the open call once they are known, until then 0.
    count: AtomicUsize,
}

impl Gate {
    pub const fn new() -> Self {
        Gate {
            word: AtomicU64::new(0),
            taken: AtomicBool::new(false),
            call: AtomicPtr::new(null_mut()),
            count: AtomicUsize::new(0),
        }
    }

    /// Runs the call on this thread and on up to `most` jobs, for as many of which as are not about `send` is called; false,
    /// and nothing done, if another caller has the gate. With `barriers` only jobs that come within a moment take part: one
    /// that a busy machine does not let run would hold up every barrier for a time slice.
    pub fn run(&self, call: &Call<'_>, most: usize, barriers: bool, send: impl Fn()) -> bool {
        if self.taken.swap(true, Acquire) {
            return false;
        }
        let opened = Opened(self);
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

    /// A job: joins the open call and those that follow soon.
    pub fn serve(&self) {
        let mut spin = Spin::over();
        loop {
            if let Ok(word) = self.change(|word| has_room(word).then_some(word + INSIDE)) {
                // SAFETY: the caller wrote the pointer before it opened the gate, and the call behind it lives until this job
                // is no longer inside (`Opened`).
                let call = unsafe { &*self.call.load(Relaxed) };
                Spin::until(|| self.count.load(Acquire) != 0);
                call.join(inside(word) + 1, self.count.load(Relaxed));
                // without barriers a member returns when nothing is left to take: nobody need come any more
                let _ = self.change(|word| Some((word & !OPEN) - INSIDE));
                spin = Spin::new();
            } else if !spin.turn(LINGER) && self.change(|word| (!has_room(word)).then(|| word - JOB)).is_ok()
            {
                return;
            }
        }
    }

    /// The word before it was closed.
    fn close(&self) -> u64 {
        self.word.fetch_and(!OPEN, AcqRel)
    }

    /// The word before a change; an error if it was not to be changed.
    fn change(&self, to: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        self.word.fetch_update(AcqRel, Relaxed, to)
    }
}

/// Closes the gate and waits for the jobs inside, also if the caller unwinds.
struct Opened<'a>(&'a Gate);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.close();
        Spin::until(|| inside(self.0.word.load(Acquire)) == 0);
        self.0.taken.store(false, Release);
    }
}
