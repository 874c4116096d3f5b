//! Use of the OpenMP team that torch runs in this process.
//!
//! After a parallel region the threads of libgomp spin for some 6 ms. A team of our own would find their cores busy
//! after every parallel operation of torch, and each barrier would cost a time slice (a product of 32 reflections at n =
//! 256: 2.2 ms instead of 0.1). If a call enters the same runtime from the same thread, the spinning threads are its
//! members. `GOMP_parallel` and the two queries are the stable interface that compilers emit calls to; libiomp5 has them
//! too.

use super::call::{Call, Task};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

type Region = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);
type Query = unsafe extern "C" fn() -> c_int;

/// Entry points of the runtime, and the id of the process that found them: a forked child has no team to share.
struct Runtime {
    region: Region,
    id: Query,
    count: Query,
    process: u32,
}

/// Null, or the first runtime found, which is never freed. (Not a lock, which a fork could leave locked.)
static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(null_mut());

/// The runtime of this process or of one it was forked from.
fn known() -> Option<&'static Runtime> {
    // SAFETY: null, or leaked by `adopt`.
    unsafe { RUNTIME.load(Acquire).as_ref() }
}

/// Looks for an OpenMP runtime among the loaded libraries; from then on calls run on its team. Returns whether there is
/// one.
pub fn adopt() -> bool {
    if known().is_none()
        && let Some(runtime) = find()
    {
        // Concurrent calls find the same runtime, so the first store is kept.
        let _ = RUNTIME.compare_exchange(null_mut(), Box::leak(Box::new(runtime)), AcqRel, Relaxed);
    }
    adopted()
}

/// Whether calls of this process run on a shared OpenMP team.
pub fn adopted() -> bool {
    own().is_some()
}

fn own() -> Option<&'static Runtime> {
    known().filter(|runtime| runtime.process == std::process::id())
}

#[cfg(unix)]
fn find() -> Option<Runtime> {
    let symbol = |name: &std::ffi::CStr| {
        // SAFETY: the name ends with NUL; `dlsym` looks it up and loads nothing.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let region = symbol(c"GOMP_parallel")?;
    let (id, count) = (symbol(c"omp_get_thread_num")?, symbol(c"omp_get_num_threads")?);
    // SAFETY: the OpenMP ABI fixes the signatures of these names.
    unsafe {
        Some(Runtime {
            region: std::mem::transmute::<*mut c_void, Region>(region),
            id: std::mem::transmute::<*mut c_void, Query>(id),
            count: std::mem::transmute::<*mut c_void, Query>(count),
            process: std::process::id(),
        })
    }
}

#[cfg(not(unix))]
fn find() -> Option<Runtime> {
    None
}

/// Runs the task on up to `threads` members of the shared team, with or without barriers. Returns false without effect
/// if there is none.
pub(super) fn run(threads: usize, task: Task<'_>, barriers: bool) -> bool {
    own().is_some_and(|runtime| runtime.run(threads, task, barriers))
}

/// The argument of a region's threads.
struct Work<'a> {
    call: Call<'a>,
    runtime: &'a Runtime,
    threads: usize,
    barriers: bool,
    members: AtomicUsize,
}

impl Runtime {
    fn run(&self, threads: usize, task: Task<'_>, barriers: bool) -> bool {
        let work =
            Work { call: Call::new(task), runtime: self, threads, barriers, members: AtomicUsize::new(0) };
        let data = (&raw const work).cast_mut().cast::<c_void>();
        let wanted = c_uint::try_from(threads).unwrap_or(c_uint::MAX);
        // SAFETY: the region calls `enter` with this pointer and returns after all its threads have left it; `work`
        // outlives it and is only shared.
        unsafe { (self.region)(enter, data, wanted, 0) };
        work.call.finish();
        work.members.into_inner() > 0
    }
}

/// One thread of a region.
unsafe extern "C" fn enter(data: *mut c_void) {
    // SAFETY: the pointer from `Runtime::run`, whose `Work` outlives the region and is modified through atomics only.
    let work = unsafe { &*data.cast::<Work<'_>>() };
    // SAFETY: functions without arguments that may be called from any thread.
    let (id, count) = unsafe { ((work.runtime.id)(), (work.runtime.count)()) };
    work.enter(usize::try_from(id).unwrap_or(usize::MAX), usize::try_from(count).unwrap_or(0));
}

impl Work<'_> {
    /// Thread `id` of `count`. The runtime may provide fewer threads than requested (one, in a nested region), or, with
    /// some settings, more; surplus threads do not take part and are not waited for, even if there are more of them than
    /// `count`.
    fn enter(&self, id: usize, count: usize) {
        let count = count.min(self.threads);
        if id < count && self.members.fetch_add(1, Relaxed) < count {
            self.call.join(id, if self.barriers { count } else { 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;

    thread_local! {
        static PLACE: Cell<(c_int, c_int)> = const { Cell::new((0, 1)) };
    }
    unsafe extern "C" fn id() -> c_int {
        PLACE.get().0
    }
    unsafe extern "C" fn count() -> c_int {
        PLACE.get().1
    }

    type Entry = unsafe extern "C" fn(*mut c_void);

    /// Runs a region on threads with the given (id, count).
    fn region(entry: Entry, data: *mut c_void, places: impl Iterator<Item = (c_int, c_int)>) {
        let data = crate::parallel::Shared(data);
        std::thread::scope(|scope| {
            for place in places {
                scope.spawn(move || {
                    PLACE.set(place);
                    // SAFETY: called like a runtime calls it, with the pointer it was given.
                    unsafe { entry(data.at(0)) };
                });
            }
        });
    }
    unsafe extern "C" fn as_asked(entry: Entry, data: *mut c_void, threads: c_uint, _flags: c_uint) {
        region(entry, data, (0..threads as c_int).map(|id| (id, threads as c_int)));
    }
    unsafe extern "C" fn one(entry: Entry, data: *mut c_void, _threads: c_uint, _flags: c_uint) {
        region(entry, data, [(0, 1)].into_iter());
    }
    unsafe extern "C" fn fewer(entry: Entry, data: *mut c_void, _threads: c_uint, _flags: c_uint) {
        region(entry, data, (0..2).map(|id| (id, 2)));
    }
    unsafe extern "C" fn more(entry: Entry, data: *mut c_void, _threads: c_uint, _flags: c_uint) {
        region(entry, data, (0..7).map(|id| (6 - id, 7)));
    }
    unsafe extern "C" fn all_the_first(entry: Entry, data: *mut c_void, threads: c_uint, _flags: c_uint) {
        region(entry, data, (0..threads).map(|_| (0, 1)));
    }
    unsafe extern "C" fn nonsense(entry: Entry, data: *mut c_void, threads: c_uint, _flags: c_uint) {
        region(entry, data, (0..threads).map(|_| (-1, -1)));
    }

    #[test]
    fn as_many_members_as_the_runtime_gives_and_no_more_than_were_asked_for() {
        let regions: [(Region, usize); 6] =
            [(as_asked, 4), (one, 1), (fewer, 2), (more, 4), (all_the_first, 1), (nonsense, 0)];
        for (region, expected) in regions {
            let runtime = Runtime { region, id, count, process: 0 };
            let (members, ids) = (AtomicUsize::new(0), [const { AtomicBool::new(false) }; 4]);
            let ran = runtime.run(
                4,
                &|member| {
                    assert_eq!(member.count, expected);
                    assert!(!ids[member.id].swap(true, Relaxed), "two have one place");
                    members.fetch_add(1, Relaxed);
                    member.barrier();
                    assert_eq!(members.load(Relaxed), expected);
                },
                true,
            );
            assert_eq!(ran, expected > 0);
            assert_eq!(members.into_inner(), expected);
            let loose = AtomicUsize::new(0);
            let ran = runtime.run(
                4,
                &|member| {
                    assert_eq!(member.count, 1);
                    loose.fetch_add(1, Relaxed);
                },
                false,
            );
            assert_eq!((ran, loose.into_inner()), (expected > 0, expected));
        }
    }
}
