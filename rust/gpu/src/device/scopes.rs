//! Errors of the device, seen by the calls that cause them.

use wgpu::{Device, Error, ErrorFilter, ErrorScopeGuard};

/// Scopes for every kind of error, on one thread. They nest, and are closed in reverse order.
pub(super) struct Scopes(Vec<ErrorScopeGuard>);

impl Scopes {
    pub fn new(device: &Device) -> Self {
        let filters = [ErrorFilter::Internal, ErrorFilter::OutOfMemory, ErrorFilter::Validation];
        Scopes(filters.map(|filter| device.push_error_scope(filter)).into())
    }

    /// The first error seen.
    pub fn close(mut self) -> Option<Error> {
        let mut first = None;
        while let Some(scope) = self.0.pop() {
            first = first.or(pollster::block_on(scope.pop()));
        }
        first
    }
}

impl Drop for Scopes {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}
