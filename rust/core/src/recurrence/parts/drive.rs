//! What a step reads of its input, U x_t + b, as a map that the product of the states is added to.
//!
//! A step of few rows would read all of U for each of them. So where there are many features, U x + b of several steps is one
//! product, which a step then adds. Its sums are those of a product of [`ROWS`] rows, whatever steps and rows are
//! computed together: they have the same bits in a replayed segment, and for any number of members.

use super::super::time::Timeline;
use super::padded::or_null;
use crate::kernels::Operand;
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::work;
use crate::transition::{Component, Needs, Packed, Part};
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// Rows of a product ahead of its steps. Tests have blocks that divide nothing.
const ROWS: usize = if cfg!(test) { 7 } else { 32 };
/// Most rows of a step whose product is ahead: with more, U is read as often as the states are multiplied.
const MOST: usize = if cfg!(test) { 2 } else { 8 };
/// Fewest features: below, a product within the step costs less than to store and load its result.
const LEAST: usize = if cfg!(test) { 2 } else { 32 };

/// U (rows, d), packed, b, and U x + b of the steps ahead.
pub struct Drive<'s, T: Scalar> {
    line: &'s Timeline<'s, T::Real>,
    u: &'s [T],
    packed: Packed<T>,
    /// For whole vectors; empty without.
    bias: &'s [T::Real],
    /// Real numbers of a row of U x.
    width: usize,
    /// Steps ahead, of which `values` has U x + b; none where each step computes its own.
    span: usize,
    values: Region<T::Real>,
}

/// Steps whose products are one; 0 if each step computes its own.
fn span([steps, batch, features]: [usize; 3]) -> usize {
    if steps > 1 && batch <= MOST && features >= LEAST { ROWS / batch } else { 0 }
}

/// U^T
fn transposed<T>(u: &[T], features: usize) -> Operand<T> {
    Operand::new(u.as_ptr(), features).t()
}

impl<'s, T: Scalar> Drive<'s, T> {
    /// For so many rows of U, whose packed form may be `given`, and b up to whole vectors, empty without.
    pub fn carve(
        arena: &mut Arena,
        line: &'s Timeline<'s, T::Real>,
        (u, rows): (&'s [T], usize),
        bias: &'s [T::Real],
        given: Option<&[T::Real]>,
    ) -> Self {
        let (features, batch, width) = (line.features / T::PARTS, line.schedule.batch, rows * T::PARTS);
        let [_, steps] = line.schedule.products();
        let span = span([steps, batch, features]);
        // sequences of several lengths are multiplied one by one
        let each = if line.schedule.full(&(0..steps)) { 1 } else { batch };
        let products =
            if span > 0 { [span.min(steps) * batch, steps.div_ceil(span) * each] } else { [batch, steps] };
        Drive {
            line,
            u,
            packed: Packed::of(arena, [features, rows], given, (transposed(u, features), products)),
            bias,
            width,
            span,
            values: arena.take(&[span, batch, width]),
        }
    }

    /// U x_t + b itself.
    pub fn alone(&self, t: usize, out: *mut T::Real) -> Affine<T::Real> {
        let whole = if self.span > 0 { ROWS } else { self.line.schedule.batch };
        let mut map = Affine::new(self.width, whole, out);
        self.packed.join(&mut map, 0, self.line.x(t), self.line.features);
        map.bias = or_null(self.bias);
        map
    }

    /// The same as a part of step t, which adds what is ahead ([`Drive::ahead`]).
    pub fn of(&self, t: usize, out: *mut T::Real) -> Affine<T::Real> {
        let mut map = if self.span > 0 {
            Affine { add: self.slot(t), ..Affine::new(self.width, self.line.schedule.batch, out) }
        } else {
            self.alone(t, out)
        };
        map.turned = t % 2 == 1;
        map
    }

    /// U x_t + b at row 0 of step t. Steps that are ahead together ascend in t, also backwards in time.
    fn slot(&self, t: usize) -> *mut T::Real {
        let schedule = &self.line.schedule;
        let k = schedule.step(t) % self.span;
        let slot = if schedule.reverse { self.span - 1 - k } else { k };
        self.values.at(slot * schedule.batch * self.width)
    }

    /// Computes this part of U x + b from the k-th step on, in the direction of the recurrence, where a product of steps of
    /// this segment begins.
    ///
    /// # Safety
    /// U is packed; nobody else uses these rows and columns of what is ahead.
    pub unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        if self.span == 0 || !(k == segment.start || k.is_multiple_of(self.span)) {
            return;
        }
        let (line, columns) = (self.line, part.columns::<T::Real>(self.width));
        let (schedule, batch) = (&line.schedule, line.schedule.batch);
        let last = ((k / self.span + 1) * self.span).min(segment.end) - 1;
        let [t, other] = [k, last].map(|k| schedule.step(k));
        let steps = t.min(other)..t.max(other) + 1;
        let rows = part.rows(0..batch);
        let mut map = self.alone(steps.start, self.slot(steps.start));
        // SAFETY: the contract above; x and the slots have the rows of these steps.
        unsafe {
            if rows.len() == batch && schedule.full(&steps) {
                return map.run(0..steps.len() * batch, columns);
            }
            // each sequence by itself, which takes part in the first of these steps
            (map.apart, map.terms[0].rows) = (batch * self.width, batch * line.features);
            for row in rows {
                let mut own = map;
                own.terms[0].a = map.terms[0].a.wrapping_add(row * line.features);
                own.out = map.out.wrapping_add(row * self.width);
                own.run(0..steps.clone().take_while(|&t| schedule.active(t) > row).count(), columns.clone());
            }
        }
    }
}

// SAFETY: there is no scratch.
unsafe impl<T: Scalar> Component<T::Real> for Drive<'_, T> {
    fn needs(&self, _rows: usize) -> Needs {
        Needs { work: [0, work(&[self.width, self.line.features])], ..Needs::NONE }
    }

    unsafe fn prepare(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        // SAFETY: the contract of the trait; U has as many rows of d columns.
        unsafe { self.packed.fill(transposed(self.u, self.line.features / T::PARTS), member) }
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn few_rows_of_many_features_are_ahead() {
        for (sizes, expected) in
            [([9, 1, 2], 7), ([9, 2, 2], 3), ([9, 3, 2], 0), ([9, 1, 1], 0), ([1, 1, 2], 0)]
        {
            assert_eq!(span(sizes), expected, "{sizes:?}");
        }
    }
}
