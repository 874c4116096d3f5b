//! Biases as the kernels read them: up to whole vectors.

use crate::error::Result;
use crate::kernels::Buffer;
use crate::scalar::Real;

/// A copy followed by zeros up to whole vectors; empty without a bias.
pub fn padded<R: Real>(bias: Option<&[R]>) -> Result<Buffer<R>> {
    let mut buffer = Buffer::zeroed(bias.map_or(0, |bias| bias.len() + 64))?;
    if let Some(bias) = bias {
        buffer[..bias.len()].copy_from_slice(bias);
    }
    Ok(buffer)
}

/// Its first number; null without a bias.
pub fn or_null<R>(padded: &[R]) -> *const R {
    if padded.is_empty() { std::ptr::null() } else { padded.as_ptr() }
}
