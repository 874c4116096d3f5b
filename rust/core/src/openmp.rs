//! The OpenMP team that torch keeps in this process, shared instead of fought.
//!
//! After a parallel region the threads of libgomp spin for some 6 ms. A team of our own would find their cores taken after
//! every parallel operation of torch, and each barrier would cost a time slice (a product of 32 reflections at n = 256:
//! 2.2 ms instead of 0.1). Entered through the same runtime from the same thread, the spinning threads are the members.
//! `GOMP_parallel` and the two queries are the stable interface that compilers emit calls to; libiomp5 has them too.

use crate::parallel::{Call, Task};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::OnceLock;

type Region = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);
type Query = unsafe extern "C" fn() -> c_int;

/// Entry points of the runtime, and the process that found them: a forked child has no team to share.
struct Runtime {
    region: Region,
    id: Query,
    count: Query,
    process: u32,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Looks for an OpenMP runtime among the libraries of this process; from then on calls run on its team. Whether there is one.
pub fn adopt() -> bool {
    if RUNTIME.get().is_none()
        && let Some(runtime) = find()
    {
        // A second finder found the same.
        let _ = RUNTIME.set(runtime);
    }
    adopted()
}

/// Whether calls of this process run on a shared OpenMP team.
pub fn adopted() -> bool {
    RUNTIME.get().is_some_and(|runtime| runtime.process == std::process::id())
}

#[cfg(unix)]
fn find() -> Option<Runtime> {
    let symbol = |name: &CStr| {
        // SAFETY: asks the dynamic linker for a name; nothing is loaded.
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

/// Runs the task on up to `threads` members of the shared team; false if there is none.
pub(crate) fn run(threads: usize, task: Task<'_>) -> bool {
    let Some(runtime) = RUNTIME.get().filter(|runtime| runtime.process == std::process::id()) else {
        return false;
    };
    let call = Call::new(task);
    let data = (&raw const call).cast_mut().cast::<c_void>();
    // SAFETY: the region returns when all members have left `enter`; the call lives until then.
    unsafe { (runtime.region)(enter, data, threads as c_uint, 0) };
    call.finish();
    true
}

/// One member's part. A panic stays inside the call.
unsafe extern "C" fn enter(data: *mut c_void) {
    // SAFETY: `run` passed a call that outlives the region.
    let call = unsafe { &*data.cast::<Call<'_>>() };
    if let Some(runtime) = RUNTIME.get() {
        // SAFETY: queries without arguments, inside a region of this runtime.
        let (id, count) = unsafe { ((runtime.id)(), (runtime.count)()) };
        call.join(id as usize, count as usize);
    }
}
