//! A pointer that members share.

/// A raw pointer shared by members; each writes its own part.
pub struct Shared<T>(pub *mut T);
impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}
// SAFETY: dereferencing is unsafe, and its callers guarantee disjoint parts.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: dereferencing is unsafe, and its callers guarantee disjoint parts.
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    /// The pointer advanced by `offset` elements.
    #[inline(always)]
    pub fn at(self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}
