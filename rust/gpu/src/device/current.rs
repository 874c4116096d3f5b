//! The context of this process. It belongs to the process: after `fork` the child finds a different process
//! id and opens a device of its own; the parent's, whose driver threads do not exist in the child, is left
//! alone.

use super::Context;
use super::statistics::Counts;
use isometry_core::{Error, Result};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The context of a process. Never freed; a child, in which the lock may be held for ever, has a cell of its
/// own.
struct Cell {
    process: u32,
    context: Mutex<Option<Arc<Context>>>,
    counts: Counts,
}

/// The process that first opened a device, and the driver; a forked child finds those of its parent.
static FIRST: OnceLock<(u32, String)> = OnceLock::new();

static CELL: AtomicPtr<Cell> = AtomicPtr::new(ptr::null_mut());

fn cell() -> &'static Cell {
    loop {
        let found = CELL.load(Ordering::Acquire);
        // SAFETY: null, or a cell that was leaked.
        if let Some(cell) = unsafe { found.as_ref() }
            && cell.process == process::id()
        {
            return cell;
        }
        let cell = Cell { process: process::id(), context: Mutex::default(), counts: Counts::default() };
        let own = Box::into_raw(Box::new(cell));
        if CELL.compare_exchange(found, own, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: no other thread has seen it.
            drop(unsafe { Box::from_raw(own) });
        }
    }
}

fn held() -> MutexGuard<'static, Option<Arc<Context>>> {
    cell().context.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this process has asked of its devices.
pub(super) fn counts() -> &'static Counts {
    &cell().counts
}

/// The context of this process, opened by the first call, and again once the device was lost. It is not
/// closed at exit, when drivers may already be unloaded.
pub fn context() -> Result<Arc<Context>> {
    let usable = |context: &Arc<Context>| context.lost().is_none();
    if let Some(context) = held().clone().filter(usable) {
        return Ok(context);
    }
    // Only Mesa's drivers are known to open a device in a forked child; NVIDIA's reports a lost device or hangs, and
    // SwiftShader hangs.
    if let Some((process, driver)) = FIRST.get()
        && *process != process::id()
        && !driver.contains("Mesa")
    {
        return Err(Error::Device(format!(
            "the GPU was opened before the fork, in the parent process, and its driver ({driver}) does not work in a forked \
             child: start the process by the method \"spawn\""
        )));
    }
    // opening takes long, and other threads may open it meanwhile
    let opened = Arc::new(Context::new()?);
    FIRST.get_or_init(|| (process::id(), opened.adapter().driver.clone()));
    let mut held = held();
    if let Some(context) = held.clone().filter(usable) {
        return Ok(context);
    }
    if let Some(lost) = held.replace(opened.clone()) {
        lost.free();
    }
    Ok(opened)
}

/// Closes the device of this process, if it is open: its arrays are gone, its memory is free, the next call opens it again.
pub fn reset() {
    let context = held().take();
    if let Some(context) = context {
        context.close();
    }
}
