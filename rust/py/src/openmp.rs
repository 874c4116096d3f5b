//! The OpenMP team that torch runs in this process. `GOMP_parallel` and the two queries are the stable interface that compilers
//! emit calls to; libiomp5 has them too.

use isometry_core::internal::parallel::Team;
use std::ffi::{c_int, c_uint, c_void};

type Region = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);
type Query = unsafe extern "C" fn() -> c_int;

/// Entry points of the runtime.
struct OpenMp {
    region: Region,
    id: Query,
    count: Query,
}

/// The runtime among the loaded libraries, if there is one.
#[cfg(unix)]
pub fn find() -> Option<Box<dyn Team>> {
    let symbol = |name: &std::ffi::CStr| {
        // SAFETY: the name ends with NUL; `dlsym` looks it up and loads nothing.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let region = symbol(c"GOMP_parallel")?;
    let (id, count) = (symbol(c"omp_get_thread_num")?, symbol(c"omp_get_num_threads")?);
    // SAFETY: the OpenMP ABI fixes the signatures of these names.
    unsafe {
        Some(Box::new(OpenMp {
            region: std::mem::transmute::<*mut c_void, Region>(region),
            id: std::mem::transmute::<*mut c_void, Query>(id),
            count: std::mem::transmute::<*mut c_void, Query>(count),
        }))
    }
}

#[cfg(not(unix))]
pub fn find() -> Option<Box<dyn Team>> {
    None
}

/// The argument of a region's threads.
struct Work<'a> {
    runtime: &'a OpenMp,
    enter: &'a (dyn Fn(usize, usize) + Sync),
}

// SAFETY: OpenMP numbers the threads of a region from 0, the caller, to one less than it says there are.
unsafe impl Team for OpenMp {
    fn region(&self, threads: usize, enter: &(dyn Fn(usize, usize) + Sync)) {
        let work = Work { runtime: self, enter };
        let data = (&raw const work).cast_mut().cast::<c_void>();
        let wanted = c_uint::try_from(threads).unwrap_or(c_uint::MAX);
        // SAFETY: the region calls `thread` with this pointer and returns after all its threads have left it; `work`
        // outlives it and is only shared.
        unsafe { (self.region)(thread, data, wanted, 0) };
    }
}

/// One thread of a region.
unsafe extern "C" fn thread(data: *mut c_void) {
    // SAFETY: the pointer from `region`, whose `Work` outlives the region and is only read.
    let work = unsafe { &*data.cast::<Work<'_>>() };
    // SAFETY: functions without arguments that may be called from any thread.
    let (id, count) = unsafe { ((work.runtime.id)(), (work.runtime.count)()) };
    (work.enter)(usize::try_from(id).unwrap_or(usize::MAX), usize::try_from(count).unwrap_or(0));
}
