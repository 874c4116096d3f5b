//! Gradients that a caller wants: their sizes, and their arrays as the members of a call share them.

use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::sizes::check_len;

/// A gradient: its name, the length of its array if it is wanted, whether its argument was given, and the sizes of that.
pub type Wanted<'s> = (&'static str, Option<usize>, bool, &'s [usize]);

/// Refuses gradients of other sizes, and of arguments that were not given.
pub fn check(gradients: &[Wanted<'_>]) -> Result<()> {
    for &(name, wanted, given, sizes) in gradients {
        match wanted {
            Some(_) if !given => return Err(Error::value(name, "is wanted, but there is no such argument")),
            Some(len) => check_len(name, len, sizes)?,
            None => {}
        }
    }
    Ok(())
}

/// The length of an array, if there is one.
pub fn len<T>(array: &Option<&mut [T]>) -> Option<usize> {
    array.as_ref().map(|array| array.len())
}

/// An array, if there is one, as members share it.
pub fn shared<T>(array: Option<&mut [T]>) -> Option<Shared<T>> {
    array.map(|array| Shared(array.as_mut_ptr()))
}
