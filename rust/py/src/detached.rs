//! Runs every computing call outside the interpreter lock, and maps its error.

use crate::error::exception;
use isometry_core::Result;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often a long call checks for pending signals.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

/// Runs `f` detached from the interpreter; a panic inside becomes a RuntimeError.
pub fn run<R: Send>(py: Python<'_>, f: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    finish(py.detach(|| catch_unwind(AssertUnwindSafe(f))), None)
}

/// [`run`] for a long call: `f` gets a function that returns true once a signal handler (ctrl-C) has raised.
pub fn run_interruptible<R: Send>(
    py: Python<'_>,
    f: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Result<R> + Send,
) -> PyResult<R> {
    let (raised, last) = (Mutex::new(None::<PyErr>), Mutex::new(Instant::now()));
    let outcome = py.detach(|| {
        let cancelled = || {
            let Ok(mut last) = last.lock() else { return false };
            if last.elapsed() < BETWEEN_SIGNALS {
                return false;
            }
            *last = Instant::now();
            // a daemon thread outlives the interpreter, which it can no longer ask: nobody waits for its result
            match Python::try_attach(|py| py.check_signals()) {
                None => true,
                Some(Ok(())) => false,
                Some(Err(error)) => {
                    if let Ok(mut raised) = raised.lock() {
                        *raised = Some(error);
                    }
                    true
                }
            }
        };
        catch_unwind(AssertUnwindSafe(|| f(&cancelled)))
    });
    finish(outcome, raised.into_inner().ok().flatten())
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
