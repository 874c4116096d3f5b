//! The inverse map, and matrices that take another way than their neighbours.

mod inverse_map;
mod values;

use crate::scalar::{Real, Scalar};
use crate::testing::Random;

pub(super) fn signs<R: Real>(random: &mut Random, n: usize) -> Vec<R> {
    (0..n).map(|_| R::of(random.number().signum())).collect()
}

/// Parameters of a batch, owned.
pub(super) struct Parameters<T: Scalar> {
    pub(super) upper: Vec<T>,
    pub(super) diagonal: Option<Vec<T::Real>>,
    pub(super) signs: Option<Vec<T::Real>>,
    pub(super) phases: Option<Vec<T::Real>>,
    pub(super) batch: usize,
    pub(super) n: usize,
}

impl<T: Scalar> Parameters<T> {
    /// `last`: 0 none, 1 signs, 2 phases (signs for a real type).
    pub(super) fn random(batch: usize, n: usize, last: usize, scale: f64) -> Self {
        let mut random = Random::new((batch * 1000 + n * 10 + last) as u64 + 1);
        let last = if T::PARTS == 1 { last.min(1) } else { last };
        Parameters {
            upper: random.array(batch * super::triangle::len(n), scale),
            diagonal: (T::PARTS == 2 && last != 1).then(|| random.array(batch * n, scale)),
            signs: (last == 1).then(|| signs(&mut random, batch * n)),
            phases: (last == 2).then(|| random.array(batch * n, 3.0)),
            batch,
            n,
        }
    }

    pub(super) fn last(&self) -> super::Last<'_, T::Real> {
        match (&self.signs, &self.phases) {
            (Some(x), _) => super::Last::Signs(x),
            (_, Some(x)) => super::Last::Phases(x),
            _ => super::Last::None,
        }
    }

    pub(super) fn view(&self) -> super::Cayley<'_, T> {
        super::Cayley::new(&self.upper, self.diagonal.as_deref(), self.last(), self.batch, self.n).unwrap()
    }
}
