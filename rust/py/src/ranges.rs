//! The addresses of the arrays that the calls of a thread hold: no array that a call writes overlaps another one. NumPy
//! counts borrows of its own arrays only; for tensors, and between both, addresses are all there is to compare.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::cell::RefCell;

/// Bytes from `start` to `end`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Range {
    start: usize,
    end: usize,
    written: bool,
    argument: &'static str,
}

thread_local! {
    static HELD: RefCell<Vec<Range>> = const { RefCell::new(Vec::new()) };
}

/// A range that the thread holds until this is dropped.
pub struct Claim(Range);

impl Claim {
    /// Refuses a range that overlaps another held one, if the call writes to one of the two.
    pub fn of<T>(argument: &'static str, array: *const [T], written: bool) -> PyResult<Self> {
        let start = array.cast::<u8>().addr();
        let claimed = Range { start, end: start + array.len() * size_of::<T>(), written, argument };
        HELD.with_borrow_mut(|held| {
            let overlaps = |other: &Range| {
                (written || other.written) && claimed.start < other.end && other.start < claimed.end
            };
            if array.is_empty() {
                return Ok(Claim(claimed));
            }
            if let Some(other) = held.iter().find(|other| overlaps(other)).map(|other| other.argument) {
                let (to, from) = if written { (argument, other) } else { (other, argument) };
                return Err(PyValueError::new_err(format!("{to} must not share memory with {from}")));
            }
            held.push(claimed);
            Ok(Claim(claimed))
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // equal ranges are interchangeable; most often the last ones go first
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|other| *other == self.0) {
                held.swap_remove(at);
            }
        });
    }
}
