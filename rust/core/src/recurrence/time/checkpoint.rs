//! Checkpoints: the segments of a sequence between which states are kept, so that backward can obtain all others again.
//!
//! Segments are counted from the end of the recurrence, as the chunks of a backward pass are, and have whole chunks. So
//! a replayed segment has the chunks of a call that keeps all states, and gradients the same sums.

use super::schedule::{ROWS, span};
use crate::error::{Error, Result};
use std::ops::Range;

/// What backward gets in place of all states.
///
/// ```
/// use isometry_core::recurrence::Checkpoint;
///
/// assert_eq!(Checkpoint::parse("sqrt"), Some(Checkpoint::Sqrt));
/// // of 10,000 steps of a batch of 64, some hundred states are kept
/// assert!((50..200).contains(&Checkpoint::Sqrt.borders(10_000, 64, [0, 1])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checkpoint {
    /// Some sqrt(T) states, from which segments are computed again.
    Sqrt,
    /// Some sqrt(T) / 8 states and the last, from which steps are undone.
    Reversible,
}

impl Checkpoint {
    /// `sqrt` or `reversible`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "sqrt" => Some(Checkpoint::Sqrt),
            "reversible" => Some(Checkpoint::Reversible),
            _ => None,
        }
    }

    /// Rows of a chunk: fewer where they are most of the memory.
    pub(crate) fn rows(self) -> usize {
        if self == Checkpoint::Reversible { ROWS / 8 } else { ROWS }
    }

    /// K, the number of states per sequence that a forward pass of so many steps of a batch keeps, of a cell that saves `saved`
    /// numbers of each unit per step, whose state has `width` of them.
    pub fn borders(self, steps: usize, batch: usize, [saved, width]: [usize; 2]) -> usize {
        if steps == 0 || batch == 0 { 0 } else { self.segments(steps, batch, [saved, width]).borders() }
    }

    /// The segments of so many steps, of a cell that saves so many numbers per step besides those of its state.
    pub(crate) fn segments(self, steps: usize, batch: usize, [saved, width]: [usize; 2]) -> Segments {
        // Memory is least where the T / L states at borders take as much as a segment of L steps: its L (1 + saved / width) states,
        // or OPLU's bits, as much as L / 64 states.
        let best = match self {
            Checkpoint::Sqrt => (steps as f64 / (1.0 + saved as f64 / width.max(1) as f64)).sqrt(),
            Checkpoint::Reversible => 8.0 * (steps as f64).sqrt(),
        };
        let span = span(self.rows(), batch);
        let length = (best / span as f64).round().max(1.0) as usize * span;
        Segments { steps, length }
    }
}

/// Refuses a checkpoint that undoes steps, for a cell whose steps lose what they were computed from.
pub fn refuse_undoing(checkpoint: Option<Checkpoint>) -> Result<()> {
    if checkpoint == Some(Checkpoint::Reversible) {
        return Err(Error::value("checkpoint", "must be \"sqrt\": the steps of this cell cannot be undone"));
    }
    Ok(())
}

/// Segments of some steps; the first may be shorter.
#[derive(Clone, Copy)]
pub struct Segments {
    steps: usize,
    length: usize,
}

impl Segments {
    /// Of steps in a recurrence of `steps`.
    pub fn new(steps: usize, length: usize) -> Self {
        Segments { steps, length }
    }

    /// Steps of a segment.
    pub fn length(&self) -> usize {
        self.length.min(self.steps)
    }

    /// Borders between segments.
    pub fn borders(&self) -> usize {
        self.steps.div_ceil(self.length) - 1
    }

    /// The segment of the k-th step.
    pub fn of(&self, k: usize) -> Range<usize> {
        let end = self.steps - (self.steps - 1 - k) / self.length * self.length;
        end.saturating_sub(self.length)..end
    }

    /// The border before the k-th step, the first of its segment, if there is one.
    pub fn border(&self, k: usize) -> Option<usize> {
        let segment = self.of(k);
        let after = (self.steps - segment.end) / self.length;
        (k > 0 && segment.start == k).then(|| self.borders() - 1 - after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_end_with_the_sequence() {
        let segments = Segments { steps: 10, length: 4 };
        assert_eq!([0, 1, 2, 5, 6, 9].map(|k| segments.of(k)), [0..2, 0..2, 2..6, 2..6, 6..10, 6..10]);
        assert_eq!((0..10).filter_map(|k| segments.border(k)).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((segments.borders(), segments.border(6)), (2, Some(1)));
        assert_eq!(Segments { steps: 3, length: 4 }.borders(), 0);
    }

    #[test]
    fn few_states_are_kept() {
        for (steps, batch) in [(10_000, 16), (1000, 1), (7, 3), (100_000, 600)] {
            for kind in [Checkpoint::Sqrt, Checkpoint::Reversible] {
                let segments = kind.segments(steps, batch, [0, 1]);
                let span = span(kind.rows(), batch);
                let most = 2.0 * (steps as f64).sqrt() + 2.0;
                assert!(segments.length.is_multiple_of(span));
                assert!(segments.borders() as f64 <= most, "{kind:?} {steps} {batch}");
            }
        }
    }
}
