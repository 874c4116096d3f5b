//! What calls have computed and keep for later ones: with the memory it was computed from, or with the device. A lack of memory ends it all.

use super::Memory;
use std::any::Any;
use std::collections::HashMap;
use std::mem::take;
use std::ptr::from_ref;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By the address of the memory, 0 for the device. What is taken out is dropped without the lock, which the end of memory takes.
#[derive(Default)]
pub(crate) struct Kept(Mutex<HashMap<usize, Box<dyn Any + Send>>>);

impl Kept {
    fn all(&self) -> MutexGuard<'_, HashMap<usize, Box<dyn Any + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get<K: Any + Clone>(&self, of: Option<&Memory>) -> Option<K> {
        self.all().get(&address(of))?.downcast_ref().cloned()
    }

    /// Keeps this in place of what was kept before.
    pub fn put(&self, of: Option<&Memory>, kept: impl Any + Send) {
        let before = self.all().insert(address(of), Box::new(kept));
        drop(before);
    }

    /// Ends what is kept with this memory.
    pub fn end(&self, of: &Memory) {
        let ended = self.all().remove(&address(Some(of)));
        drop(ended);
    }

    pub fn clear(&self) {
        let all = take(&mut *self.all());
        drop(all);
    }
}

fn address(of: Option<&Memory>) -> usize {
    of.map_or(0, |memory| from_ref(memory).addr())
}
