//! Runs every computing call outside the interpreter lock, and maps its error.

use crate::error::exception;
use isometry_core::Result;
use isometry_core::internal::parallel::{leave, stoppable};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often a long call checks for pending signals.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);
/// What a forked child learns that returns from a signal handler into a call.
const FORKED: &str =
    "a process that was forked in a signal handler cannot finish the call in which the handler ran";

/// Runs `f` detached from the interpreter; a panic inside becomes a RuntimeError, an exception of a signal handler (ctrl-C) ends
/// the call. What does not poll, such as a wait for the GPU, asks the function that `f` gets: true once a handler has raised.
pub fn run<R: Send>(
    py: Python<'_>,
    f: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Result<R> + Send,
) -> PyResult<R> {
    let (raised, last) = (Mutex::new(None::<PyErr>), Mutex::new(None::<(Instant, u32)>));
    let outcome = py.detach(|| {
        let cancelled = || {
            // locked where a handler computes, whose calls are parts of this one
            let Ok(mut last) = last.try_lock() else { return false };
            let (time, process) = *last.get_or_insert_with(|| (Instant::now(), std::process::id()));
            if time.elapsed() < BETWEEN_SIGNALS {
                return false;
            }
            *last = Some((Instant::now(), process));
            // a daemon thread outlives the interpreter, which it can no longer ask: nobody waits for its result
            let answer = Python::try_attach(|py| py.check_signals());
            let forked = std::process::id() != process;
            let ends = answer.as_ref().is_none_or(|answer| answer.is_err());
            let error = if forked {
                Some(PyRuntimeError::new_err(FORKED))
            } else {
                answer.and_then(|answer| answer.err())
            };
            if let (Some(error), Ok(mut raised)) = (error, raised.lock()) {
                *raised = Some(error);
            }
            if forked {
                // not later: the child has none of the other threads, for which it would wait
                leave();
            }
            ends
        };
        catch_unwind(AssertUnwindSafe(|| stoppable(&cancelled, || f(&cancelled))))
    });
    finish(outcome, raised.into_inner().ok().flatten())
}

/// Runs `f` within the interpreter lock, for calls of a few microseconds, which nothing interrupts.
pub fn briefly<R>(f: impl FnOnce() -> Result<R>) -> PyResult<R> {
    finish(catch_unwind(AssertUnwindSafe(f)), None)
}

fn finish<R>(outcome: std::thread::Result<Result<R>>, raised: Option<PyErr>) -> PyResult<R> {
    // an exception of a signal handler takes precedence over the result of the call
    if let Some(error) = raised {
        return Err(error);
    }
    match outcome {
        Ok(result) => result.map_err(exception),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(PyRuntimeError::new_err(format!("internal error of isometry, please report it: {text}")))
        }
    }
}
