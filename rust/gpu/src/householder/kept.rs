//! What W x and W^H x keep for the next call with the same arrays, with the memory of the vectors: the factors, and H of the rows, from which
//! the gradient begins. Arrays of the device do not change, so that the same memory has the same numbers.

use super::{Factors, Householder};
use crate::Array;
use crate::device::{Memory, Record};
use isometry_core::Side;
use std::sync::{Arc, Weak};

#[derive(Clone)]
struct Kept {
    /// Of the vectors.
    shape: Vec<usize>,
    factors: Factors,
    rows: Rows,
}

/// H of rows x on one side of the operator with this last factor.
#[derive(Clone)]
struct Rows {
    x: Weak<Memory>,
    last: Option<Weak<Memory>>,
    side: Side,
    h: Array,
}

fn is(held: &Weak<Memory>, array: &Array) -> bool {
    std::ptr::eq(held.as_ptr(), Arc::as_ptr(array.memory())) && held.strong_count() > 0
}

impl Householder<'_> {
    fn kept(&self) -> Option<Kept> {
        self.vectors.memory().kept::<Kept>().filter(|kept| kept.shape == self.vectors.shape())
    }

    pub(super) fn kept_factors(&self) -> Option<Factors> {
        self.kept().map(|kept| kept.factors)
    }

    /// H of these rows.
    pub(super) fn kept_rows(&self, x: &Array, side: Side) -> Option<Array> {
        let rows = self.kept()?.rows;
        let last = match (&rows.last, &self.last) {
            (None, None) => true,
            (Some(held), Some(last)) => is(held, last.given()),
            _ => false,
        };
        let shape = [self.batch, x.shape()[1], self.m];
        (last && is(&rows.x, x) && rows.side == side && rows.h.shape() == shape).then_some(rows.h)
    }

    /// Keeps H of these rows once it is submitted.
    pub(super) fn keep(&self, record: &mut Record<'_>, factors: &Factors, x: &Array, side: Side, h: &Array) {
        let last = self.last.as_ref().map(|last| Arc::downgrade(last.given().memory()));
        let rows = Rows { x: Arc::downgrade(x.memory()), last, side, h: h.clone() };
        let kept = Kept { shape: self.vectors.shape().to_vec(), factors: factors.clone(), rows };
        let vectors = self.vectors.clone();
        record.after(move || vectors.memory().keep(kept));
    }
}
