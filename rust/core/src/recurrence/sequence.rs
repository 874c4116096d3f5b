//! The checked inputs of a recurrence, and the rows that take part in each step.
//!
//! Lengths do not increase, so the rows of step t are the first `active(t)`. Backwards in time each sequence starts at
//! its own end: a step then has rows that continue, followed by rows that start from h0.

use crate::activation::Activation;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::scalar::Scalar;
use crate::sizes::check_len;
use std::ops::Range;

/// The inputs of a recurrence besides its transition: h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b).
#[derive(Clone, Copy)]
pub struct Sequence<'a, T: Scalar> {
    /// T
    pub steps: usize,
    /// B
    pub batch: usize,
    /// d
    pub features: usize,
    /// State size.
    pub n: usize,
    /// (T, B, d)
    pub x: &'a [T],
    /// V (n, d)
    pub input_weight: &'a [T],
    /// (B, n), zeros if absent
    pub h0: Option<&'a [T]>,
    /// b (n)
    pub bias: Option<&'a [T]>,
    /// phi
    pub activation: Activation,
    /// Bias of the modReLUs, one number per feature.
    pub activation_bias: Option<&'a [T::Real]>,
    /// phi acts on V x_t + b only.
    pub on_input: bool,
    /// Steps of each sequence, non-increasing; all T if absent.
    pub lengths: Option<&'a [usize]>,
    /// Whether time runs from the end of each sequence to its beginning.
    pub reverse: bool,
}

impl<T: Scalar> Sequence<'_, T> {
    /// Returns an error for sizes that do not fit.
    pub fn check(&self) -> Result<()> {
        let Sequence { steps, batch, features, n, .. } = *self;
        if steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states");
            return Err(Error::shape("x", "at least one step, one sequence and one state", got));
        }
        check_len("x", self.x.len(), &[steps, batch, features])?;
        check_len("input_weight", self.input_weight.len(), &[n, features])?;
        self.h0.map_or(Ok(()), |h0| check_len("h0", h0.len(), &[batch, n]))?;
        self.bias.map_or(Ok(()), |bias| check_len("bias", bias.len(), &[n]))?;
        if let Some(lengths) = self.lengths {
            check_len("lengths", lengths.len(), &[batch])?;
            if let Some(&wrong) = lengths.iter().find(|&&length| length == 0 || length > steps) {
                return Err(Error::value("lengths", format!("must lie in 1..{steps}, got {wrong}")));
            }
            if let Some(pair) = lengths.windows(2).find(|pair| pair[0] < pair[1]) {
                let reason = format!("must not increase, got {} before {}", pair[0], pair[1]);
                return Err(Error::value("lengths", reason));
            }
        }
        self.activation.check::<T>(n, self.activation_bias)
    }

    /// Returns an error for states (T, B, n), or their cotangents, of another size.
    pub fn check_states(&self, argument: &'static str, states: &[T]) -> Result<()> {
        check_len(argument, states.len(), &[self.steps, self.batch, self.n])
    }
}

/// The rows that take part in each step.
pub struct Schedule {
    /// T
    pub steps: usize,
    /// B
    pub batch: usize,
    /// Whether time runs backwards.
    pub reverse: bool,
    /// Number of rows of each step.
    active: Buffer<usize>,
    /// Prefix sums of `active`.
    before: Buffer<usize>,
    /// Number of steps of each sequence.
    lengths: Buffer<usize>,
}

impl Schedule {
    /// The schedule of a checked sequence.
    pub fn new<T: Scalar>(sequence: &Sequence<'_, T>) -> Result<Self> {
        let Sequence { steps, batch, reverse, .. } = *sequence;
        let mut lengths = Buffer::zeroed(batch)?;
        match sequence.lengths {
            Some(given) => lengths.copy_from_slice(given),
            None => lengths.fill(steps),
        }
        let (mut active, mut before) = (Buffer::zeroed(steps)?, Buffer::zeroed(steps + 1)?);
        for t in 0..steps {
            active[t] = lengths.partition_point(|&length| length > t);
            before[t + 1] = before[t] + active[t];
        }
        Ok(Schedule { steps, batch, reverse, active, before, lengths })
    }

    /// Rows of step t.
    pub fn active(&self, t: usize) -> usize {
        self.active[t]
    }

    /// Rows of the steps `steps`.
    pub fn rows(&self, steps: &Range<usize>) -> usize {
        self.before[steps.end] - self.before[steps.start]
    }

    /// The step after t in the direction of the recurrence.
    pub fn next(&self, t: usize) -> Option<usize> {
        if self.reverse { t.checked_sub(1) } else { Some(t + 1).filter(|&t| t < self.steps) }
    }

    /// The step before t in the direction of the recurrence.
    pub fn previous(&self, t: usize) -> Option<usize> {
        if self.reverse { Some(t + 1).filter(|&t| t < self.steps) } else { t.checked_sub(1) }
    }

    /// The k-th step in the direction of the recurrence.
    pub fn step(&self, k: usize) -> usize {
        if self.reverse { self.steps - 1 - k } else { k }
    }

    /// Rows of step t that continue; the others, up to `active(t)`, start from h0.
    pub fn continuing(&self, t: usize) -> usize {
        self.previous(t).map_or(0, |s| self.active[s].min(self.active[t]))
    }

    /// Rows of step t that have a next step.
    pub fn continued(&self, t: usize) -> usize {
        self.next(t).map_or(0, |s| self.active[s].min(self.active[t]))
    }

    /// Whether all rows take part in all these steps.
    pub fn full(&self, steps: &Range<usize>) -> bool {
        self.rows(steps) == steps.len() * self.batch
    }

    /// Whether no row starts in these steps.
    pub fn seamless(&self, steps: &Range<usize>) -> bool {
        steps.clone().all(|t| self.continuing(t) == self.active[t])
    }

    /// The rows of member `id` of `count`, balanced by their number of steps.
    pub fn share(&self, id: usize, count: usize) -> Range<usize> {
        let total = self.before[self.steps];
        let cut = |id: usize| {
            let mut sum = 0;
            // A row goes to the side that contains its middle.
            self.lengths
                .iter()
                .take_while(|&&length| {
                    sum += length;
                    (2 * sum - length) * count < 2 * total * id
                })
                .count()
        };
        cut(id)..if id + 1 == count { self.batch } else { cut(id + 1) }
    }
}
