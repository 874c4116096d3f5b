//! State shared by the members of one call.

use super::denormals::FlushDenormals;
use super::member::{Barrier, Broken, Member};
use isometry_kernels::stop::{Here, here};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

/// The function that every member runs.
pub(super) type Task<'a> = &'a (dyn Fn(&Member<'_>) + Sync);

/// A task, its barrier and its first panic.
pub(super) struct Call<'a> {
    task: Task<'a>,
    here: Here,
    barrier: Barrier,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(task: Task<'a>) -> Self {
        Call { task, here: here(), barrier: Barrier::new(), panic: Mutex::new(None) }
    }

    /// Runs member `id` of `count`; `count` is the same for all members. A panic breaks the barrier, so that no member
    /// waits forever.
    pub(super) fn join(&self, id: usize, count: usize) {
        self.barrier.expect(count);
        // SAFETY: the call of this thread waits for the member.
        let _here = unsafe { self.here.enter() };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _mode = FlushDenormals::new();
            (self.task)(&Member { id, count, barrier: &self.barrier });
        }));
        if let Err(panic) = outcome {
            if !panic.is::<Broken>()
                && let Ok(mut first) = self.panic.lock()
            {
                first.get_or_insert(panic);
            }
            self.barrier.break_up();
        }
    }

    /// Whether a member has left by a panic.
    pub(super) fn is_broken(&self) -> bool {
        self.barrier.is_broken()
    }

    /// Resumes the first panic of any member, once all members have returned.
    pub(super) fn finish(self) {
        if let Some(panic) = self.panic.into_inner().ok().flatten() {
            resume_unwind(panic);
        }
        assert!(!self.barrier.is_broken(), "another member of this call panicked");
    }
}
