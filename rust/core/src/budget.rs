//! What a call may use, and when it is to stop.

/// The threads of a call, and the flag that ends a long one.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// At most so many, the caller included.
    pub threads: usize,
    /// Asked every few milliseconds by long calls: true ends the call with [`crate::Error::Interrupted`].
    pub cancel: &'a (dyn Fn() -> bool + Sync),
}

impl Budget<'static> {
    /// So many threads, without an end.
    pub fn of(threads: usize) -> Self {
        Budget { threads, cancel: &|| false }
    }
}
