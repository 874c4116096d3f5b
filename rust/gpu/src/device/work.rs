//! A record with the memory of what lies between its dispatches.

use super::{Context, Record};
use crate::{Array, Kind};
use isometry_core::error::Result;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A [`Record`] that keeps arrays until it is submitted: memory that is freed before could go to another call, submitted earlier.
pub(crate) struct Work {
    record: Record,
    kept: Vec<Array>,
}

impl Work {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        Ok(Work { record: Record::new(context)?, kept: vec![] })
    }

    /// Uninitialised room, kept.
    pub fn room(&mut self, kind: Kind, shape: &[usize]) -> Result<Array> {
        let array = Array::room(self.record.context(), kind, shape)?;
        self.kept.push(array.clone());
        Ok(array)
    }

    /// Keeps an array.
    pub fn keep(&mut self, array: &Array) {
        self.kept.push(array.clone());
    }

    /// Submits all dispatches; does not wait for them.
    pub fn submit(self) -> Result<()> {
        self.record.submit()
    }
}

impl Deref for Work {
    type Target = Record;
    fn deref(&self) -> &Record {
        &self.record
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut Record {
        &mut self.record
    }
}
